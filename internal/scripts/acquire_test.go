package scripts_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
)

// Each kind of reply of an acquire, in the order of the script's checks, and the resulting keys.
func TestTheFirstLineThatAppliesIsTheAnswer(t *testing.T) {
	c := onServer(t)
	now, mine, others := c.now(), grant(me, 1), grant(other, 1)
	c.want(scripts.Granted, enc.Acquire(keys("a"), mine, ttl, now, now+31, nil))
	want := map[string]string{mine: fmt.Sprint("1 ", now, " ", now+31)}
	if got := c.fields("a"); !maps.Equal(got, want) || c.text(prefix.Fence("a")) != fmt.Sprint(now+31) {
		t.Errorf("granted: lock %v, fence %s", got, c.text(prefix.Fence("a")))
	}
	if left := c.left(prefix.Fence("a")); left < 70_000 || left > 75_000 {
		t.Errorf("the fence expires in %d ms", left)
	}
	v := c.want(scripts.Held, acquire("a", others, now+100))
	if !near(v.Left, ttl) || v.Holder != mine || v.Token != now || v.Free || v.Place != -1 || v.Fence != now+31 ||
		v.Time < now {
		t.Errorf("held: %+v", v)
	}
	if v = c.want(scripts.Stale, enc.Acquire(keys("a"), mine, ttl, now, now+30, nil)); v.Fence != now+31 || v.Time < now {
		t.Errorf("smaller ballot of the same grant: %+v", v)
	}
	c.want(scripts.Stale, acquire("b", mine, now-scripts.Window.Microseconds()-second))
	c.want(scripts.Ahead, acquire("b", mine, now+scripts.Window.Microseconds()+10*second))
	v = c.want(scripts.Missing, enc.Import(keys("b"), mine, others, ttl, now, now))
	if v.Left != -1 || v.Fence != 0 || v.Time < now {
		t.Errorf("missing: %+v", v)
	}
	v = c.want(scripts.Missing, enc.Import(keys("a"), grant(me, 2), others, ttl, now+50, now+50))
	if !near(v.Left, ttl) {
		t.Errorf("import of another's grant: %+v", v)
	}
	if got := c.must("EXISTS", prefix.Lock("b"), prefix.Fence("b"), prefix.Queue("b")); got != int64(0) {
		t.Errorf("refused, but %v keys exist", got)
	}
}

// H01: an acquire that is delivered twice changes nothing, nor does any other message. Each is delivered on two
// connections.
func TestAnAcquireDeliveredTwiceChangesNothing(t *testing.T) {
	c := onServer(t)
	again, now, id := c.second(), c.now(), grant(me, 1)
	twice := func(call *scripts.Call) {
		t.Helper()
		first := c.want(scripts.Granted, call)
		before, left := c.everything("a"), c.left(prefix.Lock("a"))
		if second := again.stamped(call, ""); second != first {
			t.Errorf("%s: first %+v, then %+v", call.Script.Name, first, second)
		}
		if got := c.everything("a"); got != before || call.Script == scripts.Acquire && c.left(prefix.Lock("a")) > left {
			t.Errorf("keys before:\n%safter:\n%s", before, got)
		}
	}
	twice(enc.Acquire(keys("a"), id, ttl, now, now+9, nil))
	twice(enc.Repair(keys("a"), id, "", ttl, now+20, now, 1, ""))
	twice(enc.Extend(keys("a"), id, ttl, 2, "")) // re-entry
	twice(enc.Extend(keys("a"), id, 0, 1, ""))   // release of the re-entry
	end := scripts.Ending{Grants: []string{id}, Ballot: now + 20}
	if !c.release("a", end) {
		t.Error("the release did not find the grant")
	}
	before := c.everything("a")
	if again.release("a", end) || c.everything("a") != before {
		t.Errorf("the second release found\n%s, and left\n%s", before, c.everything("a"))
	}
	for b := now; b <= now+20; b++ {
		again.want(scripts.Stale, acquire("a", id, b))
	}
}

// H02: an acquire that arrives after its release is refused; whichever connection is slower, the grant is gone at the
// end.
func TestLateAcquireAfterItsReleaseIsRefused(t *testing.T) {
	c := onServer(t)
	slow := c.second()
	for _, first := range []string{"acquire first", "release first"} {
		now, id := c.now(), grant(me, 1)
		end := scripts.Ending{Grants: []string{id}, Ballot: now}
		if first == "acquire first" {
			slow.want(scripts.Granted, acquire(first, id, now))
		}
		if there := c.release(first, end); there != (first == "acquire first") {
			t.Errorf("%s: grant found: %v", first, there)
		}
		if v := slow.want(scripts.Stale, acquire(first, id, now)); v.Fence != now {
			t.Errorf("%s: %+v", first, v)
		}
		if len(c.fields(first)) != 0 || c.left(prefix.Fence(first)) < 55_000 {
			t.Errorf("%s: the keys are\n%s", first, c.everything(first))
		}
		c.want(scripts.Granted, acquire(first, grant(other, 1), now+1))
	}
}

// H89: each acquire after a rollback is a new grant, so a late release does not end it.
func TestALateReleaseFindsNothingOfTheNextAsk(t *testing.T) {
	c := onServer(t)
	now := c.now()
	c.want(scripts.Granted, acquire("a", grant(me, 2), now+1))
	if c.release("a", scripts.Ending{Grants: []string{grant(me, 1)}, Ballot: now}) {
		t.Error("the release of the first acquire ended the second")
	}
	if h := c.inspect("a"); h.ID != grant(me, 2) {
		t.Errorf("lock %+v", h)
	}
}

// A release raises the fence if the grant was not found, or if several ballots were sent, and never beyond the value to
// which an acquire could raise it.
func TestAReleaseRaisesTheFenceAsFarAsAnAcquireCould(t *testing.T) {
	c := onServer(t)
	now, window := c.now(), scripts.Window.Microseconds()
	id := grant(me, 1)
	for i, one := range []struct {
		there         bool
		ballot, fence int64 // ballot of the release, and fence before it
		want          int64
	}{
		{there: false, ballot: now, want: now},
		{there: true, ballot: now + 5, fence: now, want: now + 5},
		{there: false, ballot: now, fence: now + 1, want: now + 1},
		{there: false, ballot: now + window - second, want: now + window - second},
		{there: false, ballot: now + window + 60*second},
		{there: false, ballot: now + 2*window, fence: now + window, want: now + 2*window}, // the fence itself is ahead
		{there: false, ballot: now + 2*window + 1, fence: now + window, want: now + window},
		{there: false, ballot: scripts.MaxBallot},
	} {
		name := fmt.Sprint("n", i)
		if one.there {
			c.want(scripts.Granted, acquire(name, id, now))
		} else if one.fence != 0 {
			c.must("SET", prefix.Fence(name), one.fence)
		}
		if there := c.release(name, scripts.Ending{Grants: []string{id}, Ballot: one.ballot}); there != one.there {
			t.Errorf("%+v: grant found: %v", one, there)
		}
		want := fmt.Sprint(one.want)
		if one.want == 0 {
			want = ""
		}
		if got := c.text(prefix.Fence(name)); got != want {
			t.Errorf("%+v: fence %q", one, got)
		}
	}
}

// H84: the max TTL changes neither the window nor the fence. With a max TTL ten times as long, a ballot more than
// 15 s old is refused although there is no fence, and a fence is kept for 60 s.
func TestTheGuardTimeChangesNeitherTheWindowNorTheFence(t *testing.T) {
	c := onServer(t)
	for i, longest := range []time.Duration{30 * time.Second, 300 * time.Second} {
		c.has(scripts.Record{Masters: three, Admitted: true, Longest: longest, Quarantine: longest, Since: c.now()})
		record, now, window := c.text(prefix.Admission()), c.now(), scripts.Window.Microseconds()
		name := fmt.Sprint("a", i)
		for _, ago := range []int64{window + second, 150 * second} {
			if v := c.stamped(acquire(name, grant(me, 1), now-ago), record); v.Outcome != scripts.Stale {
				t.Errorf("max TTL %v, ballot %d us old: %+v", longest, ago, v)
			}
		}
		if v := c.stamped(acquire(name, grant(me, 1), now-window+5*second), record); v.Outcome != scripts.Granted {
			t.Errorf("max TTL %v, ballot 10 s old: %+v", longest, v)
		}
		if left := c.left(prefix.Fence(name)); left < 70_000 || left > 75_000 {
			t.Errorf("max TTL %v: the fence expires in %d ms", longest, left)
		}
	}
}

// H84: a first ballot of exactly now - 15 s is refused, one that is a microsecond younger is granted. So a quarantine
// of two windows outlasts the largest ballot that the master can have accepted before it lost its fences.
func TestWindowEdge(t *testing.T) {
	c := onServer(t)
	now, window := c.now(), scripts.Window.Microseconds()
	eval := func(call *scripts.Call) any {
		t.Helper()
		clock := fmt.Sprintf("({'%d','%d'})", now/second, now%second)
		text := strings.ReplaceAll(call.Script.Text, "call('TIME')", clock)
		if text == call.Script.Text {
			t.Fatal("the script does not read the time")
		}
		_, args := call.Args("", true)
		args[0] = text
		reply := c.must("EVAL", args...)
		if list, ok := reply.([]any); ok {
			return list[0]
		}
		return reply
	}
	for _, role := range []scripts.Role{scripts.Plain, scripts.Reader, scripts.Writer} {
		t.Run(fmt.Sprint("role ", role), func(t *testing.T) {
			k, id := prefix.KeysOf(fmt.Sprint("n", role), role), scripts.ShareID(me, 1, role, now, "")
			if got := eval(enc.Acquire(&k, id, ttl, now-window, now-window, nil)); got != int64(scripts.Stale) {
				t.Errorf("ballot of now - 15 s: %v", got)
			}
			if got := eval(enc.Acquire(&k, id, ttl, now-window+1, now-window+1, nil)); got != int64(scripts.Granted) {
				t.Errorf("ballot a microsecond younger: %v", got)
			}
		})
	}
}

// H92: a client near the masters does not make the ballots of a distant one stale. A release on the acquire's own
// connection carries no ballot and raises no fence, no matter how often a client acquires and rolls back.
func TestANearProgramDoesNotKeepAFarOneStale(t *testing.T) {
	c := onServer(t)
	now := c.now()
	c.want(scripts.Granted, acquire("a", grant(other, 1), now))
	for i := range int64(20) { // the near client acquires a held name, and rolls back
		c.want(scripts.Held, acquire("a", grant(me, uint64(i)), now+1000+i))
		c.release("a", ending(grant(me, uint64(i))))
	}
	c.release("a", ending(grant(other, 1)))
	c.want(scripts.Granted, acquire("a", grant("far", 1), now+1)) // proposed before all of these
}

// H59: a fence near the largest number does not lock a name forever. One ballot, at most 15 s above such a fence, is
// accepted, and all digits are kept.
func TestAFenceNearTheEndOfNumbersLocksNoName(t *testing.T) {
	c := onServer(t)
	const poison int64 = scripts.MaxBallot - 3
	c.must("SET", prefix.Fence("a"), fmt.Sprint(poison))
	if v := c.want(scripts.Stale, acquire("a", grant(me, 1), c.now())); v.Fence != poison {
		t.Errorf("reported fence %d", v.Fence)
	}
	c.want(scripts.Ahead, enc.Acquire(keys("a"), grant(me, 1), ttl, poison+1, poison+2, nil))
	for b := poison + 1; b <= scripts.MaxBallot; b++ {
		c.want(scripts.Granted, acquire("a", grant(me, 1), b))
		if got := c.text(prefix.Fence("a")); got != fmt.Sprint(b) {
			t.Errorf("fence %s, want %d", got, b)
		}
	}
	// The same for a fence an hour ahead, after the clocks were set back.
	ahead := c.now() + 3600*second
	c.must("SET", prefix.Fence("b"), fmt.Sprint(ahead))
	c.want(scripts.Ahead, acquire("b", grant(me, 1), ahead+scripts.Window.Microseconds()+1))
	c.want(scripts.Granted, acquire("b", grant(me, 1), ahead+scripts.Window.Microseconds()))
	if left := c.left(prefix.Fence("b")); left < 3600_000 {
		t.Errorf("a fence an hour ahead expires in %d ms", left)
	}
}

// A fence that cannot be parsed is an error with a clear text, and never zero, which would admit old ballots.
func TestAFenceThatCannotBeReadIsAnError(t *testing.T) {
	c := onServer(t)
	for _, fence := range []string{"", "x", "12x", "-5", "1e15", " 7", "7 ", "0x10", "nan"} {
		c.must("SET", prefix.Fence("a"), fence)
		c.wantError("BADFENCE", acquire("a", grant(me, 1), c.now()), "")
		end := scripts.Ending{Grants: []string{grant(me, 1)}, Ballot: c.now()}
		c.wantError("BADFENCE", enc.Release(keys("a"), end), "")
		reply, err := c.run(enc.Extend(keys("a"), grant(me, 1), ttl, 1, ""), "")
		if v, derr := scripts.DecodeVote(reply); err != nil || derr == nil {
			t.Errorf("fence %q was read as %+v, %v", fence, v, err)
		}
		if got := c.text(prefix.Fence("a")); got != fence {
			t.Errorf("the fence was %q, is %q", fence, got)
		}
	}
	if c.must("EXISTS", prefix.Lock("a")) != int64(0) {
		t.Error("a refused acquire created the lock")
	}
}

// H54: a foreign key is an error, not a lock held by another client.
func TestForeignKeysAreErrors(t *testing.T) {
	c := onServer(t)
	c.must("SET", prefix.Lock("a"), "data")
	for _, call := range []*scripts.Call{
		acquire("a", grant(me, 1), c.now()), enc.Extend(keys("a"), grant(me, 1), ttl, 1, ""),
		enc.Release(keys("a"), ending(grant(me, 1))), enc.Inspect(keys("a")),
	} {
		c.wantError("WRONGTYPE", call, "")
	}
	if got := c.text(prefix.Lock("a")); got != "data" {
		t.Errorf("the foreign key is now %q", got)
	}
}

func TestAnImportReplacesTheGrant(t *testing.T) {
	c := onServer(t)
	now, old, id := c.now(), grant(other, 1), grant(me, 1)
	call := func(b int64) *scripts.Call { return enc.Import(keys("a"), id, old, ttl, b, b+9) }
	c.want(scripts.Missing, call(now))
	c.want(scripts.Granted, acquire("a", old, now))
	c.want(scripts.Granted, enc.Extend(keys("a"), old, time.Minute, 1, ""))
	c.want(scripts.Stale, call(now))
	c.want(scripts.Granted, call(now+1))
	want := map[string]string{id: fmt.Sprint("1 ", now+1, " ", now+10)}
	if got := c.fields("a"); !maps.Equal(got, want) || c.left(prefix.Lock("a")) < 50_000 {
		t.Errorf("after the import: lock %v, expires in %d ms", got, c.left(prefix.Lock("a")))
	}
	before := c.everything("a")
	c.want(scripts.Granted, call(now+1))
	if got := c.everything("a"); got != before {
		t.Errorf("repeated, it changed\n%s\nto\n%s", before, got)
	}
	c.want(scripts.Held, acquire("a", old, now+20))
	if v := c.want(scripts.Missing, enc.Extend(keys("a"), old, ttl, 1, "")); v.Left <= 0 {
		t.Errorf("extension of the replaced grant: %+v", v)
	}
	// If it is not known whether an import has arrived, its release ends either grant.
	if !c.release("a", ending(id, old)) {
		t.Error("the release did not find the grant")
	}
	c.want(scripts.Granted, acquire("b", old, now))
	if !c.release("b", ending(id, old)) || c.must("EXISTS", prefix.Lock("a"), prefix.Lock("b")) != int64(0) {
		t.Error("the release did not end the grant that the import had not replaced")
	}
}

// A repair carries the old token and a fresh ballot, is held if another's grant is there, and never shortens a TTL.
func TestARepairCarriesTheOldTokenAndAFreshBallot(t *testing.T) {
	c := onServer(t)
	now, id := c.now(), grant(me, 1)
	c.want(scripts.Granted, enc.Repair(keys("a"), id, "", time.Minute, now, now-90*second, 3, ""))
	want := map[string]string{id: fmt.Sprint("3 ", now-90*second, " ", now)}
	if got := c.fields("a"); !maps.Equal(got, want) {
		t.Errorf("lock %v", got)
	}
	c.want(scripts.Granted, enc.Repair(keys("a"), id, "", time.Second, now+1, now-90*second, 3, ""))
	if left := c.left(prefix.Lock("a")); left < 50_000 {
		t.Errorf("after a repair it expires in %d ms", left)
	}
	v := c.want(scripts.Held, enc.Repair(keys("a"), grant(other, 1), "", ttl, now+2, now, 1, ""))
	if v.Holder != id || v.Token != now-90*second || v.Place != -1 {
		t.Errorf("repair of another's grant: %+v", v)
	}
}
