package scripts_test

import (
	"fmt"
	"maps"
	"strconv"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/scripts"
)

// A snapshot is what one name's keys hold.
type snapshot struct {
	lock             map[string]string
	bar              string
	lockLeft, barMin int64
}

func (c *client) snapshot(name string) snapshot {
	c.t.Helper()
	fields, err := redis.StringMap(c.must("HGETALL", prefix.Lock(name)), nil)
	if err != nil {
		c.t.Fatal(err)
	}
	left, _ := c.must("PTTL", prefix.Lock(name)).(int64)
	barLeft, _ := c.must("PTTL", prefix.Bar(name)).(int64)
	return snapshot{lock: fields, bar: c.text(prefix.Bar(name)), lockLeft: left, barMin: barLeft / 60_000}
}

// unchanged wants the keys as they were, but for the time that has passed.
func (c *client) unchanged(name string, before snapshot) {
	c.t.Helper()
	after := c.snapshot(name)
	if !maps.Equal(before.lock, after.lock) || before.bar != after.bar || after.lockLeft > before.lockLeft || after.lockLeft < before.lockLeft-5000 {
		c.t.Errorf("the keys were %+v and are %+v", before, after)
	}
}

func TestAcquireReplies(t *testing.T) {
	onBoth(t, func(t *testing.T, c *client) {
		now := c.now()
		h, other := hold("a", "me:1"), hold("a", "other:1")
		c.want(scripts.Granted, acquire(h, now))
		if got := c.snapshot("a"); got.lock["me:1"] != "1" || got.bar != fmt.Sprint(now) || got.barMin < 58 {
			t.Errorf("granted, and the keys are %+v", got)
		}
		v := c.want(scripts.Held, acquire(other, now+1))
		if !near(v.Left, ttl, 5*time.Second) || v.Bar != now || v.Time < now {
			t.Errorf("held: %+v", v)
		}
		v = c.want(scripts.Stale, acquire(h, now-1))
		if v.Bar != now || v.Time < now {
			t.Errorf("stale: %+v", v)
		}
		far := 2 * window.Microseconds()
		v = c.want(scripts.Stale, acquire(hold("b", "me:2"), now-far))
		if v.Bar != 0 {
			t.Errorf("stale on a name without a bar: %+v", v)
		}
		v = c.want(scripts.Ahead, acquire(hold("b", "me:2"), now+far))
		if v.Bar != 0 || v.Time < now {
			t.Errorf("ahead: %+v", v)
		}
		v = c.want(scripts.Missing, fleet.AcquireCall(scripts.NewHold(prefix.Keys("b"), "me:2", "me:1"), scripts.ModeImport, ttl, now, now, 1))
		if v.Left >= 0 || v.Bar != 0 || v.Time < now {
			t.Errorf("missing: %+v", v)
		}
		if got := c.snapshot("b"); len(got.lock) != 0 || got.bar != "" {
			t.Errorf("refused, and the keys are %+v", got)
		}
	})
}

// TestRepeatedMessagesChangeNothing (H01): each message is delivered twice, on two connections.
func TestRepeatedMessagesChangeNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, c *client) {
		again := c.second()
		now := c.now()
		h := hold("a", "me:1")
		twice := func(call *scripts.Call) {
			t.Helper()
			first := c.want(scripts.Granted, call)
			before := c.snapshot("a")
			if second := again.vote(call); second != first {
				t.Errorf("%s: first %+v, then %+v", call.Script.Name, first, second)
			}
			if call.Script == scripts.Extend { // it asks for a time from its delivery on, so a later one may give more
				before.lockLeft = max(before.lockLeft, ttl.Milliseconds())
			}
			c.unchanged("a", before)
		}
		twice(acquire(h, now))
		twice(acquire(h, now+10)) // a re-ask
		twice(fleet.AcquireCall(h, scripts.ModeHeal, ttl, now+20, now+20, 1))
		twice(fleet.ExtendCall(h, ttl, 1))
		twice(fleet.ExtendCall(h, ttl, 2)) // re-entry
		twice(fleet.ExtendCall(h, 0, 1))   // and its release

		before := c.snapshot("a")
		if v := again.want(scripts.Stale, acquire(h, now)); v.Bar != now+20 {
			t.Errorf("the first acquire, once more: %+v", v)
		}
		c.unchanged("a", before)

		if !c.release(h, now+20, true) {
			t.Error("the release has not found the hold")
		}
		before = c.snapshot("a")
		if again.release(h, now+20, true) {
			t.Error("the second release has found the hold")
		}
		c.unchanged("a", before)
		for _, b := range []int64{now, now + 10, now + 20} {
			c.want(scripts.Stale, acquire(h, b))
		}
	})
}

// TestReAskRaisesBarAndTime: a hold that asks again with a new ballot keeps its key, raises the bar, has its time anew.
func TestReAskRaisesBarAndTime(t *testing.T) {
	onBoth(t, func(t *testing.T, c *client) {
		now := c.now()
		h := hold("a", "me:1")
		c.want(scripts.Granted, fleet.AcquireCall(h, scripts.ModeAcquire, time.Second*5, now, now, 1))
		c.want(scripts.Granted, fleet.AcquireCall(h, scripts.ModeAcquire, ttl, now+1, now+1, 1))
		got := c.snapshot("a")
		if got.bar != fmt.Sprint(now+1) || got.lockLeft <= 5000 || len(got.lock) != 1 {
			t.Errorf("after the re-ask: %+v", got)
		}
	})
}

func TestBlocksOfBallots(t *testing.T) {
	onBoth(t, func(t *testing.T, c *client) {
		now := c.now()
		block := func(id string, first, last int64) *scripts.Call {
			return fleet.AcquireCall(hold("a", id), scripts.ModeAcquire, ttl, first, last, 1)
		}
		c.want(scripts.Granted, block("me:1", now, now+1000))
		if bar := c.text(prefix.Bar("a")); bar != fmt.Sprint(now+1000) {
			t.Errorf("the bar is %s, want the last of the block", bar)
		}
		c.want(scripts.Granted, block("me:1", now, now+1000)) // repeated
		c.release(hold("a", "me:1"), now+1000, false)
		c.want(scripts.Stale, block("me:2", now+1000, now+2000))
		c.want(scripts.Ahead, block("me:2", now+1001, now+2*window.Microseconds()))
		c.want(scripts.Granted, block("me:2", now+1001, now+2000))
	})
}

// TestPoisonedBar (H59): beyond the window exactly bar+1 is accepted, so that one master with a bar near 2^53 neither
// locks a name for ever nor makes anybody count faster than that. All digits survive.
func TestPoisonedBar(t *testing.T) {
	onBoth(t, func(t *testing.T, c *client) {
		const poison = scripts.MaxBallot - 3
		c.must("SET", prefix.Bar("a"), strconv.Itoa(poison))
		h := hold("a", "me:1")
		if v := c.want(scripts.Stale, acquire(h, c.now())); v.Bar != poison {
			t.Errorf("the bar is told as %d", v.Bar)
		}
		c.want(scripts.Ahead, acquire(h, poison+2))
		c.want(scripts.Ahead, fleet.AcquireCall(h, scripts.ModeAcquire, ttl, poison+1, poison+2, 1))
		for b := int64(poison + 1); b <= scripts.MaxBallot; b++ {
			c.want(scripts.Granted, acquire(h, b))
			if got := c.bar("a"); got != fmt.Sprint(b) {
				t.Errorf("the bar is %s, want %d", got, b)
			}
		}
		if got := c.inspect("a"); got.Bar != scripts.MaxBallot || got.ID != "me:1" {
			t.Errorf("inspected: %+v", got)
		}
		if v := c.want(scripts.Held, acquire(hold("a", "other:1"), c.now())); v.Bar != scripts.MaxBallot {
			t.Errorf("the bar is told as %d", v.Bar)
		}
	})
}

// TestBarThatIsNoNumberIsAnError, and never zero: a bar of zero would let old ballots in.
func TestBarThatIsNoNumberIsAnError(t *testing.T) {
	onBoth(t, func(t *testing.T, c *client) {
		h := hold("a", "me:1")
		for _, bar := range []string{"", "x", "12x", "-5", "1e15", " 7", "7 ", "0x10", "nan"} {
			c.must("SET", prefix.Bar("a"), bar)
			c.wantError("BADBAR", acquire(h, c.now()), "")
			c.wantError("BADBAR", fleet.ReleaseCall(h, c.now(), false, scripts.Reserve), "")
			if got := c.text(prefix.Bar("a")); got != bar {
				t.Errorf("the bar was %q and is %q", bar, got)
			}
			reply, err := c.run(fleet.ExtendCall(h, ttl, 1), "")
			if v, derr := scripts.DecodeVote(reply); err != nil || derr == nil {
				t.Errorf("a bar of %q is read as %+v, %v", bar, v, err)
			}
		}
		if n, _ := redis.Int(c.must("EXISTS", prefix.Lock("a")), nil); n != 0 {
			t.Error("a refused acquire has made the lock")
		}
	})
}

// TestForeignKeysAreErrors (H54): a key that is not ours is not "held by another".
func TestForeignKeysAreErrors(t *testing.T) {
	onBoth(t, func(t *testing.T, c *client) {
		h := hold("a", "me:1")
		calls := func() []*scripts.Call {
			now := c.now()
			return []*scripts.Call{acquire(h, now), fleet.ExtendCall(h, ttl, 1), fleet.ReleaseCall(h, now, true, scripts.Reserve), fleet.InspectCall(prefix.Keys("a"))}
		}
		c.must("SET", prefix.Lock("a"), "data")
		for _, call := range calls() {
			c.wantError("WRONGTYPE", call, "")
		}
		if got := c.text(prefix.Lock("a")); got != "data" {
			t.Errorf("the foreign key is now %q", got)
		}
		c.must("DEL", prefix.Lock("a"))
		c.want(scripts.Granted, acquire(hold("b", "me:2"), c.now()))
		c.must("DEL", prefix.Bar("b"))
	})
}

func TestImportReplacesTheHold(t *testing.T) {
	onBoth(t, func(t *testing.T, c *client) {
		now := c.now()
		imported := scripts.NewHold(prefix.Keys("a"), "new:1", "old:1")
		call := func(b int64) *scripts.Call {
			return fleet.AcquireCall(imported, scripts.ModeImport, ttl, b, b, 1)
		}
		c.want(scripts.Missing, call(now))
		c.want(scripts.Granted, acquire(hold("a", "old:1"), now))
		c.want(scripts.Stale, call(now))
		c.want(scripts.Granted, call(now+1))
		got := c.snapshot("a")
		if !maps.Equal(got.lock, map[string]string{"new:1": "1"}) || c.bar("a") != fmt.Sprint(now+1) {
			t.Errorf("after the import: %+v", got)
		}
		c.want(scripts.Granted, call(now+1)) // repeated
		c.unchanged("a", got)
		for _, late := range []*scripts.Call{acquire(hold("a", "old:1"), now+2), call(now)} {
			if v := c.vote(late); v.Kind == scripts.Granted {
				t.Errorf("a late message of the previous hold was granted")
			}
		}
		if v := c.want(scripts.Missing, fleet.ExtendCall(hold("a", "old:1"), ttl, 1)); v.Left <= 0 {
			t.Errorf("the previous hold, extended: %+v", v)
		}
		c.want(scripts.Held, fleet.AcquireCall(scripts.NewHold(prefix.Keys("a"), "x:1", "old:1"), scripts.ModeImport, ttl, now+5, now+5, 1))
		// A release of an import that may not have arrived ends either id.
		if !c.release(imported, now+1, true) {
			t.Error("the release has not found the hold")
		}
		c.want(scripts.Granted, acquire(hold("b", "old:2"), now))
		if !c.release(scripts.NewHold(prefix.Keys("b"), "new:2", "old:2"), now+1, true) {
			t.Error("the release has not found the previous hold")
		}
		if n, _ := redis.Int(c.must("EXISTS", prefix.Lock("a"), prefix.Lock("b")), nil); n != 0 {
			t.Error("a hold is left")
		}
	})
}

// A waiter finds its hold, and what is reserved for it, also in a lock that no server shows as a whole, and where both are there.
func TestAWaiterFindsWhatIsItsAmongManyFields(t *testing.T) {
	c := onServer(t)
	for _, others := range []int{0, 1, 2000} {
		for _, what := range []string{"hold", "reservation", "both", "neither"} {
			name, now := fmt.Sprint(what, " among ", others), c.now()
			ticket := scripts.NewTicket("me", 1, now, 0)
			fields := []any{prefix.Lock(name)}
			for i := range others {
				fields = append(fields, fmt.Sprint("other:", i), 1)
			}
			if what == "hold" || what == "both" {
				fields = append(fields, "me:1", 1)
			}
			if what == "reservation" || what == "both" {
				fields = append(fields, ticket.String(), 0)
			}
			if len(fields) > 1 {
				c.must("HSET", fields...)
			}
			ask := fleet.QueueCall(scripts.NewHold(prefix.Keys(name), "me:1", ticket.String()), ticket, true, ttl, time.Minute, now, now)
			if what == "neither" && others > 0 {
				if v := c.want(scripts.Held, ask); v.Place != 0 {
					t.Errorf("%s: it is answered %+v", name, v)
				}
				continue
			}
			c.want(scripts.Granted, ask)
			lock := c.snapshot(name).lock
			if _, reserved := lock[ticket.String()]; lock["me:1"] != "1" || reserved != (what == "both") { // a hold takes nothing up
				t.Errorf("%s: the lock has %d fields, reserved %v", name, len(lock), reserved)
			}
			c.want(scripts.Granted, ask)
		}
	}
}
