package redlock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/go-multierror"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/internal/transport/fault"
	"github.com/redlock-go/redlock/redlock/internal/admission"
	"github.com/redlock-go/redlock/redlock/internal/ballot"
	"github.com/redlock-go/redlock/redlock/internal/lease"
	"github.com/redlock-go/redlock/redlock/internal/round"
)

// The outcomes of a call, for use with [errors.Is]: calls return a [*LockError] that wraps one of these.
var (
	// ErrHeld means that another lease has a majority of the masters, or that a waiter is first in the queues of a
	// majority.
	ErrHeld = round.ErrHeld
	// ErrNoQuorum means that no lease has a majority: too many masters failed, were unreachable or may not vote, or the
	// votes are split between clients that called at the same instant.
	ErrNoQuorum = round.ErrNoQuorum
	// ErrLost means that the lock ended before it was released: its validity has expired, or too many masters have lost
	// it.
	ErrLost = lease.ErrLost
)

// More specific outcomes. A LockError that wraps one of the first four wraps ErrNoQuorum as well.
var (
	// ErrOverloaded means that too many calls of this Locker were under way, and nothing was sent. See [Locker.TryLock].
	ErrOverloaded = round.ErrOverloaded
	// ErrTTLTooLong means that the TTL is above the max TTL that a quorum of the masters has. The call ends immediately.
	ErrTTLTooLong = round.ErrTTLTooLong
	// ErrTokensExhausted means that a token would be 2^53 or more, beyond which the masters' numbers are not exact.
	ErrTokensExhausted = ballot.ErrTokensExhausted
	// ErrMasterList means that admission records name other masters than those of this Locker, another number of shards,
	// or another shard: see [NewSharded]. The Locker acquires nothing with the votes of masters that have such a record.
	// The text shows what the Locker and the record name, and a remedy: see docs/operations.md.
	ErrMasterList = admission.ErrMasterList
	// ErrMaxHold means that the lock was held as long as [WithMaxHold] allows. It wraps ErrLost.
	ErrMaxHold = lease.ErrMaxHold
	// ErrReleased means that the lock was released.
	ErrReleased = lease.ErrReleased
	// ErrExported means that the lock was exported by [Lock.Export].
	ErrExported = lease.ErrExported
	// ErrClosed means that the Locker is closed.
	ErrClosed = lease.ErrClosed
	// ErrInvalid means that the call is wrong, and nothing was sent: an option, a name or a handle is out of range, or
	// waiting could deadlock.
	ErrInvalid = errors.New("redlock: invalid option")
)

// Reasons that are not exported, since callers need not distinguish them. The texts explain them.
var (
	errTooSlow    = round.ErrTooSlow // a quorum granted the lock, but too late to leave enough validity
	errQuarantine = admission.ErrQuarantine
	errOldMasters = admission.ErrOldMasters
	errIncomplete = admission.ErrIncomplete
	errLockKind   = round.ErrKind // the keys of the name hold the other kind of lock, or foreign data
)

// misuse returns an ErrInvalid with its own text.
func misuse(text string) error { return fault.New(text, ErrInvalid) }

// A LockError describes why a call failed. Use [errors.Is] and [errors.As] on it: it wraps the outcome, such as
// [ErrHeld], the error of the context if one ended the call, and an error for each master that failed, which may match
// [pool.ErrDown], [pool.ErrTimeout] or [pool.ErrRefused]; [errors.As] also finds these as one
// [github.com/hashicorp/go-multierror.Error]. The text names the masters.
type LockError struct {
	Op     string        // the call: "lock", "re-enter", "extend", "set value", "unlock", ..., or one about the masters
	Name   string        // of the lock; the key prefix in a call about the masters
	Holder string        // the label of the client whose lease has a majority; "" if no lease has one
	Left   time.Duration // time until that lease expires unless it is extended; 0 if it is not known

	// failure is that of the last round. Its Decision is or wraps one of the sentinels, or is nil if the context ended the
	// call first. Its Cause is the error of the context that ended the call, or nil if none did.
	failure round.Failure
	slots   int  // number of slots of the name, if each is held; 0: the call was not for slots
	here    bool // this Locker itself holds the name, by a lock whose context was not passed to the call
}

// failed returns the error of a call from the failure of its last round.
func failed(op, name string, err error) error {
	if err == nil {
		return nil
	}
	f, ok := round.AsFailure(err)
	var done *LockError
	switch {
	case ok && !errors.Is(f.Decision, ErrClosed) && !errors.Is(f.Cause, ErrClosed):
		// The common case comes first: under load many calls fail.
	case errors.Is(err, ErrClosed):
		return ErrClosed
	case errors.Is(err, ErrInvalid), errors.As(err, &done):
		return err
	case !ok: // no round decided it
		return lockError(op, name, err)
	}
	e := &LockError{Op: op, Name: name, Left: max(0, f.Left), failure: *f}
	_, e.Holder = scripts.LeaseLabel(f.Holder)
	return e
}

// lockError returns the error of a call that no round decided.
func lockError(op, name string, decision error) error {
	return &LockError{Op: op, Name: name, failure: round.Failure{Decision: decision}}
}

// Error returns the attempted call, the outcome, and the masters that failed.
func (e *LockError) Error() string {
	var b strings.Builder
	f := &e.failure
	fmt.Fprintf(&b, "redlock: %s %.80q: ", e.Op, e.Name)
	switch {
	case f.Decision != nil && f.Cause != nil:
		fmt.Fprintf(&b, "%s (%s)", plain(f.Cause), e.decision())
	case f.Decision != nil:
		b.WriteString(e.decision())
	case f.Cause != nil:
		b.WriteString(plain(f.Cause))
	}
	if f.N > 0 {
		did := "agreed"
		if f.Unsent {
			did = "can grant a lock"
		}
		fmt.Fprintf(&b, "; %d of %d masters %s, quorum is %d", f.Granted, f.N, did, f.Quorum)
		if f.Missing > 0 {
			fmt.Fprintf(&b, ", and %d did not have it", f.Missing)
		}
		if f.Open > 0 && f.Cause == nil && errors.Is(f.Decision, ErrNoQuorum) {
			fmt.Fprintf(&b, " (%d replies outstanding)", f.Open)
		}
	}
	if e.Holder != "" {
		fmt.Fprintf(&b, "; held by %q", e.Holder)
		since := heldSince(f.Holder, f.Token)
		//mutant:unknown-time = true
		if !since.IsZero() {
			b.WriteString(since.Format(" since " + time.TimeOnly))
		}
	}
	if e.here {
		b.WriteString(", a lock of this Locker: " + hintOwnHold)
	}
	if e.Left > 0 {
		fmt.Fprintf(&b, "; expires in %v unless extended", e.Left.Round(time.Millisecond))
	}
	for _, text := range joined(f.Masters) {
		b.WriteString("; ")
		b.WriteString(text)
	}
	if errors.Is(f.Decision, ErrNoQuorum) && !errors.Is(f.Decision, round.ErrUndecided) && errors.Is(e, errQuarantine) {
		b.WriteString("; " + mayAdmit)
	}
	return b.String()
}

// mayAdmit is added only if no quorum votes. Otherwise the deployment works, and a client may well hold a lock.
const mayAdmit = "if no client can hold a lock on these masters, redlock admit (Admin.Admit) ends the quarantine"

// decision returns the text of the decision. For a lock of this Locker itself it does not say "another".
func (e *LockError) decision() string {
	switch held := errors.Is(e.failure.Decision, ErrHeld); {
	case e.slots > 1 && held:
		return fmt.Sprintf("each of %d slots is held", e.slots)
	case e.here && held:
		return "held already"
	}
	return plain(e.failure.Decision)
}

// joined returns the texts of the errors of masters. A text that several masters share appears once, with all their
// names.
func joined(errs []error) (texts []string) {
	names := map[string][]string{} // indexed by text
	for _, err := range errs {
		name, said := addressed(err)
		if names[said] == nil {
			texts = append(texts, said)
		}
		names[said] = append(names[said], name)
	}
	for i, said := range texts {
		if of := strings.Join(names[said], ", "); of != "" {
			texts[i] = of + ": " + said
		}
	}
	return texts
}

// addressed returns the address of the master that an error is about, "" if it is about none, and the text of the
// error without that address.
func addressed(err error) (name, said string) {
	said = strings.TrimPrefix(err.Error(), "pool: ")
	var e *transport.Error
	if errors.As(err, &e) && strings.HasPrefix(said, e.Addr+": ") {
		name = e.Addr
		// Some causes repeat the address.
		said = strings.ReplaceAll(said[len(name)+2:], " "+name+": ", " ")
	}
	return name, strings.ReplaceAll(" "+said, " redlock: ", " ")[1:]
}

// plain returns the text of a sentinel without the package name, for use within a longer text.
func plain(err error) string {
	return strings.TrimPrefix(strings.TrimPrefix(err.Error(), "redlock: "), "pool: ")
}

// Unwrap returns the decision, the context's error and the masters' errors.
func (e *LockError) Unwrap() []error {
	f := &e.failure
	all := f.Unwrap()
	for _, more := range []error{errTooSlow, ErrTTLTooLong, ErrTokensExhausted} {
		if errors.Is(f.Decision, more) {
			all = append(all, ErrNoQuorum)
		}
	}
	if len(f.Masters) > 0 {
		all = append(all, &multierror.Error{Errors: f.Masters})
	}
	return all
}

// Outcome returns one word for err, for the labels of metrics and the attributes of spans: "ok" for nil; "held",
// "no_quorum", "lost", "overloaded", "ttl_too_long", "tokens_exhausted", "max_hold", "released", "exported", "closed"
// and "invalid" for the errors of this package with these names; "too_slow" if a quorum granted the lock too late,
// "lock_kind" if the name is used as another kind of lock; "timeout" and "canceled" if a context ended before the
// masters had decided; and "other".
func Outcome(err error) string {
	if err == nil {
		return "ok"
	}
	var e *LockError
	if errors.As(err, &e) && e.failure.Decision != nil {
		err = e.failure.Decision
	}
	for _, o := range outcomes {
		if errors.Is(err, o.err) {
			return o.word
		}
	}
	return "other"
}

// outcomes lists the words for errors. The first match applies, since an error also wraps errors of single masters.
var outcomes = []struct {
	err  error
	word string
}{
	{ErrMaxHold, "max_hold"}, {ErrLost, "lost"}, {ErrReleased, "released"}, {ErrExported, "exported"},
	{ErrClosed, "closed"}, {ErrInvalid, "invalid"},
	{errLockKind, "lock_kind"},
	{ErrHeld, "held"}, {errTooSlow, "too_slow"}, {ErrOverloaded, "overloaded"}, {ErrNoQuorum, "no_quorum"},
	{ErrTTLTooLong, "ttl_too_long"}, {ErrTokensExhausted, "tokens_exhausted"},
	{context.DeadlineExceeded, "timeout"}, {context.Canceled, "canceled"},
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...)
}

// contextError returns why ctx ended: its error, joined with its cause if the two differ.
func contextError(ctx context.Context) error { return fault.ContextError(ctx) }
