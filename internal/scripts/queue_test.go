package scripts_test

import (
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
)

// A contender is a waiter with its own owner. ear is a subscriber of the owner's inbox, or nil. asks counts its
// acquires.
type contender struct {
	*client

	owner  string
	ticket *scripts.Ticket
	ear    redis.Conn
	asks   uint64
}

// contender returns a contender whose call was made at the given time. If deaf is set, its inbox has no subscriber.
func (c *client) contender(owner string, at int64, priority int, deaf bool) *contender {
	c.t.Helper()
	p := &contender{client: c, owner: owner, ticket: scripts.NewTicket(scripts.Plain, owner, 7, "", at, priority)}
	if deaf {
		return p
	}
	p.ear = c.dial()
	c.t.Cleanup(func() { _ = p.ear.Close() })
	must.Get(p.ear.Do("SUBSCRIBE", prefix.Inbox(owner)))(c.t)
	return p
}

// ask sends an acquire with the contender's ticket, for a new lease each time.
func (p *contender) ask(name string, ballot int64) scripts.Vote {
	p.t.Helper()
	p.asks++
	return p.stamped(enc.Acquire(keys(name), grant(p.owner, p.asks), term(ttl, ballot), ballot, ballot, 1, p.ticket), "")
}

// wantHint waits for the next message in the inbox, which must be a wake-up for the name.
func (p *contender) wantHint(name string) {
	p.t.Helper()
	got := must.Get(redis.Strings(p.ear.Receive()))(p.t)
	h, ok := prefix.ParseWakeUp(got[2])
	if want := (scripts.WakeUp{Waiter: p.ticket.Waiter(), Number: 7, Name: name}); !ok || h != want ||
		got[1] != prefix.Inbox(p.owner) {
		p.t.Errorf("the inbox received %q, which is parsed as %+v, want %+v", got, h, want)
	}
}

// counts returns how much longer a waiter counts. The result is negative if the waiter no longer counts.
func (c *client) counts(name string, ticket *scripts.Ticket) time.Duration {
	c.t.Helper()
	until, err := redis.Int64(c.Do("ZSCORE", prefix.Waiters(name), ticket.Waiter()))
	if err != nil {
		return -1
	}
	return time.Duration(until-c.now()) * time.Microsecond
}

func (c *client) queue(name string) []string {
	c.t.Helper()
	return must.Get(redis.Strings(c.must("ZRANGE", prefix.Queue(name), 0, -1), nil))(c.t)
}

// H105: on a real server, wake-ups reach the inbox with every valid prefix.
func TestWakeUpsReachTheInbox(t *testing.T) {
	c := onServer(t)
	for _, p := range []scripts.Prefix{"app", "app{17}", "a:b", "a:b{17}"} {
		ear := c.dial()
		must.Get(ear.Do("SUBSCRIBE", p.Inbox(other)))(t)
		now := c.now()
		waiter := scripts.NewTicket(scripts.Plain, other, 7, "", now, 0).Waiter()
		c.must("ZADD", p.Queue("n"), 0, waiter)
		c.must("ZADD", p.Waiters("n"), now+10*second, waiter)
		c.must("EVALSHA", scripts.Release.SHA, 1, p.Lock("n"), grant(me, 1))
		if score, err := redis.Int64(c.must("ZSCORE", p.Waiters("n"), waiter), nil); err != nil || score > now+5*second {
			t.Errorf("%q: the script found no subscriber; the waiter counts for another %d us, error %v", p, score-now, err)
		}
		got, err := redis.Strings(ear.Receive())
		if h, ok := p.ParseWakeUp(got[len(got)-1]); err != nil || !ok || h.Name != "n" {
			t.Errorf("%q: the inbox received %q, %v", p, got, err)
		}
		_ = ear.Close()
	}
}

// A lease has expired, but its holder is silent. A release that raises the fence, and so sets the expiry of the key
// again, still wakes the first waiter.
func TestReleaseBesideExpiredLeaseWakesWaiter(t *testing.T) {
	c := onServer(t)
	now := c.now()
	brief := scripts.Term{TTL: ttl, Until: now - second}
	c.want(quorum.Granted, enc.Acquire(keys("a"), grant(me, 1), brief, now, now, 1, nil))
	first := c.contender(other, now+1, 0, false)
	if v := first.ask("a", now+1); v.Outcome != quorum.Held {
		t.Fatalf("beside a lease the waiter got %+v", v)
	}
	c.must("PEXPIRE", prefix.Lock("a"), 60_000) // 15 s after the end of the lease
	c.release("a", scripts.Ending{Leases: []string{grant(me, 2)}, Ballot: now + 2})
	if left := c.counts("a", first.ticket); left > time.Second {
		t.Errorf("the waiter was not woken: it counts for another %v", left)
	} else {
		first.wantHint("a")
	}
}

// H181: a lease has expired by the master's clock, but not by its deadline, so an acquire is refused. A release wakes
// no waiter: the roll-back of the waiter's attempt would wake the next one, and so on without a pause.
func TestReleaseBesideLeaseOfOneClockWakesNoWaiter(t *testing.T) {
	c := onServer(t)
	now := c.now()
	late := scripts.Term{TTL: ttl, Until: now + 60*second}
	c.want(quorum.Granted, enc.Acquire(keys("a"), grant(me, 1), late, now, now, 1, nil))
	c.must("PEXPIRE", prefix.Lock("a"), 70_000)
	first := c.contender(other, now+1, 0, false)
	if v := first.ask("a", now+1); v.Outcome != quorum.Held {
		t.Fatalf("beside a lease the waiter got %+v", v)
	}
	c.release("a", scripts.Ending{Leases: []string{grant(me, 2)}, Ballot: now + 2})
	if left := c.counts("a", first.ticket); left <= time.Second {
		t.Errorf("the waiter was woken: it counts for another %v", left)
	}
	c.must("HSET", prefix.Lock("a"), grant(me, 1), scripts.LeaseText(1, now, now, now))
	c.release("a", scripts.Ending{Leases: []string{grant(me, 2)}, Ballot: now + 3})
	c.must("PEXPIRE", prefix.Lock("a"), 70_000)
	c.release("a", scripts.Ending{Leases: []string{grant(me, 2)}, Ballot: now + 4})
	first.wantHint("a")
}

// If a writer is first in the queue, later readers are refused until 8 s after the writer's last acquire, although
// the writer counts for 20 s. If the writer acquires again after that, it still has its old place.
func TestSilentWriterInFrontLetsReadersPass(t *testing.T) {
	c := onServer(t)
	now := c.now()
	reader, writer := prefix.KeysOf("a", scripts.Reader), prefix.KeysOf("a", scripts.Writer)
	ask := func(k *scripts.Keys, owner string, n uint64, at int64) scripts.Vote {
		t.Helper()
		id := scripts.ShareID(owner, n, k.Role(), at, "")
		return c.stamped(enc.Acquire(k, id, term(ttl, at), at, at, 1, scripts.NewTicket(k.Role(), owner, n, "", at, 0)), "")
	}
	if v := ask(&reader, me, 1, now); v.Outcome != quorum.Granted {
		t.Fatalf("the first reader got %+v", v)
	}
	front := c.contender("w", now+1, 0, false) // its inbox has a subscriber
	ticket := scripts.NewTicket(scripts.Writer, front.owner, 7, "", now+1, 0)
	write := func() scripts.Vote {
		return c.stamped(
			enc.Acquire(&writer, scripts.ShareID("w", 7, scripts.Writer, now+1, ""), term(ttl, now+1), now+1, now+1, 1, ticket),
			"",
		)
	}
	if v := write(); v.Outcome != quorum.Held {
		t.Fatalf("the writer got %+v", v)
	}
	asked := func(ago time.Duration) {
		t.Helper()
		c.must("ZADD", prefix.Waiters("a"), c.now()+(20*time.Second-ago).Microseconds(), ticket.Waiter())
	}
	asked(7 * time.Second)
	if v := ask(&reader, "late", 1, now+2); v.Outcome != quorum.Held || v.Left > time.Second {
		t.Errorf("a reader behind a writer that acquired 7 s ago got %+v", v)
	}
	asked(8 * time.Second)
	if v := ask(&reader, "late", 2, now+3); v.Outcome != quorum.Granted {
		t.Errorf("a reader behind a writer that acquired 8 s ago got %+v", v)
	}
	if v := write(); v.Outcome != quorum.Held || v.Place != 0 {
		t.Errorf("the second acquire of the writer returned %+v", v)
	}
}
