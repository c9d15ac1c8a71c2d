package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// An acquirer calls a method that acquires the lock of name.
type acquirer func(ctx context.Context, l *redlock.Locker, name string, opts ...redlock.LockOption) error

// acquirers has such calls by the Op of their errors, and of their events.
var acquirers = map[redlockinfo.Op]acquirer{
	redlockinfo.OpLock: func(ctx context.Context, l *redlock.Locker, name string, opts ...redlock.LockOption) error {
		return errOf(l.Lock(ctx, name, opts...))
	},
	redlockinfo.OpTryLock: func(ctx context.Context, l *redlock.Locker, name string, opts ...redlock.LockOption) error {
		return l.TryDo(ctx, name, nothing, opts...)
	},
	redlockinfo.OpRLock: func(ctx context.Context, l *redlock.Locker, name string, opts ...redlock.LockOption) error {
		return l.RWLock(name).DoRead(ctx, nothing, opts...)
	},
	redlockinfo.OpTryRLock: func(ctx context.Context, l *redlock.Locker, name string, opts ...redlock.LockOption) error {
		return errOf(l.RWLock(name).TryRLock(ctx, opts...))
	},
	redlockinfo.OpAcquire: func(ctx context.Context, l *redlock.Locker, name string, opts ...redlock.LockOption) error {
		return errOf(l.Semaphore(name, 2).Acquire(ctx, opts...))
	},
	redlockinfo.OpTryAcquire: func(ctx context.Context, l *redlock.Locker, name string, opts ...redlock.LockOption) error {
		return l.Semaphore(name, 2).TryDo(ctx, nothing, opts...)
	},
	redlockinfo.OpLockAll: func(ctx context.Context, l *redlock.Locker, name string, opts ...redlock.LockOption) error {
		return l.DoAll(ctx, []string{name, "z"}, nothing, opts...)
	},
	redlockinfo.OpTryLockAll: func(ctx context.Context, l *redlock.Locker, name string, opts ...redlock.LockOption) error {
		return errOf(l.TryLockAll(ctx, []string{name, "z"}, opts...))
	},
}

// holdAs holds name for l, as op acquires it.
func (w *cluster) holdAs(op redlockinfo.Op, l *redlock.Locker, name string) *redlock.Lock {
	switch op {
	case redlockinfo.OpRLock, redlockinfo.OpTryRLock:
		return must(l.RWLock(name).Lock(w.Context()))(w)
	case redlockinfo.OpAcquire, redlockinfo.OpTryAcquire:
		must(l.Semaphore(name, 2).Acquire(w.Context()))(w)
		return must(l.Semaphore(name, 2).Acquire(w.Context()))(w)
	}
	return must(l.Lock(w.Context(), name))(w)
}

// The error of a call names that call, for whatever reason the call fails, and so do its events.
func TestErrorsNameTheCall(t *testing.T) {
	limit := redlock.WithWaitLimit(100 * time.Millisecond)
	for op, call := range acquirers {
		subtest(t, string(op), 3, func(w *cluster) {
			check := func(what string, err error) {
				var e *redlock.LockError
				if !errors.As(err, &e) || e.Op != op ||
					!strings.HasPrefix(err.Error(), fmt.Sprintf("redlock: %s %q: ", op, e.Name)) {
					w.Errorf("%s: %v", what, err)
				}
			}
			event := func(e redlockinfo.Event) {
				ofName := op == redlockinfo.OpLockAll || op == redlockinfo.OpTryLockAll // its calls have events of their own
				switch {
				case e.Kind == redlockinfo.KindAttempt && e.Err != nil:
					check("event of an attempt", e.Err)
				case e.Kind == redlockinfo.KindCall && e.Op != redlockinfo.OpDo && e.Op != op && !ofName:
					w.Errorf("the event of a call has the Op %q", e.Op)
				}
			}
			l, other := w.locker(redlock.WithTrace(&redlockinfo.Trace{Event: event})), w.locker()
			own := w.holdAs(op, other, "own").Context(w.Context())
			must(other.Semaphore("kind", 5).Acquire(w.Context()))(w)
			w.holdAs(op, other, "held")
			after(time.Second)
			check("held", call(w.Context(), l, "held", limit))
			check("held by the same Locker", call(w.Context(), other, "own", limit))
			check("re-entry", call(own, other, "own"))
			check("another kind", call(w.Context(), other, "kind"))
			check("ended context", call(deadContext(), l, "n"))
			w.stop(0, 1)
			after(time.Second)
			check("no quorum", call(w.Context(), l, "n", limit))
			check("quorum wait", call(w.Context(), l, "n", redlock.WithQuorumWait(100*time.Millisecond)))
		})
	}
}

// If the maximum hold of a lock has passed before the call returns, the error says so: the masters were not too slow.
func TestMaxHoldBeforeCallReturns(t *testing.T) {
	for op, call := range acquirers {
		subtest(t, string(op), 3, func(w *cluster) {
			var reads atomic.Int64 // of a caller that is paused for a millisecond before each reading of its clock
			slow := clock.New(func() clock.Instant {
				return clock.Runtime().Now().Add(time.Duration(reads.Add(1)) * time.Millisecond)
			})
			l := w.locker(redlock.WithClock(slow))
			err := call(w.Context(), l, "n", redlock.WithMaxHold(20*time.Microsecond))
			w.isError(err, redlock.ErrMaxHold)
			w.notError(err, redlock.ErrTooSlow)
			after(time.Second)
			w.wantOn("n", 0)
		})
	}
}

// A call that returns no lock does not fail with ErrLost: if its lock expires before it returns, nobody has had it.
func TestCallWithoutLockIsNotLost(t *testing.T) {
	calls := map[string]func(l *redlock.Locker, ctx context.Context, name string) (held bool, err error){
		"Lock": func(l *redlock.Locker, ctx context.Context, name string) (bool, error) {
			k, err := l.Lock(ctx, name, redlock.WithTries(1))
			return k != nil, err
		},
		"TryLock": func(l *redlock.Locker, ctx context.Context, name string) (bool, error) {
			k, err := l.TryLock(ctx, name)
			return k != nil, err
		},
		"LockAll": func(l *redlock.Locker, ctx context.Context, name string) (bool, error) {
			k, err := l.TryLockAll(ctx, []string{name, name + "z"})
			return k != nil, err
		},
	}
	for what, call := range calls {
		subtest(t, what, 3, func(w *cluster) {
			for at := range int64(30) {
				var reads atomic.Int64 // the caller is paused before one reading of its clock
				l := w.locker(redlock.WithClock(clock.New(func() clock.Instant {
					now := clock.Runtime().Now()
					if reads.Add(1) > at {
						return now.Add(time.Minute)
					}
					return now
				})))
				reads.Store(0)
				if held, err := call(l, w.Context(), fmt.Sprint("n", at)); !held {
					w.notError(err, redlock.ErrLost)
				}
				w.noError(l.Close())
			}
		})
	}
}

// A context re-enters only the locks of its Locker. A call of another Locker that is refused because of the context's
// own lock says so: it would wait for itself.
func TestContextOfAnotherLockerIsExplained(t *testing.T) {
	for _, op := range []redlockinfo.Op{redlockinfo.OpLock, redlockinfo.OpTryLock, redlockinfo.OpRLock} {
		subtest(t, string(op), 3, func(w *cluster) {
			k := w.holdAs(op, w.locker(), "n")
			const text = ", by a lock that the context of the call owns, of another Locker; expires in "
			reentry, limit := redlock.WithReentry(), redlock.WithWaitLimit(time.Second)
			err := acquirers[op](k.Context(w.Context()), w.locker(), "n", reentry, limit)
			w.isError(err, redlock.ErrHeld)
			if !strings.Contains(err.Error(), text) {
				w.Errorf("the error is %v", err)
			}
			if err = acquirers[op](w.Context(), w.locker(), "n", limit); strings.Contains(err.Error(), text) {
				w.Errorf("without that context, the error is %v", err)
			}
		})
	}
}
