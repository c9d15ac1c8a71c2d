package redlock_test

import (
	"context"
	"crypto/fips140"
	"crypto/sha1"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/worker"
	"github.com/redlock-go/redlock/redlock"
)

func number(t testing.TB, text string) int64 {
	t.Helper()
	return must(strconv.ParseInt(text, 10, 64))(t)
}

// suspendedRole holds one lock and reports its end. After that it writes to the resource without checking its lock.
// Fencing tokens protect against such a late write.
func suspendedRole(ctx context.Context, l *redlock.Locker, a workerArgs) error {
	lock, err := l.Lock(ctx, a.Name)
	if err != nil {
		return err
	}
	mine := lock.Context(ctx)
	worker.Say("locked %d", lock.Token())
	<-mine.Done()
	worker.Say("ended lost=%v cause=%v", errors.Is(context.Cause(mine), redlock.ErrLost), context.Cause(mine))
	worker.Say("write %d", lock.Token())
	err = lock.Unlock(ctx)
	worker.Say("unlocked lost=%v again=%v err=%v", errors.Is(err, redlock.ErrLost),
		errors.Is(lock.Unlock(ctx), redlock.ErrReleased), err)
	return nil
}

// A resource refuses writes whose token is smaller than the largest token that it has seen.
type resource struct{ seen int64 }

func (r *resource) write(token int64) bool {
	if token < r.seen {
		return false
	}
	r.seen = token
	return true
}

// H14, H24: a holder that was stopped past its TTL detects the loss by its own timer as soon as it resumes. Another
// client has the lock in the meantime, the resource refuses the late write, and the late Unlock does not affect the
// new holder.
func TestStoppedHolderDetectsLoss(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 5)
	l := f.admitted(redlock.WithTTL(20 * time.Second))
	w := startWorker(t, "suspended", workerArgs{URLs: f.urls, Name: "n", TTL: 1500 * time.Millisecond})
	var res resource
	token := number(t, w.Line("locked"))
	if !res.write(token) {
		t.Fatal("the first write was refused")
	}
	w.Signal(stopSignal)
	lock := must(l.Lock(f.Context(), "n"))(f)
	if lock.Token() <= token || !res.write(lock.Token()) {
		t.Fatalf("the token of the next holder is %d, want more than %d", lock.Token(), token)
	}
	select {
	case line := <-w.Lines:
		t.Fatalf("the stopped worker says %q", line)
	default:
	}
	f.pause(0, 1, 2, 3, 4) // no master can report the loss: the holder must detect it
	w.Signal(continueSignal)
	resumed := time.Now()
	ended := w.Line("ended")
	if late := time.Since(resumed); late > time.Second {
		t.Errorf("the context of the stopped holder ended %v after the holder resumed", late)
	}
	f.resume(0, 1, 2, 3, 4)
	if !strings.HasPrefix(ended, "lost=true ") {
		t.Errorf("the context of the stopped holder ended with %s", ended)
	}
	if late := number(t, w.Line("write")); late != token || res.write(late) {
		t.Errorf("the late write with token %d was accepted after %d", late, lock.Token())
	}
	if text := w.Line("unlocked"); !strings.HasPrefix(text, "lost=true again=true ") {
		t.Errorf("the Unlock of the stopped holder reported %s", text)
	}
	w.Finish()
	if err := lock.Extend(f.withTimeout(hang)); err != nil || lock.Err() != nil {
		t.Errorf("the new holder was affected: %v, %v", err, lock.Err())
	}
	if on, n := lock.HeldOn(); on < n/2+1 {
		t.Errorf("the lock of the new holder is left on %d of %d masters", on, n)
	}
	f.noError(lock.Unlock(f.withTimeout(hang)))
	f.noLocks(hang)
}

// pairRole makes each kind of call that hashes or generates random numbers, three times.
func pairRole(ctx context.Context, l *redlock.Locker, a workerArgs) error {
	for range 3 {
		lock, err := l.Lock(ctx, a.Name)
		if err != nil {
			return err
		}
		inner, err := l.Lock(lock.Context(ctx), a.Name, redlock.WithReentry())
		if err != nil {
			return err
		}
		if err := errors.Join(lock.Extend(ctx), inner.Unlock(ctx)); err != nil {
			return err
		}
		handle, err := lock.Export()
		if err != nil {
			return err
		}
		if lock, err = l.Import(ctx, handle); err != nil {
			return err
		}
		if err := lock.Unlock(ctx); err != nil {
			return err
		}
	}
	worker.Say("paired, fips=%v sha1=%v", fips140.Enabled(), sha1Allowed())
	return nil
}

// sha1Allowed reports whether SHA-1 can be computed in this process.
func sha1Allowed() (allowed bool) {
	defer func() { allowed = recover() == nil }()
	sha1.Sum([]byte("text"))
	return true
}

// H35: a client starts, locks and unlocks in a process that allows only FIPS 140-3 algorithms, where the computation
// of a SHA-1 panics.
func TestLocksWithOnlyFIPSAlgorithmsAllowed(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 3)
	f.admitted()
	f.do(0, "SCRIPT", "FLUSH") // so that the worker gets NOSCRIPT as well
	w := startWorker(t, "pair", workerArgs{URLs: f.urls, Name: "n"}, "GODEBUG=fips140=only")
	if text := w.Line("paired,"); text != "fips=true sha1=false" {
		t.Errorf("unexpected report of the worker: %s", text)
	}
	w.Finish()
	f.noLocks(hang)
}
