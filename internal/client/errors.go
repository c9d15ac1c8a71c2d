package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-multierror"

	"github.com/redlock-go/redlock/internal/admission"
	"github.com/redlock-go/redlock/internal/ballot"
	"github.com/redlock-go/redlock/internal/lease"
	"github.com/redlock-go/redlock/internal/round"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/internal/transport/fault"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// ErrReentry is documented by package redlock.
var ErrReentry = errors.New("redlock: the context of the call holds this name already; to share that lock, use " +
	"WithReentry; to wait for its end, pass a context that is not derived from the context of that lock")

// ErrOrder is returned if the requested name sorts before one that the context owns: for LockAll, by any lock; for a
// call that waits for one name, by LockAll. Without this rule, LockAll calls of several clients could wait for each
// other forever. Nothing was sent.
var ErrOrder = Invalid("the name sorts before one that this context holds, " +
	"so waiting for it could deadlock: lock all of them with one LockAll, or use TryLock or TryLockAll")

// ErrUpgrade is returned if the context holds a reader's lock of the name, and the call requests the writer's lock.
// Nothing was sent.
var ErrUpgrade = Invalid("this context holds a reader's lock of the name, and a reader cannot become the " +
	"writer, because it would wait for its own lock; unlock first, or acquire the writer's lock and use Downgrade")

// An Error describes why a call failed. Package redlock returns it as a LockError, which documents the fields.
type Error struct {
	Op           redlockinfo.Op
	Name, Holder string
	Left         time.Duration

	// Failure is the failure of the last round. Its Decision is or wraps an outcome, or is nil if the context ended the
	// call first. Its Cause is the error of the context that ended the call, or nil if no context did.
	Failure round.Failure
	slots   int  // size of the semaphore if all its slots are held; otherwise 0
	foreign bool // whether the context of the call owns the lock that has the name, which is one of another Locker
	here    bool // whether this client itself holds the name, by a lock whose context was not passed to the call
}

// failed returns the error of a call, given the failure of the call's last round.
func failed(op redlockinfo.Op, name string, err error) error {
	if err == nil {
		return nil
	}
	f, ok := round.AsFailure(err)
	var done *Error
	switch {
	case ok && !errors.Is(f.Decision, lease.ErrClosed) && !errors.Is(f.Cause, lease.ErrClosed):
		// This case is first for speed: under load, many calls fail.
	case errors.Is(err, lease.ErrClosed):
		return lease.ErrClosed
	case errors.Is(err, fault.ErrInvalid), errors.As(err, &done):
		return err
	case !ok: // no round decided the call
		return lockError(op, name, err)
	}
	name, _ = scripts.CutSlot(name)
	e := &Error{Op: op, Name: name, Left: max(0, f.Left), Failure: *f}
	_, e.Holder = scripts.LeaseLabel(f.Holder)
	return e
}

// Since returns since when Holder has held the name, according to the masters' clocks; zero if that is not known.
func (e *Error) Since() time.Time { return heldSince(e.Failure.Holder, e.Failure.Token) }

// lockError returns the error of a call that no round decided.
func lockError(op redlockinfo.Op, name string, decision error) error {
	name, _ = scripts.CutSlot(name)
	return &Error{Op: op, Name: name, Failure: round.Failure{Decision: decision}}
}

// Error returns the operation, the outcome, and the masters that failed.
func (e *Error) Error() string {
	var b strings.Builder
	f := &e.Failure
	fmt.Fprintf(&b, "redlock: %s %.80q: ", e.Op, e.Name)
	switch {
	case f.Decision != nil && f.Cause != nil && !errors.Is(f.Cause, f.Decision):
		fmt.Fprintf(&b, "%s (%s)", Plain(f.Cause), e.decision())
	case f.Decision != nil:
		b.WriteString(e.decision())
	case f.Cause != nil:
		b.WriteString(Plain(f.Cause))
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
		if f.Open > 0 && f.Cause == nil && errors.Is(f.Decision, round.ErrNoQuorum) {
			fmt.Fprintf(&b, " (%d replies outstanding)", f.Open)
		}
	}
	if e.Holder != "" {
		fmt.Fprintf(&b, "; held by %q", e.Holder)
		if since := e.Since(); !since.IsZero() {
			b.WriteString(since.UTC().Format(" since " + time.DateTime + " MST"))
		}
	}
	if e.here {
		b.WriteString(", by another call of this Locker")
	}
	if e.foreign {
		b.WriteString(", by a lock that the context of the call owns, of another Locker")
	}
	if e.Left > 0 {
		fmt.Fprintf(&b, "; expires in %v unless extended", e.Left.Round(time.Millisecond))
	}
	for _, text := range joined(f.Masters) {
		b.WriteString("; ")
		b.WriteString(text)
	}
	if e.Op == redlockinfo.OpUnlock && (f.Decision == nil || errors.Is(f.Decision, round.ErrNoQuorum)) {
		b.WriteString("; the lock has ended all the same: its release is delivered in the background")
	}
	if errors.Is(f.Decision, round.ErrNoQuorum) && f.New && errors.Is(e, admission.ErrQuarantine) {
		b.WriteString("; " + mayAdmit + "; " + elsewhere)
	}
	return b.String()
}

// mayAdmit is advice for a deployment in which no master has ever voted. If one has, a client may hold a lock, also one
// that was acquired before a majority restarted.
const mayAdmit = "if these masters are new, and no client can hold a lock on them, redlock admit (Admin.Admit) ends " +
	"their quarantine"

// elsewhere follows mayAdmit: with a misspelt prefix, masters in use look like new ones.
const elsewhere = "if other clients use them, compare the prefix and the database with theirs"

// decision returns the text of the decision. If this client itself holds the lock, the text does not say "another".
func (e *Error) decision() string {
	switch held := errors.Is(e.Failure.Decision, round.ErrHeld); {
	case e.slots > 1 && held:
		return fmt.Sprintf("each of %d slots is held", e.slots)
	case e.here && held:
		return "held already"
	}
	return Plain(e.Failure.Decision)
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

// Plain returns the text of err without the package name, for use within a longer text.
func Plain(err error) string {
	text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "redlock: "), "pool: ")
	return strings.ReplaceAll(text, ": redlock: ", ": ") // of a context, after the text of its error
}

// Unwrap returns the decision, the context's error and the masters' errors.
func (e *Error) Unwrap() []error {
	f := &e.Failure
	all := f.Unwrap()
	for _, more := range []error{round.ErrTooSlow, round.ErrTTLTooLong, ballot.ErrTokensExhausted} {
		if errors.Is(f.Decision, more) {
			all = append(all, round.ErrNoQuorum)
		}
	}
	if len(f.Masters) > 0 {
		all = append(all, &multierror.Error{Errors: f.Masters})
	}
	return all
}

// RetryAfter returns the time after which another try may succeed, or 0 if it is not known.
func (e *Error) RetryAfter() time.Duration {
	f := &e.Failure
	switch {
	case errors.Is(f.Decision, round.ErrHeld):
		return cmp.Or(e.Left, f.Again)
	case errors.Is(f.Decision, round.ErrNoQuorum):
		return max(f.Again, f.Ready)
	}
	return 0
}

// Invalid returns an error with this text that matches fault.ErrInvalid.
func Invalid(format string, args ...any) error {
	err := fmt.Errorf("redlock: "+format, args...)
	return fault.New(err.Error(), fault.ErrInvalid, err)
}

// CheckContext returns an error if the context of a call is nil.
func CheckContext(ctx context.Context, op redlockinfo.Op, name string) error {
	if ctx == nil {
		return Invalid("%s %.80q: the context is nil", op, name)
	}
	return nil
}

// Join joins errors like errors.Join, but its text has one line.
func Join(errs ...error) (all error) {
	for _, err := range errs {
		switch {
		case err == nil:
		case all == nil:
			all = err
		default:
			all = fmt.Errorf("%w; %w", all, err)
		}
	}
	return all
}

// Concurrently calls f for the numbers 0 to n-1, each on its own goroutine, and returns the errors.
func Concurrently(n int, f func(i int) error) []error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	return errs
}
