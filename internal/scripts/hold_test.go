package scripts_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/scripts"
)

// TestLateAcquireAfterItsReleaseIsRefused (H02): whichever of the two connections is slower, the hold is gone in the end.
func TestLateAcquireAfterItsReleaseIsRefused(t *testing.T) {
	onBoth(t, func(t *testing.T, c *client) {
		slow := c.second()
		for i, order := range []string{"acquire first", "release first"} {
			name := fmt.Sprint("n", i)
			h, now := hold(name, "me:1"), c.now()
			if order == "acquire first" {
				slow.want(scripts.Granted, acquire(h, now))
				if !c.release(h, now, false) {
					t.Errorf("%s: the hold was not there", order)
				}
			} else {
				if c.release(h, now, false) {
					t.Errorf("%s: the hold was there", order)
				}
				if v := slow.want(scripts.Stale, acquire(h, now)); v.Bar != now {
					t.Errorf("%s: %+v", order, v)
				}
			}
			if got := c.snapshot(name); len(got.lock) != 0 || c.bar(name) != fmt.Sprint(now) || got.barMin < 58 {
				t.Errorf("%s: the keys are %+v", order, got)
			}
			c.want(scripts.Granted, acquire(hold(name, "other:1"), now+1))
		}
	})
}

// TestFinalReleaseBarsEveryBallotOfTheHold (H02): a hold that has asked twice may have its second message on the way
// while its release finds the first one's key.
func TestFinalReleaseBarsEveryBallotOfTheHold(t *testing.T) {
	onBoth(t, func(t *testing.T, c *client) {
		h, now := hold("a", "me:1"), c.now()
		c.want(scripts.Granted, acquire(h, now))
		if !c.release(h, now+5, true) {
			t.Error("the hold was not there")
		}
		for b := now; b <= now+5; b++ {
			c.want(scripts.Stale, acquire(h, b))
		}
		c.want(scripts.Granted, acquire(h, now+6))
		// With one ballot the bar is the ballot already, and the release does not write it again.
		before := c.snapshot("a")
		if !c.release(h, now+7, false) {
			t.Error("the hold was not there")
		}
		if got := c.snapshot("a"); got.bar != before.bar {
			t.Errorf("the bar was %s and is %s", before.bar, got.bar)
		}
	})
}

// TestReleaseNeverRaisesTheBarBeyondTheWindow (H59): nobody's tombstone locks a name; up there the acquire that it is
// for is refused as it is.
func TestReleaseNeverRaisesTheBarBeyondTheWindow(t *testing.T) {
	onBoth(t, func(t *testing.T, c *client) {
		h := hold("a", "me:1")
		for _, b := range []int64{c.now() + window.Microseconds() + 60e6, scripts.MaxBallot} {
			if c.release(h, b, true) {
				t.Error("the hold was there")
			}
			if bar := c.text(prefix.Bar("a")); bar != "" {
				t.Errorf("a release with the ballot %d has made the bar %s", b, bar)
			}
			c.want(scripts.Ahead, acquire(h, b))
		}
		near := c.now() + window.Microseconds() - 5e6
		c.release(h, near, false)
		c.release(h, near-1, false) // never lowers it
		if bar := c.bar("a"); bar != fmt.Sprint(near) {
			t.Errorf("the bar is %q, want %d", bar, near)
		}
	})
}

func TestDebtEndsEveryHoldAtOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, c *client) {
		now := c.now()
		c.want(scripts.Granted, acquire(hold("a", "me:2"), now))
		ids := []string{"me:1", "me:2", "me:3", "me:2"}
		for i, want := range []bool{true, false} {
			reply, err := c.run(fleet.DebtCall(prefix.Keys("a"), ids, now+3), "")
			if there, derr := scripts.DecodeReleased(reply); err != nil || derr != nil || there != want {
				t.Errorf("payment %d: %v, %v, %v", i, there, err, derr)
			}
		}
		for _, id := range ids {
			c.want(scripts.Stale, acquire(hold("a", id), now+3))
		}
		// Another's hold is not touched.
		c.want(scripts.Granted, acquire(hold("a", "other:1"), now+4))
		if _, err := c.run(fleet.DebtCall(prefix.Keys("a"), ids, now+3), ""); err != nil {
			t.Error(err)
		}
		if got := c.inspect("a"); got.ID != "other:1" {
			t.Errorf("held by %+v", got)
		}
	})
}

func TestReleaseTellsTheWaiters(t *testing.T) {
	onBoth(t, func(t *testing.T, c *client) {
		l := c.second()
		if err := l.Send("SUBSCRIBE", prefix.Channel("a")); err != nil {
			t.Fatal(err)
		}
		if err := l.Flush(); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Receive(); err != nil {
			t.Fatal(err)
		}
		now := c.now()
		c.release(hold("a", "nobody:1"), now-1, false) // ends nothing, tells nothing
		c.want(scripts.Granted, acquire(hold("a", "me:1"), now))
		c.release(hold("a", "me:1"), now, false)
		got, err := redis.Strings(l.Receive())
		if err != nil || len(got) != 3 || got[1] != prefix.Channel("a") || got[2] != "me:1" {
			t.Errorf("the message is %q, %v", got, err)
		}
	})
}

// TestExtendNeverCreates (H20), and says who has the name.
func TestExtendNeverCreates(t *testing.T) {
	onBoth(t, func(t *testing.T, c *client) {
		now := c.now()
		v := c.want(scripts.Missing, fleet.ExtendCall(hold("a", "me:1"), ttl, 1))
		if v.Bar != 0 || v.Time < now || v.Left != -2*time.Millisecond {
			t.Errorf("on a free name: %+v", v)
		}
		if n, _ := redis.Int(c.must("EXISTS", prefix.Lock("a"), prefix.Bar("a")), nil); n != 0 {
			t.Error("the extension has made a key")
		}
		c.want(scripts.Granted, acquire(hold("a", "other:1"), now))
		v = c.want(scripts.Missing, fleet.ExtendCall(hold("a", "me:1"), time.Minute, 2))
		if v.Bar != now || !near(v.Left, ttl, 5*time.Second) {
			t.Errorf("on another's name: %+v", v)
		}
	})
}

// TestExtendNeverShortens (H28): and the depth is the number that was sent.
func TestExtendNeverShortens(t *testing.T) {
	onBoth(t, func(t *testing.T, c *client) {
		h := hold("a", "me:1")
		c.want(scripts.Granted, acquire(h, c.now()))
		for _, step := range []struct {
			ttl   time.Duration
			depth int
			left  time.Duration
		}{
			{time.Minute, 2, time.Minute}, {time.Second, 3, time.Minute}, {0, 1, time.Minute}, {2 * time.Minute, 1, 2 * time.Minute}, {time.Millisecond, 7, 2 * time.Minute},
		} {
			c.want(scripts.Granted, fleet.ExtendCall(h, step.ttl, step.depth))
			if got := c.inspect("a"); got.ID != "me:1" || got.Depth != step.depth || !near(got.Left, step.left, 10*time.Second) {
				t.Errorf("after %v and depth %d: %+v", step.ttl, step.depth, got)
			}
		}
	})
}

// TestInnerReleaseKeepsALockWithoutTime: somebody may have taken the time off the key (PERSIST). A release of an inner
// lock must not delete it.
func TestInnerReleaseKeepsALockWithoutTime(t *testing.T) {
	onBoth(t, func(t *testing.T, c *client) {
		h := hold("a", "me:1")
		if _, err := c.Do("HSET", prefix.Lock("a"), "me:1", 2); err != nil { // the in-memory master has no HSET
			c.want(scripts.Granted, fleet.AcquireCall(h, scripts.ModeAcquire, ttl, c.now(), c.now(), 2))
		}
		c.want(scripts.Granted, fleet.ExtendCall(h, 0, 1))
		if got := c.inspect("a"); got.ID != "me:1" || got.Depth != 1 {
			t.Errorf("the outer hold is %+v", got)
		}
	})
}

func TestInspect(t *testing.T) {
	onBoth(t, func(t *testing.T, c *client) {
		before := c.now()
		got := c.inspect("a")
		if got.Time < before || got != (scripts.Holding{Left: -2 * time.Millisecond, Time: got.Time}) {
			t.Errorf("a free name: %+v", got)
		}
		c.must("SET", prefix.Marker(), "v1 whatever")
		now := c.now()
		c.want(scripts.Granted, acquire(hold("a", "me:1"), now))
		c.want(scripts.Granted, fleet.ExtendCall(hold("a", "me:1"), ttl, 3))
		got = c.inspect("a")
		if !near(got.Left, ttl, 5*time.Second) || got.Time < now {
			t.Errorf("a held name: %+v", got)
		}
		if want := (scripts.Holding{ID: "me:1", Depth: 3, Left: got.Left, Bar: now, Time: got.Time, Marker: "v1 whatever"}); got != want {
			t.Errorf("a held name: %+v, want %+v", got, want)
		}
	})
}
