package scripts_test

import (
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
)

// On a real server: a lease counts for its TTL or its minimum hold, and no longer, also if the fence is an hour ahead,
// and if another program has removed the TTL of the key before the lock is unlocked.
func TestLeaseEndsInTime(t *testing.T) {
	for what, c := range map[string]struct{ ahead, keeps, persists bool }{
		"fence ahead":                    {ahead: true},
		"fence ahead, with minimum hold": {ahead: true, keeps: true},
		"no TTL, with minimum hold":      {keeps: true, persists: true},
	} {
		server, id := onServer(t), grant(me, 1)
		first, lock := server.now(), prefix.Lock("a")
		if c.ahead {
			first += 3600 * second
			server.must("HSET", lock, scripts.FieldFence, first-1)
			server.must("PEXPIRE", lock, 3675000)
		}
		lasts := term(time.Second, server.now())
		if c.keeps {
			lasts = term(ttl, server.now())
		}
		server.want(quorum.Granted, enc.Acquire(keys("a"), id, lasts, first, first, 1, nil))
		if c.persists {
			server.must("PERSIST", lock)
		}
		if c.keeps {
			server.release("a", scripts.Ending{Leases: []string{id}, Keep: term(time.Second, server.now())})
		}
		if h := server.inspect("a"); h.ID != id || h.Left > time.Second || server.left(lock) < 0 {
			t.Errorf("%s: at first, the lease is %+v, and the key has the TTL %d", what, h, server.left(lock))
		}
		server.must("PEXPIRE", lock, server.left(lock)-2000) // as two seconds later
		if h := server.inspect("a"); h.ID != "" {
			t.Errorf("%s: a second after its end, the lease counts for %v", what, h.Left)
		}
	}
}
