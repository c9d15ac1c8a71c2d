package redlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/redlock"
)

// H121: a Do whose function succeeds and whose release no quorum confirms succeeds. The release is logged, counted, and
// delivered when the masters are back.
func TestDoWithUnconfirmedRelease(t *testing.T) {
	virtual(t, 3, func(w *world) {
		var book logbook
		l := w.locker(book.option(), redlock.WithOwner("web-1"))
		for name, do := range map[string]func(f func(context.Context) error) error{
			"Do":    func(f func(context.Context) error) error { return l.Do(w.Context(), "n", f) },
			"DoAll": func(f func(context.Context) error) error { return l.DoAll(w.Context(), []string{"n"}, f) },
		} {
			before := l.Stats().Unconfirmed
			if err := do(func(context.Context) error { w.hang(0, 1); return nil }); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			synctest.Wait()
			text := strings.Join(book.since(), "\n")
			if !strings.Contains(text, `release not confirmed, resending in the background" owner=web-1 lock=n token=`) {
				t.Errorf("%s: the log does not report the release:\n%s", name, text)
			}
			if n := l.Stats().Unconfirmed - before; n != 1 {
				t.Errorf("%s: %d releases were counted", name, n)
			}
			w.resume()
			after(3 * time.Second)
			w.free("n")
		}
		ctx, cancel := context.WithCancel(w.Context())
		if err := l.Do(ctx, "n", func(context.Context) error {
			w.delay(time.Second)
			cancel()
			return nil
		}); err != nil {
			t.Errorf("with an ended context: %v", err)
		}
		w.delay(0)
		after(3 * time.Second)
	})
}

// H121: errors of an inner lock are not mistaken for those of the outer one, and a loss of the outer one is joined.
func TestDoTellsOuterAndInnerErrorsApart(t *testing.T) {
	virtual(t, 3, func(w *world) {
		l := w.locker()
		w.take(w.locker(), "held")
		errWork := errors.New("of the program")
		lose := func(ctx context.Context, name string) error {
			w.masters.Lose(name)
			<-ctx.Done()
			return errors.Join(errWork, context.Cause(ctx))
		}
		var e *redlock.LockError
		err := l.Do(w.Context(), "outer", func(ctx context.Context) error {
			return l.Do(ctx, "inner", func(ctx context.Context) error { return lose(ctx, "inner") })
		})
		w.isError(err, errWork)
		w.notError(err, redlock.ErrLost)
		if errors.As(err, &e) || !strings.Contains(err.Error(), `do "inner"`) {
			t.Errorf("%v; found %v", err, e)
		}
		err = l.Do(w.Context(), "outer", func(ctx context.Context) error {
			_, err := l.TryLock(ctx, "held")
			return err
		})
		w.notError(err, redlock.ErrHeld)
		for name, do := range map[string]func(f func(context.Context) error) error{
			"Do":    func(f func(context.Context) error) error { return l.Do(w.Context(), "outer", f) },
			"DoAll": func(f func(context.Context) error) error { return l.DoAll(w.Context(), []string{"outer"}, f) },
		} {
			err = do(func(ctx context.Context) error { return lose(ctx, "outer") })
			w.isError(err, errWork, redlock.ErrLost)
			if !errors.As(err, &e) || e.Op != "do" || e.Name != "outer" {
				t.Errorf("%s: %v; found %v", name, err, e)
			}
		}
		err = l.Do(w.Context(), "outer", func(context.Context) error { return l.Close(w.Context()) })
		w.isError(err, redlock.ErrClosed)
		if !errors.As(err, &e) || e.Op != "do" {
			t.Errorf("closed: %v", err)
		}
	})
}

// H122: after a loss a leader campaigns again, regardless of what its function returns. The log says so, with the
// owner.
func TestLeadAfterLoss(t *testing.T) {
	for how, result := range map[string]func(ctx context.Context) error{
		"nil":   func(context.Context) error { return nil },
		"error": func(context.Context) error { return errors.New("mine") },
		"cause": context.Cause,
	} {
		t.Run(how, func(t *testing.T) {
			virtual(t, 3, func(w *world) {
				var book logbook
				l := w.locker(book.option(), redlock.WithOwner("web-1"))
				terms := 0
				err := l.Lead(w.Context(), "boss", func(ctx context.Context) error {
					if terms++; terms > 1 {
						return nil
					}
					w.masters.Lose("boss")
					<-ctx.Done()
					return result(ctx)
				})
				synctest.Wait()
				text := strings.Join(book.since(), "\n")
				if err != nil || terms != 2 || strings.Contains(text, "function failed") ||
					!strings.Contains(text, `msg="redlock: leadership was lost, campaigning again" owner=web-1 lock=boss`) {
					t.Errorf("%v after %d terms; the log:\n%s", err, terms, text)
				}
			})
		})
	}
}

// H122: at an orderly shutdown, and after Close, the log does not say that a leader campaigns again, regardless of what
// its function returns.
func TestLeadAtShutdown(t *testing.T) {
	for how, result := range map[string]func(ctx context.Context) error{
		"nil": func(context.Context) error { return nil }, "error": context.Context.Err,
	} {
		t.Run(how, func(t *testing.T) {
			virtual(t, 3, func(w *world) {
				var book logbook
				l := w.locker(book.option())
				ctx, cancel := context.WithCancel(w.Context())
				lead := func(ctx context.Context) error {
					return l.Lead(ctx, "boss", func(ctx context.Context) error {
						<-ctx.Done()
						return result(ctx)
					})
				}
				time.AfterFunc(time.Second, cancel)
				if err := lead(ctx); how == "nil" && err != nil || how == "error" && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				time.AfterFunc(time.Second, func() { _ = l.Close(w.Context()) })
				w.isError(lead(w.Context()), redlock.ErrClosed)
				synctest.Wait()
				if lines := book.since(); len(lines) != 0 {
					t.Errorf("log: %q", lines)
				}
			})
		})
	}
}

// H117: Drain waits for a function of Do, which may lock more names meanwhile, and lets no other call in.
func TestVirtualDrainWaitsForDo(t *testing.T) {
	virtual(t, 3, func(w *world) {
		l := w.locker()
		started, result := make(chan struct{}), make(chan error, 1)
		go func() {
			result <- l.Do(w.Context(), "a", func(ctx context.Context) error {
				close(started)
				after(5 * time.Second)
				if _, err := l.Lock(w.Context(), "c"); !errors.Is(err, redlock.ErrClosed) {
					w.Errorf("a new call: %v", err)
				}
				k, err := l.Lock(ctx, "b")
				if err != nil {
					return err
				}
				after(5 * time.Second)
				return errors.Join(ctx.Err(), k.Unlock(ctx))
			})
		}()
		<-started
		began := time.Now()
		ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
		defer cancel()
		if err := l.Drain(ctx); err != nil {
			w.Error(err)
		}
		if took := time.Since(began); took < 10*time.Second {
			w.Errorf("it took %v", took)
		}
		if err := <-result; err != nil {
			w.Errorf("Do: %v", err)
		}
	})
}

// H117: when its context ends, Drain ends the remaining locks.
func TestVirtualDrainEndsWithItsContext(t *testing.T) {
	virtual(t, 3, func(w *world) {
		l := w.locker()
		k := w.take(l, "a")
		ctx, cancel := context.WithTimeout(w.Context(), time.Second)
		defer cancel()
		if err := l.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) {
			w.Errorf("Drain: %v", err)
		}
		if err := k.Err(); !errors.Is(err, redlock.ErrClosed) {
			w.Errorf("the lock: %v", err)
		}
		if err := l.Close(w.Context()); err != nil {
			w.Error(err)
		}
	})
}
