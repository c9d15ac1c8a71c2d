package redlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// A Lock is one acquisition of a name. It is released once and never locked again. A held lock is extended in the
// background. When the lock ends, by Unlock or otherwise, its Done channel is closed and its contexts end. All methods
// are safe for concurrent use.
type Lock struct{ held *client.Lock }

var errNoLock = client.Invalid("the lock is nil: the call that should have returned it has failed, see its error; " +
	"or Locks.Of was given another name than those that were locked")

// isNil reports whether no call has returned k.
func (k *Lock) isNil() bool { return k == nil || k.held == nil }

// lock returns the lock that k makes public. It panics if there is none.
func (k *Lock) lock() *client.Lock {
	if k.isNil() {
		panic(errNoLock)
	}
	return k.held
}

// check returns an error if the Lock or the context of a call is nil.
func (k *Lock) check(ctx context.Context, op redlockinfo.Op) error {
	if k.isNil() {
		return errNoLock
	}
	return client.CheckContext(ctx, op, k.Name())
}

// String returns the name and the token, for logs.
func (k *Lock) String() string {
	if k.isNil() {
		return errNoLock.Error()
	}
	return fmt.Sprintf("lock %q, token %d", k.Name(), k.Token())
}

// Name returns the name of the lock. For a slot of a [Semaphore], it is the name of the semaphore.
func (k *Lock) Name() string { return k.lock().Name() }

// Slot returns the number of the slot, from 1, if k is a lock of a [Semaphore]. For other locks it returns 0.
func (k *Lock) Slot() int { return k.lock().Slot() }

// Token returns the fencing token. It is larger than that of every earlier holder of the name, and re-entries have the
// same token. Send it with each write to the resource that the lock protects, and let the resource refuse a token that
// is smaller than the largest it has seen. Tokens are positive, below 2^53, and roughly the masters' time in
// microseconds.
func (k *Lock) Token() int64 { return k.lock().Token() }

// Remaining returns the remaining validity. It is zero or negative if the lock has ended.
func (k *Lock) Remaining() time.Duration { return k.lock().Remaining() }

// Done returns a channel that is closed when the lock ends: because it was released, lost or exported, or because its
// Locker was closed. [Lock.Err] returns the reason. After the machine was suspended, the channel may close a tenth of a
// second late; Err is never late.
func (k *Lock) Done() <-chan struct{} { return k.lock().Done() }

// Err returns nil while the lock is held, and afterwards the reason why it ended: ErrReleased, ErrLost, ErrMaxHold,
// ErrExported or ErrClosed. The error names the lock. Each call compares the validity with the clocks.
func (k *Lock) Err() error { return k.lock().Cause() }

// Extend extends the lock by its TTL from now, without waiting for the next background extension. If Extend returns
// nil, the lock has validity left. If it returns ErrNoQuorum, nothing has changed: the validity ends at the same time
// as before, and the background extension continues. If it returns the error of ctx, the masters may still confirm the
// extension, which then prolongs the validity. If the lock has ended, Extend returns the reason.
func (k *Lock) Extend(ctx context.Context) error {
	if err := k.check(ctx, redlockinfo.OpExtend); err != nil {
		return err
	}
	return traced(ctx, k.held.Client(), redlockinfo.OpExtend, k.Name(), func(t *tracedCall) error {
		t.set(k.Token(), 0)
		return public(k.held.Extend(ctx))
	})
}

// Unlock releases the lock. The contexts of the lock end before anything is sent. Unlock sends the release to all
// masters that may have the lock, regardless of the state of ctx, and waits until a quorum confirms it, ctx ends, or
// the remaining validity has expired. With [WithAsyncUnlock] it does not wait. A lock that was re-entered must be
// unlocked once for each Lock; the last Unlock releases it. If other goroutines of this Locker wait for the name,
// Unlock may hand the lock to the first of them instead, without sending anything or waiting.
//
// The second Unlock of a lock returns ErrReleased. If the lock was lost earlier, the first Unlock returns ErrLost, and
// still releases the keys that are left on the masters; if it has reached its [WithMaxHold], ErrMaxHold; if it was
// exported, ErrExported; and if Close has released it, ErrClosed. Unlock returns ErrNoQuorum or the error of ctx if no
// quorum confirmed the release: unreachable masters get the release later, and their keys expire with the TTL at the
// latest. In each case the lock is no longer held.
//
// Unlock, Extend, SetValue, Export and Downgrade of a nil Lock, which a failed call returns, return [ErrInvalid]; the
// other methods, except String, panic.
func (k *Lock) Unlock(ctx context.Context) error {
	if err := k.check(ctx, redlockinfo.OpUnlock); err != nil {
		if !k.isNil() { // release it, since a caller may ignore the error
			ended, cancel := context.WithCancel(context.Background())
			cancel()
			_ = k.Unlock(ended)
		}
		return err
	}
	return traced(ctx, k.held.Client(), redlockinfo.OpUnlock, k.Name(), func(t *tracedCall) error {
		err := public(k.held.Unlock(ctx))
		if t.set(k.Token(), 0); !errors.Is(err, ErrReleased) {
			t.set(k.Token(), k.held.Lasted())
		}
		return err
	})
}

// Context returns a copy of parent that ends when the lock ends; if the lock was lost, the cause is [ErrLost] (see
// [context.Cause]). The returned context owns the name, as do contexts derived from it: with such a context, calls that
// lock the name re-enter the lock if they have [WithReentry], and otherwise fail with [ErrReentry]. Code that gets this
// context may act as the holder; no other code can.
//
// Each call of the context's Err compares the validity with the clocks, so Err is exact even after the machine was
// suspended. After a suspension, the Done channel, and contexts derived from this one, may be up to a tenth of a second
// late.
func (k *Lock) Context(parent context.Context) context.Context {
	if parent == nil {
		panic(fmt.Sprintf("redlock: context of lock %.80q: the parent is nil", k.Name()))
	}
	return k.lock().Context(parent)
}

// FromContext returns the lock that owns ctx: the innermost one or, if a name is given, the innermost one of that name.
// It is the Lock that the acquiring call returned, or passed to the function of a Do or Lead, and may have ended. It is
// for code that gets only a context; code that gets the lock needs no FromContext.
//
// FromContext returns nil and false if no such lock owns ctx, or if no name is given and the innermost context is that
// of a [Locks] of several names. It panics if several names are given. It does not block.
func FromContext(ctx context.Context, name ...string) (*Lock, bool) {
	switch {
	case len(name) > 1:
		panic(fmt.Sprintf("redlock: FromContext takes at most one name, not %d", len(name)))
	case ctx == nil:
		return nil, false
	}
	k, ok := client.LockIn(ctx, name...).(*Lock)
	return k, ok
}

// ReleaseRequested returns a channel that is closed when another client requests the release of the lock, by
// Admin.RequestRelease of package admin or `redlock release --ask`. Long work that another client can continue should
// stop at a good point, and return or unlock. The request itself does not end the lock.
//
// For a lock that has ended, ReleaseRequested returns nil, a channel that blocks forever. It does not block. The
// message of the request may be lost, so work must not depend on it.
func (k *Lock) ReleaseRequested() <-chan struct{} { return k.lock().Requested() }

// SetValue sets the value of the lock. [Locker.Inspect], [Locker.Watch] and `redlock who` show the value, for example
// the address and the version of a leader. A value is UTF-8 of at most 1 KiB, and empty until it is set.
//
// SetValue writes the value immediately, and returns nil once a quorum of masters has it. From then on no inspection
// shows an earlier value, unless masters are restarted with older data, or the inspecting client still uses former
// masters. SetValue does not extend the lock. If it returns [ErrNoQuorum] or the error of ctx, some masters may have
// the value; the next extensions write it to the others. If the lock has ended, SetValue returns the reason. The value
// ends with the lock, or when another process imports the lock. A lock whose value was set is released at its last
// Unlock: it is neither handed off nor kept by [WithLinger].
//
// SetValue returns [ErrInvalid] and sends nothing if the value is invalid, or if the lock is one of an [RWLock], which
// has no value.
func (k *Lock) SetValue(ctx context.Context, value string) error {
	if err := k.check(ctx, redlockinfo.OpSetValue); err != nil {
		return err
	}
	return traced(ctx, k.held.Client(), redlockinfo.OpSetValue, k.Name(), func(t *tracedCall) error {
		t.set(k.Token(), 0)
		return public(k.held.SetValue(ctx, value))
	})
}

// Export ends this lock locally and returns a handle, with which another process, or this one, can take the lock over
// by [Locker.Import]. All contexts of the lock end first, with the cause [ErrExported]. The lock is no longer extended
// or released by Close, and Unlock returns ErrExported. Export sends nothing: the masters keep the lock until the
// remaining validity has expired; later imports of the handle fail. Export of a lock that was re-entered returns an
// error, and the lock stays held.
//
// Any client with the handle can take over the lock. The handle contains no credentials.
func (k *Lock) Export() (string, error) {
	if k.isNil() {
		return "", errNoLock
	}
	handle, err := k.held.Export()
	return handle, public(err)
}
