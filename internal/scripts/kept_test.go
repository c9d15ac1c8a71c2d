package scripts_test

import (
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
)

// On a real server: the fence is an hour ahead; a lease with a TTL of 1 s, and a lease that is kept for 1 s.
func TestFenceAheadDoesNotKeepLease(t *testing.T) {
	for _, keeps := range []bool{false, true} {
		c := onServer(t)
		fence := c.now() + 3600*second
		c.must("HSET", prefix.Lock("a"), scripts.FieldFence, fence)
		c.must("PEXPIRE", prefix.Lock("a"), 3675000)
		id := grant(me, 1)
		c.want(quorum.Granted, enc.Acquire(keys("a"), id, term(time.Second, c.now()), fence+1, fence+1, 1, nil))
		if keeps {
			c.release("a", scripts.Ending{Leases: []string{id}, Keep: term(time.Second, c.now())})
		}
		c.must("PEXPIRE", prefix.Lock("a"), c.left(prefix.Lock("a"))-2000) // as two seconds later
		if h := c.inspect("a"); h.ID != "" {
			t.Errorf("kept %v: a second after its end, the lease counts for %v", keeps, h.Left)
		}
	}
}

// On a real server: the TTL of the hash was removed before a lock with a minimum hold is unlocked.
func TestMinHoldWithoutTTL(t *testing.T) {
	c := onServer(t)
	id, now := grant(me, 1), c.now()
	c.want(quorum.Granted, acquire("a", id, now))
	c.must("PERSIST", prefix.Lock("a"))
	c.release("a", scripts.Ending{Leases: []string{id}, Keep: term(time.Second, c.now())})
	c.must("PEXPIRE", prefix.Lock("a"), c.left(prefix.Lock("a"))-2000) // as two seconds later
	if h := c.inspect("a"); h.ID != "" {
		t.Errorf(
			"a second after the end of the minimum hold the lease counts for %v, PTTL %v",
			h.Left,
			c.must("PTTL", prefix.Lock("a")),
		)
	}
}
