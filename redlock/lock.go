package redlock

import (
	"context"
	"errors"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
)

// releaseGrace is how long an Unlock whose context has ended still waits for the word of a quorum. The release is sent
// in any case.
const releaseGrace = 10 * time.Millisecond

// A Lock is one acquisition of a name. It is released once and not locked again. While it is held it is extended in the
// background; when it ends otherwise than by Unlock, its Done closes and its contexts end. All methods are safe for
// concurrent use.
type Lock struct {
	h *hold

	// All below is guarded by h.mu.
	ended    error // nil while held: ErrReleased, ErrLost, ...
	unlocked bool  // Unlock was called
	done     chan struct{}
	contexts []boundContext
}

// A boundContext is a context that ends with its Lock.
type boundContext struct {
	ctx    context.Context // kept to see whether it has ended by itself
	cancel context.CancelCauseFunc
}

// closedChan is Done of Locks that had ended before anybody asked.
var closedChan = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// Name is the name that was locked.
func (k *Lock) Name() string { return k.h.name }

// Token is the fencing token: larger than that of every earlier hold of the name, the same for re-entries. Send it with
// each write to the resource that the lock protects, and let the resource refuse a smaller one than it has seen. It is
// positive, below 2^53, and roughly the masters' time in microseconds.
func (k *Lock) Token() int64 {
	k.h.mu.Lock()
	defer k.h.mu.Unlock()
	return k.h.token
}

// Until is when the lock ends unless it is extended: no later than the masters give it away. For a lock that has ended
// it is in the past. The wall clock reading is for people; use [time.Until] on it, or [Lock.Remaining].
func (k *Lock) Until() time.Time { return time.Now().Add(k.Remaining()) }

// Remaining is the validity left; not positive for a lock that has ended.
func (k *Lock) Remaining() time.Duration {
	k.h.mu.Lock()
	defer k.h.mu.Unlock()
	now := k.h.l.now()
	left := k.h.lease.left(now)
	if !k.h.maxEnd.IsZero() {
		left = min(left, k.h.maxEnd.Sub(now))
	}
	if k.ended != nil {
		return min(0, left)
	}
	return left
}

// Done is closed when the lock ends: it was released, lost, handed on, or its Locker closed. [Lock.Err] says which.
func (k *Lock) Done() <-chan struct{} {
	k.h.mu.Lock()
	defer k.h.mu.Unlock()
	if k.ended != nil {
		return closedChan
	}
	if k.done == nil {
		k.done = make(chan struct{})
	}
	return k.done
}

// Err is nil while the lock is held, and afterwards why it ended: ErrReleased, ErrLost, ErrMaxHold, ErrExported or
// ErrClosed.
func (k *Lock) Err() error {
	k.h.mu.Lock()
	defer k.h.mu.Unlock()
	return k.ended
}

// HeldOn tells on how many of the n masters the lock is known to be: at least a quorum, and n when all is well. A
// master that comes back is given the lock again by the next extension.
func (k *Lock) HeldOn() (on, n int) { return k.h.on(), k.h.l.set.Load().n() }

// endLocked makes k ended. h.mu is held; the contexts are cancelled by cancelAll once it is not.
func (k *Lock) endLocked(cause error) {
	k.ended = cause
	if k.done != nil {
		close(k.done)
	}
}

// cancelAll ends the contexts made from k. k is ended, so nobody adds to them.
func (k *Lock) cancelAll(cause error) {
	k.h.mu.Lock()
	contexts := k.contexts
	k.contexts = nil
	k.h.mu.Unlock()
	for _, c := range contexts {
		c.cancel(cause)
	}
}

// Extend prolongs the lock by its TTL from now, without waiting for the schedule. On failure nothing has changed: the
// lock goes on to the end it had, and the schedule goes on trying. Errors: ErrNoQuorum, ErrLost where a majority no
// longer has it, that of ctx, or why the lock has ended before.
func (k *Lock) Extend(ctx context.Context) error {
	h := k.h
	if !h.l.enter() {
		return ErrClosed
	}
	defer h.l.leave()
	h.mu.Lock()
	if k.ended != nil {
		defer h.mu.Unlock()
		return &LockError{Op: "extend", Name: h.name, Decision: k.ended}
	}
	e := h.extendLocked("extend", h.ttl, false)
	h.mu.Unlock()
	e.cast()
	err := e.wait(ctx)
	if err == nil || !e.again(ctx) {
		return err
	}
	h.mu.Lock()
	if k.ended != nil {
		defer h.mu.Unlock()
		return &LockError{Op: "extend", Name: h.name, Decision: k.ended}
	}
	e = h.extendLocked("extend", h.ttl, false)
	h.mu.Unlock()
	e.cast()
	return e.wait(ctx)
}

// again reports whether the round has given the hold to masters that have not heard of it: then another may be confirmed.
func (e *extending) again(ctx context.Context) bool {
	if !e.tally.rule.joint() || !e.complete(ctx, e.of.slowest) {
		return false
	}
	e.half() // the last vote may not be booked so far
	e.mending.Lock()
	defer e.mending.Unlock()
	return e.mended != 0
}

// wait waits for the decision and returns nil where a majority confirmed the hold and it is still live.
func (e *extending) wait(ctx context.Context) error {
	h := e.h
	select {
	case <-e.done:
	case <-ctx.Done():
		return e.error(h.name, nil, contextError(ctx))
	case <-h.l.closing:
		return ErrClosed
	}
	h.mu.Lock()
	cause := h.cause
	h.mu.Unlock()
	switch {
	case cause != nil:
		return e.error(h.name, cause, nil)
	case e.verdict() != won:
		return e.error(h.name, ErrNoQuorum, nil)
	}
	return nil
}

// reenter makes one more Lock of the hold of k. An inner failure leaves the hold as it was.
func (k *Lock) reenter(ctx context.Context, cfg lockConfig) (*Lock, error) {
	h := k.h
	h.mu.Lock()
	if k.ended != nil {
		defer h.mu.Unlock()
		return nil, &LockError{Op: "re-enter", Name: h.name, Decision: k.ended}
	}
	h.coming++
	e := h.extendLocked("re-enter", max(h.ttl, cfg.ttl), false)
	h.mu.Unlock()
	e.cast()
	err := e.wait(ctx)
	h.mu.Lock()
	h.coming--
	if h.cause != nil { // it ended meanwhile, with its last Lock or otherwise; the re-entry was none
		cause := h.cause
		h.mu.Unlock()
		if err == nil {
			err = e.error(h.name, cause, nil)
		}
		return nil, err
	}
	if err == nil {
		if left := h.lease.left(h.l.now()); left >= cfg.least() {
			inner := &Lock{h: h}
			h.depth++
			h.handles = append(h.handles, inner)
			h.ttl = max(h.ttl, cfg.ttl)
			h.mu.Unlock()
			return inner, nil
		}
		err = e.error(h.name, ErrTooSlow, nil)
	}
	undo := h.extendLocked("unlock", 0, false)
	h.mu.Unlock()
	undo.cast()
	return nil, err
}

// Unlock releases the lock. It sends the release to all masters whatever the state of ctx, and waits for the word of a
// quorum, until ctx ends, and no longer than the validity that was left. The contexts of the lock end before anything
// is sent. Of several Locks of one hold each is unlocked once, and the last ends the hold. Where other goroutines of
// this Locker wait for the name, the hold may go to the first of them instead; then nothing is sent, and nothing waited
// for. See [WithHandOn].
//
// Errors: ErrReleased for the second call; ErrLost, once, where the lock had ended before, its remains being released
// all the same; ErrNoQuorum, or the error of ctx, where the release could not be confirmed: masters that were not
// reached are told later, and their keys end with their TTL at the latest. In each case the lock is not held any more.
func (k *Lock) Unlock(ctx context.Context) error {
	h := k.h
	h.l.calls.Add(1) // Close waits for it; it is not refused, since it is what Close is for
	defer h.l.leave()
	h.mu.Lock()
	if k.unlocked {
		defer h.mu.Unlock()
		return &LockError{Op: "unlock", Name: h.name, Decision: ErrReleased}
	}
	k.unlocked = true
	h.depth--
	last := h.depth == 0
	if k.ended != nil {
		err := k.ended
		h.mu.Unlock()
		if last && errors.Is(err, ErrLost) {
			h.release("unlock", h.sent)
		}
		return &LockError{Op: "unlock", Name: h.name, Decision: err}
	}
	left := h.lease.left(h.l.now())
	if !last {
		e := k.leaveLocked()
		h.mu.Unlock()
		k.cancelAll(ErrReleased)
		e.cast()
		return e.round.released(ctx, h, left)
	}
	next, turn := h.handOnLocked()
	handles := h.endLocked(ErrReleased)
	h.mu.Unlock()
	h.ended(handles, ErrReleased)
	if next != nil {
		h.l.enliven(next)
		defer func() { turn.turn <- next }() // also where a trace panics: who waits for its turn has no other way on
		h.l.traceHold(onReleased, h, nil)
		h.l.traceHold(onAcquired, next, nil)
		return nil
	}
	r := h.release("unlock", h.sent)
	h.l.lines.ended(h)
	err := r.released(ctx, h, left)
	h.l.traceHold(onReleased, h, err)
	return err
}

// leaveLocked takes k out of a hold that goes on, and has the masters told the depth. h.mu is held. It returns the round
// to be cast.
func (k *Lock) leaveLocked() *extending {
	h := k.h
	for i := range h.handles {
		if h.handles[i] == k {
			h.handles = append(h.handles[:i:i], h.handles[i+1:]...)
			break
		}
	}
	k.endLocked(ErrReleased)
	return h.extendLocked("unlock", 0, false)
}

// released waits for a quorum's word on a release. left bounds it.
func (r *round) released(ctx context.Context, h *hold, left time.Duration) error {
	cause := r.await(ctx, left)
	switch r.verdict() {
	case won:
		return nil
	case pending:
		if errors.Is(cause, errUnconfirmed) {
			return r.error(h.name, ErrNoQuorum, cause)
		}
		return r.error(h.name, nil, cause)
	}
	r.mu.Lock()
	gone := !r.tally.rule.has(r.tally.rule.all() &^ r.tally.set(scripts.Missing))
	r.mu.Unlock()
	if gone {
		return r.error(h.name, ErrLost, nil)
	}
	return r.error(h.name, ErrNoQuorum, nil)
}

// await waits for the decision and returns why it gave up before. A context that has ended is granted a moment, so that
// a release with a cancelled context is still confirmed as a rule.
func (r *round) await(ctx context.Context, left time.Duration) error {
	select {
	case <-r.done:
		return nil
	default:
	}
	var end <-chan time.Time
	if left < r.of.slowest { // else the pool's own timeout, which answers for every master, comes first
		timer := time.NewTimer(max(left, releaseGrace))
		defer timer.Stop()
		end = timer.C
	}
	select {
	case <-r.done:
		return nil
	case <-end:
		return errUnconfirmed
	case <-ctx.Done():
	}
	timer := time.NewTimer(releaseGrace)
	defer timer.Stop()
	select {
	case <-r.done:
		return nil
	case <-timer.C:
		return contextError(ctx)
	}
}

var errUnconfirmed = errors.New("the masters did not confirm the release while the lock was valid")
