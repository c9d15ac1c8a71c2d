package redlock

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/redlock-go/redlock/internal/memory"
)

// nearLocker returns a Locker over three masters in memory.
func nearLocker(t testing.TB, opts ...Option) *Locker {
	t.Helper()
	masters := memory.New(3)
	p, err := masters.Pool()
	if err != nil {
		t.Fatal(err)
	}
	l, err := New(p, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		masters.Close()
	})
	return l
}

func mustLock(t testing.TB, l *Locker, name string) *Lock {
	t.Helper()
	k, err := l.Lock(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func mustUnlock(t testing.TB, k *Lock) {
	t.Helper()
	if err := k.Unlock(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestContextEndsWithParent(t *testing.T) {
	k := mustLock(t, nearLocker(t), "a")
	parent, cancel := context.WithCancelCause(t.Context())
	ctx, other := k.Context(parent), k.Context(t.Context())
	why := errors.New("the request has ended")
	cancel(why)
	<-ctx.Done()
	if !errors.Is(context.Cause(ctx), why) {
		t.Errorf("the cause is %v, want %v", context.Cause(ctx), why)
	}
	if other.Err() != nil || k.Err() != nil {
		t.Error("the end of one context ended the lock")
	}
	mustUnlock(t, k)
	<-other.Done()
}

// A context ends with an error that names the lock, since the code that logs it may know only the context.
func TestEndOfContextNamesTheLock(t *testing.T) {
	l := nearLocker(t)
	k := mustLock(t, l, "a")
	slot, err := l.Semaphore("s", 3).Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, ofSlot := k.Context(t.Context()), slot.Context(t.Context())
	mustUnlock(t, k)
	mustUnlock(t, slot)
	_, err = l.Lock(ctx, "other")
	for _, c := range []struct {
		err  error
		want string
	}{
		{k.Err(), `redlock: lock "a": the lock was released before`},
		{context.Cause(ctx), `redlock: lock "a": the lock was released before`},
		{context.Cause(k.Context(t.Context())), `redlock: lock "a": the lock was released before`},
		{err, `redlock: lock "other": context canceled: lock "a": the lock was released before`},
		{context.Cause(ofSlot), `redlock: lock "s": the lock was released before`},
	} {
		if !errors.Is(c.err, ErrReleased) || c.err.Error() != c.want {
			t.Errorf("the error is %v, want %s", c.err, c.want)
		}
	}
}

func TestContextsAreMadeWhileTheLockEnds(t *testing.T) {
	l := nearLocker(t)
	for range 200 {
		k := mustLock(t, l, "a")
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				for range 5 {
					<-k.Context(t.Context()).Done()
				}
			})
		}
		wg.Go(func() { mustUnlock(t, k) })
		wg.Wait()
	}
}

// A requestContext is a context that a program has defined as a struct, not as a pointer. The field values may make it
// unusable as the key of a map.
type requestContext struct {
	context.Context
	values any
}

// The parent of a context may be of a comparable type and contain a value that cannot be compared.
func TestContextOfAParentThatCannotBeCompared(t *testing.T) {
	k := mustLock(t, nearLocker(t), "a")
	ctx := k.Context(requestContext{t.Context(), map[string]string{"user": "1"}})
	if got, _ := FromContext(ctx); got != k {
		t.Errorf("the lock is %p, want %p", got, k)
	}
	mustUnlock(t, k)
	<-ctx.Done()
}
