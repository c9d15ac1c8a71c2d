package redlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/redlock"
)

// trip is the time of a message to a master and back.
const trip = 20 * time.Millisecond

// idle leaves a lock of p unused, and returns its token.
func idle(w *world, p *peer, opts ...redlock.LockOption) int64 {
	w.unlock(w.take(p.Locker, "n")) // it subscribes
	after(5 * trip)
	k := w.take(p.Locker, "n", opts...)
	w.unlock(k)
	after(trip)
	if w.on("n") != 5 {
		w.Fatalf("%d masters have the lock after its Unlock, want 5", w.on("n"))
	}
	return k.Token()
}

var lingerCases = []struct {
	name string
	run  func(w *world, p, other *peer)
}{
	{"takes over at once", func(w *world, p, _ *peer) {
		token, before, began := idle(w, p), w.count("acquire"), time.Now()
		for i := range 100 {
			lock := p.Lock
			if i%2 == 1 {
				lock = p.TryLock
			}
			k, err := lock(w.Context(), "n")
			w.must(err)
			if k.Token() <= token {
				w.Fatalf("token %d follows %d", k.Token(), token)
			}
			token = k.Token()
			w.unlock(k)
			w.isError(k.Err(), redlock.ErrReleased)
		}
		if took, n := time.Since(began), w.count("acquire")-before; took != 0 || n != 0 {
			w.Errorf("100 locks took %v and %d acquires", took, n)
		}
	}},
	{"a lock whose value was set does not linger", func(w *world, p, _ *peer) {
		idle(w, p)
		k := w.take(p.Locker, "n")
		w.setValue(k, "v")
		w.unlock(k)
		after(trip)
		w.nothingLeft("n")
		w.unlock(w.take(p.Locker, "n"))
	}},
	{"ends after its time", func(w *world, p, _ *peer) {
		idle(w, p)
		after(4*time.Second + trip)
		w.nothingLeft("n")
		w.unlock(w.take(p.Locker, "n"))
	}},
	{"ends with its validity", func(w *world, p, other *peer) {
		token := idle(w, p, redlock.WithTTL(time.Second), redlock.WithLinger(time.Hour))
		other.tampering(lost)
		p.tampering(lost) // no recall
		k, took := other.waits("n").gets(2 * time.Second)
		if took > 1100*time.Millisecond || k.Token() <= token {
			w.Errorf("the other client has token %d after %v; the idle lock had %d", k.Token(), took, token)
		}
		w.isError(second(p.TryLock(w.Context(), "n")), redlock.ErrHeld)
		w.unlock(k)
	}},
	{"too little validity", func(w *world, p, _ *peer) {
		ttl := redlock.WithTTL(time.Second)
		idle(w, p, ttl)
		after(700 * time.Millisecond)
		k, err := p.TryLock(w.Context(), "n", ttl)
		w.must(err)
		if left := k.Remaining(); left < 900*time.Millisecond {
			w.Errorf("%v left of a new lock", left)
		}
		w.unlock(k)
	}},
	{"is extended while it is used", func(w *world, p, _ *peer) {
		idle(w, p, redlock.WithTTL(time.Second))
		for range 100 {
			k := w.take(p.Locker, "n", redlock.WithTTL(time.Second))
			after(50 * time.Millisecond)
			w.must(k.Err())
			w.unlock(k)
		}
		if n := w.count("acquire"); n > 5*12 { // one a TTL
			w.Errorf("%d acquires", n)
		}
	}},
	{"another client's Lock", func(w *world, p, other *peer) {
		token := idle(w, p)
		k, took := w.call(w.Context(), other.Locker, "n").gets(time.Second)
		if took > 3*trip+5*time.Millisecond || k.Token() <= token { // a free name takes one trip
			w.Errorf("token %d after %v; the idle lock had %d", k.Token(), took, token)
		}
		w.isError(second(p.TryLock(w.Context(), "n")), redlock.ErrHeld)
		w.unlock(k)
	}},
	{"another client's TryLock", func(w *world, p, other *peer) {
		idle(w, p)
		began := time.Now()
		k, err := other.TryLock(w.Context(), "n")
		w.must(err)
		if took := time.Since(began); took > 6*trip {
			w.Errorf("it took %v", took)
		}
		w.unlock(k)
	}},
	{"a lock in use", func(w *world, p, other *peer) {
		idle(w, p)
		k := w.take(p.Locker, "n")
		began := time.Now()
		w.isError(second(other.TryLock(w.Context(), "n")), redlock.ErrHeld)
		if took := time.Since(began); took > 6*trip {
			w.Errorf("it was refused after %v", took)
		}
		w.unlock(k)
		after(trip)
		w.nothingLeft("n") // it was recalled
	}},
	{"a recall before the lock is known to be won", func(w *world, p, other *peer) {
		w.unlock(w.take(p.Locker, "m", redlock.WithLinger(time.Hour))) // both are subscribed
		w.unlock(w.take(other.Locker, "l", redlock.WithLinger(time.Hour)))
		after(5 * trip)
		w.delay(5*trip, 2, 3, 4) // the others refuse, and publish the recall, before a majority has answered
		mine := w.call(w.Context(), p.Locker, "n")
		after(trip / 4)
		its := w.call(w.Context(), other.Locker, "n")
		k, _ := mine.gets(time.Second)
		w.unlock(k)
		k, took := its.gets(2 * time.Second)
		if took > 500*time.Millisecond {
			w.Errorf("the other client waited for %v", took)
		}
		w.unlock(k)
	}},
	{"a fair call of the same client", func(w *world, p, _ *peer) {
		idle(w, p)
		before := w.count("acquire")
		w.unlock(w.take(p.Locker, "n", redlock.WithFair()))
		if w.count("acquire") == before {
			w.Error("it took the idle lock over")
		}
	}},
	{"a fair call that waits", func(w *world, p, _ *peer) {
		idle(w, p)
		k := w.take(p.Locker, "n")
		waits := w.call(w.Context(), p.Locker, "n", redlock.WithFair())
		w.unlock(k)
		k, took := waits.gets(10 * time.Second)
		if took > 10*trip {
			w.Errorf("it waited for %v", took)
		}
		w.unlock(k)
	}},
	{"a minimum hold", func(w *world, p, other *peer) {
		idle(w, p)
		w.unlock(w.take(p.Locker, "n", redlock.WithMinHold(time.Second)))
		if _, took := w.call(w.Context(), other.Locker, "n").gets(3 * time.Second); took < 800*time.Millisecond {
			w.Errorf("the name was free after %v", took)
		}
	}},
	{"a shorter TTL", func(w *world, p, _ *peer) {
		idle(w, p)
		k := w.take(p.Locker, "n", redlock.WithTTL(time.Second))
		if left := k.Remaining(); left > time.Second {
			w.Errorf("a TTL of 1 s has %v left", left)
		}
		w.unlock(k)
	}},
	{"several names", func(w *world, p, _ *peer) {
		idle(w, p)
		all, err := p.LockAll(w.Context(), []string{"m", "n"})
		w.must(err)
		w.must(all.Unlock(w.Context()))
		after(trip)
		w.nothingLeft("m", "n")
	}},
	{"without an inbox", func(w *world, p, _ *peer) {
		p.deafen()
		w.unlock(w.take(p.Locker, "n"))
		after(time.Second)
		w.unlock(w.take(p.Locker, "n"))
		after(trip)
		w.nothingLeft("n")
	}},
	{"masters that have forgotten", func(w *world, p, _ *peer) {
		idle(w, p)
		w.each(func(_ int, m *memory.Master) { m.Flush() }, 0, 1, 2)
		after(time.Minute)
		k := w.take(p.Locker, "n")
		if on, _ := k.HeldOn(); on < 3 {
			w.Errorf("it is on %d masters", on)
		}
		w.unlock(k)
	}},
	{"Close", func(w *world, p, _ *peer) {
		idle(w, p)
		w.must(p.Close(w.Context()))
		w.nothingLeft("n")
	}},
	{"Drain", func(w *world, p, _ *peer) {
		idle(w, p)
		began := time.Now()
		w.must(p.Drain(w.Context()))
		if took := time.Since(began); took > time.Second {
			w.Errorf("it took %v", took)
		}
		w.nothingLeft("n")
	}},
	{"counts as not held", func(w *world, p, _ *peer) {
		idle(w, p)
		if held := p.Stats().Held; len(held) > 0 {
			w.Errorf("held: %q", held)
		}
	}},
}

// A lock that lingers is taken over without a message, and is given up as soon as another client asks for its name.
func TestLinger(t *testing.T) {
	for _, c := range lingerCases {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, 5, func(w *world) {
				w.delay(trip / 2)
				p := w.peer("p", redlock.WithLinger(4*time.Second))
				c.run(w, p, w.peer("other"))
			})
		})
	}
}

// Of many goroutines of two clients that share a name, with lingering locks, only one at a time holds it.
func TestLingerExcludes(t *testing.T) {
	virtual(t, 5, func(w *world) {
		w.delay(time.Millisecond)
		var holders, locks int
		var last int64
		done := make(chan struct{})
		ctx, stop := context.WithTimeout(w.Context(), 20*time.Second)
		defer stop()
		for i := range 8 {
			p := w.peer(string(rune('a'+i%2)), redlock.WithLinger(time.Second))
			if i >= 2 {
				p.Locker = w.peers[i%2].Locker
			}
			go func() {
				defer func() { done <- struct{}{} }()
				r := seeded(uint64(i))
				for ctx.Err() == nil {
					k, err := p.Lock(ctx, "n")
					if err != nil {
						continue
					}
					if holders++; holders != 1 || k.Token() <= last {
						w.Errorf("%d holders, token %d after %d", holders, k.Token(), last)
					}
					last = k.Token()
					locks++
					time.Sleep(time.Duration(r.IntN(3)) * time.Millisecond)
					holders--
					w.must(k.Unlock(w.Context()))
					time.Sleep(time.Duration(r.IntN(40)) * time.Millisecond)
				}
			}()
		}
		for range 8 {
			<-done
		}
		if locks < 1000 {
			w.Errorf("%d locks in 20 s", locks)
		}
	})
}

func second[T any](_ T, err error) error { return err }
