package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-multierror"

	"github.com/redlock-go/redlock/internal/admission"
	"github.com/redlock-go/redlock/internal/ballot"
	"github.com/redlock-go/redlock/internal/lease"
	"github.com/redlock-go/redlock/internal/round"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/internal/transport/fault"
)

// decisions are outcomes of calls.
var decisions = []error{
	round.ErrHeld, round.ErrNoQuorum, round.ErrTooSlow, round.ErrKind, round.ErrTTLTooLong,
	lease.ErrLost, lease.ErrMaxHold, lease.ErrReleased, lease.ErrExported,
	ballot.ErrTokensExhausted, admission.ErrMasterList, ErrReentry,
}

func sampleMasterErrors() []error {
	return []error{
		&transport.Error{Addr: "10.0.0.1:6379", Op: "acquire", Err: fault.ErrTimeout, Unknown: true},
		&transport.Error{Addr: "10.0.0.2:6379", Op: "acquire", Err: fmt.Errorf("%w: read failed", io.ErrUnexpectedEOF)},
		&transport.Error{
			Addr: "10.0.0.3:6379", Op: "acquire", Err: fmt.Errorf("%w until 10:00:00 UTC", admission.ErrQuarantine),
		},
	}
}

// H05, H32, H34, H56: a Error wraps the decision, the reason why the wait ended, and the reply of each master.
func TestErrorWrapsAllCauses(t *testing.T) {
	errs := sampleMasterErrors()
	for _, decision := range decisions {
		both := fmt.Errorf("%w: %w", context.Canceled, io.ErrNoProgress)
		for _, cause := range []error{nil, context.Canceled, context.DeadlineExceeded, both} {
			var err error = &Error{
				Op: "lock", Name: "n",
				Failure: round.Failure{Decision: decision, Cause: cause, Masters: errs},
			}
			err = fmt.Errorf("a caller's words: %w", err)
			wanted := append([]error{decision, io.ErrUnexpectedEOF, fault.ErrTimeout, admission.ErrQuarantine}, errs...)
			if cause != nil {
				wanted = append(wanted, cause)
			}
			for _, target := range wanted {
				if !errors.Is(err, target) {
					t.Errorf("%v, %v: the error does not wrap %v", decision, cause, target)
				}
			}
			if got := errors.Is(err, context.Canceled); got != errors.Is(cause, context.Canceled) {
				t.Errorf("%v, %v: the error matches Canceled: %v", decision, cause, got)
			}
			if got := errors.Is(err, context.DeadlineExceeded); got != errors.Is(cause, context.DeadlineExceeded) {
				t.Errorf("%v, %v: the error matches DeadlineExceeded: %v", decision, cause, got)
			}
		}
	}
}

func TestErrorGivesItsPartsToAs(t *testing.T) {
	errs := sampleMasterErrors()
	var err error = &Error{
		Op: "lock", Name: "n",
		Failure: round.Failure{Decision: round.ErrNoQuorum, Granted: 2, Quorum: 3, N: 5, Masters: errs},
	}
	var whole *Error
	if !errors.As(fmt.Errorf("more: %w", err), &whole) || whole.Failure.Granted != 2 {
		t.Errorf("no Error in %v", err)
	}
	var one *transport.Error
	if !errors.As(err, &one) || one.Addr != "10.0.0.1:6379" || !one.Unknown {
		t.Errorf("the first transport.Error is %+v", one)
	}
	if n := len(whole.Failure.Masters); n != 3 {
		t.Errorf("%d masters are listed", n)
	}
	if got := (&Error{}).Unwrap(); len(got) != 0 {
		t.Errorf("an empty Error wraps %v", got)
	}
	if many := (*multierror.Error)(nil); errors.As(failed("lock", "n", &round.Failure{Decision: round.ErrHeld}), &many) {
		t.Error("the error lists masters, although none has failed")
	}
}

func TestErrorText(t *testing.T) {
	for _, c := range []struct {
		err  *Error
		want string
	}{
		{
			&Error{Op: "unlock", Name: "a", Failure: round.Failure{Decision: lease.ErrReleased}},
			`redlock: unlock "a": the lock was released before`,
		},
		{
			&Error{Op: "lock", Name: "a", Failure: round.Failure{Cause: context.Canceled}},
			`redlock: lock "a": context canceled`,
		},
		{
			&Error{Op: "lock", Name: "a", Failure: round.Failure{Cause: lease.ErrClosed, Decision: round.ErrHeld}},
			`redlock: lock "a": the locker is closed (held by another)`,
		},
		{
			&Error{Op: "lock", Name: "a", Failure: round.Failure{Cause: lease.ErrClosed}},
			`redlock: lock "a": the locker is closed`,
		},
		{
			&Error{
				Op: "lock", Name: "a", Left: 7*time.Second + 400*time.Microsecond,
				Failure: round.Failure{Decision: round.ErrHeld, Granted: 1, Quorum: 3, N: 5},
			},
			`redlock: lock "a": held by another; 1 of 5 masters agreed, quorum is 3; expires in 7s unless extended`,
		},
		// H115: the start of the hold is in the text only if it is known.
		{
			&Error{
				Op: "lock", Name: "a", Holder: "host/3",
				Failure: round.Failure{
					Decision: round.ErrHeld, Quorum: 3, N: 5, Token: time.Date(2026, 5, 1, 10, 20, 30, 0, time.UTC).UnixMicro(),
				},
			},
			`redlock: lock "a": held by another; 0 of 5 masters agreed, quorum is 3; held by "host/3" since ` +
				"2026-05-01 10:20:30 UTC",
		},
		{
			&Error{
				Op: "lock", Name: "a", Holder: "host/3",
				Failure: round.Failure{Decision: round.ErrHeld, Quorum: 3, N: 5},
			},
			`redlock: lock "a": held by another; 0 of 5 masters agreed, quorum is 3; held by "host/3"`,
		},
		{
			&Error{
				Op: "extend", Name: "a",
				Failure: round.Failure{Decision: round.ErrNoQuorum, Granted: 2, Missing: 1, Quorum: 3, N: 5},
			},
			`redlock: extend "a": no quorum of masters; 2 of 5 masters agreed, quorum is 3, and 1 did not have it`,
		},
		{
			&Error{Op: "unlock", Name: "a", Failure: round.Failure{Decision: round.ErrNoQuorum, Open: 2, Quorum: 3, N: 5}},
			`redlock: unlock "a": no quorum of masters; 0 of 5 masters agreed, quorum is 3 (2 replies outstanding); ` +
				`the lock has ended all the same: its release is delivered in the background`,
		},
		{
			&Error{
				Op: "lock", Name: "a",
				Failure: round.Failure{
					Decision: round.ErrNoQuorum, Cause: context.DeadlineExceeded, Quorum: 2, N: 3, New: true,
					Masters: sampleMasterErrors(),
				},
			},
			`redlock: lock "a": context deadline exceeded (no quorum of masters); 0 of 3 masters agreed, quorum is 2; ` +
				`10.0.0.1:6379: acquire: timed out (outcome unknown); 10.0.0.2:6379: acquire: unexpected EOF: read failed; ` +
				`10.0.0.3:6379: acquire: the master is in quarantine until 10:00:00 UTC; ` + mayAdmit + "; " + elsewhere,
		},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

// failed returns a single Error, never a Error inside another, and returns fault.ErrClosed unchanged.
func TestFailuresBecomeOneError(t *testing.T) {
	failure := &round.Failure{
		Decision: round.ErrHeld, Cause: context.Canceled, Granted: 1, Missing: 1, Quorum: 3, N: 5, Left: -1,
		Holder: "uuid:7:host/3", Token: 1_700_000_000_000_000, Masters: sampleMasterErrors(),
	}
	err := failed("lock", "n", failure)
	var e *Error
	if !errors.As(err, &e) || e.Op != "lock" || e.Holder != "host/3" || e.Left != 0 ||
		e.Failure.Token != 1_700_000_000_000_000 ||
		e.Failure.Granted != 1 || e.Failure.Missing != 1 || len(e.Failure.Masters) != 3 || !errors.Is(err, context.Canceled) {
		t.Errorf("%+v", err)
	}
	if again := failed("other", "m", err); !errors.Is(again, err) {
		t.Errorf("a Error was wrapped in another: %v", again)
	}
	for _, closed := range []error{lease.ErrClosed, &round.Failure{Decision: lease.ErrClosed},
		&round.Failure{Decision: round.ErrHeld, Cause: lease.ErrClosed}} {
		if got := failed("lock", "n", closed); !errors.Is(got, fault.ErrClosed) {
			t.Errorf("%v became %v", closed, got)
		}
	}
	if got := failed("lock", "n", Invalid("x")); !errors.Is(got, fault.ErrInvalid) || errors.As(got, &e) {
		t.Errorf("an error about an option became %v", got)
	}
	exhausted := ballot.ErrTokensExhausted
	if got := failed("lock", "n", exhausted); !errors.Is(got, exhausted) || !errors.As(got, &e) ||
		failed("lock", "n", nil) != nil {
		t.Errorf("ballot.ErrTokensExhausted became %v", got)
	}
}

// The text of an error is a single line of bounded length, although a name can have 64 KiB of any bytes.
func TestErrorTextIsOneBoundedLine(t *testing.T) {
	err := &Error{
		Op: "lock", Name: strings.Repeat("a\n\x00", 20_000),
		Failure: round.Failure{Decision: round.ErrHeld},
	}
	if text := err.Error(); len(text) > 500 || strings.ContainsAny(text, "\n\x00") {
		t.Errorf("the text has %d bytes or several lines: %.200q", len(text), text)
	}
}

// H32: ContextError wraps both the error of the context and its cause.
func TestContextErrorHasTheCause(t *testing.T) {
	if err := fault.ContextError(context.Background()); err != nil {
		t.Errorf("ContextError of a live context returned %v", err)
	}
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	if err := fault.ContextError(cancelled); !errors.Is(err, context.Canceled) || err.Error() != context.Canceled.Error() {
		t.Errorf("ContextError of a canceled context returned %v", err)
	}
	caused, cancelCause := context.WithCancelCause(context.Background())
	cancelCause(lease.ErrMaxHold)
	err := fault.ContextError(caused)
	for _, target := range []error{context.Canceled, lease.ErrMaxHold, lease.ErrLost} {
		if !errors.Is(err, target) {
			t.Errorf("%v does not match %v", err, target)
		}
	}
	late, cancelLate := context.WithDeadlineCause(context.Background(), time.Unix(0, 0), io.ErrNoProgress)
	defer cancelLate()
	if err := fault.ContextError(late); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("ContextError after a deadline returned %v", err)
	}
}
