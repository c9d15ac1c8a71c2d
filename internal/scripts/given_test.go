package scripts_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/scripts"
)

// A handing is one name with a holder, "holder:1", and waiters; ears hear the inboxes of the waiters.
type handing struct {
	*client
	marker string
	start  int64 // the holder's ballot, and the times of the offers, are counted from here
	ear    redis.Conn
}

// newHanding admits the master, has the name "a" held, and the inboxes of these Lockers heard.
func newHanding(c *client, lockers ...string) *handing {
	c.t.Helper()
	h := &handing{client: c, marker: c.admit(c.request(scripts.AdmitNow)).Marker, start: c.now() - 1e6, ear: c.second()}
	if v := c.stamped(acquire(hold("a", "holder:1"), h.start), h.marker); v.Kind != scripts.Granted {
		c.t.Fatalf("the holder gets %+v", v)
	}
	for _, locker := range lockers {
		if err := h.ear.Send("SUBSCRIBE", prefix.Inbox(locker)); err != nil {
			c.t.Fatal(err)
		}
	}
	if err := h.ear.Flush(); err != nil {
		c.t.Fatal(err)
	}
	for range lockers {
		if _, err := h.ear.Receive(); err != nil {
			c.t.Fatal(err)
		}
	}
	return h
}

// An ask is what a waiter asks with.
type ask struct {
	locker string
	first  int64         // after the start
	offer  time.Duration // for how long a release may write its hold
	stamp  string        // "" is the marker that is there
}

func (a ask) id() string { return a.locker + ":7" }

// queue has a waiter refused and queued.
func (h *handing) queue(a ask) *scripts.Ticket {
	h.t.Helper()
	ticket := scripts.NewTicket(a.locker, 1, h.start+a.first, 0)
	if a.stamp == "" {
		a.stamp = h.marker
	}
	v := h.stamped(fleet.QueueCall(hold("a", a.id()), ticket, false, ttl, a.offer, h.start+a.first, h.start+a.first+16), a.stamp)
	if v.Kind != scripts.Held || v.Place < 0 {
		h.t.Fatalf("%s gets %+v", a.locker, v)
	}
	return ticket
}

func (h *handing) perform(call *scripts.Call, stamp string) {
	h.t.Helper()
	if _, err := h.run(call, stamp); err != nil {
		h.t.Fatal(err)
	}
}

// unlock is the release of the holder, by one whose connection expects this marker.
func (h *handing) unlock(stamp string) {
	h.t.Helper()
	h.perform(fleet.ReleaseCall(hold("a", "holder:1"), h.start, false, scripts.Advance), stamp)
}

// told is the next notice.
func (h *handing) told() scripts.Notice {
	h.t.Helper()
	got, err := redis.Strings(h.ear.Receive())
	if err != nil {
		h.t.Fatal(err)
	}
	n, ok := prefix.ParseNotice(got[2])
	if !ok {
		h.t.Fatalf("%q is no notice", got[2])
	}
	return n
}

// wantGiven fails the test where the hold of a was not written and told, as it was offered.
func (h *handing) wantGiven(a ask) {
	h.t.Helper()
	want := scripts.Notice{Kind: scripts.Given, Waiter: scripts.NewTicket(a.locker, 1, h.start+a.first, 0).String(), Number: 1, Name: "a",
		Hold: a.id(), Ballot: h.start + a.first, Marker: h.marker}
	if got := h.told(); got != want {
		h.t.Errorf("told is %+v, want %+v", got, want)
	}
	got := h.inspect("a")
	if got.ID != a.id() || got.Depth != 1 || !near(got.Left, ttl, time.Second) || got.Bar != h.start+a.first+16 {
		h.t.Errorf("held is %+v", got)
	}
}

// wantReserved fails the test where the name is not kept for a.
func (h *handing) wantReserved(a ask) {
	h.t.Helper()
	ticket := scripts.NewTicket(a.locker, 1, h.start+a.first, 0).String()
	got := h.inspect("a")
	if n := h.told(); n.Kind != scripts.Reserved || n.Waiter != ticket || n.Ballot != got.Bar || n.Hold != "" {
		h.t.Errorf("told is %+v; the bar is %d", n, got.Bar)
	}
	if got.ID != ticket || got.Left > scripts.Reservation {
		h.t.Errorf("held is %+v", got)
	}
}

// A release writes the hold of the first who waits as its own acquire would have, and repeating the release changes nothing.
func TestAReleaseWritesTheHoldOfTheFirst(t *testing.T) {
	onBoth(t, func(t *testing.T, c *client) {
		first, second := ask{locker: "one", first: 10, offer: time.Minute}, ask{locker: "two", first: 100, offer: time.Minute}
		h := newHanding(c, "one", "two")
		h.queue(first)
		h.queue(second)
		for range 3 {
			h.unlock(h.marker)
		}
		h.wantGiven(first)
		before := h.snapshot("a")
		h.unlock(h.marker)
		h.unchanged("a", before)
		if v := h.stamped(fleet.QueueCall(hold("a", first.id()), scripts.NewTicket("one", 1, h.start+10, 0), false, ttl, time.Minute, h.start+10, h.start+26), h.marker); v.Kind != scripts.Granted {
			t.Errorf("its late ask is answered by %+v", v)
		}
		h.unchanged("a", before)
		h.perform(fleet.ReleaseCall(hold("a", first.id()), h.start+26, false, scripts.Advance), h.marker)
		h.wantGiven(second)
	})
}

// What keeps a release from writing a hold: it reserves the name instead, and tells the bar.
func TestAReleaseReservesWhereItMayNotWrite(t *testing.T) {
	far := (window + time.Second).Microseconds()
	for name, one := range map[string]struct {
		ask    ask
		unlock func(h *handing)
	}{
		"no offer":                       {ask{offer: 0}, nil},
		"offer of one who asked blindly": {ask{offer: time.Minute, stamp: "-"}, nil},
		"offer that is over":             {ask{offer: time.Millisecond}, func(h *handing) { h.passes(5 * time.Millisecond); h.unlock(h.marker) }},
		"caller without a marker":        {ask{offer: time.Minute}, func(h *handing) { h.unlock("") }},
		"caller with another marker":     {ask{offer: time.Minute}, func(h *handing) { h.unlock("v1 something else") }},
		"marker changed": {ask{offer: time.Minute}, func(h *handing) {
			r := h.request(scripts.AdmitGuard)
			r.Seen, r.Guard = h.marker, guard+time.Second
			h.admit(r)
			h.unlock(h.marker)
		}},
		"ballot not above the bar": {ask{offer: time.Minute, first: -5}, nil},
		"ballot that this release bars": {ask{offer: time.Minute}, func(h *handing) {
			h.perform(fleet.ReleaseCall(hold("a", "holder:1"), h.start+10, true, scripts.Advance), h.marker)
		}},
		"ballot barred since": {ask{offer: time.Minute}, func(h *handing) {
			h.perform(fleet.ReleaseCall(hold("a", "w:7"), h.start+10, true, scripts.Nothing), "")
			h.unlock(h.marker)
		}},
		"ballot too far ahead": {ask{offer: time.Minute, first: far + 2e6}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, c *client) {
				one.ask.locker = "w"
				if one.ask.first == 0 {
					one.ask.first = 10
				}
				h := newHanding(c, "w")
				if one.ask.stamp == "-" { // with the guard off
					v := h.stamped(fleet.QueueCall(hold("a", "w:7"), scripts.NewTicket("w", 1, h.start+10, 0), false, ttl, time.Minute, h.start+10, h.start+26), "")
					if v.Kind != scripts.Held {
						t.Fatalf("%+v", v)
					}
				} else {
					h.queue(one.ask)
				}
				if one.unlock == nil {
					one.unlock = func(h *handing) { h.unlock(h.marker) }
				}
				one.unlock(h)
				h.wantReserved(one.ask)
			})
		})
	}
}

// passes waits until the master's clock has gone on by d.
func (h *handing) passes(d time.Duration) {
	h.t.Helper()
	for from := h.now(); h.now() < from+d.Microseconds(); {
		<-time.After(time.Millisecond)
	}
}

// Nobody hears the first: what was written of its hold is gone again, and the next gets its own.
func TestAReleasePassesThoseWhoAreNotHeard(t *testing.T) {
	onBoth(t, func(t *testing.T, c *client) {
		next := ask{locker: "two", first: 100, offer: time.Minute}
		h := newHanding(c, "two")
		h.queue(ask{locker: "deaf", first: 10, offer: time.Minute})
		h.queue(next)
		h.unlock(h.marker)
		h.wantGiven(next)
		if got := h.snapshot("a"); len(got.lock) != 1 {
			t.Errorf("the lock has %v", got.lock)
		}
		h.perform(fleet.ReleaseCall(hold("a", next.id()), h.start+116, false, scripts.Advance), h.marker)
		h.wantFree("a")
	})
}

// wantFree fails the test where somebody holds the name.
func (c *client) wantFree(name string) {
	c.t.Helper()
	if got := c.inspect(name); got.ID != "" {
		c.t.Errorf("held is %+v", got)
	}
}

// One who resigns is out of the queue, its hold is gone where it was written, and barred where it was not; the name goes on.
func TestResigningEndsWhatWasOffered(t *testing.T) {
	for _, written := range []bool{false, true} {
		t.Run(fmt.Sprint("written ", written), func(t *testing.T) {
			onBoth(t, func(t *testing.T, c *client) {
				gone, next := ask{locker: "one", first: 10, offer: time.Minute}, ask{locker: "two", first: 100, offer: time.Minute}
				h := newHanding(c, "one", "two")
				ticket := h.queue(gone)
				h.queue(next)
				if written {
					h.unlock(h.marker)
					h.wantGiven(gone)
				}
				resign := fleet.ResignCall(hold("a", gone.id()), h.start+26, ticket.String())
				h.perform(resign, h.marker)
				h.perform(resign, h.marker)
				if !written {
					h.unlock(h.marker)
				}
				h.wantGiven(next)
				// Its ask comes late: it is queued without an offer, since the bar is above its ballot.
				h.queue(gone)
				h.perform(fleet.ReleaseCall(hold("a", next.id()), h.start+116, false, scripts.Advance), h.marker)
				h.wantReserved(gone)
			})
		})
	}
}

// A debt, and a hold of which others have the most, hand nothing on but word: no hold is written.
func TestOnlyAHandingReleaseWritesAHold(t *testing.T) {
	onBoth(t, func(t *testing.T, c *client) {
		h := newHanding(c, "w")
		h.queue(ask{locker: "w", first: 10, offer: time.Minute})
		h.perform(fleet.ReleaseCall(hold("a", "holder:1"), h.start, false, scripts.Tell), h.marker)
		if n := h.told(); n.Kind != scripts.Free {
			t.Errorf("told is %+v", n)
		}
		h.wantFree("a")
		h.perform(fleet.ReleaseCall(hold("a", "holder:1"), h.start, false, scripts.Nothing), h.marker)
		h.wantFree("a")
		h.perform(fleet.AdvanceCall(prefix.Keys("a")), h.marker) // it was not dropped from the queue
		h.wantGiven(ask{locker: "w", first: 10})
	})
}

// FLUSHALL takes the marker with it, and the queue: a release that follows gives nothing away.
func TestAReleaseAfterAFlushGivesNothing(t *testing.T) {
	c := onServer(t)
	h := newHanding(c, "w")
	h.queue(ask{locker: "w", first: 10, offer: time.Minute})
	queue, alive := c.dump(prefix.Queue("a")), c.dump(prefix.Alive("a"))
	c.must("FLUSHALL")
	h.unlock(h.marker)
	h.wantFree("a")
	c.must("RESTORE", prefix.Queue("a"), 0, queue) // as from an old file
	c.must("RESTORE", prefix.Alive("a"), 0, alive)
	h.unlock(h.marker)
	h.perform(fleet.AdvanceCall(prefix.Keys("a")), h.marker)
	if n := h.told(); n.Kind != scripts.Reserved {
		t.Errorf("told is %+v", n)
	}
}

func (c *client) dump(key string) []byte {
	c.t.Helper()
	b, err := redis.Bytes(c.must("DUMP", key), nil)
	if err != nil {
		c.t.Fatal(err)
	}
	return b
}

// A user who lacks the right to one of the commands writes no half of a hold: the name is reserved as for one without an offer,
// or where that cannot be either, the release has deleted what it is about.
func TestAHoldIsWrittenAsAWholeOrNotAtAll(t *testing.T) {
	for _, denied := range []string{"set", "setrange", "pexpire", "hset"} {
		t.Run(denied, func(t *testing.T) {
			c := onServer(t)
			h := newHanding(c, "w")
			w := ask{locker: "w", first: 10, offer: time.Minute}
			h.queue(w)
			if denied == "set" { // which a bar that is written over in place does not need
				c.must("SET", prefix.Bar("a"), fmt.Sprint("0", h.start))
			}
			c.must("ACL", "SETUSER", "default", "-"+denied)
			_, err := h.run(fleet.ReleaseCall(hold("a", "holder:1"), h.start, false, scripts.Advance), h.marker)
			c.must("ACL", "SETUSER", "default", "+"+denied)
			if got := c.snapshot("a"); got.lock[w.id()] != "" {
				t.Errorf("the lock has %v", got.lock)
			}
			if strings.HasPrefix(denied, "set") {
				h.wantReserved(w)
			} else if err == nil {
				t.Error("a reservation was written without the right to")
			}
		})
	}
}

// OOM: no hold is written, and no half of one. The reservation is: to take the waiter out of the queue was a write, and a script
// that has written is not refused memory any more.
func TestAReleaseWithoutMemoryWritesNoHold(t *testing.T) {
	c := onServer(t)
	h := newHanding(c, "w")
	w := ask{locker: "w", first: 10, offer: time.Minute}
	h.queue(w)
	h.perform(fleet.ReleaseCall(hold("a", "holder:1"), h.start, false, scripts.Nothing), h.marker)
	c.must("CONFIG", "SET", "maxmemory", 1)
	h.perform(fleet.AdvanceCall(prefix.Keys("a")), h.marker)
	c.must("CONFIG", "SET", "maxmemory", 0)
	h.wantReserved(w)
}

// A run that has written is not refused memory any more; an acquire behind a release is, as it is alone, and one that writes
// nothing is answered.
func TestAnAcquireBehindAReleaseIsRefusedMemory(t *testing.T) {
	c := onServer(t)
	start := c.now()
	c.want(scripts.Granted, acquire(hold("held", "other:1"), start))
	var g scripts.Group
	for _, call := range []*scripts.Call{
		fleet.ReleaseCall(hold("a", "me:1"), start, false, scripts.Advance), acquire(hold("b", "me:2"), start), acquire(hold("held", "me:3"), start),
		fleet.ReleaseCall(hold("held", "other:1"), start, false, scripts.Advance), acquire(hold("held", "me:4"), start+1),
	} {
		if !g.Add(call) {
			t.Fatal("it goes by itself")
		}
	}
	if g.Add(fleet.AdvanceCall(prefix.Keys("a"))) {
		t.Error("a release that ends nothing goes with others")
	}
	c.must("CONFIG", "SET", "maxmemory", 1)
	replies, err := redis.Values(c.Do("EVALSHA", g.AppendArgs(nil, "")...))
	c.must("CONFIG", "SET", "maxmemory", 0)
	if err != nil || len(replies) != 5 {
		t.Fatal(replies, err)
	}
	for _, i := range []int{1, 4} {
		if text, _ := replies[i].(redis.Error); !strings.HasPrefix(string(text), "OOM ") {
			t.Errorf("reply %d is %v", i, replies[i])
		}
	}
	if list, _ := replies[2].([]any); replies[0] != int64(0) || replies[3] != int64(1) || len(list) == 0 || list[0] != int64(scripts.Held) {
		t.Errorf("the replies are %v", replies)
	}
	c.wantFree("b")
	c.wantFree("held")
	if n := c.must("EXISTS", prefix.Queue("a")); n != int64(0) {
		t.Error("a queue was made")
	}
}
