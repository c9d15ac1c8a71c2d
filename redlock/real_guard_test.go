package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/long"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// guardTime is the max TTL of deployments whose quarantines a test waits for.
const guardTime = 3 * time.Second

// thief tries to acquire the name of lock until the validity of lock has expired, even if the loss is reported earlier.
// It reports whether it got the name before that: for a holder that does not learn of the loss, that means two holders
// at once.
func thief(t *testing.T, l *redlock.Locker, lock *redlock.Lock, until time.Time) (tries int, twoHolders bool) {
	t.Helper()
	if left := time.Until(until); left < guardTime/10 {
		t.Fatalf("this machine is too slow for the test: %v of validity left", left)
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for time.Now().Before(until) {
		stolen, err := l.TryLock(bounded(t), lock.Name())
		tries++
		if err == nil {
			twoHolders = time.Now().Before(until)
			// The cause may be detected just now, and end the connections that carry the release.
			if err := stolen.Unlock(bounded(t)); err != nil && !errors.Is(err, redlock.ErrLost) &&
				!errors.Is(err, redlock.ErrNoQuorum) {
				t.Error(err)
			}
			return tries, twoHolders
		}
		<-tick.C
	}
	return tries, false
}

// H53: three of five masters restart empty, one after the other, while a lock is held. With the guard no other client
// gets the name before the validity of that lock would have expired. Without the guard one does, which is the violation
// that the guard prevents.
func TestMastersThatRestartEmptyDoNotGiveAHeldLockAway(t *testing.T) {
	t.Parallel()
	for name, guarded := range map[string]bool{"with the guard": true, "without it two hold the lock": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newDeployment(t, 5)
			guard := redlock.WithoutRestartGuard()
			if guarded {
				guard = redlock.WithMaxTTL(guardTime)
			}
			holder, other := f.admitted(guard, redlock.WithTTL(guardTime)), f.locker(guard, redlock.WithTTL(time.Second))
			for i := range f.servers {
				stateOf(t, holder, i, "voting")
				stateOf(t, other, i, "voting")
			}
			lock := held(t)(holder.Lock(bounded(t), "n", redlock.WithExtension(false)))
			until := lock.Until()
			f.restart(0, 1, 2)
			tries, two := thief(t, other, lock, until)
			t.Logf("%d tries, two holders: %v", tries, two)
			if two == guarded {
				t.Errorf("guard %v, two holders at once: %v", guarded, two)
			}
			f.admit(other) // no hold is valid any more
			got := held(t)(other.Lock(bounded(t), "n"))
			if got.Token() <= lock.Token() {
				t.Errorf("token %d after %d, although the masters forgot their fences", got.Token(), lock.Token())
			}
			if err := got.Unlock(bounded(t)); err != nil {
				t.Error(err)
			}
		})
	}
}

// H26, H53: all five masters restart empty in turn, each after the lock is on all of them again. The lock survives all
// restarts, and no other client gets it meanwhile.
func TestALockOutlivesARollingRestartOfAllMasters(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 5)
	guard := redlock.WithMaxTTL(2 * calm) // a lock with a TTL below the timeout is not repaired in quarantine
	holder, other := f.admitted(guard, redlock.WithTTL(calm)), f.locker(guard, redlock.WithTTL(time.Second))
	lock := held(t)(holder.Lock(bounded(t), "n"))
	token := lock.Token()
	ctx, cancel := context.WithCancel(bounded(t))
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			if stolen, err := other.TryLock(ctx, "n"); err == nil {
				t.Errorf("another client got the lock with token %d, the holder's is %d and %v", stolen.Token(), token, lock.Err())
				return
			}
			<-tick.C
		}
	})
	for i := range f.servers {
		f.restart(i)
		eventually(t, hang, func() string {
			if on, n := lock.HeldOn(); on != n || len(f.keys(i, "lock")) == 0 {
				return fmt.Sprintf("on %d of %d after the restart of master %d (%v)", on, n, i, lock.Err())
			}
			return ""
		})
	}
	cancel()
	wg.Wait()
	if lock.Err() != nil || lock.Token() != token {
		t.Errorf("token %d, was %d; %v", lock.Token(), token, lock.Err())
	}
	if err := lock.Unlock(bounded(t)); err != nil {
		t.Error(err)
	}
}

var untilPattern = regexp.MustCompile(`quarantine until (\S+ UTC) by its clock, since `)

// quarantined checks that TryLock fails because masters are in quarantine, and returns the longest time in the text.
func quarantined(t *testing.T, l *redlock.Locker, masters ...int) time.Duration {
	t.Helper()
	for _, i := range masters {
		stateOf(t, l, i, "quarantine")
	}
	_, err := l.TryLock(bounded(t), "another name")
	if !errors.Is(err, redlock.ErrQuarantine) || !errors.Is(err, redlock.ErrNoQuorum) {
		t.Fatalf("%v, want ErrNoQuorum for the quarantine", err)
	}
	longest := time.Duration(0)
	now := time.Now().UTC()
	for _, found := range untilPattern.FindAllStringSubmatch(err.Error(), -1) {
		until := must[time.Time](t)(time.Parse("15:04:05 UTC", found[1]))
		until = time.Date(now.Year(), now.Month(), now.Day(), until.Hour(), until.Minute(), until.Second(), 0, time.UTC)
		if until.Before(now.Add(-time.Hour)) { // the time is tomorrow's
			until = until.AddDate(0, 0, 1)
		}
		longest = max(longest, until.Sub(now))
	}
	if longest == 0 || !strings.Contains(err.Error(), "Admit") {
		t.Errorf("the text lacks the time or the remedy: %v", err)
	}
	return longest
}

// A quarantine ends by itself; the error says how long it lasts.
func TestAQuarantineEndsByItself(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 5)
	l := f.admitted(redlock.WithMaxTTL(guardTime), redlock.WithTTL(time.Second))
	f.restart(0, 2)
	stateOf(t, l, 0, "quarantine")
	stateOf(t, l, 2, "quarantine")
	f.kill(4)                                                       // two masters are no quorum
	const shortest, blur = 30 * time.Second, 500 * time.Millisecond // of the client's estimate of a master's time
	if left := quarantined(t, l, 0, 2); left > shortest+blur {
		t.Errorf("%v left, want at most %v", left, shortest)
	}
	if left := l.Masters()[0].Left; left > shortest+blur {
		t.Errorf("Masters says %v, want at most %v", left, shortest)
	}
	f.hasten(guardTime, 0, 2)
	lock := held(t)(l.Lock(bounded(t), "n")) // waits for the quarantine
	if err := lock.Unlock(bounded(t)); err != nil {
		t.Error(err)
	}
}

// Admit ends a quarantine that would last for minutes.
func TestAdmitNowEndsAQuarantine(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 5)
	guard := redlock.WithMaxTTL(10 * time.Minute)
	l := f.admitted(guard)
	f.restart(0, 2, 4)
	if left := quarantined(t, l, 0, 2, 4); left < 9*time.Minute {
		t.Errorf("%v left, the max TTL is 10 min", left)
	}
	f.admit(l)
	lock := held(t)(l.TryLock(bounded(t), "n"))
	if err := lock.Unlock(bounded(t)); err != nil {
		t.Error(err)
	}
	f.restart(0, 1, 2, 3, 4) // no master has a record, so no client knows the earlier max TTL
	if left := quarantined(t, f.locker(redlock.WithMaxTTL(time.Second), redlock.WithTTL(time.Second)), 0, 2,
		4); left < 20*time.Second {
		t.Errorf("%v left on masters that have lost all data, want about 30 s", left)
	}
}

// Admit works on masters that were flushed since this Locker last used them, and that the Locker still counts as
// voting.
func TestAdmitNowLooksBeforeItBelievesThatAMasterVotes(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 5)
	idle := f.admitted()
	for i := range 3 {
		f.do(i, "FLUSHALL")
		if m := idle.Masters()[i]; m.State != "voting" {
			t.Fatalf("master %d is %q: want an idle Locker", i, m.State)
		}
	}
	f.admit(idle)
	for i := range 3 {
		if text := f.record(i); !strings.Contains(text, "state=admitted") {
			t.Errorf("master %d has the record %q", i, text)
		}
	}
}

// Clients that each live for less than a second, without any other client, finish a quarantine.
func TestShortLivedProgramsAloneFinishAQuarantine(t *testing.T) {
	t.Parallel()
	if !long.Enabled() {
		t.Skip("needs -long: it makes many short-lived clients")
	}
	for file, args := range map[string][]string{"no file": nil, "append-only file": {"--appendonly", "yes"}} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			shortLived(t, newDeployment(t, 5, args...))
		})
	}
}

func shortLived(t *testing.T, f *deployment) {
	opts := []redlock.Option{redlock.WithMaxTTL(guardTime), redlock.WithTTL(time.Second)}
	first := f.admitted(opts...)
	if err := first.Close(bounded(t)); err != nil {
		t.Fatal(err)
	}
	f.restart(1, 2)
	programs := 0
	program := func() error {
		programs++
		p := must[*pool.Pool](t)(pool.Open(f.urls))
		defer p.Close()
		l := must[*redlock.Locker](t)(redlock.New(p, opts...))
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer cancel()
		_, err := l.TryLock(ctx, fmt.Sprint("n", programs))
		return errors.Join(err, l.Close(bounded(t)))
	}
	eventually(t, hang, func() string {
		if err := program(); err != nil {
			t.Logf("program %d: %v", programs, err)
		}
		if a, b := f.record(1), f.record(2); !strings.Contains(a, "state=quarantine") ||
			!strings.Contains(b, "state=quarantine") {
			return fmt.Sprintf("no quarantine has begun: %q, %q", a, b)
		}
		return ""
	})
	f.hasten(guardTime, 1, 2)
	f.kill(3) // two masters are no quorum
	eventually(t, hang, func() string {
		if err := program(); err != nil {
			return err.Error()
		}
		return ""
	})
	if programs < 2 {
		t.Errorf("%d clients: there was no quarantine", programs)
	}
	t.Logf("%d programs", programs)
}

// H53: FLUSHALL on live connections deletes the records. Flushed masters do not vote, and a lock that was held on them
// is not granted again.
func TestFlushedMastersGoIntoQuarantine(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 5)
	guard := redlock.WithMaxTTL(guardTime)
	holder, other := f.admitted(guard, redlock.WithTTL(guardTime)), f.locker(guard, redlock.WithTTL(time.Second))
	for i := range f.servers {
		stateOf(t, other, i, "voting")
	}
	lock := held(t)(holder.Lock(bounded(t), "n", redlock.WithExtension(false)))
	until := lock.Until()
	for _, i := range []int{0, 1, 2} {
		f.do(i, "FLUSHALL")
	}
	_, err := other.TryLock(bounded(t), "n")
	if !errors.Is(err, redlock.ErrQuarantine) {
		t.Errorf("just after the flush: %v, want ErrQuarantine", err)
	}
	if tries, two := thief(t, other, lock, until); two {
		t.Errorf("two holders at once, after %d tries", tries)
	}
	f.admit(other) // no hold is valid any more
	got := held(t)(other.Lock(bounded(t), "n"))
	if got.Token() <= lock.Token() {
		t.Errorf("token %d after %d, although the masters forgot their fences", got.Token(), lock.Token())
	}
	if err := got.Unlock(bounded(t)); err != nil {
		t.Error(err)
	}
	for i := range f.servers {
		stateOf(t, other, i, "voting")
		if m := f.record(i); !strings.Contains(m, "longest=3000 quarantine=30000 state=admitted") {
			t.Errorf("master %d has the record %q", i, m)
		}
	}
}

// A master that restarts with the data of its append-only file, which may be a second old, is in quarantine too.
func TestARestartWithAnAppendOnlyFileIsAQuarantine(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 3, "--appendonly", "yes", "--appendfsync", "everysec")
	l := f.admitted() // with a TTL much longer than the restarts
	lock := held(t)(l.Lock(bounded(t), "n"))
	eventually(t, hang, func() string {
		if len(f.keys(0, "lock")) == 0 {
			return "its acquire is still on its way"
		}
		// While an earlier fsync lasts the server buffers its next writes, and a kill loses them.
		if info := fmt.Sprintf("%s", f.do(0, "INFO", "persistence")); !strings.Contains(info, "aof_buffer_length:0") {
			return "its acquire is not in the file yet"
		}
		return ""
	})
	before := f.record(0)
	f.restart(0, 1)
	if keys := f.keys(0, "lock"); len(keys) != 1 {
		t.Errorf("the file has lost the lock: %v", keys)
	}
	quarantined(t, l, 0, 1)
	after := f.record(0)
	if !strings.Contains(after, "state=quarantine") || identity(before) == identity(after) {
		t.Errorf("record %q, before %q: want a quarantine of another run", after, before)
	}
	// Releases work in quarantine. The lock is lost if the second restart came before the first master confirmed the lock.
	if err := lock.Unlock(bounded(t)); err != nil && !errors.Is(err, redlock.ErrLost) {
		t.Error(err)
	}
	f.noLocks(time.Second)
	f.admit(l)
	got := held(t)(l.Lock(bounded(t), "n"))
	if got.Token() <= lock.Token() {
		t.Errorf("token %d after %d", got.Token(), lock.Token())
	}
	if err := got.Unlock(bounded(t)); err != nil {
		t.Error(err)
	}
}
