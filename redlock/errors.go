package redlock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/go-multierror"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock/internal/admission"
	"github.com/redlock-go/redlock/redlock/internal/ballot"
	"github.com/redlock-go/redlock/redlock/internal/grant"
	"github.com/redlock-go/redlock/redlock/internal/round"
)

// What a call decided. Compare with [errors.Is]: calls return a [*LockError] that wraps one of these. Their identities
// are part of the API.
var (
	// ErrHeld: another lease has a majority of the masters, or a waiter is first in the queues of a majority.
	ErrHeld = round.ErrHeld
	// ErrNoQuorum: no lease has a majority. So many masters failed, were unreachable or may not vote yet that none was
	// possible, or the votes are split between clients that called at one instant, as the text then says.
	ErrNoQuorum = round.ErrNoQuorum
	// ErrOverloaded: so many calls of this Locker were under way that nothing was sent. It wraps ErrNoQuorum. See
	// [Locker.TryLock].
	ErrOverloaded = round.ErrOverloaded
	// ErrTooSlow: a quorum granted the lock, but so late that less than the minimum validity was left.
	ErrTooSlow = round.ErrTooSlow
	// ErrLost: the lock ended before it was released: its validity ran out, or so many masters have lost it that the
	// others are no quorum. The text says which.
	ErrLost = grant.ErrLost
	// ErrMaxHold: the lock ended because it was held as long as [WithMaxHold] allows. It is a way of losing the lock:
	// errors.Is(err, ErrLost) is true as well.
	ErrMaxHold = grant.ErrMaxHold
	// ErrReleased: the lock was released before.
	ErrReleased = grant.ErrReleased
	// ErrExported: the lock was exported to another process by [Lock.Export].
	ErrExported = grant.ErrExported
	// ErrReentry: the context already owns the name, and re-entry is turned off.
	ErrReentry = errors.New("redlock: already held by this context, and re-entry is off")
	// ErrClosed: the Locker is closed.
	ErrClosed = grant.ErrClosed
	// ErrInvalidOption: an option, a name or a handle is out of its range. Nothing was sent.
	ErrInvalidOption = errors.New("redlock: invalid option")
	// ErrTooFar: a ballot would need 2^53 or more, beyond which the masters' numbers are not exact.
	ErrTooFar = ballot.ErrTooFar
	// ErrQuarantine: a master may not vote yet because it may have forgotten locks. See the package documentation.
	ErrQuarantine = admission.ErrQuarantine
	// ErrOldMasters: the fleet goes by a later configuration than this program. See [Locker.ChangeMasters].
	ErrOldMasters = admission.ErrOldMasters
	// ErrIncomplete: a change of the masters is not so far that the new ones may act alone.
	ErrIncomplete = admission.ErrIncomplete
	// ErrMasterList is returned if the admission records name other masters than this Locker has. It acquires no lock by
	// the votes of such masters. The text shows both lists, and what to do: see docs/masters.md.
	ErrMasterList = admission.ErrMasterList
	// ErrGroup: the admission records are of programs that spread the names over other groups. This one takes no lock on
	// these masters until that is mended; see [WithGroup].
	ErrGroup = admission.ErrGroup
	// ErrGuardTime: the TTL is above the longest that a quorum of the masters allows. A call that finds out ends at once.
	ErrGuardTime = round.ErrGuardTime
)

// A MasterError is why one master gave no vote: its address, what was tried, the cause, and whether the call may have
// had an effect there all the same. It never contains credentials.
type MasterError = pool.Error

// A LockError is how a call failed. Use [errors.Is] and [errors.As] on it: it wraps the decision, the error of the
// context where one ended the call, and a [*MasterError] for each master that failed.
type LockError struct {
	Op   string // the call: "lock", "re-enter", "extend", "unlock", "import", "inspect", or one about the masters
	Name string // of the lock; the key prefix in a call about the masters
	// Decision is or wraps one of the sentinels, or is nil where the context ended the call before the masters had
	// said enough.
	Decision error
	Cause    error // the error of the context that ended the call, nil where none did
	// Granted of N masters said yes in the last round, and Quorum were needed. Missing do not have the grant. Open had not
	// answered when that was decided, or were not asked.
	Granted, Quorum, N, Missing, Open int

	// Left is when the name may be free, as far as the refusals tell: what is left of the TTL. A holder that lives extends
	// it, or unlocks earlier. 0 where they do not tell.
	Left    time.Duration
	Holder  string            // label of the client whose lease has a majority; "" if none has
	Since   time.Time         // since when, by the masters' clocks
	Here    bool              // this Locker itself holds the name, by a lock whose context the call was not given
	Masters *multierror.Error // those that failed in the last round, each a [*MasterError]; nil where none did
}

// failed makes the error of a call from how its last round failed.
func failed(op, name string, err error) error {
	if err == nil {
		return nil
	}
	f, ok := round.AsFailure(err)
	var done *LockError
	switch {
	case ok && !errors.Is(f.Decision, ErrClosed) && !errors.Is(f.Cause, ErrClosed):
		// The usual case, first: under load many calls fail.
	case errors.Is(err, ErrClosed):
		return ErrClosed
	case errors.Is(err, ErrInvalidOption), errors.As(err, &done):
		return err
	case !ok: // no round decided it
		return &LockError{Op: op, Name: name, Decision: err}
	}
	e := &LockError{
		Op: op, Name: name, Decision: f.Decision, Cause: f.Cause,
		Granted: f.Granted, Quorum: f.Quorum, N: f.N, Missing: f.Missing, Open: f.Open, Left: max(0, f.Left),
	}
	if len(f.Masters) > 0 {
		e.Masters = &multierror.Error{Errors: f.Masters}
	}
	if f.Holder != "" {
		_, e.Holder = scripts.GrantLabel(f.Holder)
		if f.Token > 0 {
			e.Since = time.UnixMicro(f.Token)
		}
	}
	return e
}

// Error says what was tried, what came of it, and on which masters.
func (e *LockError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "redlock: %s %.80q: ", e.Op, e.Name)
	switch {
	case e.Decision != nil && e.Cause != nil:
		fmt.Fprintf(&b, "%s (%s)", plain(e.Cause), e.decision())
	case e.Decision != nil:
		b.WriteString(e.decision())
	case e.Cause != nil:
		b.WriteString(plain(e.Cause))
	}
	if e.N > 0 {
		fmt.Fprintf(&b, "; %d of %d masters said yes, %d are needed", e.Granted, e.N, e.Quorum)
		if e.Missing > 0 {
			fmt.Fprintf(&b, ", and %d did not have it", e.Missing)
		}
		if e.Open > 0 && e.Cause == nil && errors.Is(e.Decision, ErrNoQuorum) {
			fmt.Fprintf(&b, " (%d not waited for)", e.Open)
		}
	}
	if e.Holder != "" {
		fmt.Fprintf(&b, "; held by %q since %s", e.Holder, e.Since.Format(time.TimeOnly))
	}
	if e.Here {
		b.WriteString(", a lock of this Locker: to lock it again inside of that one, pass the context of that lock " +
			"(Lock.Context)")
	}
	if e.Left > 0 {
		fmt.Fprintf(&b, "; it may be free in %v", e.Left.Round(time.Millisecond))
	}
	if e.Masters != nil {
		for _, text := range joined(e.Masters.Errors) {
			b.WriteString("; ")
			b.WriteString(text)
		}
	}
	if errors.Is(e.Decision, ErrNoQuorum) && !errors.Is(e.Decision, round.ErrUndecided) && errors.Is(e, ErrQuarantine) {
		b.WriteString("; " + mayAdmit)
	}
	return b.String()
}

// mayAdmit is said only where no quorum votes. Elsewhere the fleet works, and somebody may well hold a lock.
const mayAdmit = "if nobody can hold a lock on these masters, redlock admit (AdmitNow) ends the quarantine"

// decision is the text of the decision. A lock of this very Locker is not "another" to those who read it.
func (e *LockError) decision() string {
	if e.Here && errors.Is(e.Decision, ErrHeld) {
		return "held already"
	}
	return plain(e.Decision)
}

// joined is what errors of masters say. What several masters share is said once, with the names of all of them.
func joined(errs []error) (texts []string) {
	names := map[string][]string{} // by what is said
	for _, err := range errs {
		said, name := strings.TrimPrefix(err.Error(), "pool: "), ""
		var e *MasterError
		if errors.As(err, &e) && strings.HasPrefix(said, e.Addr+": ") {
			name = e.Addr
			// Some causes name the address once more.
			said = strings.ReplaceAll(said[len(name)+2:], " "+name+": ", " ")
		}
		said = strings.ReplaceAll(" "+said, " redlock: ", " ")[1:]
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

// plain is the text of a sentinel without the package's name, for use inside a longer sentence.
func plain(err error) string {
	return strings.TrimPrefix(strings.TrimPrefix(err.Error(), "redlock: "), "pool: ")
}

// Unwrap returns the decision, the context's error and the masters' errors.
func (e *LockError) Unwrap() []error {
	var all []error
	for _, err := range []error{e.Decision, e.Cause} {
		if err != nil {
			all = append(all, err)
		}
	}
	if e.Masters != nil {
		all = append(all, e.Masters.Errors...)
	}
	return all
}

// Outcome is err in one word, for the labels of metrics and the attributes of spans: "ok" for nil; "held",
// "no_quorum", "too_slow", "lost", "max_hold", "released", "exported", "reentry", "order", "closed", "invalid",
// "guard_time", "kind", "overloaded" and "upgrade" for the errors of this package that have these names; "timeout" and
// "canceled" where a context ended and the masters had not said enough by then; and "other".
func Outcome(err error) string {
	if err == nil {
		return "ok"
	}
	for _, o := range outcomes {
		if errors.Is(err, o.err) {
			return o.word
		}
	}
	return "other"
}

// outcomes are the words for errors. The first one that fits holds: an error wraps those of single masters, too.
var outcomes = []struct {
	err  error
	word string
}{
	{ErrMaxHold, "max_hold"}, {ErrLost, "lost"}, {ErrReleased, "released"}, {ErrExported, "exported"},
	{ErrClosed, "closed"}, {ErrReentry, "reentry"}, {ErrOrder, "order"}, {ErrInvalidOption, "invalid"},
	{ErrKind, "kind"}, {ErrUpgrade, "upgrade"},
	{ErrHeld, "held"}, {ErrTooSlow, "too_slow"}, {ErrOverloaded, "overloaded"}, {ErrNoQuorum, "no_quorum"},
	{ErrGuardTime, "guard_time"},
	{context.DeadlineExceeded, "timeout"}, {context.Canceled, "canceled"},
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrInvalidOption}, args...)...)
}

// contextError is why ctx ended: its error, joined with its cause where that says more.
func contextError(ctx context.Context) error { return round.ContextError(ctx) }
