package redlock_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// Schedules that were found by attacking WithLinger.

// lingers leaves a lock of name with p that no call uses, and returns its token.
func (p *peer) lingers(name string) int64 {
	w := p.world
	w.Helper()
	w.unlock(w.take(p.Locker, name)) // to subscribe
	after(time.Second)
	k := w.take(p.Locker, name)
	w.unlock(k)
	after(100 * time.Millisecond)
	if w.on(name) != w.masters.N() {
		w.Fatalf("%d masters have the lock after its Unlock", w.on(name))
	}
	return k.Token()
}

// Clients that wait in the masters' queues get the name one after the other without a pause. Only an acquire that is
// refused recalls a lock: waiting calls do not try again for a second or more.
func TestLingerAmongWaiters(t *testing.T) {
	virtual(t, 5, func(w *world) {
		const trip, clients = 20 * time.Millisecond, 8
		w.delay(trip / 2)
		k := w.take(w.peer("first", redlock.WithLinger(4*time.Second)).Locker, "n")
		var calls []*call
		for i := range clients {
			calls = append(calls, w.peer("p"+strconv.Itoa(i), redlock.WithLinger(4*time.Second)).waits("n"))
		}
		w.unlock(k)
		start := time.Now()
		for _, c := range calls {
			k, _ := c.gets(10 * time.Second)
			w.unlock(k)
		}
		if took := time.Since(start); took > clients*4*trip {
			w.Errorf("%d clients had the name once each after %v", clients, took)
		}
	})
}

// A lock does not linger while another call of the same Locker tries to acquire its name, although it gets no message.
func TestLingerWhileACallAsks(t *testing.T) {
	virtual(t, 5, func(w *world) {
		const trip = 20 * time.Millisecond
		w.delay(trip / 2)
		p := w.peer("p", redlock.WithLinger(4*time.Second))
		w.unlock(w.take(p.Locker, "m", redlock.WithLinger(time.Hour))) // it is subscribed
		after(5 * trip)
		p.tampering(lost)
		shot := make(chan *redlock.Lock)
		go func() {
			k, err := p.TryLock(w.Context(), "n")
			w.must(err)
			shot <- k
		}()
		after(trip / 4)
		waits := w.call(w.Context(), p.Locker, "n") // it also sends an acquire, and is refused
		k := <-shot
		after(2 * trip)
		p.tampering(nil)
		w.unlock(k)
		k, took := waits.gets(5 * time.Second)
		if took > 4*trip {
			w.Errorf("the call waited for %v", took)
		}
		w.unlock(k)
	})
}

// A recall counts even if it arrives before the call knows that it has won: two clients acquire at one instant, and the
// one that is refused does not try again for a second.
func TestLingerIsRecalledEarly(t *testing.T) {
	for _, n := range []int{1, 3, 5} {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			virtual(t, n, func(w *world) {
				w.delay(time.Millisecond)
				var both []*peer
				for _, id := range []string{"a", "b"} {
					p := w.peer(id, redlock.WithLinger(4*time.Second))
					w.unlock(w.take(p.Locker, id, redlock.WithLinger(time.Hour))) // it is subscribed
					both = append(both, p)
				}
				after(time.Second)
				for i := range 300 {
					start := time.Now()
					var all sync.WaitGroup
					for _, p := range both {
						all.Go(func() {
							k, err := p.Lock(w.Context(), strconv.Itoa(i))
							w.must(err)
							w.unlock(k)
						})
					}
					all.Wait()
					if took := time.Since(start); took > 100*time.Millisecond {
						w.Fatalf("the clients had name %d once each after %v", i, took)
					}
				}
			})
		})
	}
}

// The contexts of a holder have ended, and its end is reported, before the next hold begins.
func TestLingerEndsContextsFirst(t *testing.T) {
	type key struct{}
	virtual(t, 5, func(w *world) {
		var mu sync.Mutex
		held, twice := 0, 0
		p := w.peer("p", redlock.WithLinger(4*time.Second), redlock.WithTrace(&redlockinfo.Trace{
			Event: func(e redlockinfo.Event) {
				mu.Lock()
				defer mu.Unlock()
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
		p.lingers("n")
		for range 20 {
			k := w.take(p.Locker, "n")
			var contexts []context.Context
			for i := range 5000 {
				contexts = append(contexts, k.Context(context.WithValue(w.Context(), key{}, i)))
			}
			begun, next := make(chan bool), make(chan int)
			go func() {
				close(begun)
				k, err := p.TryLock(w.Context(), "n")
				for err != nil {
					k, err = p.TryLock(w.Context(), "n")
				}
				alive := 0
				for _, c := range contexts {
					select {
					case <-c.Done():
					default:
						alive++
					}
				}
				w.unlock(k)
				next <- alive
			}()
			<-begun
			w.unlock(k)
			if alive := <-next; alive > 0 {
				w.Errorf("%d contexts of the last holder had not ended when the next one began", alive)
			}
		}
		after(time.Second) // the calls above try without a pause, so that some of their events may be dropped
		mu.Lock()
		held, twice = 0, 0
		mu.Unlock()
		dropped := p.Stats().Dropped
		for range 200 { // few at a time: none of the events is dropped
			var all sync.WaitGroup
			for range 2 {
				all.Go(func() {
					for range 100 {
						if k, err := p.TryLock(w.Context(), "n"); err == nil {
							w.unlock(k)
						}
					}
				})
			}
			all.Wait()
			after(time.Millisecond)
		}
		if n := p.Stats().Dropped - dropped; n > 0 {
			w.Fatalf("%d events were dropped", n)
		}
		mu.Lock()
		defer mu.Unlock()
		if twice > 0 || held != 0 {
			w.Errorf("%d times a holder began before the end of the last one was reported; %d hold it in the end", twice, held)
		}
	})
}

// The inbox closes although an imported lock takes the place of one that lingers and that the masters have lost.
func TestLingerIsReplaced(t *testing.T) {
	virtual(t, 5, func(w *world) {
		p, other := w.peer("p", redlock.WithLinger(3*time.Second)), w.peer("other")
		p.lingers("n")
		w.masters.Lose("n")
		k, err := p.Import(w.Context(), w.export(w.take(other.Locker, "n")))
		w.must(err)
		w.unlock(k)
		after(5 * time.Second)
		w.nothingLeft("n")
	})
}

// A master that has lost a lock while it lingered has it again soon after it is taken over.
func TestLingerIsRepaired(t *testing.T) {
	virtual(t, 5, func(w *world) {
		p := w.peer("p", redlock.WithLinger(time.Minute), redlock.WithTTL(20*time.Second))
		p.lingers("n")
		w.masters.Master(0).Restart(false)
		after(2 * time.Second)
		before := w.count("acquire")
		k := w.take(p.Locker, "n")
		after(500 * time.Millisecond)
		if on, n := k.HeldOn(); on != n || w.count("acquire") > before+1 {
			w.Errorf("it is on %d masters of %d, after %d acquires or repairs", on, n, w.count("acquire")-before)
		}
		w.unlock(k)
	})
}

// Only the Locker that keeps an unused lock knows that it is unused; others know only that it may be.
func TestLingerIsShown(t *testing.T) {
	virtual(t, 5, func(w *world) {
		p, other := w.peer("p", redlock.WithLinger(time.Minute)), w.peer("other")
		p.lingers("n")
		for range 2 {
			for _, l := range []*redlock.Locker{p.Locker, other.Locker} {
				i, err := l.Inspect(w.Context(), "n")
				if w.must(err); !i.Idle {
					w.Errorf("%+v", i)
				}
			}
		}
		k := w.take(p.Locker, "n")
		i, err := p.Inspect(w.Context(), "n")
		if w.must(err); i.Idle {
			w.Errorf("in use: %+v", i)
		}
		w.unlock(k)
	})
}

// A waiting client gets the name although all messages to the client that reuses it again and again are lost.
func TestLingerWithoutMessagesEnds(t *testing.T) {
	virtual(t, 5, func(w *world) {
		w.delay(time.Millisecond)
		p, other := w.peer("p", redlock.WithLinger(100*time.Millisecond)), w.peer("other")
		p.lingers("n")
		p.tampering(lost)
		k := w.take(p.Locker, "n")
		waits := other.waits("n")
		w.unlock(k)
		for start := time.Now(); !waits.over(); after(20 * time.Millisecond) {
			if time.Since(start) > time.Minute {
				w.Fatal("the other client has waited for a minute; the lock was unused for 20 ms at a time")
			}
			if k, err := p.TryLock(w.Context(), "n"); err == nil {
				after(5 * time.Millisecond)
				w.unlock(k)
			}
		}
		w.unlock(waits.lock)
	})
}
