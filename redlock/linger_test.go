package redlock_test

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// trip is the round-trip time to a master.
const trip = 20 * time.Millisecond

// idle leaves a lock of p lingering, and returns the token of that lock.
func idle(w *cluster, p *peer, opts ...redlock.LockOption) int64 {
	w.noError(p.Do(w.Context(), "n", nothing)) // this subscribes p
	after(time.Second)
	k := must(p.Lock(w.Context(), "n", opts...))(w)
	w.noError(k.Unlock(w.Context()))
	after(trip)
	if w.on("n") != 5 {
		w.Fatalf("%d masters have the lock after its Unlock, want 5", w.on("n"))
	}
	return k.Token()
}

var lingerCases = []struct {
	name string
	run  func(w *cluster, p, other *peer)
}{
	{"is taken over immediately", func(w *cluster, p, _ *peer) {
		token, before, began := idle(w, p), w.count("acquire"), time.Now()
		for i := range 100 {
			lock := p.Lock
			if i%2 == 1 {
				lock = p.TryLock
			}
			k, err := lock(w.Context(), "n")
			w.must(err)
			if k.Token() <= token {
				w.Fatalf("the token is %d, want more than %d", k.Token(), token)
			}
			token = k.Token()
			w.noError(k.Unlock(w.Context()))
			w.isError(k.Err(), redlock.ErrReleased)
		}
		if took, n := time.Since(began), w.count("acquire")-before; took != 0 || n != 0 {
			w.Errorf("100 calls of Lock and TryLock took %v and caused %d acquires", took, n)
		}
	}},
	{"a lock whose value was set does not linger", func(w *cluster, p, _ *peer) {
		idle(w, p)
		k := must(p.Lock(w.Context(), "n"))(w)
		w.must(k.SetValue(w.Context(), "v"))
		w.noError(k.Unlock(w.Context()))
		after(trip)
		w.nothingLeft("n")
		w.noError(p.Do(w.Context(), "n", nothing))
	}},
	{"ends after its time", func(w *cluster, p, _ *peer) {
		idle(w, p)
		after(4*time.Second + trip)
		w.nothingLeft("n")
		w.noError(p.Do(w.Context(), "n", nothing))
	}},
	{"ends with its validity", func(w *cluster, p, other *peer) {
		token := idle(w, p, redlock.WithTTL(time.Second), redlock.WithLinger(time.Hour))
		other.tampering(lost)
		p.tampering(lost) // p receives no recall
		k, took := w.goLock(w.Context(), other, "n").mustWait().timed(2 * time.Second)
		if took > 1100*time.Millisecond || k.Token() <= token {
			w.Errorf("the other client has token %d after %v; the idle lock had %d", k.Token(), took, token)
		}
		w.isError(errOf(p.TryLock(w.Context(), "n")), redlock.ErrHeld)
		w.noError(k.Unlock(w.Context()))
	}},
	{"too little validity", func(w *cluster, p, _ *peer) {
		ttl := redlock.WithTTL(time.Second)
		idle(w, p, ttl)
		after(700 * time.Millisecond)
		k := must(p.TryLock(w.Context(), "n", ttl))(w)
		if left := k.Remaining(); left < 900*time.Millisecond {
			w.Errorf("a new lock is valid for %v, want at least 900 ms", left)
		}
		w.noError(k.Unlock(w.Context()))
	}},
	{"is extended while it is used", func(w *cluster, p, _ *peer) {
		idle(w, p, redlock.WithTTL(time.Second))
		for range 100 {
			k := must(p.Lock(w.Context(), "n", redlock.WithTTL(time.Second)))(w)
			after(50 * time.Millisecond)
			w.must(k.Err())
			w.noError(k.Unlock(w.Context()))
		}
		atMost(w, w.count("acquire"), 5*12, "acquires") // one for each TTL
	}},
	{"another client's Lock", func(w *cluster, p, other *peer) {
		token := idle(w, p)
		k, took := w.goLock(w.Context(), other, "n").timed(time.Second)
		if took > 3*trip+5*time.Millisecond || k.Token() <= token { // a free name takes one trip
			w.Errorf("token %d after %v; the idle lock had %d", k.Token(), took, token)
		}
		w.isError(errOf(p.TryLock(w.Context(), "n")), redlock.ErrHeld)
		w.noError(k.Unlock(w.Context()))
	}},
	{"another client's TryLock", func(w *cluster, p, other *peer) {
		idle(w, p)
		began := time.Now()
		k := must(other.TryLock(w.Context(), "n"))(w)
		w.wantSince(began, 6*trip)
		w.noError(k.Unlock(w.Context()))
	}},
	{"a lock in use", func(w *cluster, p, other *peer) {
		idle(w, p)
		k := must(p.Lock(w.Context(), "n"))(w)
		began := time.Now()
		w.isError(errOf(other.TryLock(w.Context(), "n")), redlock.ErrHeld)
		w.wantSince(began, 6*trip)
		w.noError(k.Unlock(w.Context()))
		after(trip)
		w.nothingLeft("n") // the lock was recalled
	}},
	{"a fair call of the same client", func(w *cluster, p, _ *peer) {
		idle(w, p)
		before := w.count("acquire")
		w.noError(p.Do(w.Context(), "n", nothing, redlock.WithFair()))
		if w.count("acquire") == before {
			w.Error("the fair call took over the idle lock")
		}
	}},
	{"a fair call that waits", func(w *cluster, p, _ *peer) {
		idle(w, p)
		k := must(p.Lock(w.Context(), "n"))(w)
		waits := w.goLock(w.Context(), p, "n", redlock.WithFair())
		w.noError(k.Unlock(w.Context()))
		w.noError(waits.mustLock(10 * trip).Unlock(w.Context()))
	}},
	{"a minimum hold", func(w *cluster, p, other *peer) {
		idle(w, p)
		w.noError(p.Do(w.Context(), "n", nothing, redlock.WithMinHold(time.Second)))
		if _, took := w.goLock(w.Context(), other, "n").timed(3 * time.Second); took < 800*time.Millisecond {
			w.Errorf("the name was free after %v", took)
		}
	}},
	{"a shorter TTL", func(w *cluster, p, _ *peer) {
		idle(w, p)
		k := must(p.Lock(w.Context(), "n", redlock.WithTTL(time.Second)))(w)
		atMost(w, k.Remaining(), time.Second, "remaining validity")
		w.noError(k.Unlock(w.Context()))
	}},
	{"several names", func(w *cluster, p, _ *peer) {
		idle(w, p)
		all := must(p.LockAll(w.Context(), []string{"m", "n"}))(w)
		w.noError(all.Unlock(w.Context()))
		after(trip)
		w.nothingLeft("m", "n")
	}},
	{"without an inbox", func(w *cluster, p, _ *peer) {
		p.deafen()
		w.noError(p.Do(w.Context(), "n", nothing))
		after(time.Second)
		w.noError(p.Do(w.Context(), "n", nothing))
		after(trip)
		w.nothingLeft("n")
	}},
	{"masters that have forgotten", func(w *cluster, p, _ *peer) {
		idle(w, p)
		w.flush(0, 1, 2)
		after(time.Minute)
		k := must(p.Lock(w.Context(), "n"))(w)
		if on, _ := client.HeldOn(k); on < 3 {
			w.Errorf("the lock is on %d masters, want at least 3", on)
		}
		w.noError(k.Unlock(w.Context()))
	}},
	{"Close", func(w *cluster, p, _ *peer) {
		idle(w, p)
		w.must(p.Close())
		w.nothingLeft("n")
	}},
	{"Shutdown", func(w *cluster, p, _ *peer) {
		idle(w, p)
		began := time.Now()
		w.must(p.Shutdown(w.Context()))
		w.wantSince(began, time.Second)
		w.nothingLeft("n")
	}},
	{"counts as not held", func(w *cluster, p, _ *peer) {
		idle(w, p)
		if held := p.Stats().Held; len(held) > 0 {
			w.Errorf("the idle lock is reported as held: %q", held)
		}
	}},
}

// A lock that lingers is taken over without a message, and is released as soon as another client requests its name.
func TestLinger(t *testing.T) {
	for _, c := range lingerCases {
		subtest(t, c.name, 5, func(w *cluster) {
			w.delay(trip / 2)
			p := w.peer("p", redlock.WithLinger(4*time.Second))
			c.run(w, p, w.peer("other"))
		})
	}
}

// Schedules that were found by trying to break WithLinger.

// Clients that use WithLinger and wait in the masters' queues get the name one after the other without a pause. A lock
// must not linger while such clients wait: only an acquire that is refused recalls a lock, and waiting calls do not
// send another acquire for a second or more.
func TestLingerAmongWaiters(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		const clients = 8
		w.delay(trip / 2)
		k := must(w.peer("first", redlock.WithLinger(4*time.Second)).Locker.Lock(w.Context(), "n"))(w)
		var calls []*call
		for i := range clients {
			p := w.peer("p"+strconv.Itoa(i), redlock.WithLinger(4*time.Second))
			calls = append(calls, w.goLock(w.Context(), p, "n").mustWait())
		}
		w.noError(k.Unlock(w.Context()))
		start := time.Now()
		for _, c := range calls {
			w.noError(c.mustLock(10 * time.Second).Unlock(w.Context()))
		}
		w.wantSince(start, clients*4*trip)
	})
}

// A lock does not linger while another call of the same Locker tries to acquire its name, even if the Locker
// receives no messages.
func TestNoLingerWhileCallAcquires(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		w.delay(trip / 2)
		p := w.peer("p", redlock.WithLinger(4*time.Second))
		w.noError(p.Do(w.Context(), "m", nothing, redlock.WithLinger(time.Hour))) // now p is subscribed
		after(5 * trip)
		p.tampering(lost)
		shot := make(chan *redlock.Lock)
		go func() {
			k := must(p.TryLock(w.Context(), "n"))(w)
			shot <- k
		}()
		after(trip / 4)
		waits := w.goLock(w.Context(), p, "n") // this call sends an acquire, too, and is refused
		k := <-shot
		after(2 * trip)
		p.tampering(nil)
		w.noError(k.Unlock(w.Context()))
		w.noError(waits.mustLock(4 * trip).Unlock(w.Context()))
	})
}

// A recall that arrives before the call knows that it has won still ends the lingering. Two clients acquire a name
// at the same instant, and the client that is refused does not try again for a second, so it depends on the recall.
func TestLingerIsRecalledEarly(t *testing.T) {
	for _, n := range []int{1, 3, 5} {
		subtest(t, strconv.Itoa(n), n, func(w *cluster) {
			w.delay(time.Millisecond)
			var both []*peer
			for _, id := range []string{"a", "b"} {
				p := w.peer(id, redlock.WithLinger(4*time.Second))
				w.noError(p.Do(w.Context(), id, nothing, redlock.WithLinger(time.Hour))) // now p is subscribed
				both = append(both, p)
			}
			after(time.Second)
			for i := range 300 {
				start := time.Now()
				var all sync.WaitGroup
				for _, p := range both {
					all.Go(func() {
						w.noError(p.Do(w.Context(), strconv.Itoa(i), nothing))
					})
				}
				all.Wait()
				if took := time.Since(start); took > 100*time.Millisecond {
					w.Fatalf("it took %v until both clients had held name %d once", took, i)
				}
			}
		})
	}
}

// When a lingering lock is taken over, the contexts of the last holder have ended, and the end of its hold has been
// reported, before the next hold begins.
func TestLingerEndsContextsFirst(t *testing.T) {
	type key struct{}
	virtual(t, 5, func(w *cluster) {
		var mu sync.Mutex
		held, twice, alive := 0, 0, 0
		p := w.peer("p", redlock.WithLinger(4*time.Second), redlock.WithTrace(&redlockinfo.Trace{
			Event: func(e redlockinfo.Event) {
				switch e.Kind {
				case "acquired":
					if held++; held > 1 {
						twice++
					}
				case "released":
					held--
				}
			},
		}))
		idle(w, p)
		var contexts []context.Context // of the last holder
		try := func() {
			k, err := p.TryLock(w.Context(), "n")
			if err != nil {
				return
			}
			defer func() { w.noError(k.Unlock(w.Context())) }()
			mu.Lock()
			defer mu.Unlock()
			if slices.ContainsFunc(contexts, func(ctx context.Context) bool { return !isDone(ctx) }) {
				alive++
			}
			contexts = nil
			for i := range 200 { // so many that ending them takes a moment
				contexts = append(contexts, k.Context(context.WithValue(w.Context(), key{}, i)))
			}
		}
		for range 200 { // only a few at a time, so that no event is dropped
			var all sync.WaitGroup
			for range 2 {
				all.Go(func() {
					for range 20 {
						try()
					}
				})
			}
			all.Wait()
			after(time.Millisecond)
		}
		if twice > 0 || held != 0 || alive > 0 || p.Stats().Dropped > 0 {
			w.Errorf("%d holds began before the end of the last hold was reported, %d before the last contexts had "+
				"ended; %d holds have not ended; %d events were dropped", twice, alive, held, p.Stats().Dropped)
		}
	})
}

// A lock lingers, the masters lose it, and the client imports another lock of the same name. The inbox must still be
// closed later.
func TestLingerIsReplaced(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		p, other := w.peer("p", redlock.WithLinger(3*time.Second)), w.peer("other")
		idle(w, p)
		w.masters.Lose("n")
		exported := must(other.Lock(w.Context(), "n"))(w)
		imported := must(p.Import(w.Context(), must(exported.Export())(w)))(w)
		w.noError(imported.Unlock(w.Context()))
		after(5 * time.Second)
		w.nothingLeft("n")
	})
}

// If a master loses a lock while the lock lingers, the lock is repaired on this master soon after a call has taken it
// over.
func TestLingerIsRepaired(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		p := w.peer("p", redlock.WithLinger(time.Minute), redlock.WithTTL(20*time.Second))
		idle(w, p)
		w.restart(false, 0)
		after(2 * time.Second)
		before := w.count("acquire")
		k := must(p.Lock(w.Context(), "n"))(w)
		after(500 * time.Millisecond)
		if on, n := client.HeldOn(k); on != n || w.count("acquire") > before+1 {
			w.Errorf("the lock is on %d of %d masters, after %d acquires or repairs", on, n, w.count("acquire")-before)
		}
		w.noError(k.Unlock(w.Context()))
	})
}

// Inspect shows that a lock lingers: the Locker that keeps the unused lock knows that it is unused, and other
// Lockers know only that it may be unused.
func TestLingerIsShown(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		p, other := w.peer("p", redlock.WithLinger(time.Minute)), w.peer("other")
		idle(w, p)
		for range 2 {
			for _, l := range []*redlock.Locker{p.Locker, other.Locker} {
				i, err := l.Inspect(w.Context(), "n")
				if w.must(err); !i.Idle {
					w.Errorf("Inspect does not report the idle lock: %+v", i)
				}
			}
		}
		k := must(p.Lock(w.Context(), "n"))(w)
		i, err := p.Inspect(w.Context(), "n")
		if w.must(err); i.Idle {
			w.Errorf("Inspect reports a lock in use as idle: %+v", i)
		}
		w.noError(k.Unlock(w.Context()))
	})
}

// A waiting client gets the name, although the other client reuses its lingering lock again and again and receives
// no messages.
func TestLingerWithoutMessagesEnds(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		w.delay(time.Millisecond)
		p, other := w.peer("p", redlock.WithLinger(100*time.Millisecond)), w.peer("other")
		idle(w, p)
		p.tampering(lost)
		k := must(p.Lock(w.Context(), "n"))(w)
		waits := w.goLock(w.Context(), other, "n").mustWait()
		w.noError(k.Unlock(w.Context()))
		for start := time.Now(); !waits.returned(); after(20 * time.Millisecond) {
			if time.Since(start) > time.Minute {
				w.Fatal("the other client has waited for a minute; the lock was unused for 20 ms at a time")
			}
			if k, err := p.TryLock(w.Context(), "n"); err == nil {
				after(5 * time.Millisecond)
				w.noError(k.Unlock(w.Context()))
			}
		}
		w.noError(waits.lock.Unlock(w.Context()))
	})
}
