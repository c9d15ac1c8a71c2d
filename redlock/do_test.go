package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/redlock"
)

// of returns f as a function of a Do, a DoAll or a Lead.
func of[K any](f func(context.Context) error) func(context.Context, K) error {
	return func(ctx context.Context, _ K) error { return f(ctx) }
}

// H121: Do succeeds if its function succeeds, even if no quorum confirms the release. The release is then logged and
// counted, and delivered when the masters are back.
func TestDoWithUnconfirmedRelease(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		var book logbook
		l := w.locker(book.option(), redlock.WithLabel("web-1"))
		for name, do := range map[string]func(f func(context.Context) error) error{
			"Do": func(f func(context.Context) error) error { return l.Do(w.Context(), "n", of[*redlock.Lock](f)) },
			"DoAll": func(f func(context.Context) error) error {
				return l.DoAll(w.Context(), []string{"n"}, of[*redlock.Locks](f))
			},
		} {
			before := l.Stats().Unconfirmed
			if err := do(func(context.Context) error { w.hang(0, 1); return nil }); err != nil {
				w.Errorf("%s returned %v, although its function succeeded", name, err)
			}
			after(2 * time.Second)
			text := strings.Join(book.since(), "\n")
			if !strings.Contains(text, `releases not confirmed, resending in the background" label=web-1 lock=n token=`) ||
				!strings.Contains(text, ` count=1 hint="nothing is to be done: each name is free when its lease has expired`) {
				w.Errorf("%s: the log does not report the release:\n%s", name, text)
			}
			if n := l.Stats().Unconfirmed - before; n != 1 {
				w.Errorf("%s: %d releases were counted as unconfirmed, want 1", name, n)
			}
			w.resume()
			after(3 * time.Second)
			w.wantFree("n")
		}
		ctx, cancel := context.WithCancel(w.Context())
		if err := l.Do(ctx, "n", func(context.Context, *redlock.Lock) error {
			w.delay(time.Second)
			cancel()
			return nil
		}); err != nil {
			w.Errorf("with an ended context Do returned %v", err)
		}
		w.delay(0)
		after(3 * time.Second)
	})
}

// H121: the errors of the function of a Do stay visible, also those of inner locks. The loss of the outer lock comes
// first, so errors.As finds it, and neither NotRun nor Outcome mistakes an inner error for one of the Do.
func TestDoShowsOuterAndInnerErrors(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l := w.locker()
		must(w.locker().Lock(w.Context(), "held"))(w)
		errWork := errors.New("of the caller")
		lose := func(ctx context.Context, name string) error {
			w.masters.Lose(name)
			<-ctx.Done()
			return errors.Join(errWork, context.Cause(ctx))
		}
		var e *redlock.LockError
		err := l.Do(w.Context(), "outer", func(ctx context.Context, _ *redlock.Lock) error {
			return l.Do(ctx, "inner", func(ctx context.Context, _ *redlock.Lock) error { return lose(ctx, "inner") })
		})
		w.isError(err, errWork, redlock.ErrLost)
		if !errors.As(err, &e) || e.Name != "inner" || redlock.NotRun(err) || redlock.Outcome(err) != "other" {
			w.Errorf("Do returned %v, outcome %s; errors.As found %v", err, redlock.Outcome(err), e)
		}
		err = l.Do(w.Context(), "outer", func(ctx context.Context, _ *redlock.Lock) error {
			return l.DoAll(ctx, []string{"p", "q"}, func(ctx context.Context, _ *redlock.Locks) error {
				return fmt.Errorf("third: %w", l.TryDo(ctx, "held", nothing))
			})
		})
		w.isError(err, redlock.ErrHeld)
		if !errors.As(err, &e) || e.Name != "held" || redlock.NotRun(err) || redlock.Outcome(err) != "other" {
			w.Errorf("Do returned %v, outcome %s; errors.As found %v", err, redlock.Outcome(err), e)
		}
		if left, ok := redlock.RetryAfter(err); !ok || left != e.Left {
			w.Errorf("RetryAfter returned %v, %v; want %v", left, ok, e.Left)
		}
		for name, do := range map[string]func(f func(context.Context) error) error{
			"Do": func(f func(context.Context) error) error { return l.Do(w.Context(), "outer", of[*redlock.Lock](f)) },
			"DoAll": func(f func(context.Context) error) error {
				return l.DoAll(w.Context(), []string{"outer"}, of[*redlock.Locks](f))
			},
		} {
			err = do(func(ctx context.Context) error { return lose(ctx, "outer") })
			w.isError(err, errWork, redlock.ErrLost)
			if !errors.As(err, &e) || e.Op != "do" || e.Name != "outer" || redlock.Outcome(err) != "lost" {
				w.Errorf("%s returned %v; errors.As found %v", name, err, e)
			}
			err = do(func(ctx context.Context) error { w.masters.Lose("outer"); <-ctx.Done(); return context.Cause(ctx) })
			if !errors.Is(err, redlock.ErrLost) || strings.Count(err.Error(), "the lock was lost") != 1 {
				w.Errorf("%s of a function that returned the cause of its context: %v; want the loss once", name, err)
			}
		}
		err = l.Do(w.Context(), "outer", func(context.Context, *redlock.Lock) error {
			w.masters.Lose("outer")
			return nil
		})
		w.isError(err, redlock.ErrLost)
		err = l.Do(w.Context(), "outer", func(context.Context, *redlock.Lock) error { return l.Close() })
		w.isError(err, redlock.ErrClosed)
		if !errors.As(err, &e) || e.Op != "do" {
			w.Errorf("after Close the call returned %v", err)
		}
	})
}

// H117, H168: Shutdown waits until the function of a Do has returned, even if the lock of the Do is lost. The function
// may lock more names in the meantime, and all other calls are refused.
func TestShutdownWaitsForDo(t *testing.T) {
	for _, lost := range []bool{false, true} {
		subtest(t, fmt.Sprint("lost=", lost), 3, func(w *cluster) {
			l, leave, result, drained := w.locker(), make(chan struct{}), make(chan error, 1), make(chan error, 1)
			go func() {
				result <- l.Do(w.Context(), "a", func(ctx context.Context, _ *redlock.Lock) error {
					<-leave
					w.isError(errOf(l.Lock(w.Context(), "c")), redlock.ErrClosed)
					if lost {
						return nil
					}
					return errors.Join(l.Do(ctx, "b", nothing), ctx.Err())
				})
			}()
			after(time.Second)
			go func() { drained <- l.Shutdown(w.Context()) }()
			if lost {
				w.masters.Lose("a")
			}
			after(time.Minute)
			if len(drained) > 0 {
				w.Error("Shutdown has returned while the function is running")
			}
			close(leave)
			if err := <-result; lost {
				w.isError(err, redlock.ErrLost)
			} else {
				w.noError(err)
			}
			w.noError(<-drained)
		})
	}
}

// nothing is a function of a Do, a DoAll or a Lead.
func nothing[K any](context.Context, K) error { return nil }

// H168: a call that waits for a lock when Shutdown is called gets the lock, and all others that it needs. This holds
// for each kind of call.
func TestShutdownWaitsForWaitingCalls(t *testing.T) {
	type call = func(ctx context.Context, l *redlock.Locker, name string) error
	all := map[string]call{
		"Lead again": func(ctx context.Context, l *redlock.Locker, _ string) error {
			terms := 0
			return l.Lead(ctx, "free", func(context.Context, *redlock.Lock) error {
				if terms++; terms > 5 {
					return nil
				}
				return errors.New("mine")
			})
		},
		"nested": func(ctx context.Context, l *redlock.Locker, name string) error {
			return l.Do(ctx, "a", func(ctx context.Context, _ *redlock.Lock) error {
				return l.DoAll(ctx, []string{name, name + "z"}, func(ctx context.Context, _ *redlock.Locks) error {
					return l.RWLock("readers-writer").DoRead(ctx, nothing)
				})
			})
		},
	}
	for _, of := range []string{"plain", "readers-writer", "semaphore of 2"} {
		for how, f := range kinds[of] {
			if !strings.HasPrefix(how, "Try") {
				all[of+", "+how] = func(ctx context.Context, l *redlock.Locker, _ string) error { return f(ctx, l, of) }
			}
		}
	}
	for how, f := range all {
		subtest(t, how, 3, func(w *cluster) {
			other, l := w.locker(), w.locker(redlock.WithLinger(time.Hour))
			held := []*redlock.Lock{
				must(other.Lock(w.Context(), "plain"))(w),
				must(other.RWLock("readers-writer").Lock(w.Context()))(w),
				must(other.Semaphore("semaphore of 2", 2).Acquire(w.Context()))(w),
				must(other.Semaphore("semaphore of 2", 2).Acquire(w.Context()))(w),
			}
			result, drained := make(chan error, 1), make(chan error, 1)
			go func() { result <- f(w.withTimeout(time.Minute), l, "plain") }()
			after(3 * time.Second)
			go func() { drained <- l.Shutdown(w.withTimeout(time.Minute)) }()
			after(3 * time.Second)
			w.isError(errOf(l.TryLock(w.Context(), "new")), redlock.ErrClosed)
			for _, k := range held {
				w.noError(k.Unlock(w.Context()))
			}
			w.noError(<-result, <-drained)
			w.isError(errOf(l.TryLock(w.Context(), "new")), redlock.ErrClosed)
		})
	}
}

// H168: after Shutdown was called, each kind of call is refused immediately, unless its context owns a lock.
func TestShutdownRefusesNewCalls(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l := w.locker()
		exported := must(l.Lock(w.Context(), "exported"))(w)
		handle := must(exported.Export())(w)
		writer := must(l.RWLock("writer").Lock(w.Context()))(w)
		k := must(l.Lock(w.Context(), "a"))(w)
		drained := make(chan error, 1)
		go func() { drained <- l.Shutdown(w.Context()) }()
		after(time.Second)
		reader := must(writer.Downgrade(w.Context()))(w) // of a lock that is held
		for _, of := range []string{"plain", "readers-writer", "semaphore of 2"} {
			for how, call := range kinds[of] {
				if err := call(w.Context(), l, of); !errors.Is(err, redlock.ErrClosed) {
					w.Errorf("%s of %s returned %v", how, of, err)
				}
				if err := call(k.Context(w.Context()), l, of); err != nil {
					w.Errorf("%s of %s with the context of a lock returned %v", how, of, err)
				}
			}
		}
		w.isError(errOf(l.Import(w.Context(), handle)), redlock.ErrClosed)
		must(l.Import(k.Context(w.Context()), handle))(w)
		if len(drained) > 0 {
			w.Error("Shutdown has returned while locks are held")
		}
		w.noError(l.Close(), <-drained)
		_, _ = k.Unlock(w.Context()), reader.Unlock(w.Context())
	})
}

// H117: if the context of Shutdown ends, Shutdown ends the remaining locks. Its error names what it waited for.
func TestShutdownEndsWithItsContext(t *testing.T) {
	for want, names := range map[string][]string{
		`1 lock held ("a") and 2 calls under way (waiting for "a", "full")`:                 {"a"},
		`4 locks held ("a", "b", "c", ...) and 2 calls under way (waiting for "a", "full")`: {"a", "b", "c", "d"},
	} {
		subtest(t, names[len(names)-1], 3, func(w *cluster) {
			l, other := w.locker(), w.locker()
			must(other.Semaphore("full", 1).Acquire(w.Context()))(w)
			k := make([]*redlock.Lock, len(names))
			for i, name := range names {
				k[i] = must(l.Lock(w.Context(), name))(w)
			}
			w.goLock(w.Context(), l, "a")
			go func() { _, _ = l.Semaphore("full", 1).Acquire(w.Context()) }()
			after(time.Second)
			err := l.Shutdown(w.withTimeout(time.Second))
			w.isError(err, context.DeadlineExceeded)
			equal(w, err.Error(), "redlock: shutdown ended early, with "+want+": context deadline exceeded", "text")
			w.isError(k[0].Err(), redlock.ErrClosed)
			w.noError(l.Close())
		})
	}
	virtual(t, 3, func(w *cluster) {
		l := w.locker()
		must(l.Lock(w.Context(), "a"))(w)
		want := `redlock: shutdown ended early, with 1 lock held ("a"): context deadline exceeded`
		equal(w, l.Shutdown(w.withTimeout(time.Second)).Error(), want, "text")
	})
}

// FromContext returns the lock that the acquiring call returned, or passed to its function: the innermost one, or that
// of the name. It also returns a lock that has ended.
func TestFromContext(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		is := func(ctx context.Context, want *redlock.Lock, name ...string) {
			w.Helper()
			if k, ok := redlock.FromContext(ctx, name...); k != want || ok != (want != nil) {
				w.Errorf("FromContext with the name %q returned %p, %v; want %p", name, k, ok, want)
			}
		}
		l, second := w.locker(), w.locker()
		is(w.Context(), nil)
		is(w.Context(), nil, "outer")
		outer, inner := must(l.Lock(w.Context(), "outer"))(w), must(second.Lock(w.Context(), "inner"))(w)
		ctx := inner.Context(outer.Context(w.Context()))
		is(ctx, inner)
		is(ctx, inner, "inner")
		is(ctx, outer, "outer")
		is(ctx, nil, "other")
		again := must(l.Lock(ctx, "outer", redlock.WithReentry()))(w)
		is(again.Context(ctx), again)
		is(again.Context(ctx), again, "outer")
		is(again.Context(ctx), inner, "inner")
		w.noError(again.Unlock(w.Context()), inner.Unlock(w.Context()), outer.Unlock(w.Context()))
		is(ctx, inner)
		writer := must(l.RWLock("rw").Lock(w.Context()))(w)
		is(writer.Context(w.Context()), writer)
		reader := must(writer.Downgrade(w.Context()))(w)
		is(reader.Context(w.Context()), reader)
		moved := must(l.Lock(w.Context(), "moved"))(w)
		imported := must(second.Import(w.Context(), must(moved.Export())(w)))(w)
		is(imported.Context(w.Context()), imported)
		w.noError(reader.Unlock(w.Context()), imported.Unlock(w.Context()))
	})
}

// A function may release its lock before it returns: its context ends, and Do returns the error of the function.
func TestFunctionReleasesItsLock(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		var book logbook
		l := w.locker(book.option())
		mine := errors.New("mine")
		for how, release := range map[string]func(k *redlock.Lock) error{
			"Unlock": func(k *redlock.Lock) error { return k.Unlock(w.Context()) },
			"Export": func(k *redlock.Lock) error {
				w.noError(must(l.Import(w.Context(), must(k.Export())(w)))(w).Unlock(w.Context()))
				return nil
			},
		} {
			for _, result := range []error{nil, mine} {
				f := func(ctx context.Context, lock *redlock.Lock) error {
					w.must(release(lock))
					if ctx.Err() == nil {
						w.Errorf("%s has not ended the context", how)
					}
					return result
				}
				for call, err := range map[string]error{
					"Do": l.Do(w.Context(), "a", f),
					"DoAll": l.DoAll(w.Context(), []string{"a", "b"}, func(ctx context.Context, locks *redlock.Locks) error {
						return f(ctx, locks.Of("a"))
					}),
				} {
					if err != result { //nolint:errorlint // this very error, not wrapped
						w.Errorf("%s: %s returned %v, want %v", how, call, err, result)
					}
				}
			}
			w.must(l.Lead(w.Context(), "a", func(_ context.Context, lock *redlock.Lock) error { return release(lock) }))
		}
		w.must(l.RWLock("rw").Do(w.Context(), func(_ context.Context, lock *redlock.Lock) error {
			w.noError(must(lock.Downgrade(w.Context()))(w).Unlock(w.Context()))
			return nil
		}))
		synctest.Wait()
		w.noLog(&book)
		w.wantFree("a", "b")
	})
}
