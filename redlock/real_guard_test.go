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

	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// guardTime is the guard time of fleets whose quarantines a test waits for. It is also the longest TTL there.
const guardTime = 3 * time.Second

// thief tries to take n again and again, as long as lock is valid, and reports whether it ever got it while lock still
// was: two holders at once.
func thief(t *testing.T, l *redlock.Locker, lock *redlock.Lock) (tries int, twoHolders bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for lock.Remaining() > 0 {
		stolen, err := l.TryLock(bounded(t), lock.Name())
		tries++
		if err == nil {
			twoHolders = lock.Remaining() > 0
			if err := stolen.Unlock(bounded(t)); err != nil && !errors.Is(err, redlock.ErrLost) {
				t.Error(err)
			}
			return tries, twoHolders
		}
		<-tick.C
	}
	return tries, false
}

// H53: three of five masters restart empty, one after the other, under a hold. With the guard nobody else gets the name
// as long as that hold is valid; without it somebody does, which is the violation that the guard is there for.
func TestMastersThatRestartEmptyDoNotGiveAHeldLockAway(t *testing.T) {
	t.Parallel()
	for name, guarded := range map[string]bool{"with the guard": true, "without it two hold the lock": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, 5)
			guard := redlock.Option(redlock.WithoutGuard())
			if guarded {
				guard = redlock.WithGuardTime(guardTime)
			}
			holder, other := f.admitted(guard, redlock.WithTTL(guardTime)), f.locker(guard, redlock.WithTTL(time.Second))
			for i := range f.servers {
				stateOf(t, holder, i, "voting")
				stateOf(t, other, i, "voting")
			}
			lock := held(t)(holder.Lock(bounded(t), "n", redlock.WithExtension(false)))
			f.restart(0, 1, 2)
			if left := lock.Remaining(); left < guardTime/10 {
				t.Fatalf("this machine is too slow to show anything: %v of validity left after three restarts", left)
			}
			tries, two := thief(t, other, lock)
			t.Logf("%d tries, two holders: %v", tries, two)
			if two == guarded {
				t.Errorf("guard %v, two holders at once: %v", guarded, two)
			}
			got := held(t)(other.Lock(bounded(t), "n"))
			if got.Token() <= lock.Token() {
				t.Errorf("token %d after %d, although the masters forgot their bars", got.Token(), lock.Token())
			}
			if err := got.Unlock(bounded(t)); err != nil {
				t.Error(err)
			}
		})
	}
}

// H26, H53: all five masters restart empty in turn, each once the hold is on all of them again. It outlives them all,
// and nobody else gets it meanwhile.
func TestAHoldOutlivesARollingRestartOfAllMasters(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 5)
	guard := redlock.WithGuardTime(2 * time.Second)
	holder, other := f.admitted(guard, redlock.WithTTL(1200*time.Millisecond)), f.locker(guard, redlock.WithTTL(time.Second))
	lock := held(t)(holder.Lock(bounded(t), "n"))
	token := lock.Token()
	ctx, cancel := context.WithCancel(bounded(t))
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			if stolen, err := other.TryLock(ctx, "n"); err == nil {
				t.Errorf("somebody else got the lock with token %d, the holder's is %d and %v", stolen.Token(), token, lock.Err())
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

var leftPattern = regexp.MustCompile(`quarantine for another (\S+), `)

// quarantined checks that TryLock fails for the quarantine of masters, and returns the longest that the text names.
func quarantined(t *testing.T, l *redlock.Locker, masters ...int) time.Duration {
	t.Helper()
	for _, i := range masters {
		stateOf(t, l, i, "quarantine")
	}
	_, err := l.TryLock(bounded(t), "n")
	if !errors.Is(err, redlock.ErrQuarantine) || !errors.Is(err, redlock.ErrNoQuorum) {
		t.Fatalf("%v, want ErrNoQuorum for the quarantine", err)
	}
	longest := time.Duration(0)
	for _, found := range leftPattern.FindAllStringSubmatch(err.Error(), -1) {
		longest = max(longest, must[time.Duration](t)(time.ParseDuration(found[1])))
	}
	if longest == 0 || !strings.Contains(err.Error(), "AdmitNow") {
		t.Errorf("the text does not say how long, or what to do: %v", err)
	}
	return longest
}

// A quarantine ends by itself after the fleet's guard time; the error says how long that is.
func TestAQuarantineEndsByItself(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 5)
	l := f.admitted(redlock.WithGuardTime(guardTime), redlock.WithTTL(time.Second))
	f.restart(0, 2, 4)
	const blur = 500 * time.Millisecond // of what the client knows of a master's time
	if left := quarantined(t, l, 0, 2, 4); left > guardTime+blur {
		t.Errorf("%v left, the guard time is %v", left, guardTime)
	}
	if left := l.Masters()[0].Left; left > guardTime+blur {
		t.Errorf("Masters says %v, the guard time is %v", left, guardTime)
	}
	lock := held(t)(l.Lock(bounded(t), "n")) // it waits for that
	if err := lock.Unlock(bounded(t)); err != nil {
		t.Error(err)
	}
}

// AdmitNow ends a quarantine that would last for minutes.
func TestAdmitNowEndsAQuarantine(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 5)
	guard := redlock.WithGuardTime(10 * time.Minute)
	l := f.admitted(guard)
	f.restart(0, 2, 4)
	if left := quarantined(t, l, 0, 2, 4); left < 9*time.Minute {
		t.Errorf("%v left, the guard time is 10 min", left)
	}
	f.admit(l)
	lock := held(t)(l.TryLock(bounded(t), "n"))
	if err := lock.Unlock(bounded(t)); err != nil {
		t.Error(err)
	}
	f.restart(0, 1, 2, 3, 4) // nobody has a marker: nobody knows the guard time of those before
	if left := quarantined(t, f.locker(redlock.WithGuardTime(time.Second), redlock.WithTTL(time.Second)), 0, 2, 4); left < 20*time.Second {
		t.Errorf("%v left on a fleet that has forgotten everything, want about 30 s", left)
	}
}

// Programs that each live for less than a second, with nobody else there, finish a quarantine.
func TestShortLivedProgramsAloneFinishAQuarantine(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 5)
	opts := []redlock.Option{redlock.WithGuardTime(guardTime), redlock.WithTTL(time.Second)}
	first := f.admitted(opts...)
	if err := first.Close(bounded(t)); err != nil {
		t.Fatal(err)
	}
	f.restart(1, 2, 3)
	programs := 0
	eventually(t, hang, func() string {
		programs++
		p := must[*pool.Pool](t)(pool.Dial(f.urls))
		defer p.Close()
		l := must[*redlock.Locker](t)(redlock.New(p, opts...))
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer cancel()
		_, err := l.TryLock(ctx, "n")
		if closed := l.Close(bounded(t)); closed != nil {
			t.Error(closed)
		}
		if err != nil {
			return err.Error()
		}
		return ""
	})
	if programs < 2 {
		t.Errorf("%d programs: the quarantine was none", programs)
	}
	t.Logf("%d programs", programs)
	f.noLocks(hang)
}

// H53: FLUSHALL on living connections takes the markers with it. Masters so flushed do not vote, and a lock that was
// held on them is not given away.
func TestFlushedMastersGoIntoQuarantine(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 5)
	guard := redlock.WithGuardTime(guardTime)
	holder, other := f.admitted(guard, redlock.WithTTL(guardTime)), f.locker(guard, redlock.WithTTL(time.Second))
	for i := range f.servers {
		stateOf(t, other, i, "voting")
	}
	lock := held(t)(holder.Lock(bounded(t), "n", redlock.WithExtension(false)))
	for _, i := range []int{0, 1, 2} {
		f.do(i, "FLUSHALL")
	}
	_, err := other.TryLock(bounded(t), "n")
	if !errors.Is(err, redlock.ErrQuarantine) {
		t.Errorf("just after the flush: %v, want ErrQuarantine", err)
	}
	if tries, two := thief(t, other, lock); two {
		t.Errorf("two holders at once, after %d tries", tries)
	}
	got := held(t)(other.Lock(bounded(t), "n"))
	if got.Token() <= lock.Token() {
		t.Errorf("token %d after %d, although the masters forgot their bars", got.Token(), lock.Token())
	}
	if err := got.Unlock(bounded(t)); err != nil {
		t.Error(err)
	}
	for i := range f.servers {
		stateOf(t, other, i, "voting")
		if m := f.marker(i); !strings.HasSuffix(m, "guard=3000 epoch=0 state=admitted") {
			t.Errorf("master %d has the marker %q", i, m)
		}
	}
}

// A master that restarts with what its append-only file remembers, which may be a second old, is in quarantine too.
func TestARestartWithAnAppendOnlyFileIsAQuarantine(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3, "--appendonly", "yes", "--appendfsync", "everysec")
	l := f.admitted(redlock.WithGuardTime(guardTime), redlock.WithTTL(guardTime))
	lock := held(t)(l.Lock(bounded(t), "n"))
	before := f.marker(0)
	f.restart(0, 1)
	if keys := f.keys(0, "lock"); len(keys) != 1 {
		t.Errorf("the file has not kept the lock: %v", keys)
	}
	quarantined(t, l, 0, 1)
	after := f.marker(0)
	if !strings.Contains(after, "state=pending:") || identity(before) == identity(after) {
		t.Errorf("marker %q, before %q: want a quarantine of another run", after, before)
	}
	if err := lock.Unlock(bounded(t)); err != nil { // releases work in quarantine
		t.Error(err)
	}
	f.noLocks(time.Second)
	got := held(t)(l.Lock(bounded(t), "n"))
	if got.Token() <= lock.Token() {
		t.Errorf("token %d after %d", got.Token(), lock.Token())
	}
	if err := got.Unlock(bounded(t)); err != nil {
		t.Error(err)
	}
}

// identity is the part of a marker that says whose it is.
func identity(marker string) string {
	_, rest, _ := strings.Cut(marker, " id=")
	id, _, _ := strings.Cut(rest, " ")
	return id
}

// H57: a master becomes a replica of another one that lacks the lock, and a master again, with the same run id and the
// same connections. It has lost the lock; it closes the session and does not vote while the hold is valid. Without the
// guard it votes, and two hold the lock.
func TestAMasterThatWasAReplicaInBetweenDoesNotVote(t *testing.T) {
	t.Parallel()
	for name, guarded := range map[string]bool{"with the guard": true, "without it two hold the lock": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			guard := redlock.Option(redlock.WithoutGuard())
			if guarded {
				guard = redlock.WithGuardTime(guardTime)
			}
			failBack(t, guarded, guard)
		})
	}
}

func failBack(t *testing.T, guarded bool, guard redlock.Option) {
	f := newFleet(t, 5, "--repl-diskless-sync-delay", "0")
	holder := f.admitted(guard, redlock.WithTTL(guardTime))
	other := locker(t, f.dial(pool.WithHeartbeat(100*time.Millisecond)), guard, redlock.WithTTL(time.Second))
	for i := range f.servers {
		stateOf(t, holder, i, "voting")
		stateOf(t, other, i, "voting")
	}
	lock := held(t)(holder.Lock(bounded(t), "n", redlock.WithExtension(false)))
	for i := range f.servers {
		eventually(t, hang, func() string {
			if len(f.keys(i, "lock")) == 0 {
				return "its acquire is still on its way"
			}
			return ""
		})
	}
	for _, i := range []int{3, 4} { // the hold is on 0, 1 and 2
		f.do(i, "DEL", redlock.DefaultPrefix+":{n}:lock")
	}
	before := replicationID(f, 0)
	f.demote(0, 3)
	f.do(0, "REPLICAOF", "NO", "ONE")
	if keys := f.keys(0, "lock"); len(keys) != 0 || replicationID(f, 0) == before {
		t.Fatalf("the failback has kept %v, or its replication id %s: nothing is shown", keys, before)
	}
	if left := lock.Remaining(); left < guardTime/10 {
		t.Fatalf("this machine is too slow to show anything: %v of validity left", left)
	}
	tries, two := thief(t, other, lock)
	t.Logf("%d tries, two holders: %v", tries, two)
	if two == guarded {
		t.Errorf("guard %v, two holders at once: %v", guarded, two)
	}
	got := held(t)(other.Lock(bounded(t), "n"))
	if guarded {
		stateOf(t, other, 0, "voting")
		if m := f.marker(0); !strings.HasSuffix(identity(m), "/"+replicationID(f, 0)) {
			t.Errorf("it votes under the marker %q, of another identity", m)
		}
	}
	if err := got.Unlock(bounded(t)); err != nil {
		t.Error(err)
	}
}

func replicationID(f *fleet, i int) string {
	_, rest, _ := strings.Cut(string(f.do(i, "INFO", "replication").([]byte)), "master_replid:")
	id, _, _ := strings.Cut(rest, "\r")
	return id
}

// demote makes master i a replica of another, and waits until it has copied that one.
func (f *fleet) demote(i, of int) {
	f.t.Helper()
	host, port, _ := strings.Cut(f.servers[of].Addr(), ":")
	f.do(i, "REPLICAOF", host, port)
	eventually(f.t, hang, func() string {
		text := string(f.do(i, "INFO", "replication").([]byte))
		if !strings.Contains(text, "master_link_status:up") {
			return text
		}
		return ""
	})
}

// H58: two programs with different guard times on one prefix. The markers keep the fleet's; TTLs up to it work for
// both, one above it is refused with a sentence, and a forgetful master waits for the fleet's guard time although only
// the program with the smaller one is there.
func TestTheGuardTimeBelongsToTheFleet(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 5)
	fleet := f.admitted(redlock.WithGuardTime(guardTime), redlock.WithTTL(time.Second))
	smaller := f.locker(redlock.WithGuardTime(time.Second), redlock.WithTTL(800*time.Millisecond))
	larger := f.locker(redlock.WithGuardTime(time.Minute), redlock.WithTTL(10*time.Second))
	works := func(l *redlock.Locker, opts ...redlock.LockOption) {
		t.Helper()
		lock := held(t)(l.Lock(bounded(t), "n", opts...))
		if err := lock.Unlock(bounded(t)); err != nil {
			t.Error(err)
		}
	}
	works(fleet, redlock.WithTTL(guardTime))
	works(smaller)
	works(larger, redlock.WithTTL(guardTime))
	_, err := larger.TryLock(bounded(t), "n")
	if !errors.Is(err, redlock.ErrGuardTime) || !errors.Is(err, redlock.ErrNoQuorum) || !strings.Contains(err.Error(), "guard time of the fleet 3s, of this Locker 1m0s") {
		t.Errorf("a TTL above the guard time: %v", err)
	}
	lock := held(t)(larger.Lock(bounded(t), "n", redlock.WithTTL(guardTime)))
	_, err = larger.Lock(lock.Context(bounded(t)), "n", redlock.WithTTL(4*time.Second), redlock.WithTries(2))
	if !errors.Is(err, redlock.ErrGuardTime) {
		t.Errorf("a re-entry above the guard time: %v", err)
	}
	if err := lock.Unlock(bounded(t)); err != nil {
		t.Error(err)
	}
	for _, l := range []*redlock.Locker{fleet, larger} {
		if err := l.Close(bounded(t)); err != nil {
			t.Error(err)
		}
	}
	f.restart(0, 1, 2)
	if left := quarantined(t, smaller, 0, 1, 2); left <= time.Second {
		t.Errorf("%v left, the guard time of the fleet is %v", left, guardTime)
	}
	works(smaller)
	for i := range f.servers {
		stateOf(t, smaller, i, "voting")
		if m := f.marker(i); !strings.Contains(m, " guard=3000 ") {
			t.Errorf("master %d has the marker %q", i, m)
		}
	}
}
