package redlock

import (
	"context"
	"errors"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock/internal/grant"
)

// A Lock is one acquisition of a name. It is released once and not locked again. While it is held it is extended in
// the background; when it ends otherwise than by Unlock, its Done closes and its contexts end. All methods are safe
// for concurrent use.
type Lock struct {
	l      *Locker
	handle grant.Handle
	keys   scripts.Keys
}

// Name is the name that was locked.
func (k *Lock) Name() string { return k.handle.Grant().Name }

// Token is the fencing token: larger than that of every earlier holder of the name, the same for re-entries. Send it
// with each write to the resource that the lock protects, and let the resource refuse a smaller one than it has seen.
// It is positive, below 2^53, and roughly the masters' time in microseconds.
func (k *Lock) Token() int64 { return k.handle.Token() }

// Until is when the lock ends unless it is extended: no later than the masters give it away. For a lock that has
// ended it is in the past. The wall clock reading is for people; use [time.Until] on it, or [Lock.Remaining].
func (k *Lock) Until() time.Time { return time.Now().Add(k.Remaining()) }

// Remaining is the validity left; not positive for a lock that has ended.
func (k *Lock) Remaining() time.Duration { return k.handle.Remaining() }

// Done is closed when the lock ends: it was released, lost, exported, or its Locker closed.
// [Lock.Err] says which. After the machine was suspended it may close a tenth of a second late; Err does not.
func (k *Lock) Done() <-chan struct{} { return k.handle.Done() }

// Err is nil while the lock is held, and afterwards why it ended: ErrReleased, ErrLost, ErrMaxHold, ErrExported or
// ErrClosed. It compares with the clocks when it is called.
func (k *Lock) Err() error { return k.handle.Err() }

// HeldOn tells on how many of the n masters the lock is known to be, of those that are connected: n when all is well,
// and fewer for a moment after [Locker.Lock], until the last masters have answered. A master that lost the lock is
// given it again as soon as it is back.
func (k *Lock) HeldOn() (on, n int) {
	i := k.handle.Grant().Info()
	return i.On, i.Expects
}

// Extend prolongs the lock by its TTL from now, without waiting for the background. It returns nil only with validity
// left at its return. On failure nothing has changed: the lock goes on to the end it had, and the background goes on
// trying. Errors: ErrNoQuorum; that of ctx; or why the lock has ended.
func (k *Lock) Extend(ctx context.Context) error {
	if k == nil {
		return errNoLock
	}
	if k.l.cfg.trace.Call == nil {
		return k.extend(ctx)
	}
	return k.l.events.call(ctx, "extend", k.Name(), func(c *tracedCall) error {
		c.Token = k.Token()
		return k.extend(ctx)
	})
}

// extend is Extend without its trace.
func (k *Lock) extend(ctx context.Context) error {
	if !k.l.enter() {
		return ErrClosed
	}
	defer k.l.leave()
	return failed("extend", k.Name(), k.handle.Extend(ctx))
}

// Unlock releases the lock. It sends the release to all masters whatever the state of ctx, and waits until a quorum
// confirms it or ctx ends, and no longer than the validity that was left. The contexts of the lock end before
// anything is sent. Of several Locks of one name by re-entry each is unlocked once, and the last one releases. Where
// other goroutines of this Locker wait for the name, the lock may go to the first of them instead; then nothing is
// sent, and nothing waited for. See [WithHandOn].
//
// Errors: ErrReleased for the second call; ErrLost, once, where the lock had ended before, its remains being released
// all the same; ErrNoQuorum, or the error of ctx, where the release could not be confirmed: masters that were not
// reached are told later, and their keys end with their TTL at the latest. In each case the lock is not held any
// more. Unlock of a nil Lock, as a failed call returns it, is an error.
func (k *Lock) Unlock(ctx context.Context) error {
	if k == nil {
		return errNoLock
	}
	if k.l.cfg.trace.Call == nil {
		return k.unlock(ctx)
	}
	return k.l.events.call(ctx, "unlock", k.Name(), func(c *tracedCall) error {
		err := k.unlock(ctx)
		if c.Token = k.Token(); !errors.Is(err, ErrReleased) {
			c.Held = k.handle.Lasted()
		}
		return err
	})
}

// unlock is Unlock without its trace.
func (k *Lock) unlock(ctx context.Context) error {
	k.l.calls.Add(1) // Close waits for it; it is not refused, since it is what Close is for
	defer k.l.leave()
	return failed("unlock", k.Name(), k.handle.Unlock(ctx, k.l.queue.Heir(k.Name())))
}

// drop unlocks a lock that the caller does not get: without a minimum hold, and without waiting for the masters.
func (k *Lock) drop() {
	k.handle.Forgo()
	over, cancel := context.WithCancel(context.Background())
	cancel()
	_ = k.handle.Unlock(over, nil)
}

var errNoLock = invalid("the lock is nil: the call that should have returned it has failed; see its error")

// Context returns a copy of parent that ends when the lock ends, with the cause [ErrLost] where it was lost (see
// [context.Cause]), and that owns the name: [Locker.Lock] and [Locker.Do] with it, or with a context made from it,
// re-enter the lock. Whoever is handed this context may act as the holder; nothing else makes one.
//
// Its Err compares with the clocks: it is true to the instant at which it is called, also after the machine was
// suspended. The Err of a context that is made from it, and the Done of both, may come up to a tenth of a second
// later then.
func (k *Lock) Context(parent context.Context) context.Context {
	return k.handle.Context(parent)
}

// TokenOf is the fencing token of the lock that owns ctx, of the innermost where one was made inside another: that of
// [Lock.Token], for code that gets a context alone, as the function of [Locker.Do] does. It is 0 where ctx owns no
// name, and where the innermost owns several: see [TokenFor].
func TokenOf(ctx context.Context) int64 {
	if h := grant.Innermost(ctx); h != nil {
		return h.Token()
	}
	return 0
}

// TokenFor is the fencing token of the lock of name that owns ctx, the innermost of that name; 0 where there is none.
func TokenFor(ctx context.Context, name string) int64 {
	if h := grant.Owner(ctx, nil, name); h != nil {
		return h.Token()
	}
	return 0
}
