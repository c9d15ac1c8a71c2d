package redlock_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// H30: an Unlock whose context has ended still releases, and returns nil if the masters are fast.
func TestVirtualUnlockWithADeadContextReleases(t *testing.T) {
	for _, delay := range []time.Duration{0, 100 * time.Millisecond} {
		t.Run(delay.String(), func(t *testing.T) {
			virtual(t, 3, func(w *world) {
				k := w.take(w.locker(), "a")
				ctx, cancel := context.WithCancel(w.Context())
				cancel()
				w.delay(delay)
				start := time.Now()
				err := k.Unlock(ctx)
				if delay == 0 && err != nil {
					w.Error(err)
				}
				if delay > 0 {
					w.isError(err, context.Canceled)
				}
				if took := time.Since(start); took > 20*time.Millisecond {
					w.Errorf("it took %v", took)
				}
				after(time.Second)
				if n := w.on("a"); n != 0 {
					w.Errorf("still on %d masters", n)
				}
			})
		})
	}
}

// H31, H32: with a majority that hangs, or is dead, or refuses, every call returns with its context, and its error
// matches the context's error together with the errors of the masters.
func TestVirtualEveryCallReturnsWithItsContext(t *testing.T) {
	for how, harm := range map[string]func(m *memory.Master){
		"hung":    func(m *memory.Master) { m.Hang() },
		"stopped": func(m *memory.Master) { m.Stop() },
		"refuse":  func(m *memory.Master) { m.Refuse("MISCONF Redis is configured to save RDB snapshots") },
		"slow":    func(m *memory.Master) { m.Delay(400 * time.Millisecond) },
	} {
		for _, long := range []time.Duration{300 * time.Millisecond, 2500 * time.Millisecond} {
			t.Run(fmt.Sprint(how, " ", long), func(t *testing.T) {
				virtual(t, 5, func(w *world) { everyCall(w, harm, long) })
			})
		}
	}
}

func everyCall(w *world, harm func(m *memory.Master), long time.Duration) {
	l := w.locker()
	held, free := w.take(l, "held"), w.take(l, "free")
	exported := w.take(l, "exported")
	handle, err := exported.Export()
	if err != nil {
		w.Fatal(err)
	}
	nested := w.takeWith(l, w.take(l, "nested").Context(w.Context()), "nested")
	after(time.Second)
	w.each(func(_ int, m *memory.Master) { harm(m) }, 0, 1, 2)
	calls := map[string]func(ctx context.Context) error{
		"lock":     func(ctx context.Context) error { _, err := l.Lock(ctx, "a"); return err },
		"trylock":  func(ctx context.Context) error { _, err := l.TryLock(ctx, "b"); return err },
		"re-enter": func(ctx context.Context) error { _, err := l.Lock(held.Context(ctx), "held"); return err },
		"extend":   held.Extend,
		"import":   func(ctx context.Context) error { _, err := l.Import(ctx, handle); return err },
		"inspect":  func(ctx context.Context) error { _, err := l.Inspect(ctx, "held"); return err },
		"inner":    nested.Unlock,
		"unlock":   free.Unlock,
		"do": func(ctx context.Context) error {
			return l.Do(ctx, "c", func(context.Context) error { return nil })
		},
		"admit": func(ctx context.Context) error { return l.Admin().Admit(ctx) },
		"ready": func(ctx context.Context) error { l.Ready(ctx); return nil },
	}
	var all sync.WaitGroup
	for name, call := range calls {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(w.Context(), long)
			defer cancel()
			start := time.Now()
			err := call(ctx)
			if took := time.Since(start); took > long+15*time.Millisecond {
				w.Errorf("%s took %v with a context of %v: %v", name, took, long, err)
			}
			if name == "lock" || name == "do" { // these wait as long as they may
				w.isError(err, context.DeadlineExceeded)
			}
			if err != nil && ctx.Err() == nil {
				w.notError(err, context.DeadlineExceeded, context.Canceled)
			}
		})
	}
	all.Wait()
	w.each(func(_ int, m *memory.Master) {
		m.Resume()
		m.Refuse("")
		m.Delay(0)
		if m.Connections() == 0 {
			m.Restart(true)
		}
	})
}

// H33: connections that were cut while idle are made again before anything is written, and none of them is a vote.
// If the cut and the call meet, the call may have to try again.
func TestVirtualAConnectionCutWhileIdleIsNeverAVote(t *testing.T) {
	virtual(t, 5, func(w *world) {
		var errs []error
		l := w.locker(redlock.WithTrace(redlock.On("attempt", func(i redlockinfo.Event) { errs = append(errs, i.Err) })))
		w.delay(50 * time.Microsecond) // a second attempt in the same instant would meet the first one's ballots
		for n := range 20 {
			after(2 * time.Second)
			meet := n%2 == 1
			w.each(func(_ int, m *memory.Master) { m.CutConnections() })
			if !meet {
				after(time.Millisecond)
			}
			errs = nil
			ctx, cancel := context.WithTimeout(w.Context(), time.Second)
			k, err := l.Lock(ctx, "a")
			if err != nil {
				w.Fatal(err)
			}
			after(time.Millisecond) // the votes beyond the quorum
			if on, _ := k.HeldOn(); !meet && (len(errs) != 1 || on != 5) {
				w.Errorf("held on %d, after %v", on, errs)
			}
			for _, err := range errs {
				w.notError(err, redlock.ErrHeld)
			}
			_ = k.Unlock(ctx)
			cancel()
		}
	})
}

// H36: the constructor needs no master, and a minority that hangs or is dead adds nothing to the time of a lock.
func TestVirtualAHungMinorityAddsNothing(t *testing.T) {
	for how, harm := range map[string]func(m *memory.Master){
		"hung":    func(m *memory.Master) { m.Hang() },
		"stopped": func(m *memory.Master) { m.Stop() },
		"slow":    func(m *memory.Master) { m.Delay(time.Second) },
	} {
		for _, before := range []bool{true, false} {
			t.Run(fmt.Sprint(how, " before the start ", before), func(t *testing.T) {
				virtual(t, 5, func(w *world) {
					w.delay(7 * time.Millisecond)
					if before {
						w.each(func(_ int, m *memory.Master) { harm(m) }, 0, 1)
					}
					l := w.locker()
					if !before {
						w.each(func(_ int, m *memory.Master) { harm(m) }, 0, 1)
					}
					for range 50 {
						start := time.Now()
						k := w.take(l, "a")
						if took := time.Since(start); took != 14*time.Millisecond {
							w.Fatalf("a lock took %v", took)
						}
						if err := k.Unlock(w.Context()); err != nil {
							w.Fatal(err)
						}
						if took := time.Since(start); took != 28*time.Millisecond {
							w.Fatalf("lock and unlock took %v", took)
						}
						after(100 * time.Millisecond)
					}
					w.resume()
					w.delay(0)
				})
			})
		}
	}
}

// H36: no master is alive when the Locker is made; it locks when they start.
func TestVirtualNewNeedsNoMaster(t *testing.T) {
	virtual(t, 3, func(w *world) {
		w.hang()
		early, err := redlock.New(w.pool(), redlock.WithClock(clock.Runtime()))
		if err != nil {
			w.Fatal(err)
		}
		defer early.Close(w.Context())
		ctx, cancel := context.WithTimeout(w.Context(), 20*time.Millisecond)
		defer cancel()
		_, err = early.TryLock(ctx, "a") // no master is known
		w.isError(err, redlock.ErrNoQuorum, context.DeadlineExceeded)
		w.resume()
		w.stop()
		start := time.Now()
		l, err := redlock.New(w.pool(), redlock.WithClock(clock.Runtime()))
		if err != nil || time.Since(start) != 0 {
			w.Fatalf("%v after %v", err, time.Since(start))
		}
		defer l.Close(w.Context())
		_, err = l.TryLock(w.Context(), "a")
		w.isError(err, redlock.ErrNoQuorum, pool.ErrDown)
		time.AfterFunc(10*time.Second, func() {
			w.each(func(_ int, m *memory.Master) {
				m.Restart(true)
				m.Admit(redlock.DefaultPrefix, redlock.DefaultMaxTTL)
			})
		})
		k := w.take(l, "a")
		if took := time.Since(start); took < 10*time.Second || took > 13*time.Second {
			w.Errorf("it took %v", took)
		}
		_ = k.Unlock(w.Context())
	})
}

// H37: Close releases all held locks in about one round trip, ends the contexts and the waiting calls, and joins its
// goroutines; a second Close is harmless.
func TestVirtualCloseReleasesEverything(t *testing.T) {
	virtual(t, 5, func(w *world) {
		p := w.pool()
		l := w.over(p)
		var contexts []context.Context
		for n := range 100 {
			contexts = append(contexts, w.take(l, fmt.Sprint("n", n)).Context(w.Context()))
		}
		w.masters.Take("taken", 25*time.Second)
		waiting := make(chan error, 1)
		go func() { _, err := l.Lock(w.Context(), "taken"); waiting <- err }()
		w.delay(10 * time.Millisecond)
		after(time.Second)
		start := time.Now()
		if err := l.Close(w.Context()); err != nil {
			w.Error(err)
		}
		if took := time.Since(start); took > 50*time.Millisecond {
			w.Errorf("it took %v", took)
		}
		w.isError(<-waiting, redlock.ErrClosed)
		for n, ctx := range contexts {
			if ctx.Err() == nil {
				w.Fatalf("the context of lock %d goes on", n)
			}
			w.isError(context.Cause(ctx), redlock.ErrClosed)
			if on := w.on(fmt.Sprint("n", n)); on != 0 {
				w.Errorf("lock %d is still on %d", n, on)
			}
		}
		if err := l.Close(w.Context()); err != nil {
			w.Errorf("again: %v", err)
		}
		_, err := l.Lock(w.Context(), "a")
		w.isError(err, redlock.ErrClosed)
		w.delay(0)
		w.over(p) // the pool lives on
	})
}

// H04, H37: Close with masters that hang is bounded by its context; the releases reach them when they are back.
func TestVirtualCloseIsBoundedByItsContext(t *testing.T) {
	virtual(t, 3, func(w *world) {
		p := w.pool(pool.WithTimeout(5 * time.Second))
		l := w.over(p, redlock.WithTTL(30*time.Second))
		w.take(l, "a")
		w.hang()
		ctx, cancel := context.WithTimeout(w.Context(), 300*time.Millisecond)
		defer cancel()
		start := time.Now()
		w.isError(l.Close(ctx), context.DeadlineExceeded)
		if took := time.Since(start); took > 310*time.Millisecond {
			w.Errorf("it took %v", took)
		}
		after(10 * time.Second)
		w.resume()
		after(5 * time.Second)
		if n := w.on("a"); n != 0 {
			w.Errorf("15 s later on %d masters", n)
		}
	})
}
