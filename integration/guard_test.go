package integration

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/history"
	"github.com/redlock-go/redlock/redlock"
)

// The restart guard is needed, and the checks detect its absence. A majority restarts empty while a client holds a
// lock, and another client tries to lock. With the guard the other client is refused. Without the guard both clients
// hold the lock, and the check of the history fails.
func TestHistoryWithoutGuardIsRejected(t *testing.T) {
	for name, off := range map[string]bool{"with the guard": false, "without": true} {
		t.Run(name, func(t *testing.T) {
			opts := []redlock.Option{redlock.WithTTL(20 * time.Second)}
			if off {
				opts = append(opts, redlock.WithoutRestartGuard())
			}
			five := masters(t, 5)
			first, second := admitted(t, five, opts...), open(t, five, opts...)
			h := history.Tail{Dir: t.TempDir()}
			rec, err := history.NewRecorder(h.Dir, "both")
			if err != nil {
				t.Fatal(err)
			}
			defer rec.Close()

			lock := recorded(t, rec, first, "first", 5*time.Second)
			if lock == nil {
				t.Fatal("the first lock failed")
			}
			each(t, Master.Kill, five[:3]...)
			each(t, Master.Start, five[:3]...)
			again := recorded(t, rec, second, "second", 3*time.Second)
			if (again != nil) != off {
				t.Errorf("another client acquired the lock: %v, want %v", again != nil, off)
			}
			if err := h.More(); err != nil {
				t.Fatal(err)
			}
			err = checkHistory(h.Events, checkBound)
			if (err != nil) != off {
				t.Errorf("the check of the history returned %v", err)
			}
			if off && !strings.Contains(err.Error(), "acquired the lock") {
				t.Errorf("the history was rejected for another reason: %v", err)
			}
		})
	}
}

// recorded locks the name "n" within a bound and records the call in the history. It returns nil if the call failed.
func recorded(t *testing.T, rec *history.Recorder, l *redlock.Locker, hold string, bound time.Duration) *redlock.Lock {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	lock, err := rec.Call(history.Event{Op: history.Lock, Name: "n", Hold: hold},
		func() (*redlock.Lock, error) { return l.Lock(ctx, "n") })
	if err := unexplained(err); err != nil {
		t.Fatal(err)
	}
	return lock
}
