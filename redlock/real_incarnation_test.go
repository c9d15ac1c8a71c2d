package redlock_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// identity returns the part of an admission record that identifies the server.
func identity(record string) string {
	_, rest, _ := strings.Cut(record, " id=")
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
			guard := redlock.WithoutRestartGuard()
			if guarded {
				guard = redlock.WithMaxTTL(guardTime)
			}
			failBack(t, guarded, guard)
		})
	}
}

func failBack(t *testing.T, guarded bool, guard redlock.Option) {
	f := newDeployment(t, 5, "--repl-diskless-sync-delay", "0")
	holder := f.admitted(guard, redlock.WithTTL(guardTime))
	other := locker(t, f.dial(pool.WithHeartbeat(100*time.Millisecond)), guard, redlock.WithTTL(time.Second))
	for i := range f.servers {
		stateOf(t, holder, i, "voting")
		stateOf(t, other, i, "voting")
	}
	lock := f.everywhere(holder)
	for _, i := range []int{3, 4} { // the hold is on 0, 1 and 2
		f.do(i, "DEL", redlock.DefaultPrefix+":{n}")
	}
	before, until := replicationID(f, 0), lock.Until()
	f.demote(0, 3)
	f.do(0, "REPLICAOF", "NO", "ONE")
	if keys := f.keys(0, "lock"); len(keys) != 0 || replicationID(f, 0) == before {
		t.Fatalf("the failback has kept %v, or its replication id %s: nothing is shown", keys, before)
	}
	tries, two := thief(t, other, lock, until)
	t.Logf("%d tries, two holders: %v", tries, two)
	if two == guarded {
		t.Errorf("guard %v, two holders at once: %v", guarded, two)
	}
	got := held(t)(other.Lock(bounded(t), "n"))
	if guarded {
		f.hasten(guardTime, 0)
		stateOf(t, other, 0, "voting")
		if r := f.record(0); !strings.HasSuffix(identity(r), "/"+replicationID(f, 0)) {
			t.Errorf("it votes under the record %q, of another identity", r)
		}
	}
	// Without the guard the lock may be on few masters; a client that detects only now that one of them was a replica,
	// while another client had the lock, has no quorum for its release.
	if err := got.Unlock(bounded(t)); err != nil && guarded {
		t.Error(err)
	}
}

// replicationID returns the replication id of master i, which a promotion changes.
func replicationID(f *deployment, i int) string {
	text := string(f.do(i, "INFO", "replication").([]byte))
	field := func(name string) string {
		_, rest, _ := strings.Cut(text, name+":")
		value, _, _ := strings.Cut(rest, "\r")
		return value
	}
	return field("master_replid2") + "/" + field("second_repl_offset")
}

// demote makes master i a replica of another, and waits until it has copied the data.
func (f *deployment) demote(i, of int) {
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

// H58: two clients with different max TTLs on one prefix. The records have the max TTL of the deployment, which works
// for both; a longer TTL is refused with the command that raises the limit. A quarantine lasts for the max TTL of the
// deployment, although only the client with the smaller one is running.
func TestTheGuardTimeBelongsToTheDeployment(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 5)
	deployment := f.admitted(redlock.WithMaxTTL(guardTime), redlock.WithTTL(time.Second))
	smaller := f.locker(redlock.WithMaxTTL(time.Second), redlock.WithTTL(800*time.Millisecond))
	larger := f.locker(redlock.WithMaxTTL(time.Minute), redlock.WithTTL(10*time.Second))
	works := func(l *redlock.Locker, opts ...redlock.LockOption) {
		t.Helper()
		lock := held(t)(l.Lock(bounded(t), "n", opts...))
		if err := lock.Unlock(bounded(t)); err != nil {
			t.Error(err)
		}
	}
	works(deployment, redlock.WithTTL(guardTime))
	works(smaller)
	works(larger, redlock.WithTTL(guardTime))
	_, err := larger.TryLock(bounded(t), "n")
	if !errors.Is(err, redlock.ErrTTLTooLong) || !strings.Contains(err.Error(),
		"TTL 10s, longest TTL 3s; raise it on the masters first: redlock guard --set 10s") {
		t.Errorf("a TTL above the max TTL: %v", err)
	}
	lock := held(t)(larger.Lock(bounded(t), "n", redlock.WithTTL(guardTime)))
	_, err = larger.Lock(lock.Context(bounded(t)), "n", redlock.WithTTL(4*time.Second), redlock.WithTries(2))
	if !errors.Is(err, redlock.ErrTTLTooLong) {
		t.Errorf("a re-entry above the max TTL: %v", err)
	}
	if err := lock.Unlock(bounded(t)); err != nil {
		t.Error(err)
	}
	for _, l := range []*redlock.Locker{deployment, larger} {
		if err := l.Close(bounded(t)); err != nil {
			t.Error(err)
		}
	}
	f.restart(0, 1) // three masters are left that remember the max TTL
	stateOf(t, smaller, 0, "quarantine")
	stateOf(t, smaller, 1, "quarantine")
	f.kill(2)
	if left := quarantined(t, smaller, 0, 1); left < 20*time.Second {
		t.Errorf("%v left, the quarantine of the deployment is 30 s", left)
	}
	f.hasten(guardTime, 0, 1)
	works(smaller)
	for _, i := range []int{0, 1, 3, 4} {
		stateOf(t, smaller, i, "voting")
		if m := f.record(i); !strings.Contains(m, " longest=3000 ") {
			t.Errorf("master %d has the record %q", i, m)
		}
	}
}
