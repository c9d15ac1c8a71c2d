package redlock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/go-multierror"

	"github.com/redlock-go/redlock/pool"
)

// What a call decided. Compare with [errors.Is]: calls return a [*LockError] that wraps one of these. Their identities
// are part of the API.
var (
	// ErrHeld: enough masters answered, and another hold has the name on so many of them that no quorum was left.
	ErrHeld = errors.New("redlock: held by another")
	// ErrNoQuorum: so many masters failed, were unreachable or may not vote yet that no quorum was possible, whoever
	// holds the name.
	ErrNoQuorum = errors.New("redlock: no quorum of masters")
	// ErrTooSlow: a quorum granted the lock, but so late that less than the minimum validity was left.
	ErrTooSlow = errors.New("redlock: the quorum came too late")
	// ErrLost: the lock ended before it was released: its validity ran out, or a majority no longer has it.
	ErrLost = errors.New("redlock: the lock was lost")
	// ErrMaxHold: the lock ended because it was held as long as [WithMaxHold] allows. It is a way of losing the lock:
	// errors.Is(err, ErrLost) is true as well.
	ErrMaxHold = fmt.Errorf("%w: it was held as long as its limit allows", ErrLost)
	// ErrReleased: the lock was released before.
	ErrReleased = errors.New("redlock: the lock is released")
	// ErrExported: the lock was handed to another process by [Lock.Export].
	ErrExported = errors.New("redlock: the lock was handed on")
	// ErrReentry: the context already owns the name, and re-entry is turned off.
	ErrReentry = errors.New("redlock: already held by this context, and re-entry is off")
	// ErrClosed: the Locker is closed.
	ErrClosed = errors.New("redlock: the locker is closed")
	// ErrInvalidOption: an option, a name or a handle is out of its range. Nothing was sent.
	ErrInvalidOption = errors.New("redlock: invalid option")
	// ErrTooFar: a ballot would need 2^53 or more, beyond which the masters' numbers are not exact.
	ErrTooFar = errors.New("redlock: the fencing tokens of this name are used up")
	// ErrQuarantine: a master may not vote yet because it may have forgotten locks. See the package documentation.
	ErrQuarantine = errors.New("redlock: the master is in quarantine")
	// ErrOldMasters: the fleet goes by a later state of its set of masters than this program. See [Locker.ChangeMasters].
	ErrOldMasters = errors.New("redlock: the masters have changed")
	// ErrIncomplete: a change of the masters is not so far that the new ones may act alone.
	ErrIncomplete = errors.New("redlock: the change of the masters is not complete")
	// ErrGuardTime: a master belongs to a fleet whose guard time is shorter than the TTL asked for.
	ErrGuardTime = errors.New("redlock: the TTL is above the guard time of the fleet")
)

// A MasterError is why one master gave no vote: its address, what was tried, the cause, and whether the call may have
// had an effect there all the same. It never contains credentials.
type MasterError = pool.Error

// A LockError is how a call failed. Use [errors.Is] and [errors.As] on it: it wraps the decision, the error of the
// context where one ended the call, and a [*MasterError] for each master that failed.
type LockError struct {
	// Op is the call: "lock", "re-enter", "extend", "unlock", "import" or "inspect".
	Op string
	// Name is the name of the lock.
	Name string
	// Decision is one of the sentinels, or nil where the context ended the call before the masters had said enough.
	Decision error
	// Cause is the error of the context that ended the call, nil where none did.
	Cause error
	// Granted of Masters said yes in the last round; Quorum were needed.
	Granted, Quorum, N int
	// Missing of them answered that they do not have the hold.
	Missing int
	// Left is when, as far as the refusals tell, a quorum may be free; 0 where they do not tell.
	Left time.Duration
	// Masters lists those that failed in the last round, each a [*MasterError]; nil where none did.
	Masters *multierror.Error
}

// withCause is err, a *[LockError] as a rule, with the reason why the call ended before another try.
func withCause(err, cause error) error {
	var e *LockError
	if !errors.As(err, &e) {
		return cause
	}
	c := *e
	c.Cause = cause
	return &c
}

// Error says what was tried, what came of it, and on which masters.
func (e *LockError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "redlock: %s %.80q: ", e.Op, e.Name)
	switch {
	case e.Decision != nil && e.Cause != nil:
		fmt.Fprintf(&b, "%s (%s)", plain(e.Cause), plain(e.Decision))
	case e.Decision != nil:
		b.WriteString(plain(e.Decision))
	case e.Cause != nil:
		b.WriteString(plain(e.Cause))
	}
	if e.N > 0 {
		fmt.Fprintf(&b, "; %d of %d masters said yes, %d are needed", e.Granted, e.N, e.Quorum)
		if e.Missing > 0 {
			fmt.Fprintf(&b, ", and %d did not have the hold", e.Missing)
		}
	}
	if e.Left > 0 {
		fmt.Fprintf(&b, "; a quorum may be free in %v", e.Left.Round(time.Millisecond))
	}
	if e.Masters != nil {
		for _, err := range e.Masters.Errors {
			b.WriteString("; ")
			b.WriteString(strings.ReplaceAll(strings.TrimPrefix(err.Error(), "pool: "), ": redlock: ", ": "))
		}
	}
	return b.String()
}

// plain is the text of a sentinel without the package's name, for use inside a longer sentence.
func plain(err error) string { return strings.TrimPrefix(err.Error(), "redlock: ") }

// Unwrap returns the decision, the context's error and the masters' errors.
func (e *LockError) Unwrap() []error {
	var all []error
	if e.Decision != nil {
		all = append(all, e.Decision)
	}
	if e.Cause != nil {
		all = append(all, e.Cause)
	}
	if e.Masters != nil {
		all = append(all, e.Masters.Errors...)
	}
	return all
}

// contextError is why ctx ended: its error, joined with its cause where that says more.
func contextError(ctx context.Context) error {
	err := ctx.Err()
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", err, cause)
	}
	return err
}

// listErrors collects the errors of single masters, nil where there are none.
func listErrors(errs []error) *multierror.Error {
	if len(errs) == 0 {
		return nil
	}
	return &multierror.Error{Errors: errs}
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrInvalidOption}, args...)...)
}
