package client

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/lease"
	"github.com/redlock-go/redlock/internal/round"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/sharding"
	"github.com/redlock-go/redlock/internal/transport/fault"
	"github.com/redlock-go/redlock/internal/waitqueue"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// A Request is a call for the lock of one name.
type Request struct {
	Op       redlockinfo.Op
	Name     string // valid: see CheckName
	Wait     bool   // whether the call waits for another holder
	Settings *Settings
	Stats    *Stats // records the rounds of the call, unless nil

	role    scripts.Role
	once    bool          // whether a request that does not wait makes only one attempt
	endless bool          // whether nothing ends the wait but the lock; Acquire sets it if the context never ends
	called  clock.Instant // when the call began; zero: now
}

// Stats describes the rounds of a call.
type Stats = lease.AcquireStats

// A queue gets leases for calls: a [waitqueue.Queue] those of plain locks, and [waitqueue.Shares] those of readers and
// writers.
type queue interface {
	Lock(ctx context.Context, call *waitqueue.Call) error
	Try(ctx context.Context, a *lease.Attempt, h *lease.Hold, limit time.Duration) error
	Start(l *lease.Lease, h *lease.Hold, terms *lease.Terms) error
}

// queueOf returns the queue of the locks of a role.
func (c *Client) queueOf(role scripts.Role) queue {
	if role == scripts.Plain {
		return c.queue
	}
	return waitqueue.Shares{Queue: c.queue}
}

// Acquire acquires the lock of a request: see Lock and TryLock of package redlock.
func (c *Client) Acquire(ctx context.Context, r Request) (k *Lock, err error) {
	r.called = cmp.Or(r.called, c.cfg.Clock.Now()) // a caller that is paused later keeps its place in the queues
	if !c.enter() {
		return nil, lease.ErrClosed
	}
	defer c.leave()
	own, err := c.owned(ctx, &r)
	if err != nil {
		return nil, err
	}
	r.endless = r.endless || r.Settings.endless(ctx)
	err = c.limited(ctx, r.Settings.WaitLimit, r.Settings.QuorumWait, func(ctx context.Context) error {
		for {
			if k, err = c.grant(ctx, &r, own); err == nil {
				return nil
			}
			if err = c.refusal(ctx, &r, err); own != nil || !r.queues() || !c.again(ctx, err) {
				return err
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return k, nil
}

// CheckName returns an error if this client cannot lock name.
func (c *Client) CheckName(name string) error {
	if err := scripts.CheckName(name); err != nil {
		return Invalid("%w", err)
	}
	if s := c.cfg.Shard; s.Of > 0 && sharding.Pick(name, s.Of) != s.Number {
		return Invalid("%.80q belongs to shard %d of %d, but this Locker has only shard %d",
			name, sharding.Pick(name, s.Of), s.Of, s.Number)
	}
	return nil
}

// queues reports whether the request waits in the queues of this client and of the masters.
func (r *Request) queues() bool { return r.Wait && !r.Settings.bounded() }

// A lockAndCall is a Lock and the waiting call for it, in one allocation.
type lockAndCall struct {
	Lock
	waitqueue.Call
}

// grant gets a lock for the request, or re-enters own, the lock that the context owns.
func (c *Client) grant(ctx context.Context, r *Request, own *lease.Hold) (*Lock, error) {
	both, s, err := &lockAndCall{}, r.Settings, error(nil)
	k := &both.Lock
	k.init(c, r.Name, r.role)
	switch {
	case own != nil:
		err = c.repeat(ctx, r, func() error {
			return own.Reenter(ctx, &k.Hold, &s.Terms, c.patience(r.Wait))
		})
	case r.queues():
		both.Call = waitqueue.Call{
			Op: r.Op, Name: r.Name, Keys: &k.keys, Terms: &s.Terms, Hold: &k.Hold, Priority: s.Priority,
			Fair: s.Fair, Endless: r.endless, Called: r.called, Poll: s.Poll, Stats: r.Stats,
		}
		err = c.queueOf(r.role).Lock(ctx, &both.Call)
	default:
		err = c.repeat(ctx, r, func() error { return c.try(ctx, r, k) })
	}
	if err != nil {
		return nil, err
	}
	return k, c.stillGood(r.Op, k, s)
}

// owned returns the lock of the name that ctx owns, for a re-entry, or nil if ctx owns none. It fails if ctx has ended,
// or if a call with ctx must not lock the name. It sends nothing.
func (c *Client) owned(ctx context.Context, r *Request) (*lease.Hold, error) {
	own := lease.InnermostOf(ctx, c.leases, r.Name)
	if own != nil {
		if ended := own.Err(); ended != nil && (ctx.Err() == nil || errors.Is(context.Cause(ctx), ended)) {
			return nil, lockError(r.Op, r.Name, fromEnded(ended, ctx))
		}
	}
	switch {
	case ctx.Err() != nil:
		return nil, failed(r.Op, r.Name, &round.Failure{Cause: fault.ContextError(ctx)})
	case r.Wait && lease.OutOfOrder(ctx, c.leases, r.Name, false):
		return nil, lockError(r.Op, r.Name, ErrOrder)
	case own == nil:
		return nil, nil
	}
	switch has := own.Lease().Role(); {
	case (has == scripts.Plain) != (r.role == scripts.Plain):
		return nil, lockError(r.Op, r.Name, round.ErrKind)
	case has == scripts.Reader && r.role == scripts.Writer:
		return nil, lockError(r.Op, r.Name, ErrUpgrade)
	//mutant:reentry-on-request = false
	case !r.Settings.Reentry:
		return nil, lockError(r.Op, r.Name, ErrReentry)
	}
	return own, nil
}

// fromEnded returns the error of a call whose context is that of a lock of the requested name, which has ended because
// of reason. The error also matches the error of ctx if ctx has ended.
func fromEnded(reason error, ctx context.Context) error {
	text := "redlock: the context is that of a lock of this name, which has ended (" + Plain(reason) +
		"): to lock the name again, pass a context that is not derived from the context of that lock"
	if ended := ctx.Err(); ended != nil {
		return fault.New(text, reason, ended)
	}
	return fault.New(text, reason)
}

// again reports whether a waiting call tries again after err: it does if it had won the lock, but the lock ended before
// the call returned. again pauses before it returns true.
func (c *Client) again(ctx context.Context, err error) bool {
	var e *Error
	if !errors.As(err, &e) || e.Failure.Cause != nil || errors.Is(err, lease.ErrMaxHold) ||
		!errors.Is(err, lease.ErrLost) && !errors.Is(err, round.ErrTooSlow) {
		return false
	}
	_ = c.Rest(ctx, shortestPause) // ignore the error: the next try fails with it
	return true
}

// refusal returns the error of a call that did not get the lock. If this client itself holds the name, the error
// describes that lock. It also says if the context owns the lock, which another Locker has acquired.
func (c *Client) refusal(ctx context.Context, r *Request, err error) error {
	err = failed(r.Op, r.Name, err)
	var e *Error
	held := errors.As(err, &e) && errors.Is(e.Failure.Decision, round.ErrHeld)
	if !held {
		return err
	}
	if l := c.queue.Holder(r.Name); l != nil { // then the masters may not have been asked
		i := l.Info()
		e.here, e.Left, e.Failure.Holder, e.Failure.Token = true, max(0, i.Left), l.ID, i.Token
	}
	e.here = e.here || c.leases.Own(e.Failure.Holder) != nil
	_, e.Holder = scripts.LeaseLabel(e.Failure.Holder)
	own := lease.InnermostOf(ctx, nil, r.Name)
	e.foreign = own != nil && own.Lease().ID == e.Failure.Holder && !e.here
	return err
}

// stillGood returns nil if k has the required validity now, since the call may have been paused after the grant.
// Otherwise it releases k.
func (c *Client) stillGood(op redlockinfo.Op, k *Lock, s *Settings) error {
	//mutant:recheck = true
	if k.Hold.HasLeft(s.Least) {
		return nil
	}
	err := k.tooShort(op)
	k.drop()
	return err
}

// tooShort returns the error of a call that got k, which has too little validity, or has ended. It is never ErrLost,
// because the caller has not had the lock.
func (k *Lock) tooShort(op redlockinfo.Op) error {
	err := k.Err()
	if !errors.Is(err, lease.ErrClosed) && !errors.Is(err, lease.ErrMaxHold) {
		err = round.ErrTooSlow
	}
	return failed(op, k.Name(), err)
}
