package redlock_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlocktest"
)

// A heard message of a peer, and the master on whose connection it came.
type heard struct {
	master  int
	payload string
}

// hears has the peer's messages taken down, and f, where it is not nil, say what comes in the place of each.
func (p *peer) hears(f func(master int, n scripts.Notice, payload string) []string) func() []heard {
	var mu sync.Mutex
	var all []heard
	p.tampering(func(master int, payload string) []string {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, heard{master, payload})
		if n, ok := defaultPrefix.ParseNotice(payload); ok && f != nil {
			return f(master, n, payload)
		}
		return []string{payload}
	})
	return func() []heard {
		mu.Lock()
		defer mu.Unlock()
		return append([]heard(nil), all...)
	}
}

// taken is take, and waits until all masters have granted. Messages take time from here on: who asks at the very instant of
// another has no ballot above its.
func (w *world) taken(l *redlock.Locker, opts ...redlock.LockOption) *redlock.Lock {
	w.Helper()
	w.delay(10 * time.Microsecond)
	k := w.take(l, "n", opts...)
	after(time.Millisecond)
	return k
}

// publish has what a peer has heard come again, from the same masters.
func (w *world) publish(p *peer, all []heard) {
	w.Helper()
	for _, h := range all {
		w.replay(sent{master: h.master, args: []string{"PUBLISH", defaultPrefix.Inbox(p.id), h.payload}})
	}
	after(10 * time.Millisecond)
}

// A message that gives a hold counts for the very round that asked, on the very master that has written it, and once. What it
// says otherwise is a hint: the waiter asks, and the masters say what is true.
func TestVirtualOnlyWhatSaysTheRightThingsIsAVote(t *testing.T) {
	replaced := func(old, by func(n scripts.Notice) string) func(int, scripts.Notice, string) []string {
		return func(_ int, n scripts.Notice, payload string) []string {
			return []string{strings.Replace(payload, old(n), by(n), 1)}
		}
	}
	ballot := func(n scripts.Notice) string { return fmt.Sprint(n.Ballot) }
	for name, one := range map[string]struct {
		tamper func(master int, n scripts.Notice, payload string) []string
		votes  bool
	}{
		"as they are": {tamper: func(_ int, _ scripts.Notice, payload string) []string { return []string{payload} }, votes: true},
		"each twice":  {tamper: func(_ int, _ scripts.Notice, payload string) []string { return []string{payload, payload} }, votes: true},
		"three": {tamper: func(master int, _ scripts.Notice, payload string) []string {
			return []string{payload}[:min(1, master/2)]
		}, votes: true},
		"two, each four times": {tamper: func(master int, _ scripts.Notice, payload string) []string {
			return []string{payload, payload, payload, payload}[:4*(master/3)]
		}},
		"of another ballot": {tamper: replaced(ballot, func(n scripts.Notice) string { return fmt.Sprint(n.Ballot - 1) })},
		"of another marker": {tamper: replaced(func(n scripts.Notice) string { return n.Marker[:6] }, func(n scripts.Notice) string { return n.Marker[:5] + "~" })},
		"of another hold":   {tamper: replaced(func(n scripts.Notice) string { return n.Hold }, func(n scripts.Notice) string { return strings.Repeat("x", len(n.Hold)) })},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, 5, func(w *world) {
				a, b := w.peer("a"), w.peer("b")
				k := w.taken(a.Locker)
				c := w.call(w.Context(), b.Locker, "n", unpolled)
				after(500 * time.Millisecond)
				b.hears(one.tamper)
				before := w.count("acquire")
				w.delay(time.Millisecond)
				go w.unlock(k)
				next, took := c.gets(20 * time.Second)
				if asked := w.count("acquire") > before; asked == one.votes {
					w.Errorf("it asked: %v, and has it after %v", asked, took)
				}
				if next.Token() <= k.Token() {
					w.Errorf("token %d after %d", next.Token(), k.Token())
				}
				w.delay(0)
				b.tampering(nil)
				w.unlock(next)
				w.nothingLeft("n")
			})
		})
	}
}

// PUBLISH goes to replicas as well: for a moment a master may be the replica of another, and repeat its messages. Five
// connections bring the word of one master: that is one vote.
func TestVirtualAReplicasEchoIsNoVote(t *testing.T) {
	virtual(t, 5, func(w *world) {
		a, b := w.peer("a"), w.peer("b")
		k := w.taken(a.Locker, redlock.WithTTL(30*time.Second))
		c := w.call(w.Context(), b.Locker, "n", unpolled)
		after(300 * time.Millisecond)
		own, _ := w.masters.Master(0).Get(defaultPrefix.Marker())
		b.hears(func(_ int, n scripts.Notice, payload string) []string {
			return []string{strings.Replace(payload, n.Marker, own, 1)}
		})
		before := w.count("acquire")
		w.unlock(k)
		next, _ := c.gets(time.Second)
		if w.count("acquire") == before {
			w.Error("the word of one master was counted five times")
		}
		b.tampering(nil)
		w.unlock(next)
		w.nothingLeft("n")
	})
}

// The messages that gave a hold come once more: while it is live, they end nothing; when it is over, or another has the name,
// they bring nothing back.
func TestVirtualLateWordOfAHoldChangesNothing(t *testing.T) {
	virtual(t, 5, func(w *world) {
		a, b := w.peer("a"), w.peer("b")
		k := w.taken(a.Locker)
		c := w.call(w.Context(), b.Locker, "n", unpolled)
		after(300 * time.Millisecond)
		all := b.hears(nil)
		w.unlock(k)
		next, _ := c.gets(time.Second)
		after(time.Millisecond)
		given := all()
		if len(given) != 5 {
			w.Fatalf("%d messages", len(given))
		}
		for _, pause := range []time.Duration{0, time.Second, 20 * time.Second} {
			after(pause)
			w.publish(b, given)
			if n := w.on("n"); n != 5 || next.Err() != nil {
				w.Fatalf("after %v the live hold is on %d masters: %v", pause, n, next.Err())
			}
		}
		w.unlock(next)
		w.publish(b, given)
		if n := w.on("n"); n != 0 {
			w.Errorf("held on %d", n)
		}
		third := w.taken(a.Locker)
		again := w.call(w.Context(), b.Locker, "n", unpolled)
		w.publish(b, given)
		if n := w.on("n"); n != 5 || again.over() {
			w.Errorf("the third hold is on %d masters", n)
		}
		w.unlock(third)
		last, _ := again.gets(time.Second)
		w.unlock(last)
		w.nothingLeft("n")
	})
}

// A waiter that hears nothing of what is given to it, and gives up, leaves nothing of it: the next gets the name at once.
func TestVirtualLeavingEndsWhatWasGivenUnheard(t *testing.T) {
	virtual(t, 5, func(w *world) {
		holder, b, other := w.peer("holder"), w.peer("b"), w.peer("other")
		k := w.taken(holder.Locker)
		ctx, cancel := context.WithCancel(w.Context())
		defer cancel()
		c := w.call(ctx, b.Locker, "n", unpolled)
		after(300 * time.Millisecond)
		next := w.call(w.Context(), other.Locker, "n", unpolled)
		all := b.hears(func(int, scripts.Notice, string) []string { return nil })
		w.unlock(k)
		after(50 * time.Millisecond)
		if n := len(all()); n != 5 || w.on("n") != 5 || c.over() {
			w.Fatalf("%d messages were lost, and it is on %d", n, w.on("n"))
		}
		start := time.Now()
		cancel()
		w.isError(c.fails(time.Second), context.Canceled)
		got, _ := next.gets(time.Second)
		if took := time.Since(start); took > 10*time.Millisecond {
			w.Errorf("the next got it after %v", took)
		}
		w.unlock(got)
		b.tampering(nil)
		w.publish(b, all())
		w.nothingLeft("n")
	})
}

// A waiter's ask is read once more, from an old connection, when its hold is over and another has the name. No release writes
// the old hold.
func TestVirtualALateAskIsNotGivenWhatItAskedFor(t *testing.T) {
	virtual(t, 5, func(w *world) {
		holder, b, other := w.peer("holder"), w.peer("b"), w.peer("other")
		k := w.taken(holder.Locker)
		c := w.call(w.Context(), b.Locker, "n", unpolled)
		after(300 * time.Millisecond)
		asks := b.world.wire.sent("acquire")
		asks = asks[len(asks)-5:]
		w.unlock(k)
		got, _ := c.gets(time.Second)
		w.unlock(got)
		after(time.Millisecond)
		another := w.taken(other.Locker)
		for _, s := range asks {
			if reply, ok := w.replay(s).([]any); !ok || reply[0] != int64(scripts.Held) {
				w.Errorf("the late ask is answered by %v", reply)
			}
		}
		heard := b.hears(nil)
		w.unlock(another)
		after(10 * time.Millisecond)
		if n := w.on("n"); n != 0 {
			w.Errorf("held on %d", n)
		}
		for _, h := range heard() {
			if n, _ := defaultPrefix.ParseNotice(h.payload); n.Kind == scripts.Given {
				w.Errorf("master %d has written it: %q", h.master, h.payload)
			}
		}
		w.nothingLeft("n")
	})
}

// Three masters cannot write the hold, since their bars are above its ballot, and keep the name instead; two write it. The
// waiter asks, by a ballot above those bars, and has it on all five.
func TestVirtualTwoGiveAndThreeKeep(t *testing.T) {
	virtual(t, 5, func(w *world) {
		a, b := w.peer("a"), w.peer("b")
		k := w.taken(a.Locker)
		c := w.call(w.Context(), b.Locker, "n", unpolled)
		after(300 * time.Millisecond)
		bar := time.Now().UnixMicro()
		w.each(func(_ int, m *redlocktest.Master) { m.Set(defaultPrefix.Bar("n"), fmt.Sprint(bar)) }, 0, 2, 4)
		after(200 * time.Millisecond)
		kinds := map[scripts.Word]int{}
		var mu sync.Mutex
		b.hears(func(_ int, n scripts.Notice, payload string) []string {
			mu.Lock()
			defer mu.Unlock()
			kinds[n.Kind]++
			return []string{payload}
		})
		w.delay(time.Millisecond)
		go w.unlock(k)
		next, took := c.gets(time.Second)
		mu.Lock()
		if kinds[scripts.Given] != 2 || kinds[scripts.Reserved] != 3 {
			w.Errorf("heard %v", kinds)
		}
		mu.Unlock()
		if took != 4*time.Millisecond {
			w.Errorf("it took %v", took)
		}
		after(10 * time.Millisecond)
		if on, _ := next.HeldOn(); on != 5 || w.on("n") != 5 {
			w.Errorf("known to be held on %d, held on %d", on, w.on("n"))
		}
		if token := next.Token(); token <= bar || token > bar+100 {
			w.Errorf("the token is %d, the bars were %d: it is just above them", token, bar)
		}
		w.delay(0)
		w.unlock(next)
		w.nothingLeft("n")
	})
}

// The word comes so late that less validity is left than was asked for: the waiter asks again, for all of it.
func TestVirtualWhatIsGivenTooLateIsAskedForAgain(t *testing.T) {
	virtual(t, 5, func(w *world) {
		const ttl = time.Second // an offer stands for 244 ms
		a, b := w.peer("a"), w.peer("b")
		k := w.taken(a.Locker, redlock.WithTTL(ttl))
		c := w.call(w.Context(), b.Locker, "n", unpolled, redlock.WithTTL(ttl))
		after(200 * time.Millisecond)
		before := w.count("acquire")
		b.hang()
		w.unlock(k)
		after(400 * time.Millisecond)
		if w.on("n") != 5 {
			w.Fatal("it was not given, so this shows nothing")
		}
		b.wake()
		next, _ := c.gets(5 * time.Second)
		if left := next.Remaining(); left < ttl/2 {
			w.Errorf("handed out with %v of validity left", left)
		}
		if w.count("acquire") == before {
			w.Error("it has not asked again, so this shows nothing")
		}
		w.delay(0)
		w.unlock(next)
		w.nothingLeft("n")
	})
}

// The longest that a lock may be held begins when it is given, not when it was asked for.
func TestVirtualAMaxHoldBeginsWhenItIsGiven(t *testing.T) {
	virtual(t, 3, func(w *world) {
		a, b := w.peer("a"), w.peer("b")
		k := w.taken(a.Locker)
		c := w.call(w.Context(), b.Locker, "n", unpolled, redlock.WithMaxHold(200*time.Millisecond))
		after(600 * time.Millisecond)
		w.unlock(k)
		next, _ := c.gets(time.Second)
		if left := next.Remaining(); left != 200*time.Millisecond {
			w.Errorf("%v are left", left)
		}
		w.unlock(next)
		w.nothingLeft("n")
	})
}

// H42: a waiter's process hangs within a second of its ask. Its hold is written, and costs the next its TTL, once.
func TestVirtualAWaiterThatHasJustHungCostsItsTTLOnce(t *testing.T) {
	virtual(t, 5, func(w *world) {
		const ttl = 4 * time.Second
		holder := w.taken(w.peer("holder").Locker)
		hung, next := w.peer("hung"), w.peer("next")
		inVain := w.call(w.Context(), hung.Locker, "n", redlock.WithTTL(ttl))
		c := w.call(w.Context(), next.Locker, "n", redlock.WithTTL(ttl))
		after(200 * time.Millisecond)
		hung.hang()
		w.unlock(holder)
		k, took := c.gets(time.Minute)
		if took < ttl || took > ttl+1200*time.Millisecond {
			w.Errorf("it took %v after the release, the TTL is %v", took, ttl)
		}
		hung.wake()
		after(time.Second)
		if inVain.over() {
			w.Error("two holders: what was written was counted after it had ended")
		}
		w.unlock(k)
		late, _ := inVain.gets(10 * time.Second)
		w.unlock(late)
		w.nothingLeft("n")
	})
}

// A waiter gives a hold up, which a minority has granted, and will go on with another. No master writes the old one any more, also
// none of those on which it is still queued; word of it from before is given back.
func TestVirtualAHoldThatWasRolledBackIsNotGiven(t *testing.T) {
	virtual(t, 5, func(w *world) {
		a, b := w.peer("a"), w.peer("b")
		k := w.taken(a.Locker, redlock.WithTTL(30*time.Second), redlock.WithExtension(false))
		c := w.call(w.Context(), b.Locker, "n", redlock.WithTTL(30*time.Second))
		after(20 * time.Millisecond)
		w.each(func(_ int, m *redlocktest.Master) { m.EvictKey(defaultPrefix.Lock("n")) }, 0, 1) // a minority is free
		before := len(b.world.wire.sent("release"))
		for range 1000 { // it takes them when it looks again, asks once more, and gives them up
			if after(time.Millisecond); len(b.world.wire.sent("release")) > before {
				break
			}
		}
		asks, ends := b.world.wire.sent("acquire"), b.world.wire.sent("release")[before:]
		after(100 * time.Millisecond)
		if n := len(b.world.wire.sent("acquire")) - len(asks); n > 5*2*5 { // five times, each later than the last, it asks, and once more
			w.Errorf("it goes on asking, %d times, while another has the name", n)
		}
		old := asks[len(asks)-1].hold()
		for _, s := range ends {
			if s.hold() != old {
				w.Fatalf("it ends %q and has asked for %q", s.hold(), old)
			}
		}
		if len(ends) != 5 {
			w.Errorf("its end was sent to %d masters, on each of which it is, or is queued", len(ends))
		}
		given := b.hears(nil)
		w.unlock(k)
		next, _ := c.gets(10 * time.Second)
		for _, h := range given() {
			n, _ := defaultPrefix.ParseNotice(h.payload)
			if n.Kind == scripts.Given && n.Hold == old {
				w.Errorf("master %d has written the hold that was given up", h.master)
			}
			// As if a master had written it before it heard of the end.
			marker, _ := w.masters.Master(h.master).Get(defaultPrefix.Marker())
			w.replay(sent{master: h.master, args: []string{"PUBLISH", defaultPrefix.Inbox("b"), fmt.Sprintf("G%d:%s%d:%s%d:%d:%s%s",
				len(n.Waiter), n.Waiter, len(old), old, n.Ballot, len(marker), marker, defaultPrefix.Lock("n"))}})
		}
		after(10 * time.Millisecond)
		if n := w.on("n"); n < 3 || next.Err() != nil {
			w.Errorf("the next hold is on %d: %v", n, next.Err())
		}
		w.unlock(next)
		w.nothingLeft("n")
	})
}

// A master comes back with the memory of a time before it had the live hold, and with the queue of that time. A holder that was
// lost long ago is released: what it leaves free there is not given by a server that is not admitted as what it is, so the
// waiter, which another master rightly gives its hold, has no majority.
func TestVirtualAMasterThatComesBackWithAnOldQueueGivesNothing(t *testing.T) {
	shown := false
	for try := 0; try < 50 && !shown && !t.Failed(); try++ {
		shown = oldQueue(t)
	}
	if !shown {
		t.Error("each time the waiter has asked again before the release")
	}
}

// oldQueue is one try: it shows nothing where the waiter has looked again since its subscription was made anew, which it does
// within a random time, and has found that it has no quorum.
func oldQueue(t *testing.T) (shown bool) {
	virtual(t, 3, func(w *world) {
		old, live, b := w.peer("old"), w.peer("live"), w.peer("b")
		lost := w.taken(old.Locker, redlock.WithTTL(30*time.Second), redlock.WithExtension(false))
		w.each(func(_ int, m *redlocktest.Master) { m.EvictKey(defaultPrefix.Lock("n")) }, 0, 2)
		holder := w.taken(live.Locker, redlock.WithTTL(30*time.Second), redlock.WithExtension(false)) // on 0 and 2
		c := w.call(w.Context(), b.Locker, "n", redlock.WithTTL(30*time.Second), unpolled)
		after(200 * time.Millisecond)
		heard, asks := b.hears(nil), len(b.world.wire.sent("acquire"))
		marker, _ := w.masters.Master(0).Get(defaultPrefix.Marker())
		w.masters.Master(0).EvictKey(defaultPrefix.Lock("n")) // it has never had it, as far as it remembers
		w.masters.Master(0).Restart(true)
		for range 100 { // its connections are made anew
			after(time.Millisecond)
			if w.masters.Master(0).Connections() >= 4 {
				break
			}
		}
		w.masters.Master(0).Set(defaultPrefix.Marker(), marker) // as if the release came before whoever begins its quarantine
		again := len(b.world.wire.sent("acquire")) > asks
		_ = lost.Unlock(w.Context()) // it is on one of three
		after(20 * time.Millisecond)
		shown = !again
		given := 0
		for _, h := range heard() {
			if n, _ := defaultPrefix.ParseNotice(h.payload); n.Kind == scripts.Given {
				given |= 1 << h.master
			}
		}
		if shown && given != 1<<1 {
			w.Errorf("the hold was given by %b", given)
		}
		if c.over() && holder.Err() == nil {
			w.Error("two holders")
		}
		_ = holder.Unlock(w.Context())
		k, _ := c.gets(time.Minute)
		_ = k.Unlock(w.Context()) // the quarantine of the first master has not ended
	})
	return shown
}
