package redlock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-multierror"

	"github.com/redlock-go/redlock/internal/round"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/pool"
)

var sentinels = map[string]error{
	"ErrHeld": ErrHeld, "ErrNoQuorum": ErrNoQuorum, "ErrTooSlow": ErrTooSlow, "ErrLost": ErrLost, "ErrMaxHold": ErrMaxHold,
	"ErrReleased": ErrReleased, "ErrExported": ErrExported, "ErrClosed": ErrClosed,
	"ErrInvalid": ErrInvalid, "ErrTokensExhausted": ErrTokensExhausted, "ErrQuarantine": ErrQuarantine,
	"ErrTTLTooLong": ErrTTLTooLong, "ErrOldMasters": ErrOldMasters, "ErrIncomplete": ErrIncomplete,
	"ErrMasterList": ErrMasterList, "ErrKind": ErrKind, "ErrReentry": ErrReentry,
}

// H38: no sentinel wraps another, except that ErrMaxHold wraps ErrLost.
func TestSentinelErrorsAreDistinct(t *testing.T) {
	texts := map[string]string{}
	for name, err := range sentinels {
		if !strings.HasPrefix(err.Error(), "redlock: ") || strings.HasSuffix(err.Error(), ".") {
			t.Errorf("the text of %s is %q", name, err)
		}
		if other, ok := texts[err.Error()]; ok {
			t.Errorf("%s and %s have the same text", name, other)
		}
		texts[err.Error()] = name
		for other, target := range sentinels {
			want := name == other || name == "ErrMaxHold" && other == "ErrLost"
			if got := errors.Is(err, target); got != want {
				t.Errorf("errors.Is(%s, %s) returned %v", name, other, got)
			}
		}
	}
}

func sampleMasterErrors() []error {
	return []error{
		&transport.Error{Addr: "10.0.0.1:6379", Op: "acquire", Err: pool.ErrTimeout, Unknown: true},
		&transport.Error{Addr: "10.0.0.2:6379", Op: "acquire", Err: fmt.Errorf("%w: read failed", io.ErrUnexpectedEOF)},
		&transport.Error{Addr: "10.0.0.3:6379", Op: "acquire", Err: fmt.Errorf("%w until 10:00:00 UTC", ErrQuarantine)},
	}
}

// H05, H32, H34, H56: a LockError wraps the decision, the reason why the wait ended, and the reply of each master.
func TestLockErrorWrapsAllCauses(t *testing.T) {
	errs := sampleMasterErrors()
	for name, decision := range sentinels {
		both := fmt.Errorf("%w: %w", context.Canceled, io.ErrNoProgress)
		for _, cause := range []error{nil, context.Canceled, context.DeadlineExceeded, both} {
			var err error = &LockError{
				Op: "lock", Name: "n",
				failure: round.Failure{Decision: decision, Cause: cause, Masters: errs},
			}
			err = fmt.Errorf("a caller's words: %w", err)
			wanted := append([]error{decision, io.ErrUnexpectedEOF, pool.ErrTimeout, ErrQuarantine}, errs...)
			if cause != nil {
				wanted = append(wanted, cause)
			}
			for _, target := range wanted {
				if !errors.Is(err, target) {
					t.Errorf("%s, %v: the error does not wrap %v", name, cause, target)
				}
			}
			if got := errors.Is(err, context.Canceled); got != errors.Is(cause, context.Canceled) {
				t.Errorf("%s, %v: the error matches Canceled: %v", name, cause, got)
			}
			if got := errors.Is(err, context.DeadlineExceeded); got != errors.Is(cause, context.DeadlineExceeded) {
				t.Errorf("%s, %v: the error matches DeadlineExceeded: %v", name, cause, got)
			}
		}
	}
}

func TestLockErrorGivesItsPartsToAs(t *testing.T) {
	errs := sampleMasterErrors()
	var err error = &LockError{
		Op: "lock", Name: "n",
		failure: round.Failure{Decision: ErrNoQuorum, Granted: 2, Quorum: 3, N: 5, Masters: errs},
	}
	var whole *LockError
	if !errors.As(fmt.Errorf("more: %w", err), &whole) || whole.failure.Granted != 2 {
		t.Errorf("no LockError in %v", err)
	}
	var one *transport.Error
	if !errors.As(err, &one) || one.Addr != "10.0.0.1:6379" || !one.Unknown {
		t.Errorf("the first transport.Error is %+v", one)
	}
	if n := len(whole.failure.Masters); n != 3 {
		t.Errorf("%d masters are listed", n)
	}
	if got := (&LockError{}).Unwrap(); len(got) != 0 {
		t.Errorf("an empty LockError wraps %v", got)
	}
	if many := (*multierror.Error)(nil); errors.As(failed("lock", "n", &round.Failure{Decision: ErrHeld}), &many) {
		t.Error("the error lists masters, although none has failed")
	}
}

func TestLockErrorText(t *testing.T) {
	for _, c := range []struct {
		err  *LockError
		want string
	}{
		{
			&LockError{Op: "unlock", Name: "a", failure: round.Failure{Decision: ErrReleased}},
			`redlock: unlock "a": the lock was released before`,
		},
		{
			&LockError{Op: "lock", Name: "a", failure: round.Failure{Cause: context.Canceled}},
			`redlock: lock "a": context canceled`,
		},
		{
			&LockError{Op: "lock", Name: "a", failure: round.Failure{Cause: errClosed, Decision: ErrHeld}},
			`redlock: lock "a": the locker is closed (held by another)`,
		},
		{
			&LockError{Op: "lock", Name: "a", failure: round.Failure{Cause: errClosed}},
			`redlock: lock "a": the locker is closed`,
		},
		{
			&LockError{
				Op: "lock", Name: "a", Left: 7*time.Second + 400*time.Microsecond,
				failure: round.Failure{Decision: ErrHeld, Granted: 1, Quorum: 3, N: 5},
			},
			`redlock: lock "a": held by another; 1 of 5 masters agreed, quorum is 3; expires in 7s unless extended`,
		},
		// H115: the start of the hold is in the text only if it is known.
		{
			&LockError{
				Op: "lock", Name: "a", Holder: "host/3",
				failure: round.Failure{
					Decision: ErrHeld, Quorum: 3, N: 5, Token: time.Date(2026, 5, 1, 10, 20, 30, 0, time.Local).UnixMicro(),
				},
			},
			`redlock: lock "a": held by another; 0 of 5 masters agreed, quorum is 3; held by "host/3" since 10:20:30`,
		},
		{
			&LockError{
				Op: "lock", Name: "a", Holder: "host/3",
				failure: round.Failure{Decision: ErrHeld, Quorum: 3, N: 5},
			},
			`redlock: lock "a": held by another; 0 of 5 masters agreed, quorum is 3; held by "host/3"`,
		},
		{
			&LockError{
				Op: "extend", Name: "a",
				failure: round.Failure{Decision: ErrNoQuorum, Granted: 2, Missing: 1, Quorum: 3, N: 5},
			},
			`redlock: extend "a": no quorum of masters; 2 of 5 masters agreed, quorum is 3, and 1 did not have it`,
		},
		{
			&LockError{Op: "unlock", Name: "a", failure: round.Failure{Decision: ErrNoQuorum, Open: 2, Quorum: 3, N: 5}},
			`redlock: unlock "a": no quorum of masters; 0 of 5 masters agreed, quorum is 3 (2 replies outstanding)`,
		},
		{
			&LockError{
				Op: "lock", Name: "a",
				failure: round.Failure{
					Decision: ErrNoQuorum, Cause: context.DeadlineExceeded, Quorum: 2, N: 3, New: true,
					Masters: sampleMasterErrors(),
				},
			},
			`redlock: lock "a": context deadline exceeded (no quorum of masters); 0 of 3 masters agreed, quorum is 2; ` +
				`10.0.0.1:6379: acquire: timed out (outcome unknown); 10.0.0.2:6379: acquire: unexpected EOF: read failed; ` +
				`10.0.0.3:6379: acquire: the master is in quarantine until 10:00:00 UTC; ` + mayAdmit,
		},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

// failed returns a single LockError, never a LockError inside another, and returns ErrClosed unchanged.
func TestFailuresBecomeOneError(t *testing.T) {
	failure := &round.Failure{
		Decision: ErrHeld, Cause: context.Canceled, Granted: 1, Missing: 1, Quorum: 3, N: 5, Left: -1,
		Holder: "uuid:7:host/3", Token: 1_700_000_000_000_000, Masters: sampleMasterErrors(),
	}
	err := failed("lock", "n", failure)
	var e *LockError
	if !errors.As(err, &e) || e.Op != "lock" || e.Holder != "host/3" || e.Left != 0 ||
		e.failure.Token != 1_700_000_000_000_000 ||
		e.failure.Granted != 1 || e.failure.Missing != 1 || len(e.failure.Masters) != 3 || !errors.Is(err, context.Canceled) {
		t.Errorf("%+v", err)
	}
	if again := failed("other", "m", err); !errors.Is(again, err) {
		t.Errorf("a LockError was wrapped in another: %v", again)
	}
	for _, closed := range []error{errClosed, &round.Failure{Decision: errClosed},
		&round.Failure{Decision: ErrHeld, Cause: errClosed}} {
		if got := failed("lock", "n", closed); !errors.Is(got, ErrClosed) {
			t.Errorf("%v became %v", closed, got)
		}
	}
	if got := failed("lock", "n", invalid("x")); !errors.Is(got, ErrInvalid) || errors.As(got, &e) {
		t.Errorf("an error about an option became %v", got)
	}
	if got := failed("lock", "n", ErrTokensExhausted); !errors.Is(got, ErrTokensExhausted) || !errors.As(got, &e) ||
		failed("lock", "n", nil) != nil {
		t.Errorf("ErrTokensExhausted became %v", got)
	}
}

// The text of an error is a single line of bounded length, although a name can have 64 KiB of any bytes.
func TestLockErrorTextIsOneBoundedLine(t *testing.T) {
	err := &LockError{
		Op: "lock", Name: strings.Repeat("a\n\x00", 20_000),
		failure: round.Failure{Decision: ErrHeld},
	}
	if text := err.Error(); len(text) > 500 || strings.ContainsAny(text, "\n\x00") {
		t.Errorf("the text has %d bytes or several lines: %.200q", len(text), text)
	}
}

// H32: contextError wraps both the error of the context and its cause.
func TestContextErrorHasTheCause(t *testing.T) {
	if err := contextError(context.Background()); err != nil {
		t.Errorf("contextError of a live context returned %v", err)
	}
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	if err := contextError(cancelled); !errors.Is(err, context.Canceled) || err.Error() != context.Canceled.Error() {
		t.Errorf("contextError of a canceled context returned %v", err)
	}
	caused, cancelCause := context.WithCancelCause(context.Background())
	cancelCause(ErrMaxHold)
	err := contextError(caused)
	for _, target := range []error{context.Canceled, ErrMaxHold, ErrLost} {
		if !errors.Is(err, target) {
			t.Errorf("%v does not match %v", err, target)
		}
	}
	late, cancelLate := context.WithDeadlineCause(context.Background(), time.Unix(0, 0), io.ErrNoProgress)
	defer cancelLate()
	if err := contextError(late); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("contextError after a deadline returned %v", err)
	}
}

// A LockError in a log record is a group of attributes, also in JSON.
func TestLockErrorInALog(t *testing.T) {
	var out strings.Builder
	log := slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	log.Info("booking failed", "error", &LockError{
		Op: "lock", Name: "orders:42", Holder: "web-1/17", Left: 8200 * time.Millisecond,
		failure: round.Failure{Decision: ErrHeld},
	})
	want := `{"level":"INFO","msg":"booking failed","error":{"op":"lock","lock":"orders:42","outcome":"held",` +
		`"holder":"web-1/17","left":8.2,"reason":"lock \"orders:42\": held by another; held by \"web-1/17\"; ` +
		`expires in 8.2s unless extended"}}` + "\n"
	if out.String() != want {
		t.Errorf("the record is\n%swant\n%s", out.String(), want)
	}
}
