package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/worker"
	"github.com/redlock-go/redlock/redlock"
)

// tokensRole holds one name a.Count times and appends each token to the shared file while it holds it.
func tokensRole(ctx context.Context, l *redlock.Locker, a workerArgs) error {
	file, err := appendTo(filepath.Join(a.Dir, "tokens"))
	if err != nil {
		return err
	}
	defer file.Close()
	for range a.Count {
		// Pauses are long, so the client that has just released acquires the name again, which makes many holds per second.
		lock, err := l.Lock(ctx, a.Name,
			redlock.WithDelays(redlock.Delays{Fixed: 5 * time.Millisecond, Random: 25 * time.Millisecond}))
		if err != nil {
			return err
		}
		inner := int64(0)
		if lock.Token()%16 == 0 {
			again, err := l.Lock(lock.Context(ctx), a.Name)
			if err != nil {
				return err
			}
			if inner = again.Token(); inner != lock.Token() {
				return fmt.Errorf("re-entry changed the token from %d to %d", lock.Token(), inner)
			}
			if err := again.Unlock(ctx); err != nil {
				return err
			}
		}
		if _, err := fmt.Fprintln(file, lock.Token()); err != nil {
			return err
		}
		if lock.Err() != nil {
			return fmt.Errorf("lost while writing: %w", lock.Err())
		}
		if err := lock.Unlock(ctx); err != nil {
			return err
		}
	}
	return nil
}

// appendTo opens a file for atomic appends.
func appendTo(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
}

// Tokens of four processes, one of them with a clock 5 s behind and two with clocks an hour ahead, strictly grow in the
// order of the holds. Of those two, one has a pool that uses the true clock, so that it starts with a wrong estimate of
// the masters' time and is corrected by their refusals.
func TestTokensGrowAcrossProcessesWhoseClocksDiffer(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 5)
	f.admitted()
	each := rounds(2500, 100)
	dir := t.TempDir()
	var workers []*worker.Process
	for _, a := range []workerArgs{
		{}, {Shift: -5 * time.Second, ShiftPool: true}, {Shift: time.Hour, ShiftPool: true}, {Shift: time.Hour},
	} {
		a.URLs, a.Name, a.Dir, a.Count = f.urls, "n", dir, each
		workers = append(workers, startWorker(t, "tokens", a))
	}
	for _, w := range workers {
		w.FinishAfter("done", longHang)
	}
	text := must[[]byte](t)(os.ReadFile(filepath.Join(dir, "tokens")))
	lines := strings.Fields(string(text))
	if want := each * len(workers); len(lines) != want {
		t.Errorf("%d holds, want %d", len(lines), want)
	}
	last := int64(0)
	for i, line := range lines {
		token := must[int64](t)(strconv.ParseInt(line, 10, 64))
		if token <= last {
			t.Fatalf("hold %d has token %d after %d", i, token, last)
		}
		last = token
	}
	f.noLocks(hang)
}

// H55: the keys of the fences have a TTL, including those of re-entered, refused, rolled back and repaired holds. A
// re-entry keeps the token.
func TestKeysThatRememberTokensExpire(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 5)
	l, other := f.admitted(), f.locker()
	for i := range 20 {
		name := fmt.Sprint("n", i)
		lock := held(t)(l.Lock(bounded(t), name))
		inner := held(t)(l.Lock(lock.Context(bounded(t)), name))
		if inner.Token() != lock.Token() {
			t.Errorf("re-entry changed the token from %d to %d", lock.Token(), inner.Token())
		}
		if _, err := other.TryLock(bounded(t), name); !errors.Is(err, redlock.ErrHeld) {
			t.Fatal(err)
		}
		if err := errors.Join(inner.Unlock(bounded(t)), lock.Unlock(bounded(t))); err != nil {
			t.Fatal(err)
		}
	}
	f.noLocks(hang)
	for i := range f.servers {
		fences := f.keys(i, "fence")
		if len(fences) != 20 {
			t.Errorf("master %d has fences of %d names, want 20", i, len(fences))
		}
		for _, key := range fences {
			left := time.Duration(f.do(i, "PTTL", key).(int64)) * time.Millisecond
			const longest = scripts.FenceKept + time.Second // a ballot may be slightly ahead of the master's time
			if left <= scripts.FenceKept-hang || left > longest {
				t.Errorf("master %d: %s has a TTL of %v, want %v to %v", i, key, left, scripts.FenceKept, longest)
			}
		}
		if n := f.do(i, "DBSIZE").(int64); n != 21 {
			t.Errorf("master %d has %d keys, want 20 fences and its record", i, n)
		}
	}
}

// H26, H55: after some masters were killed and came back empty, repairs restore a hold on all masters, with its token.
func TestALockDriftsBackToAllMasters(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 5)
	l := f.admitted(redlock.WithTTL(calm), redlock.WithMaxTTL(2*calm)) // shorter TTLs: no repair in quarantine
	lock := held(t)(l.Lock(bounded(t), "n"))
	token := lock.Token()
	everywhere := func() string {
		if on, n := lock.HeldOn(); on != n {
			return fmt.Sprintf("on %d of %d with all there (%v, %s)", on, n, lock.Err(), states(l))
		}
		for i := range f.servers { // HeldOn may be from before the latest restart
			if len(f.keys(i, "lock")) == 0 {
				return fmt.Sprintf("not on master %d (%v, %s)", i, lock.Err(), states(l))
			}
		}
		return ""
	}
	eventually(t, hang, everywhere)
	for _, down := range [][]int{{0}, {1, 2}, {3, 4}} {
		f.restart(down...)
		eventually(t, hang, everywhere)
	}
	if lock.Err() != nil || lock.Token() != token {
		t.Errorf("token %d, was %d; %v", lock.Token(), token, lock.Err())
	}
	for i := range f.servers {
		if keys := f.keys(i, "lock"); len(keys) != 1 {
			t.Errorf("master %d has %v", i, keys)
		}
	}
	if err := lock.Unlock(bounded(t)); err != nil {
		t.Error(err)
	}
	f.noLocks(time.Second)
}
