package client

import (
	"context"
	"errors"

	"github.com/redlock-go/redlock/internal/lease"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// A Lock is one acquisition of a name. Package redlock describes it and its methods.
type Lock struct {
	lease.Hold
	c    *Client
	keys scripts.Keys
}

// init prepares k for its hold: the lock of name on the masters of c.
func (k *Lock) init(c *Client, name string, role scripts.Role) {
	k.c, k.keys = c, scripts.Prefix(c.cfg.Prefix).KeysOf(name, role)
}

// LockIn returns the public form of the lock that owns ctx: the innermost one or, if a name is given, the innermost one
// of that name. It returns nil if there is none.
func LockIn(ctx context.Context, name ...string) any {
	h := lease.Innermost(ctx)
	if len(name) > 0 {
		h = lease.InnermostOf(ctx, nil, name[0])
	}
	if h == nil {
		return nil
	}
	return h.Public
}

// Ended reports whether ctx owns the name by a lock of c that has ended.
func (c *Client) Ended(ctx context.Context, name string) bool {
	own := lease.InnermostOf(ctx, c.leases, name)
	return own != nil && own.Err() != nil
}

// Client returns the client that acquired k.
func (k *Lock) Client() *Client { return k.c }

// Name returns the name of the lock. For a slot of a semaphore, it is the name of the semaphore.
func (k *Lock) Name() string { return k.Hold.Lease().PublicName() }

// Slot returns the number of the slot, from 1, if k is a slot of a semaphore, and otherwise 0.
func (k *Lock) Slot() int {
	_, slot := scripts.CutSlot(k.Hold.Lease().Name)
	return slot.Number
}

// Extend implements Extend of package redlock.
func (k *Lock) Extend(ctx context.Context) error {
	if !k.c.enter() {
		return lease.ErrClosed
	}
	defer k.c.leave()
	return failed(redlockinfo.OpExtend, k.Name(), k.Hold.Extend(ctx))
}

// Unlock implements Unlock of package redlock.
func (k *Lock) Unlock(ctx context.Context) error {
	k.c.calls.Add(1) // unlike enter, also after Close has begun; Close waits for this call
	defer k.c.leave()
	return failed(redlockinfo.OpUnlock, k.Name(), k.Hold.Unlock(ctx))
}

// drop unlocks a lock that is not returned to the caller. It ignores the minimum hold, and hardly waits for the
// masters.
func (k *Lock) drop() {
	k.Hold.Forgo()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = k.Unlock(ended)
}

// Finish releases k after a function has run under it, by unlock. It returns nil, or the reason if k was lost or closed
// earlier. If the function has unlocked or exported k, Finish does nothing. A release that no quorum confirmed in time
// is not an error: Finish logs it, and the pool delivers it in the background.
func (k *Lock) Finish(ctx context.Context, unlock func(context.Context) error) error {
	if err := k.Err(); errors.Is(err, lease.ErrReleased) || errors.Is(err, lease.ErrExported) {
		return nil
	}
	err := unlock(ctx)
	var e *Error
	switch cause := k.Err(); {
	case !errors.Is(cause, lease.ErrReleased):
		return lockError(redlockinfo.OpDo, k.Name(), cause)
	case errors.As(err, &e) && errors.Is(e.Failure.Decision, lease.ErrLost): // the masters had lost the lock
		lost := *e
		lost.Op = redlockinfo.OpDo
		return &lost
	case err != nil:
		k.c.journal.unconfirmed(k, err)
	}
	return nil
}

// SetValue implements SetValue of package redlock.
func (k *Lock) SetValue(ctx context.Context, value string) error {
	if k.keys.Role() != scripts.Plain {
		return Invalid("%s of %.80q: locks of an RWLock have no value", redlockinfo.OpSetValue, k.Name())
	}
	if _, err := scripts.NewValue(0, value); err != nil {
		return Invalid("%s of %.80q: %w", redlockinfo.OpSetValue, k.Name(), err)
	}
	return failed(redlockinfo.OpSetValue, k.Name(), k.Hold.SetValue(ctx, value))
}
