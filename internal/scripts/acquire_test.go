package scripts_test

import (
	"fmt"
	"maps"
	"reflect"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/frame"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/skew"
)

// An acquire gives each kind of reply, in the order of the script's checks, and leaves the right keys.
func TestOrderOfAcquireReplies(t *testing.T) {
	c := onServer(t)
	now, mine, others := c.now(), grant(me, 1), grant(other, 1)
	c.want(quorum.Granted, enc.Acquire(keys("a"), mine, term(ttl, now), now, now+31, 1, nil))
	want := map[string]string{
		mine: scripts.LeaseText(1, now, now+31, now+ttl.Microseconds()), scripts.FieldFence: fmt.Sprint(now + 31),
	}
	if got := c.fields("a"); !maps.Equal(got, want) {
		t.Errorf("after the grant, the hash is %v, want %v", got, want)
	}
	if left := c.left(prefix.Lock("a")); left < 80_000 || left > 85_000 {
		t.Errorf("the hash expires in %d ms, want 80000 to 85000", left)
	}
	v := c.want(quorum.Held, acquire("a", others, now+100))
	if !near(v.Left, ttl) || v.Holder != mine || v.Token != now || v.Free || v.Place != -1 || v.Fence != now+31 ||
		v.Time < now {
		t.Errorf("the reply for a held name is %+v", v)
	}
	if v = c.want(quorum.Stale, enc.Acquire(keys("a"), mine, term(ttl, now), now, now+30, 1, nil)); v.Fence != now+31 ||
		v.Time < now {
		t.Errorf("the reply to a smaller ballot of the same lease is %+v", v)
	}
	c.want(quorum.Stale, acquire("b", mine, now-skew.Window.Microseconds()-second))
	c.want(quorum.Ahead, acquire("b", mine, now+skew.Window.Microseconds()+10*second))
	v = c.want(quorum.Missing, enc.Import(keys("b"), mine, others, term(ttl, now), now, now))
	if v.Left != -1 || v.Fence != 0 || v.Time < now {
		t.Errorf("the reply for a missing lease is %+v", v)
	}
	v = c.want(quorum.Missing, enc.Import(keys("a"), grant(me, 2), others, term(ttl, now+50), now+50, now+50))
	if !near(v.Left, ttl) {
		t.Errorf("the reply to an import of another client's lease is %+v", v)
	}
	if got := c.must("EXISTS", prefix.Lock("b"), prefix.Queue("b")); got != int64(0) {
		t.Errorf("%v keys exist after refusals of a free name, want none", got)
	}
}

// H59: a fence near the largest number does not lock a name forever. A ballot of at most 15 s above such a fence is
// accepted, and keeps all digits.
func TestFenceNearLargestNumber(t *testing.T) {
	c := onServer(t)
	const poison int64 = scripts.MaxBallot - 3
	c.must("HSET", prefix.Lock("a"), scripts.FieldFence, fmt.Sprint(poison))
	if v := c.want(quorum.Stale, acquire("a", grant(me, 1), c.now())); v.Fence != poison {
		t.Errorf("the reported fence is %d, want %d", v.Fence, poison)
	}
	c.want(quorum.Ahead, enc.Acquire(keys("a"), grant(me, 1), term(ttl, poison+1), poison+1, poison+2, 1, nil))
	for b := poison + 1; b <= scripts.MaxBallot; b++ {
		c.want(quorum.Granted, enc.Acquire(keys("a"), grant(me, 1), scripts.Term{TTL: ttl, Until: b}, b, b, 1, nil))
		if got := c.fence("a"); got != fmt.Sprint(b) {
			t.Errorf("the fence is %s, want %d", got, b)
		}
	}
	// This also applies to a fence that is an hour ahead after the clocks were set back.
	ahead := c.now() + 3600*second
	c.must("HSET", prefix.Lock("b"), scripts.FieldFence, fmt.Sprint(ahead))
	c.want(quorum.Ahead, acquire("b", grant(me, 1), ahead+skew.Window.Microseconds()+1))
	c.want(quorum.Granted, acquire("b", grant(me, 1), ahead+skew.Window.Microseconds()))
	if left := c.left(prefix.Lock("b")); left < 3600_000 {
		t.Errorf("a fence an hour ahead expires in %d ms, want more than an hour", left)
	}
}

// If a fence cannot be parsed, the reply is an error that says so. The fence is not taken for 0, because that would
// admit old ballots.
func TestUnreadableFenceIsError(t *testing.T) {
	c := onServer(t)
	for _, fence := range []string{"", "x", "12x", "-5", "1e15", " 7", "7 ", "0x10", "nan"} {
		c.must("HSET", prefix.Lock("a"), scripts.FieldFence, fence)
		c.wantError("BADFENCE", acquire("a", grant(me, 1), c.now()), "")
		end := scripts.Ending{Leases: []string{grant(me, 1)}, Ballot: c.now()}
		c.wantError("BADFENCE", enc.Release(keys("a"), end), "")
		reply, err := c.run(enc.Extend(keys("a"), grant(me, 1), term(ttl, c.now()), 1, ""), "")
		if v, derr := scripts.DecodeVote(reply); err != nil || derr == nil {
			t.Errorf("the fence %q was read as %+v, %v", fence, v, err)
		}
		if got := c.fields("a"); len(got) != 1 || got[scripts.FieldFence] != fence {
			t.Errorf("the fence was %q, and the hash is %q", fence, got)
		}
	}
}

// H54: if the key of a lock has another type, the reply is an error. The name is not reported as held by another
// client.
func TestForeignKeysAreErrors(t *testing.T) {
	c := onServer(t)
	c.must("SET", prefix.Lock("a"), "data")
	for _, call := range []*frame.Call{
		acquire("a", grant(me, 1), c.now()), enc.Extend(keys("a"), grant(me, 1), term(ttl, c.now()), 1, ""),
		enc.Release(keys("a"), ending(grant(me, 1))), enc.Inspect(keys("a"), 0),
	} {
		c.wantError("WRONGTYPE", call, "")
	}
	if got := c.text(prefix.Lock("a")); got != "data" {
		t.Errorf("the foreign key is now %q", got)
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
	c.want(quorum.Granted, enc.Acquire(keys("a"), id, term(ttl, now), now, now+3, 1, nil))
	c.want(quorum.Granted, enc.Extend(keys("a"), id, term(ttl, c.now()), 3, ""))
	got = c.inspect("a")
	want := scripts.Holding{ID: id, Depth: 3, Token: now, Left: got.Left, Fence: now + 3, Time: got.Time,
		Record: "v4 whatever"}
	if !near(got.Left, ttl) || got.Time < now || !reflect.DeepEqual(got, want) {
		t.Errorf("a held name is inspected as %+v, want %+v", got, want)
	}
}

// H163: a lease that has expired by the master's own clock alone is shown, since an acquire is refused beside it.
func TestInspectShowsLeaseUntilBothClocksEndIt(t *testing.T) {
	c := onServer(t)
	now, id := c.now(), grant(me, 1)
	until := now + 5*second
	lasting := scripts.Term{TTL: ttl, Until: until}
	c.want(quorum.Granted, enc.Acquire(keys("a"), id, lasting, now, now, 1, nil))
	c.must("PEXPIRE", prefix.Lock("a"), 70_000) // as if the clock had jumped
	if h := c.inspectAt("a", now); h.ID != id || !near(h.Left, 5*time.Second+time.Millisecond) {
		t.Errorf("the lease is shown as %+v", h)
	}
	for _, late := range []int64{until + 1, 0} { // 0: no estimate, so the master's own clock decides
		if h := c.inspectAt("a", late); h.ID != "" {
			t.Errorf("at %d the expired lease is shown as %+v", late, h)
		}
	}
}
