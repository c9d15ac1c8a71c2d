package scripts_test

import (
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
)

// A writer in front keeps later readers out for 8 s from its last acquire, though it counts for 20 s. If it acquires
// again after that, it has its old place.
func TestSilentWriterInFrontLetsReadersPass(t *testing.T) {
	c := onServer(t)
	now := c.now()
	reader, writer := prefix.KeysOf("a", scripts.Reader), prefix.KeysOf("a", scripts.Writer)
	ask := func(k *scripts.Keys, owner string, n uint64, at int64) scripts.Vote {
		t.Helper()
		id := scripts.ShareID(owner, n, k.Role(), at, "")
		return c.stamped(enc.Acquire(k, id, ttl, at, at, scripts.NewTicket(k.Role(), owner, n, "", at, 0)), "")
	}
	if v := ask(&reader, me, 1, now); v.Outcome != scripts.Granted {
		t.Fatalf("first reader: %+v", v)
	}
	front := c.contender("w", now+1, 0, false) // its inbox has a subscriber
	ticket := scripts.NewTicket(scripts.Writer, front.owner, 7, "", now+1, 0)
	write := func() scripts.Vote {
		return c.stamped(enc.Acquire(&writer, scripts.ShareID("w", 7, scripts.Writer, now+1, ""), ttl, now+1, now+1, ticket),
			"")
	}
	if v := write(); v.Outcome != scripts.Held {
		t.Fatalf("writer: %+v", v)
	}
	asked := func(ago time.Duration) {
		t.Helper()
		c.must("ZADD", prefix.Waiters("a"), c.now()+(20*time.Second-ago).Microseconds(), ticket.Waiter())
	}
	asked(7 * time.Second)
	if v := ask(&reader, "late", 1, now+2); v.Outcome != scripts.Held || v.Left > time.Second {
		t.Errorf("reader behind a writer that acquired 7 s ago: %+v", v)
	}
	asked(8 * time.Second)
	if v := ask(&reader, "late", 2, now+3); v.Outcome != scripts.Granted {
		t.Errorf("reader behind a writer that acquired 8 s ago: %+v", v)
	}
	if v := write(); v.Outcome != scripts.Held || v.Place != 0 {
		t.Errorf("second acquire of the writer: %+v", v)
	}
}
