package redlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/redlock-go/redlock/redlock"
)

// Goroutines that have received the context of a lock, and lock its name again, would all work at the same time, or
// wait for the lock of their own caller. Each call whose context owns the name is refused without WithReentry, at once
// and without a message.
func TestReentryIsRefusedByEachCall(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l := w.locker()
		refused := func(what string, calls kind, owner *redlock.Lock) {
			w.Helper()
			after(time.Second)
			sent, began := len(w.wire.sent()), time.Now()
			for how, call := range calls {
				err := call(owner.Context(w.Context()), l, owner.Name())
				if err == nil {
					w.Errorf("%s of %s succeeded", how, what)
					continue
				}
				w.says(err, redlock.ErrReentry, "WithReentry", "pass a context")
				w.notError(err, redlock.ErrHeld, redlock.ErrInvalid)
			}
			equal(w, len(w.wire.sent()), sent, "messages")
			w.wantSince(began, 0)
		}
		plain := must(l.Lock(w.Context(), "n"))(w)
		refused("a plain lock", kinds["plain"], plain)
		refused("a slot", kinds["semaphore of 2"], must(l.Semaphore("s", 2).Acquire(w.Context()))(w))
		rw := kinds["readers-writer"]
		reader := must(l.RWLock("rw").RLock(w.Context()))(w)
		refused("a reader", kind{"RLock": rw["RLock"], "TryRLock": rw["TryRLock"], "DoRead": rw["DoRead"]}, reader)
		w.noError(reader.Unlock(w.Context()))
		refused("a writer", rw, must(l.RWLock("rw").Lock(w.Context()))(w))
		must(l.TryLock(plain.Context(w.Context()), "another"))(w)
	})
}

// WithReentry may be given to New. Then each call re-enters.
func TestReentryOfALocker(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l := w.locker(redlock.WithReentry())
		w.must(l.Do(w.Context(), "n", func(ctx context.Context, _ *redlock.Lock) error {
			return l.Do(ctx, "n", func(ctx context.Context, _ *redlock.Lock) error {
				return l.DoAll(ctx, []string{"n", "o"}, func(ctx context.Context, _ *redlock.Locks) error {
					return errOf(l.TryLock(ctx, "o"))
				})
			})
		}))
	})
}

// With the context of a lock that has ended, also one without cancellation, a call fails with the reason of that end,
// and its error says what to do. WithReentry does not change that.
func TestContextOfEndedLockSaysWhatToDo(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l := w.locker()
		for how, end := range map[string]func(k *redlock.Lock) error{
			"released": func(k *redlock.Lock) error { w.noError(k.Unlock(w.Context())); return redlock.ErrReleased },
			"lost":     func(k *redlock.Lock) error { w.masters.Lose("n"); <-k.Done(); return redlock.ErrLost },
			"exported": func(k *redlock.Lock) error { must(k.Export())(w); return redlock.ErrExported },
		} {
			k := must(l.Lock(w.Context(), "n"))(w)
			ctx := k.Context(w.Context())
			reason := end(k)
			for _, opts := range [][]redlock.LockOption{nil, {redlock.WithReentry()}} {
				err := errOf(l.Lock(ctx, "n", opts...))
				w.says(err, reason, "to lock the name again, pass a context that is not derived from")
				w.isError(err, context.Canceled)
				err = errOf(l.Lock(context.WithoutCancel(ctx), "n", opts...))
				w.says(err, reason, "to lock the name again, pass a context that is not derived from")
				w.notError(err, context.Canceled, redlock.ErrReentry)
			}
			w.noError(l.Do(context.WithoutCancel(ctx), "other", nothing))
			_ = k.Unlock(w.Context())
			after(time.Minute)
			if how == "exported" {
				w.wantFree("n")
			}
		}
		// If the caller has cancelled the context, the error is only that of the context.
		parent, cancel := context.WithCancel(w.Context())
		k := must(l.Lock(w.Context(), "n"))(w)
		ctx := k.Context(parent)
		cancel()
		w.noError(k.Unlock(w.Context()))
		err := errOf(l.Lock(ctx, "n"))
		w.isError(err, context.Canceled)
		w.notError(err, redlock.ErrReleased)
	})
}
