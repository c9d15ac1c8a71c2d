package redlock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/go-multierror"

	"github.com/redlock-go/redlock/internal/admission"
	"github.com/redlock-go/redlock/internal/ballot"
	"github.com/redlock-go/redlock/internal/lease"
	"github.com/redlock-go/redlock/internal/round"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/internal/transport/fault"
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
	// The text shows what the Locker and the record name, and a remedy: see docs/operations.md.
	ErrMasterList = admission.ErrMasterList
	// ErrKind means that the masters know the name as another kind of lock: a name has plain locks ([Locker.Lock]), or
	// readers and writers ([RWLock]), or is a [Semaphore] of one size. A name keeps its kind and size while it is held,
	// and then until its TTL and about 75 seconds have passed. The call does not wait. The text names the kind and the
	// size.
	ErrKind = round.ErrKind
	// ErrReentry means that the context of the call owns the name, and the call has no [WithReentry]: the call would wait
	// for its own lock, or share that lock with the code that holds it. The call does not wait, and sends nothing.
	ErrReentry = errors.New("redlock: the context of the call holds this name already; to share that lock, use " +
		"WithReentry; to wait for its end, pass a context that is not derived from the context of that lock")
	// ErrMaxHold means that the lock was held as long as [WithMaxHold] allows. It wraps ErrLost.
	ErrMaxHold = lease.ErrMaxHold
	// ErrReleased means that the lock was released.
	ErrReleased = lease.ErrReleased
	// ErrExported means that the lock was exported by [Lock.Export].
	ErrExported = lease.ErrExported
	// ErrClosed means that the Locker is closed.
	ErrClosed = lease.ErrClosed
	// ErrInvalid means that the call is wrong: an option, a name or a handle is invalid, or waiting could deadlock.
	// Nothing was sent.
	ErrInvalid = errors.New("redlock: invalid option")
)

// Outcomes that are not exported, since callers need not distinguish them.
var (
	errTooSlow    = round.ErrTooSlow // a quorum granted the lock, but too late to leave enough validity
	errQuarantine = admission.ErrQuarantine
	errOldMasters = admission.ErrOldMasters
	errIncomplete = admission.ErrIncomplete
)

// misuse returns an error with this text that matches ErrInvalid.
func misuse(text string) error { return fault.New(text, ErrInvalid) }

// A LockError describes why a call failed. It wraps the outcome, such as [ErrHeld], the error of the context if a
// context ended the call, and an error for each master that failed, for [errors.Is] and [errors.As]. The errors of
// masters may match [pool.ErrDown], [pool.ErrTimeout] or [pool.ErrRefused]; [errors.As] also finds them as one
// [github.com/hashicorp/go-multierror.Error]. The text names the masters.
type LockError struct {
	Op     string        // operation: "lock", "re-enter", "extend", "set value", "unlock", ..., or one on the masters
	Name   string        // name of the lock; for a call about the masters, the key prefix
	Holder string        // the label of the client whose lease has a majority; "" if no lease has one
	Left   time.Duration // time until the lease of Holder expires unless extended; 0 if unknown

	// failure is the failure of the last round. Its Decision is or wraps an outcome, or is nil if the context ended the
	// call first. Its Cause is the error of the context that ended the call, or nil if no context did.
	failure round.Failure
	slots   int  // size of the semaphore if all its slots are held; otherwise 0
	here    bool // whether this Locker itself holds the name, by a lock whose context was not passed to the call
}

// failed returns the error of a call, given the failure of the call's last round.
func failed(op, name string, err error) error {
	if err == nil {
		return nil
	}
	f, ok := round.AsFailure(err)
	var done *LockError
	switch {
	case ok && !errors.Is(f.Decision, ErrClosed) && !errors.Is(f.Cause, ErrClosed):
		// This case is first for speed: under load, many calls fail.
	case errors.Is(err, ErrClosed):
		return ErrClosed
	case errors.Is(err, ErrInvalid), errors.As(err, &done):
		return err
	case !ok: // no round decided the call
		return lockError(op, name, err)
	}
	name, _ = scripts.CutSlot(name)
	e := &LockError{Op: op, Name: name, Left: max(0, f.Left), failure: *f}
	_, e.Holder = scripts.LeaseLabel(f.Holder)
	return e
}

// lockError returns the error of a call that no round decided.
func lockError(op, name string, decision error) error {
	name, _ = scripts.CutSlot(name)
	return &LockError{Op: op, Name: name, failure: round.Failure{Decision: decision}}
}

// Error returns the operation, the outcome, and the masters that failed.
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
		verb := "agreed"
		if f.Unsent {
			verb = "can grant a lock"
		}
		fmt.Fprintf(&b, "; %d of %d masters %s, quorum is %d", f.Granted, f.N, verb, f.Quorum)
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
	if errors.Is(f.Decision, ErrNoQuorum) && f.New && errors.Is(e, errQuarantine) {
		b.WriteString("; " + mayAdmit)
	}
	return b.String()
}

// mayAdmit is advice for a deployment in which no master has ever voted. If one has, a client may hold a lock, also one
// that was acquired before a majority restarted.
const mayAdmit = "if these masters are new, redlock admit (Admin.Admit) ends their quarantine"

// decision returns the text of the decision. If this Locker itself holds the lock, the text does not say "another".
func (e *LockError) decision() string {
	switch held := errors.Is(e.failure.Decision, ErrHeld); {
	case e.slots > 1 && held:
		return fmt.Sprintf("each of %d slots is held", e.slots)
	case e.here && held:
		return "held already"
	}
	return plain(e.failure.Decision)
}

// joined returns the texts of the errors of masters. A text that several masters share appears once, with the names of
// these masters.
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
		if list := strings.Join(names[said], ", "); list != "" {
			texts[i] = list + ": " + said
		}
	}
	return texts
}

// addressed splits the text of err into the address of a master, or "" if err is not about a single master, and the
// rest of the text.
func addressed(err error) (name, said string) {
	said = strings.TrimPrefix(err.Error(), "pool: ")
	var e *transport.Error
	if errors.As(err, &e) && strings.HasPrefix(said, e.Addr+": ") {
		name = e.Addr
		// Some error texts contain the address twice.
		said = strings.ReplaceAll(said[len(name)+2:], " "+name+": ", " ")
	}
	return name, strings.ReplaceAll(" "+said, " redlock: ", " ")[1:]
}

// plain returns the text of err without the package name, for use within a longer text.
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

// Outcome returns a word for err, for the labels of metrics and the attributes of spans: "ok" for nil; "held",
// "no_quorum", "lost", "kind", "reentry", "overloaded", "ttl_too_long", "tokens_exhausted", "max_hold", "released", "exported",
// "closed" and "invalid" for the errors of this package with these names; "too_slow" if a quorum granted the lock too
// late; "timeout" and "canceled" if a context ended before the masters had decided; and "other" for any other error.
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

// outcomes lists the words for errors. The first match applies: an error that wraps the errors of several masters may
// match several entries.
var outcomes = []struct {
	err  error
	word string
}{
	{ErrMaxHold, "max_hold"}, {ErrLost, "lost"}, {ErrReleased, "released"}, {ErrExported, "exported"},
	{ErrClosed, "closed"}, {ErrInvalid, "invalid"},
	{ErrKind, "kind"}, {ErrReentry, "reentry"},
	{ErrHeld, "held"}, {errTooSlow, "too_slow"}, {ErrOverloaded, "overloaded"}, {ErrNoQuorum, "no_quorum"},
	{ErrTTLTooLong, "ttl_too_long"}, {ErrTokensExhausted, "tokens_exhausted"},
	{context.DeadlineExceeded, "timeout"}, {context.Canceled, "canceled"},
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...)
}

// contextError returns why ctx ended: its error, joined with its cause if the cause is another error.
func contextError(ctx context.Context) error { return fault.ContextError(ctx) }
