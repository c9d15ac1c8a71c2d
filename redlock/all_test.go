package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redlock-go/redlock/redlock"
)

// Tests of LockAll.

// wantFree fails the test if a master has a lock of one of these names.
func (w *cluster) wantFree(names ...string) {
	w.Helper()
	after(100 * time.Millisecond)
	for _, name := range names {
		w.wantOn(name, 0)
	}
}

func TestLockAllSortsNames(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l := w.locker()
		s := must(l.LockAll(w.Context(), []string{"b", "c", "a", "b"}))(w)
		after(time.Millisecond) // until the last votes have arrived
		ctx := s.Context(w.Context())
		for _, name := range []string{"a", "b", "c"} {
			k, ok := redlock.FromContext(ctx, name)
			if !ok || k != s.Of(name) || k.Name() != name || k.Token() <= 0 || w.on(name) != 3 {
				w.Errorf("%q: %p, in the context %p, on %d masters", name, s.Of(name), k, w.on(name))
			}
		}
		if _, ok := redlock.FromContext(ctx, "d"); ok || s.Of("d") != nil {
			w.Error("a lock was returned for a name that is not held")
		}
		if k, ok := redlock.FromContext(ctx); ok || k != nil {
			w.Error("one of several locks was returned")
		}
		after(time.Minute) // the locks are extended
		w.noError(s.Context(w.Context()).Err(), ctx.Err(), s.Unlock(w.Context()))
		w.isError(context.Cause(s.Context(w.Context())), redlock.ErrReleased)
		w.isError(s.Unlock(w.Context()), redlock.ErrReleased)
		w.isError(context.Cause(ctx), redlock.ErrReleased)
		w.nothingLeft("a", "b", "c")
	})
}

// If any of the names is lost, the context ends with the cause of the loss, and Unlock releases the other names.
func TestLostNameEndsContextOfAll(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l := w.locker()
		for _, lost := range []string{"a", "b", "c"} {
			s := must(l.LockAll(w.Context(), []string{"a", "b", "c"}))(w)
			ctx := s.Context(w.Context())
			w.masters.Lose(lost)
			w.ends(ctx, 5*time.Second, redlock.ErrLost)
			w.isError(context.Cause(s.Context(w.Context())), redlock.ErrLost)
			w.isError(s.Unlock(w.Context()), redlock.ErrLost)
			w.nothingLeft("a", "b", "c")
		}
	})
}

// While LockAll waits for one name, the names before it stay held, and the names after it are free for other
// clients.
func TestWaiterHoldsOnlyEarlierNames(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		l, other := w.locker(), w.locker()
		held := must(other.Lock(w.Context(), "b"))(w)
		got := make(chan *redlock.Locks, 1)
		go func() { got <- must(l.LockAll(w.Context(), []string{"c", "b", "a"}))(w) }()
		after(time.Second)
		if w.on("a") != 5 || w.on("c") != 0 {
			w.Errorf("while LockAll waits for b, a is on %d masters and c on %d", w.on("a"), w.on("c"))
		}
		c := must(other.Lock(w.Context(), "c"))(w)
		w.noError(held.Unlock(w.Context()))
		after(time.Second)
		if w.on("b") < 3 {
			w.Error("b is free, but was not locked")
		}
		w.noError(c.Unlock(w.Context()))
		s := <-got
		w.noError(s.Context(w.Context()).Err(), s.Unlock(w.Context()))
		w.nothingLeft("a", "b", "c")
	})
}

// H165: a name that the context owns counts as held, however it was locked: LockAll does not wait for a name that sorts
// before it, also if the owned name is one of those requested. The error is immediate, and nothing was sent.
func TestLockAllWithOwnedNames(t *testing.T) {
	type owner interface {
		Context(parent context.Context) context.Context
		Unlock(ctx context.Context) error
	}
	for how, own := range map[string]func(w *cluster, l *redlock.Locker) owner{
		"Lock": func(w *cluster, l *redlock.Locker) owner { return must(l.Lock(w.Context(), "m:1"))(w) },
		"LockAll": func(w *cluster, l *redlock.Locker) owner {
			return must(l.LockAll(w.Context(), []string{"m:1", "c"}))(w)
		},
		"RWLock": func(w *cluster, l *redlock.Locker) owner { return must(l.RWLock("m:1").Lock(w.Context()))(w) },
		"reader": func(w *cluster, l *redlock.Locker) owner { return must(l.RWLock("m:1").RLock(w.Context()))(w) },
		"slot":   func(w *cluster, l *redlock.Locker) owner { return must(l.Semaphore("m", 1).Acquire(w.Context()))(w) },
		"imported": func(w *cluster, l *redlock.Locker) owner {
			k := must(l.Lock(w.Context(), "m:1"))(w)
			return must(l.Import(w.Context(), must(k.Export())(w)))(w)
		},
		"re-entered": func(w *cluster, l *redlock.Locker) owner {
			k := must(l.Lock(w.Context(), "m:1"))(w)
			return must(l.Lock(k.Context(w.Context()), "m:1", redlock.WithReentry()))(w)
		},
	} {
		subtest(t, how, 3, func(w *cluster) {
			l := w.locker()
			k := own(w, l)
			nested := must(l.Lock(k.Context(w.Context()), "q"))(w)
			owning := k.Context(w.Context())
			derived, cancel := context.WithTimeout(owning, time.Hour)
			defer cancel()
			after(10 * time.Millisecond)
			for _, ctx := range []context.Context{owning, derived, nested.Context(owning)} {
				sent, began := len(w.wire.sent()), time.Now()
				for _, names := range [][]string{{"b"}, {"b", "m:1"}, {"b", "z"}} {
					w.isError(errOf(l.LockAll(ctx, names, redlock.WithWaitLimit(time.Second))), redlock.ErrOrder, redlock.ErrInvalid)
				}
				w.wantSince(began, 0)
				equal(w, len(w.wire.sent()), sent, "commands")
				locks := must(l.LockAll(ctx, []string{"r", "s"}))(w)
				w.noError(locks.Unlock(w.Context()))
				locks = must(l.TryLockAll(ctx, []string{"b", "r"}))(w)
				w.noError(locks.Unlock(w.Context()))
				after(10 * time.Millisecond)
			}
			// The order applies to each Locker separately.
			w.noError(w.locker().Do(owning, "a", nothing), k.Unlock(w.Context()))
		})
	}
}

// H165: with the context of a LockAll, a call for a slot waits only if the name of the semaphore sorts after the names
// of the LockAll.
func TestOrderOfSlots(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l, other := w.locker(), w.locker()
		ctx := must(l.LockAll(w.Context(), []string{"o"}))(w).Context(w.Context())
		w.isError(errOf(l.Semaphore("n", 2).Acquire(ctx)), redlock.ErrOrder)
		one := must(other.Semaphore("p", 2).Acquire(w.Context()))(w)
		two := must(other.Semaphore("p", 2).Acquire(w.Context()))(w)
		c := w.goAcquire(ctx, l.Semaphore("p", 2))
		after(time.Second)
		w.noError(two.Unlock(w.Context()))
		equal(w, c.mustLock(time.Second).Slot(), two.Slot(), "slot")
		w.noError(one.Unlock(w.Context()))
	})
}

// A call cannot wait for a lock that has ended. So a context that is detached from ended locks, by WithoutCancel,
// imposes no order on further names.
func TestEndedLocksOrderNoNames(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l := w.locker()
		s := must(l.LockAll(w.Context(), []string{"b", "d"}))(w)
		detached := context.WithoutCancel(s.Context(w.Context()))
		w.noError(s.Unlock(w.Context()))
		k := must(l.Lock(detached, "a"))(w)
		w.noError(k.Unlock(w.Context()))
		both := must(l.LockAll(detached, []string{"a", "c"}))(w)
		w.noError(both.Unlock(w.Context()))
	})
}

// A call that fails leaves no keys, whether it is refused, its wait limit or its context ends, its Locker is closed,
// or its names or options are invalid.
func TestLocksThatFailLeaveNothing(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l := w.locker()
		held := must(w.locker().Lock(w.Context(), "b"))(w)
		names := []string{"a", "b", "c"}
		short := w.withTimeout(10 * time.Second)
		for i, f := range []func() (*redlock.Locks, error){
			func() (*redlock.Locks, error) { return l.TryLockAll(w.Context(), names) },
			func() (*redlock.Locks, error) {
				return l.LockAll(w.Context(), names, redlock.WithWaitLimit(3*time.Second))
			},
			func() (*redlock.Locks, error) { return l.LockAll(w.Context(), names, redlock.WithTries(2)) },
			func() (*redlock.Locks, error) { return l.LockAll(short, names) },
		} {
			s, err := f()
			var e *redlock.LockError
			if !errors.As(err, &e) || e.Name != "b" || s != nil {
				w.Errorf("case %d: want an error about \"b\": %v, %v", i, s, err)
			}
			w.isError(err, redlock.ErrHeld)
			if deadline := errors.Is(err, context.DeadlineExceeded); deadline != (i == 3) {
				w.Errorf("case %d: matches DeadlineExceeded: %v: %v", i, deadline, err)
			}
			w.wantFree("a", "c")
		}
		for _, names := range [][]string{nil, {"a", ""}} {
			w.isError(errOf(l.LockAll(w.Context(), names)), redlock.ErrInvalid)
		}
		w.isError(errOf(l.LockAll(w.Context(), names, redlock.WithTTL(-1))), redlock.ErrInvalid)
		failed := make(chan error, 1)
		go func() {
			_, err := l.LockAll(w.Context(), names)
			failed <- err
		}()
		after(time.Second)
		w.noError(l.Close())
		w.isError(<-failed, redlock.ErrClosed)
		w.wantFree("a", "c")
		w.noError(held.Unlock(w.Context()))
	})
}

// A name that LockAll loses while it waits for another name is acquired again, so that all names are held at the
// return.
func TestLockAllReacquiresLostName(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l := w.locker()
		held := must(w.locker().Lock(w.Context(), "b"))(w)
		got := make(chan *redlock.Locks, 1)
		go func() { got <- must(l.LockAll(w.Context(), []string{"a", "b", "c"}))(w) }()
		after(time.Second)
		w.masters.Lose("a")
		after(5 * time.Second)
		w.noError(held.Unlock(w.Context()))
		s := <-got
		for _, name := range []string{"a", "b", "c"} {
			if w.on(name) < 2 {
				w.Errorf("%q is on %d masters, want at least 2", name, w.on(name))
			}
		}
		w.noError(s.Context(w.Context()).Err(), s.Unlock(w.Context()))
	})
}

// Without contention, LockAll of several names takes about one round trip, because each master gets the acquires of
// all names together.
func TestSeveralNamesTakeOneRoundTrip(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		l := w.locker()
		w.delay(10 * time.Millisecond) // each way
		for _, count := range []int{1, 4, 32} {
			var names []string
			for i := range count {
				names = append(names, fmt.Sprint("n", i))
			}
			start := time.Now()
			s := must(l.LockAll(w.Context(), names))(w)
			w.wantSince(start, 21*time.Millisecond)
			w.noError(s.Unlock(w.Context()))
		}
	})
}

// H146: while LockAll waits for one name, it holds the names before it. With each option in the table LockAll keeps
// the earlier names and its place in the queue for the whole wait.
func TestLockAllWaitsWithAnyOptions(t *testing.T) {
	for name, opts := range map[string][]redlock.LockOption{
		"none":              nil,
		"a longest hold":    {redlock.WithMaxHold(4 * time.Second)},
		"no extension":      {redlock.WithExtension(false), redlock.WithTTL(8 * time.Second)},
		"nearly all of TTL": {redlock.WithTTL(10 * time.Second), redlock.WithMinValidity(9800 * time.Millisecond)},
	} {
		subtest(t, name, 3, func(w *cluster) {
			ctx, cancel := context.WithCancel(w.Context())
			w.busy(ctx, 3, "b", 3*time.Second)
			after(time.Second)
			s, err := w.locker().LockAll(w.Context(), []string{"a", "b"}, append(opts, redlock.WithWaitLimit(time.Minute))...)
			if err != nil {
				w.Error(err)
			} else if err := s.Unlock(w.Context()); err != nil {
				w.Error(err)
			}
			cancel()
			after(10 * time.Second)
		})
	}
}

// busy makes n clients lock name again and again until ctx ends. Each client holds the lock for the duration hold each
// time.
func (w *cluster) busy(ctx context.Context, n int, name string, hold time.Duration) {
	for range n {
		l := w.locker()
		go func() {
			for ctx.Err() == nil {
				k, err := l.Lock(ctx, name)
				if err != nil {
					return
				}
				<-time.After(hold)
				_ = k.Unlock(context.WithoutCancel(ctx))
			}
		}()
	}
}

// H146: the maximum hold of several names is measured from the time at which all of them are held. WithExtension takes
// effect at that time, too.
func TestLockAllOptionsApplyOnceAllAreHeld(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		held := must(w.locker().Lock(w.Context(), "b"))(w)
		got := make(chan *redlock.Locks, 1)
		go func() {
			got <- must(w.locker().LockAll(w.Context(), []string{"a", "b"}, redlock.WithMaxHold(8*time.Second),
				redlock.WithExtension(false), redlock.WithTTL(5*time.Second)))(w)
		}()
		after(20 * time.Second)
		w.noError(held.Unlock(w.Context()))
		s := <-got
		if left := min(s.Of("a").Remaining(), s.Of("b").Remaining()); left < 4*time.Second {
			w.Errorf("the locks are valid for another %v, want at least 4 s", left)
		}
		after(6 * time.Second)
		w.isError(context.Cause(s.Context(w.Context())), redlock.ErrLost) // the locks were not extended
		_ = s.Unlock(w.Context())

		s = must(w.locker().LockAll(w.Context(), []string{"a", "b"}, redlock.WithMaxHold(8*time.Second)))(w)
		after(7900 * time.Millisecond)
		w.noError(s.Context(w.Context()).Err())
		after(200 * time.Millisecond)
		w.isError(context.Cause(s.Context(w.Context())), redlock.ErrMaxHold)
		_ = s.Unlock(w.Context())
	})
}
