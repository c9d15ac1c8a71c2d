package redlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// some returns a Locker over only the given masters.
func (w *world) some(which []int, opts ...redlock.Option) *redlock.Locker {
	w.Helper()
	p, err := pool.Open(w.urls(which...), pool.WithDialer(w.wire.dial), transport.WithClock(clock.Runtime()))
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = p.Close() })
	return w.over(p, opts...)
}

// admitted makes the admission records of these masters name only them, as if no others had ever been admitted with
// them.
func (w *world) admitted(which ...int) {
	w.Helper()
	names := make([]string, len(which))
	for k, i := range which {
		names[k] = w.masters.Master(i).Addr()
	}
	w.each(func(_ int, m *memory.Master) {
		text, _ := m.Get(defaultPrefix.Admission())
		record, err := scripts.ParseRecord(text)
		if err != nil {
			w.Fatal(err)
		}
		record.Masters = scripts.List(names)
		m.Set(defaultPrefix.Admission(), record.String())
	}, which...)
}

// admittedApart calls admitted for the masters of two sets, one after the other.
func (w *world) admittedApart(old, next []int) {
	w.admitted(next...)
	w.admitted(old...)
}

func (w *world) urls(which ...int) (list []string) {
	for _, i := range which {
		list = append(list, w.masters.URLs()[i])
	}
	return list
}

// onOf returns the number of the given masters on which a client holds name.
func (w *world) onOf(name string, which ...int) (n int) {
	w.each(func(_ int, m *memory.Master) {
		if id, _, _ := m.Holds(name); id != "" {
			n++
		}
	}, which...)
	return n
}

func (w *world) change(l *redlock.Locker, s redlock.Configuration) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
	defer cancel()
	if err := l.Admin().Reconfigure(ctx, s); err != nil {
		w.Fatalf("to %v: %v", s, err)
	}
	synctest.Wait() // all of the next are there, not a majority alone
}

var changes = map[string]struct{ old, next []int }{
	"five others":             {[]int{0, 1, 2, 3, 4}, []int{5, 6, 7, 8, 9}},
	"three grow to five":      {[]int{0, 1, 2}, []int{0, 1, 2, 3, 4}},
	"five shrink to three":    {[]int{0, 1, 2, 3, 4}, []int{1, 2, 3}},
	"one is put in another's": {[]int{0, 1, 2}, []int{0, 1, 3}},
	"one becomes three":       {[]int{0}, []int{1, 2, 3}},
}

// The masters are changed while locks are held, one of them throughout; at each step another client has another
// configuration, and the two exclude each other.
func TestMastersAreChangedWhileLocksAreHeld(t *testing.T) {
	for name, c := range changes {
		t.Run(name, func(t *testing.T) {
			virtual(t, 10, func(w *world) {
				w.admittedApart(c.old, c.next)
				old := redlock.Configuration{Epoch: 0, Masters: w.urls(c.old...)}
				both := redlock.Configuration{Epoch: 1, Masters: old.Masters, Next: w.urls(c.next...)}
				next := redlock.Configuration{Epoch: 2, Masters: both.Next}
				a, b := w.some(c.old), w.some(c.old)
				held := w.take(a, "throughout")
				manual := w.take(a, "by hand", redlock.WithExtension(false), redlock.WithTTL(30*time.Second))
				apart := func(when string) {
					w.Helper()
					for _, l := range []*redlock.Locker{a, b} { // after an epoch was written a TryLock may fail once
						if err := w.take(l, "y").Unlock(w.Context()); err != nil {
							w.Error(err)
						}
					}
					for i, l := range []*redlock.Locker{a, b} {
						k := w.take(l, "x")
						if _, err := []*redlock.Locker{b, a}[i].TryLock(w.Context(), "x"); !errors.Is(err, redlock.ErrHeld) {
							w.Errorf("%s: locker %d does not see the other's: %v", when, 1-i, err)
						}
						if err := k.Unlock(w.Context()); err != nil {
							w.Errorf("%s: locker %d: %v", when, i, err)
						}
					}
					if held.Err() != nil || held.Remaining() <= 0 {
						w.Fatalf("%s: the lock that was held is %v", when, held.Err())
					}
				}
				token := held.Token()
				apart("before")
				w.change(a, both)
				apart("one uses both")
				if err := manual.Extend(w.Context()); err != nil {
					t.Errorf("by hand: %v", err)
				}
				synctest.Wait()
				if n := w.onOf("by hand", c.next...); n != len(c.next) {
					t.Errorf("extended by hand, it is on %d of the next", n)
				}
				if err := a.FinishChange(w.Context()); !errors.Is(err, redlock.ErrIncomplete) {
					t.Errorf("finished before the epoch is there: %v", err)
				}
				w.change(b, both)
				apart("all use both")
				if err := a.RaiseEpoch(w.Context()); err != nil {
					t.Fatal(err)
				}
				apart("the epoch is raised")
				after(3 * time.Second)
				if n := w.onOf("throughout", c.next...); n != len(c.next) {
					t.Errorf("it is on %d of the next", n)
				}
				err := a.FinishChange(w.Context())
				if !errors.Is(err, redlock.ErrIncomplete) || !strings.Contains(err.Error(), "for another ") {
					t.Errorf("finished at once: %v", err)
				}
				if err := a.Admin().Reconfigure(w.Context(), next); !errors.Is(err, redlock.ErrIncomplete) {
					t.Errorf("the next alone: %v", err)
				}
				after(61 * time.Second)
				if is, err := b.Change(w.Context()); err != nil || !is.RaisedAll || !is.Complete || is.OpenAll {
					t.Errorf("after two max TTLs: %+v, %v", is, err)
				}
				if err := a.FinishChange(w.Context()); err != nil {
					t.Fatal(err)
				}
				w.change(b, next)
				apart("one uses the next")
				w.change(a, next)
				apart("all use the next")
				if held.Token() != token {
					t.Error("the token has changed")
				}
				if on, n := held.HeldOn(); on != len(c.next) || n != len(c.next) {
					t.Errorf("it is on %d of %d", on, n)
				}
				if err := a.RaiseEpoch(w.Context()); err != nil {
					t.Errorf("at the end: %v", err)
				}
				apart("at the end")
				if err := held.Unlock(w.Context()); err != nil {
					t.Error(err)
				}
				synctest.Wait()
				if n := w.on("throughout") + w.on("by hand") + w.on("x"); n != 0 {
					t.Errorf("%d keys are left", n)
				}
				after(time.Minute)
				for _, i := range c.old {
					if m := w.masters.Master(i); !strings.Contains(strings.Join(next.Masters, " "), m.Addr()) && m.Connections() != 0 {
						t.Errorf("%d connections to the old master %d", m.Connections(), i)
					}
				}
			})
		})
	}
}

func contextFor(w *world, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(w.Context(), d)
}

// must fails the test if err is not nil.
func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}
