package redlock_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock"
)

// A kind has the calls that lock a name as one kind of lock. They release what they have locked. Calls whose names
// begin with Try do not wait.
type kind map[string]func(ctx context.Context, l *redlock.Locker, name string) error

// released releases the lock of a call, if the call has succeeded.
func released(k interface {
	Unlock(ctx context.Context) error
}, err error) error {
	if err != nil {
		return err
	}
	return k.Unlock(context.Background())
}

func semaphoreOf(k int) kind {
	return kind{
		"Acquire": func(ctx context.Context, l *redlock.Locker, name string) error {
			return released(l.Semaphore(name, k).Acquire(ctx))
		},
		"TryAcquire": func(ctx context.Context, l *redlock.Locker, name string) error {
			return released(l.Semaphore(name, k).TryAcquire(ctx))
		},
		"Do": func(ctx context.Context, l *redlock.Locker, name string) error {
			return l.Semaphore(name, k).Do(ctx, nothing)
		},
		"TryDo": func(ctx context.Context, l *redlock.Locker, name string) error {
			return l.Semaphore(name, k).TryDo(ctx, nothing)
		},
	}
}

var kinds = map[string]kind{
	"plain": {
		"Lock": func(ctx context.Context, l *redlock.Locker, name string) error { return released(l.Lock(ctx, name)) },
		"Lock with WithFair": func(ctx context.Context, l *redlock.Locker, name string) error {
			return released(l.Lock(ctx, name, redlock.WithFair()))
		},
		"Lock with WithTries": func(ctx context.Context, l *redlock.Locker, name string) error {
			return released(l.Lock(ctx, name, redlock.WithTries(1000)))
		},
		"TryLock": func(ctx context.Context, l *redlock.Locker, name string) error {
			return released(l.TryLock(ctx, name))
		},
		"Do":    func(ctx context.Context, l *redlock.Locker, name string) error { return l.Do(ctx, name, nothing) },
		"TryDo": func(ctx context.Context, l *redlock.Locker, name string) error { return l.TryDo(ctx, name, nothing) },
		"Lead":  func(ctx context.Context, l *redlock.Locker, name string) error { return l.Lead(ctx, name, nothing) },
		"LockAll": func(ctx context.Context, l *redlock.Locker, name string) error {
			return released(l.LockAll(ctx, []string{name, name + "z"}))
		},
		"LockAll with WithTries": func(ctx context.Context, l *redlock.Locker, name string) error {
			return released(l.LockAll(ctx, []string{name, name + "z"}, redlock.WithTries(1000)))
		},
		"TryLockAll": func(ctx context.Context, l *redlock.Locker, name string) error {
			return released(l.TryLockAll(ctx, []string{"b", name}))
		},
		"DoAll": func(ctx context.Context, l *redlock.Locker, name string) error {
			return l.DoAll(ctx, []string{name, name + "z"}, nothing)
		},
	},
	"readers-writer": {
		"RLock": func(ctx context.Context, l *redlock.Locker, name string) error {
			return released(l.RWLock(name).RLock(ctx))
		},
		"TryRLock": func(ctx context.Context, l *redlock.Locker, name string) error {
			return released(l.RWLock(name).TryRLock(ctx))
		},
		"Lock": func(ctx context.Context, l *redlock.Locker, name string) error {
			return released(l.RWLock(name).Lock(ctx))
		},
		"TryLock": func(ctx context.Context, l *redlock.Locker, name string) error {
			return released(l.RWLock(name).TryLock(ctx))
		},
		"Do": func(ctx context.Context, l *redlock.Locker, name string) error {
			return l.RWLock(name).Do(ctx, nothing)
		},
		"DoRead": func(ctx context.Context, l *redlock.Locker, name string) error {
			return l.RWLock(name).DoRead(ctx, nothing)
		},
	},
	"semaphore of 2": semaphoreOf(2),
	"semaphore of 3": semaphoreOf(3),
}

// A name has one kind and, if it is a semaphore, one size, while it is held and until its TTL plus 75 s after its last
// use. A call for another kind fails immediately with ErrKind, which names the kind. H163: the error advises another
// name, and not to delete the key, which may be a lock that a client holds.
func TestNameHasOneKind(t *testing.T) {
	type use = func(ctx context.Context, l *redlock.Locker) (*redlock.Lock, error)
	semaphore := func(k int) use {
		return func(ctx context.Context, l *redlock.Locker) (*redlock.Lock, error) {
			return l.Semaphore("x", k).Acquire(ctx)
		}
	}
	const rwlock = "a readers-writer lock (RWLock)"
	uses := []struct {
		what, kind string
		lock       use
	}{
		{"plain", "a plain lock (Lock, TryLock, Do)", func(ctx context.Context, l *redlock.Locker) (*redlock.Lock, error) {
			return l.Lock(ctx, "x")
		}},
		{"reader", rwlock, func(ctx context.Context, l *redlock.Locker) (*redlock.Lock, error) {
			return l.RWLock("x").RLock(ctx)
		}},
		{"writer", rwlock, func(ctx context.Context, l *redlock.Locker) (*redlock.Lock, error) {
			return l.RWLock("x").Lock(ctx)
		}},
		{"semaphore of 3", "a semaphore of 3 (Semaphore)", semaphore(3)},
		{"semaphore of 5", "a semaphore of 5 (Semaphore)", semaphore(5)},
	}
	for i, first := range uses {
		subtest(t, first.what, 5, func(w *cluster) {
			l, another := w.locker(), w.locker()
			k := must(first.lock(w.Context(), l))(w)
			refused := func(when string) {
				w.Helper()
				for _, other := range uses {
					for _, client := range []*redlock.Locker{l, another} {
						if other.kind == first.kind {
							continue
						}
						began := time.Now()
						_, err := other.lock(w.withTimeout(10*time.Second), client)
						w.says(err, redlock.ErrKind, "it knows the name as "+first.kind, "75s", "use another name")
						w.notError(err, redlock.ErrHeld, redlock.ErrNoQuorum)
						w.wantSince(began, 0)
						if text := fmt.Sprint(err); strings.Contains(text, "delete") || strings.Contains(text, "WRONGTYPE") {
							w.Errorf("%s: the error is %v", when, err)
						}
					}
				}
			}
			refused("while it is held")
			for _, other := range uses { // with the context of the lock
				if other.kind != first.kind {
					w.isError(errOf(other.lock(k.Context(w.withTimeout(10*time.Second)), l)), redlock.ErrKind)
				}
			}
			after(3 * time.Minute) // the extensions keep the kind
			refused("after extensions")
			w.noError(k.Extend(w.Context()), k.Unlock(w.Context()))
			after(redlock.DefaultTTL + scripts.FenceKept - time.Second)
			refused("before the hash has expired")
			after(2 * time.Second)
			next := must(uses[(i+2)%len(uses)].lock(w.Context(), another))(w)
			w.noError(next.Unlock(w.Context()))
		})
	}
}
