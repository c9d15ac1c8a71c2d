//go:build unix

package redlock_test

import (
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/long"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// A writer that is stopped while it waits in front keeps later readers out for 8 s, not for the 20 s that it counts.
// The bound has room for a busy machine. The program that goes on gets the lock then.
func TestAWriterThatHangsInFrontKeepsReadersOutForASmallTime(t *testing.T) {
	if !long.Enabled() {
		t.Skip("needs -long: it waits for eight seconds")
	}
	t.Parallel()
	f := newDeployment(t, 3)
	l := locker(t, f.dial(), redlock.WithTTL(5*time.Second))
	f.admit(l)
	other := locker(t, f.dial(), redlock.WithTTL(5*time.Second))
	first := held(t)(l.RWLock("prices").RLock(bounded(t)))
	writer := startWorker(t, "write", workerArgs{URLs: f.urls, Name: "prices", TTL: 5 * time.Second})
	for len(must[redlockinfo.Inspection](t)(l.Inspect(bounded(t), "prices")).Waiters) == 0 {
		time.Sleep(10 * time.Millisecond)
	}
	stop(t, writer)
	began := time.Now()
	second := held(t)(other.RWLock("prices").RLock(bounded(t)))
	took := time.Since(began)
	t.Logf("a reader acquired the name after %v", took.Round(time.Millisecond))
	if took > 15*time.Second {
		t.Errorf("a reader was kept out for %v by a writer that hangs", took)
	}
	for _, lock := range []*redlock.Lock{first, second} {
		if err := lock.Unlock(bounded(t)); err != nil {
			t.Error(err)
		}
	}
	writer.Signal(continueSignal)
	writer.FinishAfter("written", longHang)
}
