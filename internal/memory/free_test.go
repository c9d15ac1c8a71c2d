package memory_test

import (
	"slices"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/scripts"
)

// hear subscribes a connection to a Locker's inbox.
func hear(t *testing.T, c redis.Conn, locker string) {
	t.Helper()
	if err := c.Send("SUBSCRIBE", prefix.Inbox(locker)); err != nil {
		t.Fatal(err)
	}
	if err := c.Flush(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Receive(); err != nil {
		t.Fatal(err)
	}
}

// Free works like the holder's Unlock: the first waiter with a subscription is notified, and others before it leave the
// queue.
func TestFreeTellsTheFirstWaiterThatIsHeard(t *testing.T) {
	m := newMasters(t, 1)
	one := m.Master(0)
	c, ear := dial(t, m, 0), dial(t, m, 0)
	load(t, c)
	hear(t, ear, "second")
	m.Take("a", time.Minute)
	now := one.Time().UnixMicro()
	keys := prefix.Keys("a")
	var tickets []*scripts.Ticket
	for i, owner := range []string{"deaf", "second", "third"} {
		ticket := scripts.NewTicket(scripts.Plain, owner, 1, "", now+int64(i), 0)
		tickets = append(tickets, ticket)
		call := deployment.Acquire(&keys, owner+":1:", time.Second, now, now, ticket)
		command, args := call.Args(record(one), false)
		if _, err := c.Do(command, args...); err != nil {
			t.Fatal(err)
		}
	}
	if there := one.Keys(); !slices.Contains(there, prefix.Queue("a")) || !slices.Contains(there, prefix.Waiters("a")) {
		t.Fatalf("no waiter in the queue: the master has %q", there)
	}
	m.Free("a")
	got, err := redis.Strings(ear.Receive())
	if err != nil || len(got) != 3 {
		t.Fatalf("%q, %v", got, err)
	}
	hint, ok := prefix.ParseWakeUp(got[2])
	if want := (scripts.WakeUp{Waiter: tickets[1].Waiter(), Number: 1, Name: "a"}); !ok || hint != want {
		t.Errorf("the waiter got %+v of %q, want %+v", hint, got[2], want)
	}
	if _, on := m.Holder("a"); on != 0 {
		t.Errorf("a freed name is held on %d masters", on)
	}
	command, args := deployment.Inspect(&keys).Args("", false)
	reply, err := c.Do(command, args...)
	if err != nil {
		t.Fatal(err)
	}
	seen, err := scripts.DecodeHolding(reply)
	if want := []string{tickets[1].Waiter(), tickets[2].Waiter()}; err != nil || !slices.Equal(seen.First, want) {
		t.Errorf("queue %q, %v; want %q", seen.First, err, want)
	}
}
