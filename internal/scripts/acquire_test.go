package scripts_test

import (
	"fmt"
	"maps"
	"reflect"
	"testing"

	"github.com/redlock-go/redlock/internal/frame"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/skew"
)

// An acquire gives each kind of reply, in the order of the script's checks, and leaves the right keys.
func TestOrderOfAcquireReplies(t *testing.T) {
	c := onServer(t)
	now, mine, others := c.now(), grant(me, 1), grant(other, 1)
	c.want(quorum.Granted, enc.Acquire(keys("a"), mine, ttl, now, now+31, nil))
	want := map[string]string{mine: fmt.Sprint("1 ", now, " ", now+31)}
	if got := c.fields("a"); !maps.Equal(got, want) || c.text(prefix.Fence("a")) != fmt.Sprint(now+31) {
		t.Errorf("after the grant, the lock is %v and the fence is %s", got, c.text(prefix.Fence("a")))
	}
	if left := c.left(prefix.Fence("a")); left < 70_000 || left > 75_000 {
		t.Errorf("the fence expires in %d ms, want 70000 to 75000", left)
	}
	v := c.want(quorum.Held, acquire("a", others, now+100))
	if !near(v.Left, ttl) || v.Holder != mine || v.Token != now || v.Free || v.Place != -1 || v.Fence != now+31 ||
		v.Time < now {
		t.Errorf("the reply for a held name is %+v", v)
	}
	if v = c.want(quorum.Stale, enc.Acquire(keys("a"), mine, ttl, now, now+30, nil)); v.Fence != now+31 || v.Time < now {
		t.Errorf("the reply to a smaller ballot of the same lease is %+v", v)
	}
	c.want(quorum.Stale, acquire("b", mine, now-skew.Window.Microseconds()-second))
	c.want(quorum.Ahead, acquire("b", mine, now+skew.Window.Microseconds()+10*second))
	v = c.want(quorum.Missing, enc.Import(keys("b"), mine, others, ttl, now, now))
	if v.Left != -1 || v.Fence != 0 || v.Time < now {
		t.Errorf("the reply for a missing lease is %+v", v)
	}
	v = c.want(quorum.Missing, enc.Import(keys("a"), grant(me, 2), others, ttl, now+50, now+50))
	if !near(v.Left, ttl) {
		t.Errorf("the reply to an import of another client's lease is %+v", v)
	}
	if got := c.must("EXISTS", prefix.Lock("b"), prefix.Fence("b"), prefix.Queue("b")); got != int64(0) {
		t.Errorf("%v keys exist after refusals of a free name, want none", got)
	}
}

// H59: a fence near the largest number does not lock a name forever. A ballot of at most 15 s above such a fence is
// accepted, and keeps all digits.
func TestFenceNearLargestNumber(t *testing.T) {
	c := onServer(t)
	const poison int64 = scripts.MaxBallot - 3
	c.must("SET", prefix.Fence("a"), fmt.Sprint(poison))
	if v := c.want(quorum.Stale, acquire("a", grant(me, 1), c.now())); v.Fence != poison {
		t.Errorf("the reported fence is %d, want %d", v.Fence, poison)
	}
	c.want(quorum.Ahead, enc.Acquire(keys("a"), grant(me, 1), ttl, poison+1, poison+2, nil))
	for b := poison + 1; b <= scripts.MaxBallot; b++ {
		c.want(quorum.Granted, acquire("a", grant(me, 1), b))
		if got := c.text(prefix.Fence("a")); got != fmt.Sprint(b) {
			t.Errorf("the fence is %s, want %d", got, b)
		}
	}
	// This also applies to a fence that is an hour ahead after the clocks were set back.
	ahead := c.now() + 3600*second
	c.must("SET", prefix.Fence("b"), fmt.Sprint(ahead))
	c.want(quorum.Ahead, acquire("b", grant(me, 1), ahead+skew.Window.Microseconds()+1))
	c.want(quorum.Granted, acquire("b", grant(me, 1), ahead+skew.Window.Microseconds()))
	if left := c.left(prefix.Fence("b")); left < 3600_000 {
		t.Errorf("a fence an hour ahead expires in %d ms, want more than an hour", left)
	}
}

// If a fence cannot be parsed, the reply is an error that says so. The fence is not taken for 0, because that would
// admit old ballots.
func TestUnreadableFenceIsError(t *testing.T) {
	c := onServer(t)
	for _, fence := range []string{"", "x", "12x", "-5", "1e15", " 7", "7 ", "0x10", "nan"} {
		c.must("SET", prefix.Fence("a"), fence)
		c.wantError("BADFENCE", acquire("a", grant(me, 1), c.now()), "")
		end := scripts.Ending{Leases: []string{grant(me, 1)}, Ballot: c.now()}
		c.wantError("BADFENCE", enc.Release(keys("a"), end), "")
		reply, err := c.run(enc.Extend(keys("a"), grant(me, 1), ttl, 1, ""), "")
		if v, derr := scripts.DecodeVote(reply); err != nil || derr == nil {
			t.Errorf("the fence %q was read as %+v, %v", fence, v, err)
		}
		if got := c.text(prefix.Fence("a")); got != fence {
			t.Errorf("the fence was %q and is %q", fence, got)
		}
	}
	if c.must("EXISTS", prefix.Lock("a")) != int64(0) {
		t.Error("a refused acquire created the lock")
	}
}

// H54: if the key of a lock has another type, the reply is an error. The name is not reported as held by another
// client.
func TestForeignKeysAreErrors(t *testing.T) {
	c := onServer(t)
	c.must("SET", prefix.Lock("a"), "data")
	for _, call := range []*frame.Call{
		acquire("a", grant(me, 1), c.now()), enc.Extend(keys("a"), grant(me, 1), ttl, 1, ""),
		enc.Release(keys("a"), ending(grant(me, 1))), enc.Inspect(keys("a")),
	} {
		c.wantError("WRONGTYPE", call, "")
	}
	if got := c.text(prefix.Lock("a")); got != "data" {
		t.Errorf("the foreign key is now %q", got)
	}
}

// The key of a lock has no TTL, because another program has removed it (PERSIST). The release of an inner lock must not
// delete the key.
func TestInnerReleaseKeepsLockWithoutTTL(t *testing.T) {
	c := onServer(t)
	id := grant(me, 1)
	c.must("HSET", prefix.Lock("a"), id, "2 1 1")
	c.want(quorum.Granted, enc.Extend(keys("a"), id, 0, 1, ""))
	if got := c.inspect("a"); got.ID != id || got.Depth != 1 || got.Left >= 0 {
		t.Errorf("the outer lock is %+v", got)
	}
	if v := c.want(quorum.Held, acquire("a", grant(other, 1), c.now())); v.Left != -1 || v.Token != 1 {
		t.Errorf("the reply to another client's acquire is %+v", v)
	}
}

func TestInspectWritesNothing(t *testing.T) {
	c := onServer(t)
	before := c.now()
	got := c.inspect("a")
	if want := (scripts.Holding{Left: -1, Time: got.Time}); got.Time < before || !reflect.DeepEqual(got, want) {
		t.Errorf("a free name is inspected as %+v", got)
	}
	if c.must("DBSIZE") != int64(0) {
		t.Error("Inspect wrote a key")
	}
	c.must("SET", prefix.Admission(), "v4 whatever")
	now, id := c.now(), grant(me, 1)
	c.want(quorum.Granted, enc.Acquire(keys("a"), id, ttl, now, now+3, nil))
	c.want(quorum.Granted, enc.Extend(keys("a"), id, ttl, 3, ""))
	got = c.inspect("a")
	want := scripts.Holding{ID: id, Depth: 3, Token: now, Left: got.Left, Fence: now + 3, Time: got.Time,
		Record: "v4 whatever"}
	if !near(got.Left, ttl) || got.Time < now || !reflect.DeepEqual(got, want) {
		t.Errorf("a held name is inspected as %+v, want %+v", got, want)
	}
}
