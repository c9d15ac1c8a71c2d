package scripts_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
)

// H06: if a user lacks the right to publish, its release still deletes the lock and replies. No waiter is removed,
// but each loses its turn after a second.
func TestReleaseWithoutRightsToTheChannel(t *testing.T) {
	c := onServer(t)
	c.must("ACL", "SETUSER", "locker", "on", ">pw", "~redlock:*", "resetchannels", "+@all")
	user := c.second()
	user.must("AUTH", "locker", "pw")
	if _, err := user.Do("PUBLISH", prefix.Inbox(me), "x"); err == nil {
		t.Fatal("the user can publish")
	}
	now := c.now()
	waiting := c.contender(other, now-1, 0, false)
	user.want(quorum.Granted, acquire("a", grant(me, 1), now))
	waiting.ask("a", now+1)
	if !user.release("a", ending(grant(me, 1))) || c.inspect("a").ID != "" {
		t.Error("the lease was not found, or was not deleted")
	}
	if v := user.want(quorum.Held, acquire("a", grant(me, 2), now+2)); !v.Free || v.Left <= 0 || v.Left > time.Second {
		t.Errorf("an acquire behind a waiter that cannot be notified returned %+v", v)
	}
	if got := c.queue("a"); !slices.Equal(got, []string{waiting.ticket.Waiter()}) {
		t.Errorf("the queue is %q", got)
	}
	if d := c.counts("a", waiting.ticket); d > scripts.ToldCounts {
		t.Errorf("the waiter counts for another %v, want at most a second", d)
	}
}

// H56: at its memory limit a master refuses every write that needs memory, without a partial effect. An existing
// lease can still be released; then its late messages are still refused, and the next waiter is notified.
func TestFullMasterGrantsNothing(t *testing.T) {
	c := onServer(t)
	now, id := c.now(), grant(me, 1)
	waiting := c.contender(other, now-1, 0, false)
	c.want(quorum.Granted, acquire("a", id, now))
	waiting.ask("a", now+1)
	c.must("CONFIG", "SET", "maxmemory", "1")
	before := c.everything("a")
	c.wantError("OOM", enc.Repair(keys("a"), id, "", term(ttl, now+1), now+1, now, 1, ""), "")
	c.wantError("OOM", acquire("b", grant(me, 2), now), "")
	c.want(
		quorum.Granted,
		enc.Extend(keys("a"), id, term(ttl, c.now()), 2, ""),
	) // the depth, which only inspections use, is not updated
	if got := c.everything("a"); got != before || c.must("EXISTS", prefix.Lock("b")) != int64(0) {
		t.Errorf("the keys before are\n%sand after\n%s", before, got)
	}
	c.want(quorum.Granted, enc.Extend(keys("a"), id, term(ttl, c.now()), 1, "")) // an extension needs no memory
	if !c.release("a", scripts.Ending{Leases: []string{id}, Ballot: now + 1}) {
		t.Error("the lease was not found")
	}
	waiting.wantHint("a")
	if c.release("b", scripts.Ending{Leases: []string{grant(me, 2)}, Ballot: now}) {
		t.Error("a lease that was not granted was found")
	}
	for name, fence := range map[string]int64{"a": now + 1, "b": now} {
		fields := c.fields(name)
		if delete(fields, scripts.FieldQueue); len(fields) != 1 || fields[scripts.FieldFence] != fmt.Sprint(fence) {
			t.Errorf("the keys are\n%s", c.everything(name))
		}
	}
}

// One release can end thousands of leases of a name, as the pending releases of this name may need.
func TestReleaseOfManyLeases(t *testing.T) {
	c := onServer(t)
	now := c.now()
	ids := make([]string, 7000)
	for i := range ids {
		ids[i] = grant(me, uint64(i))
	}
	c.want(quorum.Granted, acquire("a", ids[6999], now))
	if !c.release("a", scripts.Ending{Leases: ids, Ballot: now}) || c.release("a", scripts.Ending{Leases: ids,
		Ballot: now}) {
		t.Error("the release did not end the lease")
	}
}
