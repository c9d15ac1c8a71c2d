package redlock

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/internal/round"
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

// A LockError in a log record is a group of attributes, also in JSON.
func TestLockErrorInALog(t *testing.T) {
	var out strings.Builder
	log := slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	log.Info("booking failed", "error", public(&client.Error{
		Op: "lock", Name: "orders:42", Holder: "web-1/17", Left: 8200 * time.Millisecond,
		Failure: round.Failure{Decision: ErrHeld},
	}))
	want := `{"level":"INFO","msg":"booking failed","error":{"op":"lock","lock":"orders:42","outcome":"held",` +
		`"holder":"web-1/17","left":8.2,"reason":"lock \"orders:42\": held by another; held by \"web-1/17\"; ` +
		`expires in 8.2s unless extended"}}` + "\n"
	if out.String() != want {
		t.Errorf("the record is\n%swant\n%s", out.String(), want)
	}
}
