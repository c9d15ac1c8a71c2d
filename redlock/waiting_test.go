package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/admin"
)

// unpolled is a pause longer than any test, so a waiter with it makes progress only if it is woken.
var unpolled = redlock.WithPause(time.Hour)

// A release wakes the next waiter, which has the lock two round trips after Unlock was called: half a trip for the
// release, half for the wake-up, and one for the acquire.
func TestReleaseWakesNextWaiter(t *testing.T) {
	for name, opts := range map[string][]redlock.Option{"guarded": nil, "unguarded": {redlock.WithoutRestartGuard()}} {
		subtest(t, name, 5, func(w *cluster) {
			a, b := w.peer("a", opts...), w.peer("b", opts...)
			w.delay(10 * time.Microsecond) // attempts at one instant have the same ballot
			k := must(a.Lock(w.Context(), "n"))(w)
			after(time.Millisecond) // all masters have the lock
			c := w.goLock(w.Context(), b, "n", unpolled)
			after(500 * time.Millisecond)
			before := w.count("acquire")
			w.delay(time.Millisecond)
			w.goUnlock(k)
			next, took := c.timed(time.Second)
			equal(w, took, 4*time.Millisecond, "time of two round trips")
			w.wantLater(next, k)
			after(10 * time.Millisecond)
			equal(w, w.count("acquire")-before, 5, "acquires after the release")
			if on, _ := client.HeldOn(next); on != 5 || w.on("n") != 5 {
				w.Errorf("HeldOn reports %d masters, and %d hold the lock, want 5", on, w.on("n"))
			}
			w.noError(next.Unlock(w.Context()))
			w.nothingLeft("n")
		})
	}
}

// If every subscription is cut, from the start or later, a waiter still gets the lock: it polls, and so notices a
// release, and it retries when the TTL of a killed holder has expired.
func TestWaitEndsWithoutSubscriptions(t *testing.T) {
	for _, when := range []string{"before", "while waiting"} {
		bubble(t, 5, func(w *cluster) {
			a, b := w.peer("a"), w.peer("b")
			if when == "before" {
				b.deafen()
			}
			k := must(a.Lock(w.Context(), "n"))(w)
			c := w.goLock(w.Context(), b, "n").mustWait()
			b.deafen()
			after(time.Duration(rounds(60, 15)) * time.Second)
			if c.returned() {
				w.Fatal("the waiter got the lock while another client holds it")
			}
			w.noError(k.Unlock(w.Context()))
			next, took := c.timed(time.Minute)
			longest := redlock.LongestPause
			if took > longest && when == "before" || took > 5*time.Second {
				w.Errorf("subscriptions cut %s: acquired %v after the release", when, took)
			}
			w.noError(next.Unlock(w.Context()))

			k = must(a.Lock(w.Context(), "n"))(w)
			left := k.Remaining()
			c = w.goLock(w.Context(), b, "n", unpolled)
			a.kill()
			next, took = c.timed(time.Minute)
			if took < left || took > redlock.DefaultTTL+50*time.Millisecond {
				w.Errorf("%s: acquired %v after the holder was killed, with %v of validity left", when, took, left)
			}
			w.noError(next.Unlock(w.Context()))
			w.nothingLeft("n")
		})
	}
}

// All wake-ups are lost in transit, although PUBLISH counts their receivers as usual. The first and the second waiter
// then try again within a second, the other waiters within five seconds.
func TestWaitEndsByPollIfMessagesAreLost(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		k := must(w.peer("holder").Lock(w.Context(), "n"))(w)
		var calls []*call
		for i := range 3 {
			p := w.peer(fmt.Sprint("p", i))
			p.tampering(lost)
			calls = append(calls, w.goLock(w.Context(), p, "n").mustWait())
		}
		after(time.Minute)
		for i := range calls {
			w.noError(k.Unlock(w.Context()))
			for start := time.Now(); k.Err() != nil; after(50 * time.Millisecond) {
				for _, c := range calls {
					if c.returned() && c.lock.Err() == nil {
						k = c.lock
					}
				}
				if time.Since(start) > 5100*time.Millisecond {
					w.Fatalf("no client has the lock after 5 s, with %d waiting", len(calls)-i)
				}
			}
		}
		w.noError(k.Unlock(w.Context()))
		w.nothingLeft("n")
	})
}

// A wake-up for one name does not wake clients that wait for other names.
func TestWakeUpIsForOneName(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		a, b := w.peer("a"), w.peer("b")
		k, other := must(a.Lock(w.Context(), "n"))(w), must(a.Lock(w.Context(), "m"))(w)
		c, d := w.goLock(w.Context(), b, "n", unpolled).mustWait(), w.goLock(w.Context(), b, "m", unpolled).mustWait()
		before := w.count("acquire")
		w.noError(k.Unlock(w.Context()))
		next := c.mustLock(time.Second)
		after(500 * time.Millisecond)
		if n := w.count("acquire") - before; n != 3 || d.returned() {
			w.Errorf("%d acquires on 3 masters, or the waiter for another name has a lock", n)
		}
		w.noError(other.Unlock(w.Context()))
		last := d.mustLock(time.Second)
		w.noError(next.Unlock(w.Context()))
		w.noError(last.Unlock(w.Context()))
		w.nothingLeft("n", "m")
	})
}

// While nothing happens, waiting costs the masters very little: no new subscription, and one acquire a second on
// each master.
func TestWaitingIsCheap(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		k := must(w.peer("a").Lock(w.Context(), "n"))(w)
		b := w.peer("b")
		c := w.goLock(w.Context(), b, "n").mustWait()
		for range 99 {
			w.goLock(w.Context(), b, "n")
		}
		after(time.Minute)
		acquires, subscribes := w.count("acquire"), w.count("SUBSCRIBE")
		after(time.Minute)
		atMost(w, w.count("acquire")-acquires, 5*61, "acquires a minute of a hundred waiting goroutines")
		equal(w, w.count("SUBSCRIBE")-subscribes, 0, "subscriptions")
		w.noError(k.Unlock(w.Context()))
		c.mustLock(time.Second)
		w.evict("n")
	})
}

// A wake-up is not a vote. A woken waiter sends acquires, and the replies of the masters decide. So a false wake-up,
// or a wake-up that arrives while another client holds the name, costs only a round.
func TestWakeUpsAreNotVotes(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		a, b := w.peer("a"), w.peer("b")
		w.delay(10 * time.Microsecond) // attempts at one instant have the same ballot
		k := must(a.Lock(w.Context(), "n", redlock.WithTTL(30*time.Second)))(w)
		after(time.Millisecond) // all masters have the lock
		c := w.goLock(w.Context(), b, "n", unpolled)
		after(300 * time.Millisecond)
		w.delay(time.Millisecond)
		before := w.count("acquire")
		hints := w.hintsFor(b, "n")
		for name, change := range map[string]func(i int, payload string) string{
			"without a change":      func(_ int, payload string) string { return payload },
			"of another name":       func(_ int, payload string) string { return strings.Replace(payload, "{n}", "{m}", 1) },
			"for another waiter":    func(_ int, payload string) string { return strings.Replace(payload, ":1:", ":77:", 1) },
			"for the holder":        func(int, string) string { return w.idOf("n") + "\n" + defaultPrefix.Lock("n") },
			"for no waiter":         func(int, string) string { return "\n" + defaultPrefix.Lock("n") },
			"cut off":               func(_ int, payload string) string { return payload[:len(payload)/2] },
			"with additional lines": func(_ int, payload string) string { return payload + "\n1\n1" },
		} {
			for i, hint := range hints {
				w.replay(sent{master: hint.master, args: []string{"PUBLISH", b.inbox(), change(i, hint.payload)}})
			}
			after(100 * time.Millisecond)
			if c.returned() || k.Err() != nil || w.on("n") != 5 {
				w.Fatalf("after wake-ups %s the waiter has the lock, or the holder has lost it: %v", name, k.Err())
			}
		}
		if w.count("acquire") == before {
			w.Error("the wake-ups have caused no acquire, so this test shows nothing")
		}
		w.noError(k.Unlock(w.Context()))
		next := c.mustLock(5 * time.Second)
		after(10 * time.Millisecond)
		releases := len(b.cluster.wire.sent("release"))
		w.publish(b, hints)
		if on := w.on("n"); on != 5 || next.Err() != nil || len(b.cluster.wire.sent("release")) != releases {
			w.Errorf("late wake-ups have changed the new lock: it is on %d masters, %v", on, next.Err())
		}
		w.noError(next.Unlock(w.Context()))
		w.publish(b, hints)
		w.wantOn("n", 0)
		w.nothingLeft("n", "m")
	})
}

// hintsFor returns the wake-ups that the masters would send for the first waiter of a peer.
func (w *cluster) hintsFor(p *peer, name string) (list []hint) {
	w.Helper()
	for i := range w.masters.N() {
		for _, waiter := range w.waiters(i, name) {
			if labelOf(waiter) == p.id {
				list = append(list, hint{i, waiter + "\n" + defaultPrefix.Lock(name)})
			}
		}
	}
	if len(list) == 0 {
		w.Fatalf("%s does not wait for %s", p.id, name)
	}
	return list
}

// waiters returns the waiters in the queue of a name on master i, in their order.
func (w *cluster) waiters(i int, name string) []string {
	w.Helper()
	keys := defaultPrefix.Keys(name)
	reply := must(w.do(i, scripts.NewEncoder(defaultPrefix, 0).Inspect(&keys, 0)))(w)
	seen, err := scripts.DecodeHolding(reply)
	if err != nil || seen.Waiters != len(seen.First) {
		w.Fatalf("%d waiters, but %d are listed; %v", seen.Waiters, len(seen.First), err)
	}
	return seen.First
}

// labels returns the labels of the waiters for a name on master i, in their order.
func (w *cluster) labels(i int, name string) (list []string) {
	w.Helper()
	for _, waiter := range w.waiters(i, name) {
		list = append(list, labelOf(waiter))
	}
	return list
}

// H82: a waiter does not need wake-ups from a quorum. If two of five masters are down and only one of the others
// delivers its wake-up, the waiter sends acquires soon after that wake-up, regardless of how long it has waited.
func TestWaiterTriesAfterFirstWakeUp(t *testing.T) {
	for _, wait := range []time.Duration{1500 * time.Millisecond, 15500 * time.Millisecond} {
		subtest(t, wait.String(), 5, func(w *cluster) { firstHint(w, wait) })
	}
}

func firstHint(w *cluster, wait time.Duration) {
	w.Helper()
	a, b := w.peer("a"), w.peer("b")
	w.delay(10 * time.Microsecond) // attempts at one instant have the same ballot
	k := must(a.Lock(w.Context(), "n", redlock.WithTTL(30*time.Second)))(w)
	after(time.Millisecond) // all masters have the lock
	c := w.goLock(w.Context(), b, "n", unpolled)
	after(wait) // b last tried half a second ago; its subscriptions, which wake it too, were confirmed long ago
	b.tampering(func(master int, payload string) []string {
		if master == 0 {
			return []string{payload}
		}
		return nil
	})
	w.stop(3, 4)
	w.delay(time.Millisecond, 0, 1, 2)
	w.goUnlock(k)
	next := c.mustLock(20 * time.Millisecond)
	b.tampering(nil)
	w.delay(0)
	w.restart(true, 3, 4)
	after(5 * time.Second)
	w.noError(next.Unlock(w.Context()))
	w.nothingLeft("n")
}

// H88: a waiter is first in the queue of a minority of the masters, on which the name is free, and the other masters
// refuse it. Each of its rounds wins only that minority and is rolled back, and the rollback wakes the waiter again.
// So the pause after a first wake-up doubles with each lost round, up to a second.
func TestPauseAfterFirstWakeUpDoubles(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		w.masters.Take("n", time.Hour)
		w.masters.Master(0).Evict("n")
		w.delay(100 * time.Microsecond)
		b := w.peer("b")
		c := w.goLock(w.Context(), b, "n")
		times := func() (list []time.Time) {
			for _, s := range b.cluster.wire.sent("acquire") {
				if s.master == 0 {
					list = append(list, s.at)
				}
			}
			return list
		}
		after(30 * time.Second)
		all := times()
		if n := len(all); n > 12+30 || n < 20 {
			w.Errorf("the waiter has sent master 0 %d acquires in 30 s", n)
		}
		if pause := all[len(all)-1].Sub(all[len(all)-2]); pause < 900*time.Millisecond {
			w.Errorf("the last pause was %v, want at least 900 ms", pause)
		}
		for i := range 5 {
			if got := w.labels(i, "n"); fmt.Sprint(got) != "[b]" {
				w.Errorf("master %d has %q in its queue", i, got)
			}
		}
		w.masters.Free("n")
		k := c.mustLock(10 * time.Millisecond)
		w.noError(k.Unlock(w.Context()))
		w.nothingLeft("n")
	})
}

// H83: a leader with a standby keeps its lock through any number of restarts of the masters, one after the other,
// because a repair ignores the queue and is also accepted by a master in quarantine.
func TestRepairIgnoresQueueAndQuarantine(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		leader, standby := w.peer("leader"), w.peer("standby")
		w.delay(10 * time.Microsecond) // attempts at one instant have the same ballot
		k := must(leader.Lock(w.Context(), "n"))(w)
		after(time.Millisecond) // all masters have the lock
		c := w.goLock(w.Context(), standby, "n")
		after(time.Second)
		for n := range rounds(10, 5) {
			m := w.masters.Master(n % 5)
			m.Restart(false)
			after(6 * time.Second)
			id, _, _ := m.Holds("n")
			if on, _ := client.HeldOn(k); on != 5 || labelOf(id) != "leader" || k.Err() != nil || c.returned() {
				w.Fatalf("restart %d: held on %d masters, on the restarted one by %q: %v", n, on, labelOf(id), k.Err())
			}
			if state := admin.Of(leader.Locker).Masters()[n%5].State; state != "quarantine" {
				w.Fatalf("restart %d: the master is %s, so this test shows nothing", n, state)
			}
			after(30 * time.Second) // the master votes again before the next restart
		}
		w.evict("n", 0, 3) // only the lock's keys: the queues remain
		after(6 * time.Second)
		if on, _ := client.HeldOn(k); on != 5 || w.on("n") != 5 || k.Err() != nil {
			w.Errorf("with queues on the masters, %d of them have the leader's lock: %v", w.on("n"), k.Err())
		}
		w.noError(k.Unlock(w.Context()))
		next := c.mustLock(5 * time.Second)
		w.noError(next.Unlock(w.Context()))
		w.nothingLeft("n")
	})
}

// H93: one of three masters has a clock that is 20 s off. A client that reaches only that master and one other
// cannot win a quorum, since that master refuses every ballot that the others accept. The waiter of this client does
// not block other clients.
func TestMasterWithWrongClockIsNoVoter(t *testing.T) {
	for _, off := range []time.Duration{20 * time.Second, -20 * time.Second} {
		bubble(t, 3, func(w *cluster) {
			w.setClocks(off, 0)
			w.masters.Take("n", time.Hour)
			w.delay(time.Millisecond)
			cutOff, other := w.peer("cut off"), w.peer("other")
			cutOff.cut(2)
			a := w.goLock(w.Context(), cutOff, "n")
			after(100 * time.Millisecond)
			b := w.goLock(w.Context(), other, "n")
			after(100 * time.Millisecond)
			w.masters.Free("n")
			k, took := b.timed(30 * time.Second)
			if took > 3*time.Second || a.returned() {
				w.Errorf("clock off by %v: the other client had the lock after %v, or the client that is cut off has it", off, took)
			}
			cutOff.cluster.wire.block()
			w.setClocks(0, 0)
			after(3 * time.Second)
			w.noError(k.Unlock(w.Context()))
			w.noError(a.mustLock(30 * time.Second).Unlock(w.Context()))
		})
	}
}

// H41: goroutines of one client that wait for one name cost the masters as much as one contender, and get the lock
// in the order of their calls.
func TestOneContenderForManyGoroutines(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		holder := must(w.peer("holder").Lock(w.Context(), "n", redlock.WithTTL(30*time.Second)))(w)
		p := w.peer("p")
		before := w.count("acquire")
		var calls []*call
		for range 100 {
			calls = append(calls, w.goLock(w.Context(), p, "n", unpolled, redlock.WithHandoff(0, 0)))
		}
		after(900 * time.Millisecond)                  // the head of the queue tries again after a second
		if n := w.count("acquire") - before; n > 3*5 { // one is refused, the next joins the queue, and there may be a third
			w.Errorf("%d acquires of a hundred goroutines on 5 masters", n)
		}
		w.delay(time.Millisecond)
		w.goUnlock(holder)
		for _, c := range calls {
			k := c.mustLock(8 * time.Millisecond)
			w.goUnlock(k)
		}
		w.nothingLeft("n")
	})
}

// A contender may give up at any moment of its call. The call that is parked behind the contender continues
// immediately, and the masters keep no keys of the cancelled call.
func TestCancelledContenderLeavesNothing(t *testing.T) {
	for step, at := range map[string]struct {
		deaf, release bool
		queued        time.Duration // time from the call to the release
		cancel        time.Duration // time from the call, or from the release, to the cancellation
	}{
		"acquires in transit":      {cancel: 10 * time.Millisecond},
		"refusals in transit":      {cancel: 30 * time.Millisecond},
		"subscribing":              {cancel: 45 * time.Millisecond},
		"70 ms after the call":     {cancel: 70 * time.Millisecond},
		"queued":                   {cancel: time.Second},
		"not subscribed":           {cancel: time.Second, deaf: true},
		"release in transit":       {release: true, queued: 500 * time.Millisecond, cancel: 10 * time.Millisecond},
		"wake-ups in transit":      {release: true, queued: 500 * time.Millisecond, cancel: 30 * time.Millisecond},
		"next acquires in transit": {release: true, queued: 2 * time.Second, cancel: 50 * time.Millisecond},
		"grants in transit":        {release: true, queued: 2 * time.Second, cancel: 70 * time.Millisecond},
	} {
		subtest(t, step, 5, func(w *cluster) {
			holder := must(w.peer("holder").Lock(w.Context(), "n", redlock.WithTTL(30*time.Second)))(w)
			p, other := w.peer("p"), w.peer("other")
			if at.deaf {
				p.deafen()
			}
			w.delay(20 * time.Millisecond)
			ctx, cancel := context.WithCancel(w.Context())
			head := w.goLock(ctx, p, "n", unpolled)
			if at.release {
				after(at.queued)
				w.goUnlock(holder)
			}
			after(at.cancel)
			next := w.goLock(w.Context(), p, "n", unpolled)
			start := time.Now()
			cancel()
			w.isError(head.mustFail(time.Second), context.Canceled)
			equal(w, time.Since(start), 0, "elapsed time")
			p.hear()
			if !at.release {
				after(time.Second)
				w.goUnlock(holder)
			}
			k := next.mustLock(500 * time.Millisecond)
			w.goUnlock(k)
			last := w.goLock(w.Context(), other, "n").mustLock(time.Second)
			w.noError(last.Unlock(w.Context()))
			w.nothingLeft("n")
		})
	}
}

// A parked call that gives up sends nothing to the masters, and the other parked calls keep their order.
func TestCancelledParkedCallLeavesNothing(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		p := w.peer("p")
		k := must(p.Lock(w.Context(), "n"))(w)
		ctx := w.withTimeout(time.Second)
		first := w.goLock(w.Context(), p, "n")
		gone := w.goLock(ctx, p, "n")
		last := w.goLock(w.Context(), p, "n")
		before := w.count("acquire") + w.count("release")
		err := gone.mustFail(2 * time.Second)
		w.isError(err, context.DeadlineExceeded, redlock.ErrHeld)
		w.notError(err, context.Canceled, redlock.ErrNoQuorum)
		equal(w, w.count("acquire")+w.count("release"), before, "acquires and releases while the calls are parked")
		w.noError(k.Unlock(w.Context()))
		k = first.mustLock(time.Second)
		if last.returned() {
			w.Error("the last call got the lock together with the first")
		}
		w.noError(k.Unlock(w.Context()))
		w.noError(last.mustLock(time.Second).Unlock(w.Context()))
		w.nothingLeft("n")
	})
}

// When the context of a parked call ends, the call's error contains the reason why the contender ahead of it waits:
// the name is held, or there is no quorum, with the masters that failed.
func TestParkedCallGetsReasonOfContender(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		p := w.peer("p")
		w.refuse("OOM command not allowed", 0, 1, 2)
		head := w.goLock(w.Context(), p, "n")
		err := w.goLock(w.withTimeout(time.Second), p, "n").mustFail(2 * time.Second)
		w.isError(err, context.DeadlineExceeded, redlock.ErrNoQuorum)
		w.notError(err, redlock.ErrHeld)
		var m *transport.Error
		if !errors.As(err, &m) {
			w.Errorf("no master is named in %v", err)
		}
		w.refuse("")
		w.noError(head.mustLock(5 * time.Second).Unlock(w.Context()))
		w.nothingLeft("n")
	})
}

// Close ends the waits of contenders and of parked calls with ErrClosed, and leaves no keys on the masters.
func TestCloseEndsEveryWait(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		holder := must(w.peer("holder").Lock(w.Context(), "n"))(w)
		p := w.peer("p")
		mine := must(p.Lock(w.Context(), "own"))(w)
		var calls []*call
		for i := range 12 {
			calls = append(calls, w.goLock(w.Context(), p, []string{"n", "own"}[i%2]))
			calls = append(calls, w.goLock(w.Context(), p, "n", redlock.WithPriority(i)))
		}
		after(time.Second)
		equal(w, w.queued("n"), 5, "masters with a queue")
		start := time.Now()
		w.noError(p.Close())
		equal(w, time.Since(start), 0, "time of Close")
		for _, c := range calls {
			w.isError(c.mustFail(time.Second), redlock.ErrClosed)
		}
		w.isError(mine.Unlock(w.Context()), redlock.ErrClosed)
		w.noError(holder.Unlock(w.Context()))
		w.nothingLeft("n", "own")
	})
}

// H85: a waiter that has won also leaves the queue of a master that refused it, so that no inspection shows the holder
// as a waiter: of a master that the last release reaches too late, and of one that found the ballot stale.
func TestWinnerLeavesQueues(t *testing.T) {
	for what, refuse := range map[string]func(w *cluster, holder *peer){
		"late release": func(_ *cluster, holder *peer) { holder.hold(4) },
		"later fence": func(w *cluster, _ *peer) {
			w.masters.Master(4).SetFence("n", fmt.Sprintf("%016d", time.Now().Add(10*time.Second).UnixMicro()))
		},
	} {
		subtest(t, what, 5, func(w *cluster) {
			a, b := w.peer("a"), w.peer("b")
			k := must(a.Lock(w.Context(), "n"))(w)
			after(time.Millisecond) // all masters have the lock before the other client asks for it
			c := w.goLock(w.Context(), b, "n").mustWait()
			refuse(w, a)
			w.goUnlock(k)
			won := c.mustLock(10 * time.Second)
			after(time.Second)
			equal(w, w.queued("n"), 0, "masters with the winner in their queue")
			a.release()
			w.noError(won.Unlock(w.Context()))
		})
	}
}
