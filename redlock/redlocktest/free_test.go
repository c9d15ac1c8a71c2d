package redlocktest_test

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

// Free does what the holder's Unlock does: the first waiter that is heard gets word and a reservation, and one that
// nobody hears is dropped.
func TestFreeHandsTheNameToTheFirstWaiterThatIsHeard(t *testing.T) {
	m := newMasters(t, 1)
	one := m.Master(0)
	c, ear := dial(t, m, 0), dial(t, m, 0)
	load(t, c)
	hear(t, ear, "second")
	m.Take("a", time.Minute)
	now := one.Time().UnixMicro()
	var tickets []*scripts.Ticket
	for i, locker := range []string{"deaf", "second", "third"} {
		ticket := scripts.NewTicket(locker, 1, now+int64(i), 0)
		tickets = append(tickets, ticket)
		call := fleet.QueueCall(scripts.NewHold(prefix.Keys("a"), locker+":1", ""), ticket, false, time.Second, 0, now, now)
		call.Args[call.Stamp] = marker(one)
		if _, err := c.Do("EVALSHA", call.Args...); err != nil {
			t.Fatal(err)
		}
	}
	if keys := one.Keys(); !slices.Contains(keys, prefix.Queue("a")) || !slices.Contains(keys, prefix.Alive("a")) {
		t.Fatalf("nobody is queued: the master has %q", keys)
	}
	m.Free("a")
	got, err := redis.Strings(ear.Receive())
	if err != nil || len(got) != 3 {
		t.Fatalf("%q, %v", got, err)
	}
	notice, ok := prefix.ParseNotice(got[2])
	if want := (scripts.Notice{Kind: scripts.Reserved, Waiter: tickets[1].String(), Number: 1, Name: "a"}); !ok || notice != want {
		t.Errorf("the waiter got %+v of %q, want %+v", notice, got[2], want)
	}
	if id, _, left := one.Holds("a"); id != tickets[1].String() || left <= 0 || left > scripts.Reservation {
		t.Errorf("the name is kept for %q for %v", id, left)
	}
	if left, err := redis.Strings(c.Do("HGETALL", prefix.Alive("a"))); err != nil || len(left) != 2 || left[0] != tickets[2].String() {
		t.Errorf("queued are %q, %v", left, err)
	}
	hear(t, dial(t, m, 0), "third")
	m.Free("a") // it ends a reservation as well
	if id, _, _ := one.Holds("a"); id != tickets[2].String() {
		t.Errorf("the name is kept for %q", id)
	}
	m.Free("a")
	m.Free("a")
	if id, _, _ := one.Holds("a"); id != "" {
		t.Errorf("held by %q, with nobody left", id)
	}
}
