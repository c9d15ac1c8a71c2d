package redlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// durableArgs are the settings of a master that never loses a write that it has acknowledged.
var durableArgs = []string{"--appendonly", "yes", "--appendfsync", "always", "--no-appendfsync-on-rewrite", "no"}

// Masters that fsync every write, and are configured as durable, are killed and vote at once when they are back, with
// their data. A lock on exactly those masters is not granted again, and the next acquire need not wait for the max TTL.
func TestDurableMastersVoteAtOnceAndRemember(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 5, durableArgs...)
	guard := redlock.WithMaxTTL(10 * time.Minute)
	holder := f.admitted(guard, redlock.WithDurableMasters())
	other := f.locker(guard, redlock.WithDurableMasters())
	lock := held(t)(holder.Lock(bounded(t), "n", redlock.WithExtension(false), redlock.WithTTL(5*time.Minute)))
	f.kill(3, 4) // from now on the other three decide
	f.restart(0, 1, 2)
	for _, i := range []int{0, 1, 2} {
		stateOf(t, other, i, "voting")
		stateOf(t, holder, i, "voting")
		if m := f.record(i); !strings.Contains(m, "state=admitted") {
			t.Errorf("master %d has the record %q", i, m)
		}
	}
	if _, err := other.TryLock(bounded(t), "n"); !errors.Is(err, redlock.ErrHeld) {
		t.Errorf("while held: %v, want ErrHeld", err)
	}
	if err := lock.Extend(bounded(t)); err != nil {
		t.Errorf("extend: %v", err)
	}
	if err := lock.Unlock(bounded(t)); err != nil {
		t.Errorf("unlock: %v", err)
	}
	got := held(t)(other.TryLock(bounded(t), "n"))
	if got.Token() <= lock.Token() {
		t.Errorf("token %d after %d", got.Token(), lock.Token())
	}
	if err := got.Unlock(bounded(t)); err != nil {
		t.Error(err)
	}
}

// The only master is killed. With its data it grants locks as soon as it can be reached again, and the held lock stays:
// as a durable master, and without the restart guard.
func TestALockOnOneMasterSurvivesItsRestart(t *testing.T) {
	t.Parallel()
	for name, opt := range map[string]redlock.Option{
		"durable": redlock.WithDurableMasters(), "no guard": redlock.WithoutRestartGuard(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newDeployment(t, 1, durableArgs...)
			l := f.admitted(opt)
			lock := held(t)(l.Lock(bounded(t), "n"))
			f.restart(0)
			next := held(t)(l.Lock(bounded(t), "m")) // not after a quarantine of 30 s
			if left := lock.Remaining(); lock.Err() != nil || left <= 0 {
				t.Errorf("the lock that was held: %v, %v left", lock.Err(), left)
			}
			if err := errors.Join(lock.Extend(bounded(t)), next.Unlock(bounded(t)), lock.Unlock(bounded(t))); err != nil {
				t.Error(err)
			}
		})
	}
}

// A master that is not configured as durable waits, and so does a durable one that has lost its data or was a replica
// in between.
func TestOnlyNamedMastersWithTheirMemoryAreAdmittedAtOnce(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 5, append([]string{"--repl-diskless-sync-delay", "0"}, durableArgs...)...)
	named := redlock.WithDurableMasters(f.servers[0].Addr(), f.servers[1].Addr(), f.servers[2].Addr())
	opts := []redlock.Option{redlock.WithMaxTTL(10 * time.Minute), named}
	l := locker(t, f.dial(pool.WithHeartbeat(100*time.Millisecond)), opts...)
	f.admit(l)
	if w := l.Warnings(); len(w) != 0 {
		t.Errorf("warnings: %q", w)
	}
	f.restart(0, 3)
	stateOf(t, l, 0, "voting")
	stateOf(t, l, 3, "quarantine")

	f.do(1, "FLUSHALL")
	f.restart(1)
	stateOf(t, l, 1, "quarantine")

	f.demote(2, 4) // now with the data of another master, by a change of role and in a new process
	f.do(2, "REPLICAOF", "NO", "ONE")
	stateOf(t, l, 2, "quarantine")
	f.admit(l)
	if err := l.Close(bounded(t)); err != nil {
		t.Fatal(err)
	}
	f.demote(2, 4)
	f.do(2, "REPLICAOF", "NO", "ONE")
	eventually(t, hang, func() string { // otherwise it comes back with its own data
		text := string(f.do(2, "INFO", "persistence").([]byte))
		if !strings.Contains(text, "aof_rewrite_in_progress:0") || !strings.Contains(text, "aof_rewrite_scheduled:0") {
			return "its file is still being written again"
		}
		return ""
	})
	f.restart(2)
	stateOf(t, f.locker(opts...), 2, "quarantine")
}

// A misspelt name would silently leave its master in quarantine, so it is warned of.
func TestADurableMasterThatIsNoneIsWarnedOf(t *testing.T) {
	t.Parallel()
	l := locker(t, newDeployment(t, 3).dial(), redlock.WithDurableMasters("10.0.0.9:6379"))
	if w := l.Warnings(); len(w) != 1 || !strings.Contains(w[0], "10.0.0.9:6379") {
		t.Errorf("%q", w)
	}
}

// Check verifies the settings of masters that are configured as durable.
func TestCheckVerifiesThatDurableMastersAre(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 3, durableArgs...)
	f.do(1, "CONFIG", "SET", "appendfsync", "everysec")
	l := f.admitted(redlock.WithDurableMasters())
	findings := must[[]pool.Finding](t)(l.Admin().Check(bounded(t)))
	if len(findings) != 1 || findings[0].Master != f.servers[1].Addr() || findings[0].Severity != pool.Failure ||
		!strings.Contains(findings[0].What, "appendfsync is everysec") {
		t.Errorf("%v", findings)
	}
}

// The time until the masters vote is in the error, in the trace and in the findings of Check.
func TestTheTimeUntilTheMastersVoteIsTold(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 3)
	told := make(chan time.Duration, 100)
	trace := redlock.On("master", func(m redlockinfo.Event) {
		if m.State == "quarantine" {
			told <- m.Left
		}
	})
	l := f.locker(redlock.WithMaxTTL(10*time.Minute), redlock.WithTrace(trace))
	l.Ready(bounded(t))
	if left := quarantined(t, l, 0, 1, 2); left < 9*time.Minute {
		t.Errorf("the error reports %v", left)
	}
	select {
	case left := <-told:
		if left < 9*time.Minute || left > 11*time.Minute {
			t.Errorf("the trace reports %v", left)
		}
	case <-bounded(t).Done():
		t.Error("the trace reports no time")
	}
	findings := must[[]pool.Finding](t)(l.Admin().Check(bounded(t)))
	for _, x := range findings {
		if x.About == "quorum" {
			continue
		}
		if x.About != "quarantine" || x.Severity != pool.Warning || !strings.Contains(x.What, "quarantine for another 9m5") &&
			!strings.Contains(x.What, "10m") {
			t.Errorf("Check reports %v", x)
		}
	}
	if len(findings) != 4 || findings[0].Severity != pool.Failure {
		t.Errorf("%d findings, want one for the quorum and one for each master: %v", len(findings), findings)
	}
	f.admit(l)
	if findings := must[[]pool.Finding](t)(l.Admin().Check(bounded(t))); len(findings) != 0 {
		t.Errorf("voting masters: %v", findings)
	}
	if err := l.Close(bounded(t)); err != nil {
		t.Error(err)
	}
	if _, err := l.Admin().Check(context.Background()); !errors.Is(err, redlock.ErrClosed) {
		t.Errorf("closed Locker: %v", err)
	}
}
