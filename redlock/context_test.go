package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redlock-go/redlock/redlock"
)

func TestContextEndsWithParent(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		k := must(w.locker().Lock(w.Context(), "a"))(w)
		parent, cancel := context.WithCancelCause(w.Context())
		ctx, other := k.Context(parent), k.Context(w.Context())
		why := errors.New("the request has ended")
		cancel(why)
		<-ctx.Done()
		w.isError(context.Cause(ctx), why)
		w.noError(other.Err(), k.Err())
		w.noError(k.Unlock(w.Context()))
		<-other.Done()
	})
}

// A context ends with an error that names the lock, since the code that logs it may know only the context.
func TestEndOfContextNamesTheLock(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l := w.locker()
		k := must(l.Lock(w.Context(), "a"))(w)
		slot := must(l.Semaphore("s", 3).Acquire(w.Context()))(w)
		ctx, ofSlot := k.Context(w.Context()), slot.Context(w.Context())
		w.noError(k.Unlock(w.Context()), slot.Unlock(w.Context()))
		for _, c := range []struct {
			err  error
			want string
		}{
			{k.Err(), `redlock: lock "a": the lock was released before`},
			{context.Cause(ctx), `redlock: lock "a": the lock was released before`},
			{context.Cause(k.Context(w.Context())), `redlock: lock "a": the lock was released before`},
			{
				errOf(l.Lock(ctx, "other")),
				`redlock: lock "other": context canceled: lock "a": the lock was released before`,
			},
			{context.Cause(ofSlot), `redlock: lock "s": the lock was released before`},
		} {
			w.isError(c.err, redlock.ErrReleased)
			equal(w, c.err.Error(), c.want, "error")
		}
	})
}

func TestContextsAreMadeWhileTheLockEnds(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l := w.locker()
		for range 200 {
			k := must(l.Lock(w.Context(), "a"))(w)
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() {
					for range 5 {
						<-k.Context(w.Context()).Done()
					}
				})
			}
			wg.Go(func() { w.noError(k.Unlock(w.Context())) })
			wg.Wait()
		}
	})
}

// A requestContext is a context that a program has defined as a struct, not as a pointer. The field values may make it
// unusable as the key of a map.
type requestContext struct {
	context.Context
	values any
}

// The parent of a context may be of a comparable type and contain a value that cannot be compared.
func TestContextOfAParentThatCannotBeCompared(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		k := must(w.locker().Lock(w.Context(), "a"))(w)
		ctx := k.Context(requestContext{w.Context(), map[string]string{"user": "1"}})
		if got, _ := redlock.FromContext(ctx); got != k {
			w.Errorf("the lock is %p, want %p", got, k)
		}
		w.noError(k.Unlock(w.Context()))
		<-ctx.Done()
	})
}

// FromContext takes one name: it does not silently ignore a second one. warnAtHalf, the example in the guide, works
// with a lock that has ended.
func TestMisuseOfContextsAndLocks(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l := w.locker()
		k := must(l.Lock(w.Context(), "n"))(w)
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); got != "redlock: FromContext takes at most one name, not 2" {
					w.Errorf("FromContext panicked with %q", got)
				}
			}()
			redlock.FromContext(k.Context(w.Context()), "n", "m")
		}()
		w.must(k.Unlock(w.Context()))
		warned := false
		warnAtHalf(w.Context(), k, func(time.Duration) { warned = true })
		if !warned {
			w.Error("no warning for a lock that has ended")
		}
	})
}
