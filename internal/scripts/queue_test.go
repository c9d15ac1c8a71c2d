package scripts_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/scripts"
)

// A contender is one waiter with its own owner, whose inbox may have a subscriber.
type contender struct {
	*client

	owner  string
	ticket *scripts.Ticket
	ear    redis.Conn
	asks   uint64
}

// contender returns one whose call was made at the given time; if deaf is set, its inbox has no subscriber.
func (c *client) contender(owner string, at int64, priority int, deaf bool) *contender {
	c.t.Helper()
	p := &contender{client: c, owner: owner, ticket: scripts.NewTicket(scripts.Plain, owner, 7, "", at, priority)}
	if deaf {
		return p
	}
	p.ear = c.dial()
	c.t.Cleanup(func() { _ = p.ear.Close() })
	if _, err := p.ear.Do("SUBSCRIBE", prefix.Inbox(owner)); err != nil {
		c.t.Fatal(err)
	}
	return p
}

// ask acquires with the ticket, each time as a new grant.
func (p *contender) ask(name string, ballot int64) scripts.Vote {
	p.t.Helper()
	p.asks++
	return p.stamped(enc.Acquire(keys(name), grant(p.owner, p.asks), ttl, ballot, ballot, p.ticket), "")
}

// wantHint waits for the next message in the inbox.
func (p *contender) wantHint(name string) {
	p.t.Helper()
	got, err := redis.Strings(p.ear.Receive())
	if err != nil {
		p.t.Fatal(err)
	}
	h, ok := prefix.ParseWakeUp(got[2])
	if want := (scripts.WakeUp{Waiter: p.ticket.Waiter(), Number: 7, Name: name}); !ok || h != want ||
		got[1] != prefix.Inbox(p.owner) {
		p.t.Errorf("inbox received %q, parsed as %+v, want %+v", got, h, want)
	}
}

// counts returns how long a waiter counts from now on; negative if it does not.
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
	list, err := redis.Strings(c.must("ZRANGE", prefix.Queue(name), 0, -1), nil)
	if err != nil {
		c.t.Fatal(err)
	}
	return list
}

// A free name belongs to the first waiter that counts. Once woken, it has one second to acquire, no matter how many
// hints it gets.
func TestAFreeNameBelongsToTheFirstWaiter(t *testing.T) {
	c := onServer(t)
	now := c.now()
	first, next := c.contender("first", now-2, 0, false), c.contender("next", now-1, 0, false)
	c.want(scripts.Granted, acquire("a", grant(me, 1), now))
	if v := next.ask("a", now+1); v.Outcome != scripts.Held || v.Place != 0 || v.Free {
		t.Errorf("first to arrive: %+v", v)
	}
	if v := first.ask("a", now+2); v.Place != 0 || v.Holder != grant(me, 1) {
		t.Errorf("earlier call: %+v", v)
	}
	if d := c.counts("a", first.ticket); !near(d, scripts.WaiterCounts) {
		t.Errorf("a waiter counts for %v", d)
	}
	c.release("a", ending(grant(me, 1)))
	first.wantHint("a")
	told := c.counts("a", first.ticket)
	if told > scripts.ToldCounts || told < scripts.ToldCounts/2 {
		t.Errorf("a woken waiter counts for %v", told)
	}
	for i := range int64(3) { // acquires without a ticket, and with a later one, are refused, and send the hint again
		v := c.want(scripts.Held, acquire("a", grant(me, 2), now+10+i))
		if !v.Free || v.Left <= 0 || v.Left > scripts.ToldCounts || v.Holder != "" || v.Place != -1 {
			t.Errorf("acquire of a name that belongs to another: %+v", v)
		}
		first.wantHint("a")
		if v := next.ask("a", now+20+i); v.Outcome != scripts.Held || !v.Free || v.Place != 1 {
			t.Errorf("second waiter: %+v", v)
		}
		first.wantHint("a")
		if d := c.counts("a", first.ticket); d > told {
			t.Errorf("the woken waiter's time grew from %v to %v", told, d)
		}
	}
	if v := first.ask("a", now+30); v.Outcome != scripts.Granted {
		t.Errorf("first waiter: %+v", v)
	}
	if got := c.queue("a"); !slices.Equal(got, []string{next.ticket.Waiter()}) || c.counts("a", first.ticket) >= 0 {
		t.Errorf("queue behind it: %q", got)
	}
	for _, key := range []string{prefix.Queue("a"), prefix.Waiters("a")} {
		if left := c.left(key); left < 15_000 || left > 21_000 {
			t.Errorf("%s expires in %d ms", key, left)
		}
	}
}

// A woken waiter that does not acquire within its second loses its turn.
func TestOneThatDoesNotAskLosesItsTurn(t *testing.T) {
	c := onServer(t)
	now := c.now()
	hung, next := c.contender("hung", now-2, 0, false), c.contender("next", now-1, 0, false)
	c.want(scripts.Granted, acquire("a", grant(me, 1), now))
	hung.ask("a", now+1)
	next.ask("a", now+2)
	c.release("a", ending(grant(me, 1)))
	hung.wantHint("a")
	c.must("ZADD", prefix.Waiters("a"), c.now()-1, hung.ticket.Waiter()) // its second has ended
	if v := next.ask("a", now+3); v.Outcome != scripts.Granted {
		t.Errorf("next waiter: %+v", v)
	}
	if got := c.queue("a"); len(got) != 0 {
		t.Errorf("queue %q", got)
	}
}

// The order is priority, then the masters' time of the call, then the id. A ticket has its rank even before it is in
// the queue.
func TestTheOrderOfTheQueue(t *testing.T) {
	c := onServer(t)
	now := c.now()
	c.want(scripts.Granted, acquire("a", grant(me, 1), now))
	inOrder := []*contender{
		c.contender("d", now-3, 5, false), c.contender("c", now-9, 0, false), c.contender("a", now-8, 0, false),
		c.contender("b", now-8, 0, false), c.contender("a0", now-99, -1, false),
	}
	for _, i := range []int{3, 1, 4, 2} {
		inOrder[i].ask("a", now+int64(i))
	}
	var want []string
	for _, p := range inOrder[1:] {
		want = append(want, p.ticket.Waiter())
	}
	if got := c.queue("a"); !slices.Equal(got, want) {
		t.Errorf("order %q, want %q", got, want)
	}
	if h := c.inspect("a"); h.Waiters != 4 || !slices.Equal(h.First, want) {
		t.Errorf("Inspect: %+v", h)
	}
	c.release("a", ending(grant(me, 1)))
	if v := inOrder[2].ask("a", now+50); v.Outcome != scripts.Held || !v.Free || v.Place != 1 {
		t.Errorf("second waiter: %+v", v)
	}
	if v := inOrder[0].ask("a", now+60); v.Outcome != scripts.Granted {
		t.Errorf("first acquire of a waiter that precedes all: %+v", v)
	}
}

// H42, H86: a waiter whose inbox has no subscriber is skipped, and an acquire that has removed some decides again. One
// script examines at most eight; the reply then means "try again at once".
func TestAWaiterThatNobodyHearsIsPassedOver(t *testing.T) {
	for deaf, answers := range map[int][]scripts.Outcome{
		3: {scripts.Granted}, 7: {scripts.Granted}, 8: {scripts.Held, scripts.Granted}, 17: {scripts.Held, scripts.Held,
			scripts.Granted},
	} {
		c := onServer(t)
		now := c.now()
		c.want(scripts.Granted, acquire("a", grant(me, 1), now))
		for i := range deaf {
			c.contender(fmt.Sprint("deaf", i), now-100+int64(i), 0, true).ask("a", now+1)
		}
		c.must("DEL", prefix.Lock("a")) // as if it had expired: no waiter is notified
		for i, want := range answers {
			v := c.want(want, acquire("a", grant(me, 2), now+int64(10+i)))
			if want == scripts.Held && (!v.Free || v.Left != 0) {
				t.Errorf("%d waiters, reply %d: %+v", deaf, i, v)
			}
			if left := len(c.queue("a")); left != max(0, deaf-8*(i+1)) {
				t.Errorf("%d waiters, %d left after %d acquires", deaf, left, i+1)
			}
		}
	}
	c := onServer(t)
	now := c.now()
	c.want(scripts.Granted, acquire("a", grant(me, 1), now))
	c.contender("deaf", now-2, 0, true).ask("a", now+1)
	next := c.contender("next", now-1, 0, false)
	next.ask("a", now+2)
	c.release("a", ending(grant(me, 1)))
	next.wantHint("a")
	if got := c.queue("a"); len(got) != 1 {
		t.Errorf("queue %q", got)
	}
}

// H85: an acquire whose first ballot is more than 20 s old joins no queue, regardless of the reply. The same is true of
// a rollback.
func TestALateAskJoinsNoQueue(t *testing.T) {
	c := onServer(t)
	now := c.now()
	p := c.contender(other, now, 0, false)
	late, recent := now-scripts.WaiterCounts.Microseconds()-second, now-scripts.WaiterCounts.Microseconds()+10*second
	c.want(scripts.Granted, acquire("held", grant(me, 1), now))
	for _, name := range []string{"held", "free"} {
		if v := p.ask(name, late); v.Outcome == scripts.Granted || v.Place != -1 || len(c.queue(name)) != 0 {
			t.Errorf("%s: late acquire: %+v", name, v)
		}
		c.release(name, scripts.Ending{Waiter: p.ticket, Back: true, AskBallot: late})
		if got := c.queue(name); len(got) != 0 {
			t.Errorf("%s: a late rollback put it back", name)
		}
	}
	if v := p.ask("held", recent); v.Place != 0 {
		t.Errorf("recent acquire: %+v", v)
	}
	// Acquires with a stale ballot, or with one that is ahead, join too.
	for _, ballot := range []int64{recent, now + 60*second} {
		name := fmt.Sprint("refused ", ballot)
		c.must("SET", prefix.Fence(name), now)
		if v := p.ask(name, ballot); v.Outcome != scripts.Stale && v.Outcome != scripts.Ahead || v.Place != 0 {
			t.Errorf("%+v", v)
		}
	}
}

// H82: a rollback returns the waiter to its old place in the queue, in the same script. A waiter that leaves is
// removed, and the next one gets a hint.
func TestARollBackKeepsTheTicket(t *testing.T) {
	c := onServer(t)
	now := c.now()
	first, next := c.contender("first", now-2, 0, false), c.contender("next", now-1, 0, false)
	if v := first.ask("a", now); v.Outcome != scripts.Granted {
		t.Fatalf("%+v", v)
	}
	next.ask("a", now+1)
	back := scripts.Ending{Grants: []string{grant("first", 1)}, Waiter: first.ticket, Back: true, AskBallot: now}
	if !c.release("a", back) {
		t.Error("the grant was not found")
	}
	first.wantHint("a") // by its own rollback: it is the first, and the name is free
	if got := c.queue("a"); !slices.Equal(got, []string{first.ticket.Waiter(), next.ticket.Waiter()}) {
		t.Errorf("queue %q", got)
	}
	if c.release("a", scripts.Ending{Waiter: first.ticket}) {
		t.Error("leaving ended a grant")
	}
	next.wantHint("a")
	if got := c.queue("a"); !slices.Equal(got, []string{next.ticket.Waiter()}) {
		t.Errorf("queue %q", got)
	}
}

// H94: a pending release names no waiter, and so changes no place in the queue.
func TestAnOwedReleaseNamesNoWaiter(t *testing.T) {
	c := onServer(t)
	now := c.now()
	p := c.contender(other, now, 0, false)
	c.want(scripts.Granted, acquire("a", grant(me, 1), now))
	p.ask("a", now+1)
	before, counts := c.queue("a"), c.counts("a", p.ticket)
	owed := scripts.Ending{Grants: []string{grant(other, 1), grant(other, 2)}, Ballot: now + 1}
	if c.release("a", owed) {
		t.Error("it ended another's grant")
	}
	if got := c.queue("a"); !slices.Equal(got, before) || c.counts("a", p.ticket) < counts-5*time.Second {
		t.Errorf("the queue was %q, is %q", before, got)
	}
	c.release("a", scripts.Ending{Waiter: p.ticket})
	c.release("a", owed)
	if got := c.queue("a"); len(got) != 0 {
		t.Errorf("the waiter was put back: %q", got)
	}
}

// H83: repair and import ignore the queue, and notify no waiter.
func TestRepairAndImportIgnoreTheQueue(t *testing.T) {
	c := onServer(t)
	now := c.now()
	p := c.contender(other, now-1, 0, false)
	c.want(scripts.Granted, acquire("a", grant(me, 1), now))
	p.ask("a", now+1)
	c.must("DEL", prefix.Lock("a"), prefix.Fence("a")) // the master loses its data
	c.want(scripts.Granted, enc.Repair(keys("a"), grant(me, 1), "", ttl, now+2, now, 1, ""))
	c.want(scripts.Granted, enc.Import(keys("a"), grant(me, 2), grant(me, 1), ttl, now+3, now+3))
	if got := c.queue("a"); len(got) != 1 {
		t.Errorf("queue %q", got)
	}
}

// H105: on a real server, wake-ups reach the inbox of every valid prefix.
func TestWakeUpsReachTheInbox(t *testing.T) {
	c := onServer(t)
	for _, p := range []scripts.Prefix{"app", "app{17}", "a:b", "a:b{17}"} {
		ear := c.dial()
		if _, err := ear.Do("SUBSCRIBE", p.Inbox(other)); err != nil {
			t.Fatal(err)
		}
		now := c.now()
		waiter := scripts.NewTicket(scripts.Plain, other, 7, "", now, 0).Waiter()
		c.must("ZADD", p.Queue("n"), 0, waiter)
		c.must("ZADD", p.Waiters("n"), now+10*second, waiter)
		c.must("EVALSHA", scripts.Release.SHA, 4, p.Lock("n"), p.Fence("n"), p.Queue("n"), p.Waiters("n"), grant(me, 1))
		if score, err := redis.Int64(c.must("ZSCORE", p.Waiters("n"), waiter), nil); err != nil || score > now+5*second {
			t.Errorf("%q: the script found no subscriber; the waiter counts until %d, %v", p, score-now, err)
		}
		got, err := redis.Strings(ear.Receive())
		if h, ok := p.ParseWakeUp(got[len(got)-1]); err != nil || !ok || h.Name != "n" {
			t.Errorf("%q: the inbox received %q, %v", p, got, err)
		}
		_ = ear.Close()
	}
}
