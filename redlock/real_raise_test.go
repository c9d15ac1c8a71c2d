package redlock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/redlock-go/redlock/redlock"
)

// An invalid value is refused before anything is written.
func TestTheGuardTimeIsNotLoweredByAccident(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 3)
	l := f.admitted(redlock.WithMaxTTL(time.Minute), redlock.WithTTL(2*time.Second))
	records := func() (all string) {
		for i := range f.servers {
			all += f.record(i)
		}
		return all
	}
	before := records()
	for name, g := range map[string]time.Duration{
		"smaller": 30 * time.Second, "zero": 0, "below a millisecond": time.Minute + 1, "huge": 1000 * time.Hour,
		"above the default repl-backlog-ttl": 2 * time.Hour,
	} {
		if err := l.Admin().RaiseMaxTTL(bounded(t), g); !errors.Is(err, redlock.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalidOption", name, err)
		}
	}
	err := f.locker(redlock.WithoutRestartGuard()).Admin().RaiseMaxTTL(bounded(t), time.Minute)
	if !errors.Is(err, redlock.ErrInvalid) {
		t.Errorf("with the guard off: %v", err)
	}
	if now := records(); now != before {
		t.Errorf("the records are %q, were %q", now, before)
	}
}
