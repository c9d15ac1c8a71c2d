package redlock

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/redlock-go/redlock/internal/admission"
	"github.com/redlock-go/redlock/internal/ballot"
	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/internal/lease"
	"github.com/redlock-go/redlock/internal/round"
	"github.com/redlock-go/redlock/internal/transport/fault"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// The outcomes of a call, for use with [errors.Is]: calls return a [*LockError] that wraps one of these.
var (
	// ErrHeld means that another lease has a majority of the masters; for a call that waits, also that another waiter is
	// first in the queues of a majority, or that the votes were split between clients when the wait ended.
	ErrHeld = round.ErrHeld
	// ErrNoQuorum means that no lease has a majority: too many masters failed, were unreachable or may not vote; or, for
	// a call that does not wait, the votes stayed split between clients that called at the same instant, or the masters
	// keep the name for a waiter, which does not take it.
	ErrNoQuorum = round.ErrNoQuorum
	// ErrLost means that the lock ended before it was released: its validity has expired, or too many masters have lost
	// it.
	ErrLost = lease.ErrLost
)

// More specific outcomes. If a call that acquires a lock returns one of the first four, the LockError also wraps
// ErrNoQuorum.
var (
	// ErrOverloaded means that too many attempts of this Locker were under way, and nothing was sent. See
	// [Locker.TryLock].
	ErrOverloaded = round.ErrOverloaded
	// ErrTTLTooLong means that the TTL is above the max TTL recorded by a quorum of the masters. The call does not retry.
	ErrTTLTooLong = round.ErrTTLTooLong
	// ErrTokensExhausted means that the token would be 2^53 or more, which the masters cannot represent exactly.
	ErrTokensExhausted = ballot.ErrTokensExhausted
	// ErrMasterList means that the admission records of masters do not match this Locker: they name other masters, another
	// number of shards, or another shard (see [OpenSharded]). The Locker acquires nothing with the votes of such masters.
	// The text shows what the Locker and the record name, and a remedy: see docs/change.md.
	ErrMasterList = admission.ErrMasterList
	// ErrKind means that the masters know the name as another kind of lock: a name has plain locks ([Locker.Lock]), or
	// readers and writers ([RWLock]), or is a [Semaphore] of one size. A name keeps its kind and size while it is held,
	// and then until its TTL and about 75 seconds have passed. The call does not wait. The text names the kind and the
	// size.
	ErrKind = round.ErrKind
	// ErrReentry means that the context of the call owns the name, and the call has no [WithReentry]: the call would wait
	// for its own lock, or share that lock with the code that holds it. The call does not wait, and sends nothing.
	ErrReentry = client.ErrReentry
	// ErrMaxHold means that the lock was held as long as [WithMaxHold] allows. It wraps ErrLost.
	ErrMaxHold = lease.ErrMaxHold
	// ErrReleased means that the lock was released.
	ErrReleased = lease.ErrReleased
	// ErrExported means that the lock was exported by [Lock.Export].
	ErrExported = lease.ErrExported
	// ErrClosed means that the Locker, or the pool under it, is closed. It is [pool.ErrClosed].
	ErrClosed = fault.ErrClosed
	// ErrInvalid means that the call is wrong: an option, a name or a handle is invalid, the context or the function is
	// nil, or waiting could deadlock. Nothing was sent. It is [pool.ErrInvalid].
	ErrInvalid = fault.ErrInvalid
)

// A LockError describes why a call failed. It wraps the outcome, such as [ErrHeld], the error of the context if a
// context ended the call, and an error for each master that failed, for [errors.Is] and [errors.As]. The errors of
// masters may match [pool.ErrDown], [pool.ErrTimeout] or [pool.ErrRefused]; [errors.As] also finds them as one
// [github.com/hashicorp/go-multierror.Error]. The text names the masters.
type LockError struct {
	Op     redlockinfo.Op // the call that failed, such as redlockinfo.OpTryLock
	Name   string         // name of the lock; for a call about the masters, the key prefix
	Holder string         // the label of the client whose lease has a majority; "" if there is none, or it has no label
	Since  time.Time      // when Holder acquired its lease, by the masters' clocks; zero if unknown
	Left   time.Duration  // time until the lease of Holder expires unless extended; 0 if unknown

	err *client.Error
}

// public returns err, the error of a client, as an error for users.
func public(err error) error {
	e, ok := err.(*client.Error) //nolint:errorlint // an error that wraps a LockError is public already
	if !ok {
		return err
	}
	since := time.Time{}
	if e.Holder != "" {
		since = e.Since()
	}
	return &LockError{Op: e.Op, Name: e.Name, Holder: e.Holder, Since: since, Left: e.Left, err: e}
}

// Error returns the operation, the outcome, and the masters that failed.
func (e *LockError) Error() string { return e.inner().Error() }

// Unwrap returns an error that wraps the outcome, the context's error and the masters' errors.
func (e *LockError) Unwrap() error { return e.inner() }

// inner returns the error of the client. A LockError that a test of a user has made has only its fields.
func (e *LockError) inner() *client.Error {
	if e.err != nil {
		return e.err
	}
	return &client.Error{Op: e.Op, Name: e.Name, Holder: e.Holder, Left: e.Left}
}

// LogValue implements [slog.LogValuer]. The group has the attributes op, lock, outcome ([Outcome]) and reason (the
// text), and holder and left (in seconds) if they are known.
func (e *LockError) LogValue() slog.Value {
	attrs := []slog.Attr{slog.String("op", string(e.Op)), slog.String("lock", e.Name), slog.String("outcome", Outcome(e))}
	if e.Holder != "" {
		attrs = append(attrs, slog.String("holder", e.Holder))
	}
	if e.Left > 0 {
		attrs = append(attrs, slog.Float64("left", math.Round(e.Left.Seconds()*1000)/1000))
	}
	return slog.GroupValue(append(attrs, slog.String("reason", client.Plain(e)))...)
}

// A runError is the error of a call that runs a function under a lock, such as Do.
type runError struct {
	ran  bool  // whether the function was called
	lost error // why the lock ended before the function returned, or why a Lead ended; or nil
	err  error // the error of the function; if the function was not called, of the call
}

// notRun returns err, the error of a call that has not called its function.
func notRun(err error) error {
	if err == nil {
		return nil
	}
	return &runError{err: err}
}

// afterRun returns the error of a call that has called its function. err is the error of the function, and lost is the
// reason if the lock ended earlier. If err is the cause of the context of the function, it says no more than lost. A
// single error without an error of this package is returned as it is.
func afterRun(err, lost error) error {
	if end, ok := err.(lease.EndError); ok && errors.Is(lost, end.Unwrap()) { //nolint:errorlint // a wrapper says more
		err = nil
	}
	switch {
	case lost == nil && !hasOwn(err):
		return err
	case err == nil && !hasOwn(lost):
		return lost
	}
	return &runError{ran: true, lost: lost, err: err}
}

// Error returns the texts of both errors in one line.
func (e *runError) Error() string { return client.Join(e.Unwrap()...).Error() }

// Unwrap returns the errors. That of the call itself is first.
func (e *runError) Unwrap() []error {
	return slices.DeleteFunc([]error{e.lost, e.err}, func(err error) bool { return err == nil })
}

// hasOwn reports whether err wraps an error of this package.
func hasOwn(err error) bool {
	var run *runError
	var lock *LockError
	return errors.As(err, &run) || errors.As(err, &lock) || slices.ContainsFunc(outcomes, func(o outcome) bool {
		return !errors.Is(o.err, context.DeadlineExceeded) && !errors.Is(o.err, context.Canceled) && errors.Is(err, o.err)
	})
}

// ofCall returns err without the errors of the function of a Do.
func ofCall(err error) error {
	var e *runError
	if !errors.As(err, &e) {
		return err
	}
	if e.ran {
		return e.lost
	}
	return e.err
}

// errorsIn calls visit for err and the errors that it wraps, whatever the depth. If visit returns false, errorsIn skips
// what that error wraps.
func errorsIn(err error, visit func(error) bool) {
	if err == nil || !visit(err) {
		return
	}
	switch e := err.(type) { //nolint:errorlint // errorsIn unwraps the errors itself
	case interface{ Unwrap() error }:
		errorsIn(e.Unwrap(), visit)
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			errorsIn(one, visit)
		}
	}
}

// NotRun reports whether err is the error of a [Locker.Do], TryDo, DoAll or [Locker.Lead], or of such a method of a
// [Semaphore] or an [RWLock], that did not call its function. It returns false for other errors, and if the function
// was called and its own error is that of an inner call that did not run: then a part of the work may be done. For a
// Lead, it returns false if the function was called in an earlier term. If err joins the errors of several calls, none
// of them has called its function.
func NotRun(err error) bool {
	ran, not := false, false
	errorsIn(err, func(err error) bool {
		e, is := err.(*runError) //nolint:errorlint // errorsIn unwraps the errors
		if is {
			ran, not = ran || e.ran, not || !e.ran
		}
		return !is
	})
	return not && !ran
}

// RetryAfter returns the time after which another try may succeed, counted from the failure of the call: the time until
// the lease of the holder expires unless extended, if the name is held; the time until enough quarantines of masters
// have ended for a quorum; or a short pause, if the votes were split. If err wraps several such errors, the longest
// time counts. RetryAfter returns false if the time is not known, or if another try does not help: for example, a
// holder's time is not known if the name is held for a waiter, and a closed Locker stays closed.
//
// The holder may unlock earlier, or extend the lease. To wait for the name, use [Locker.Lock]: waiters are woken.
func RetryAfter(err error) (time.Duration, bool) {
	after := time.Duration(0)
	errorsIn(err, func(err error) bool {
		e, is := err.(*LockError) //nolint:errorlint // errorsIn unwraps the errors
		if is {
			after = max(after, e.inner().RetryAfter())
		}
		return !is
	})
	return after, after > 0
}

// Outcome returns a word for err, for the labels of metrics and the attributes of spans: "ok" for nil; "held",
// "no_quorum", "lost", "kind", "reentry", "overloaded", "ttl_too_long", "tokens_exhausted", "max_hold", "released",
// "exported", "closed" and "invalid" for the errors of this package with these names; "too_slow" if a quorum granted
// the lock too late; "timeout" and "canceled" if a context ended before the masters had decided; and "other" for any
// other error. For a [Locker.Do] whose function was called, it is the word for the loss of the lock; if only the
// function failed, it is "timeout" or "canceled" for the error of a context, and otherwise "other".
func Outcome(err error) string {
	if err == nil {
		return "ok"
	}
	var e *LockError
	if err = ofCall(err); errors.As(err, &e) {
		err = cmp.Or(e.inner().Failure.Decision, err)
	}
	for _, o := range outcomes {
		if errors.Is(err, o.err) {
			return o.word
		}
	}
	return "other"
}

// An outcome is the word for an error.
type outcome struct {
	err  error
	word string
}

// outcomes lists the words for errors. The first match applies: an error that wraps the errors of several masters may
// match several entries.
var outcomes = []outcome{
	{ErrMaxHold, "max_hold"}, {ErrLost, "lost"}, {ErrReleased, "released"}, {ErrExported, "exported"},
	{ErrClosed, "closed"}, {ErrTTLTooLong, "ttl_too_long"}, {ErrInvalid, "invalid"},
	{ErrKind, "kind"}, {ErrReentry, "reentry"},
	{ErrHeld, "held"}, {round.ErrTooSlow, "too_slow"}, {ErrOverloaded, "overloaded"}, {ErrNoQuorum, "no_quorum"},
	{ErrTokensExhausted, "tokens_exhausted"},
	{context.DeadlineExceeded, "timeout"}, {context.Canceled, "canceled"},
}
