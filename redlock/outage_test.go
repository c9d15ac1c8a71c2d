package redlock_test

import (
	"context"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlock-go/redlock/redlock"
)

const quorumWait = 2 * time.Second

// In a known outage each call that waits fails after its quorum wait, and not after its wait limit.
func TestQuorumWaitInOutage(t *testing.T) {
	for of, calls := range kinds {
		for how, call := range calls {
			if how == "Lead" || strings.HasPrefix(how, "Try") {
				continue
			}
			subtest(t, of+"/"+how, 3, func(w *cluster) {
				l := w.locker(redlock.WithQuorumWait(quorumWait), redlock.WithWaitLimit(time.Hour))
				w.stop(0, 1)
				after(time.Second)
				began := time.Now()
				err := call(w.Context(), l, "n")
				w.says(err, redlock.ErrNoQuorum, "master-1", "master-2")
				w.notError(err, context.Canceled)
				if took := time.Since(began); took < quorumWait || took > quorumWait+time.Second {
					w.Errorf("the call took %v, want %v: %v", took, quorumWait, err)
				}
				w.restart(true, 0, 1)
				after(time.Minute)
				w.noError(call(w.Context(), l, "n"))
			})
		}
	}
}

// The quorum wait does not limit the wait behind a holder, not even across short outages. An outage that begins during
// the wait counts from its own beginning, also for calls that wait locally behind another call.
func TestQuorumWaitBehindHolder(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l := w.locker(redlock.WithQuorumWait(quorumWait))
		must(w.locker().Lock(w.Context(), "n", redlock.WithTTL(30*time.Second)))(w)
		first, second := w.goLock(w.Context(), l, "n"), w.goLock(w.Context(), l, "n")
		for range 3 {
			after(10 * time.Second)
			w.hang(0, 1)
			after(time.Second)
			w.resume(0, 1)
		}
		after(10 * time.Second)
		if first.returned() || second.returned() {
			w.Fatal("a call has not waited for the holder")
		}
		began := time.Now()
		w.stop(0, 1)
		for _, c := range []*call{first, second} {
			<-c.done
			w.isError(c.err, redlock.ErrNoQuorum)
		}
		w.wantSince(began, quorumWait+time.Second)
		if took := time.Since(began); took < quorumWait {
			w.Errorf("the calls ended after %v", took)
		}
	})
}

// The timer of a quorum wait does not outlive its call, also if the call ends when the timer fires.
func TestQuorumWaitEndsWithItsCall(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l := w.locker(redlock.WithQuorumWait(time.Second))
		must(w.locker().Lock(w.Context(), "n", redlock.WithTTL(30*time.Second)))(w)
		const calls = 500
		var freed atomic.Int64
		for range calls {
			func() {
				big := make([]byte, 1<<10)
				runtime.AddCleanup(&big[0], func(int) { freed.Add(1) }, 0)
				ctx, cancel := context.WithTimeout(context.WithValue(w.Context(), &freed, big), time.Second)
				defer cancel()
				w.isError(errOf(l.Lock(ctx, "n")), context.DeadlineExceeded)
			}()
		}
		after(time.Minute)
		for range 5 {
			runtime.GC()
			after(time.Second)
		}
		if n := calls - freed.Load(); n > 5 {
			w.Errorf("%d of %d calls have ended a minute ago, but their contexts are still referenced", n, calls)
		}
	})
}
