package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/internal/long"
	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/admin"
)

func locker(t testing.TB, p *pool.Pool, opts ...redlock.Option) *redlock.Locker {
	t.Helper()
	l, err := redlock.New(p, opts...)
	tester{t}.must(err)
	t.Cleanup(func() { tester{t}.noError(l.Close()) })
	return l
}

// If a user lacks one right, the acquire script ends between two writes. The first write must be rolled back, since
// a key without a TTL would never expire.
func TestPartialAcquireIsRolledBack(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 3)
	f.admitted()
	f.allow("-pexpire")
	l := locker(t, f.dial(pool.WithCredentials("lock", "pw")))
	client.SetOf(l).AwaitKnown(f.withTimeout(hang))
	f.isError(errOf(l.TryLock(f.withTimeout(hang), "n")), redlock.ErrNoQuorum)
	f.noLocks(hang)
}

// When many lingering locks end at the same time, the extension of another lock is not delayed.
func TestManyLingeringLocksEnd(t *testing.T) {
	if !long.Enabled() {
		t.Skip("it takes ten seconds, and needs the machine to itself")
	}
	masters := memory.New(3)
	t.Cleanup(masters.Close)
	p, err := masters.Pool()
	c := tester{t}
	c.must(err)
	t.Cleanup(func() { _ = p.Close() })
	l := locker(t, p)
	must(l.Lock(c.Context(), "subscribes", redlock.WithLinger(time.Hour)))(c)
	locks := make([]*redlock.Lock, 20_000)
	var all sync.WaitGroup
	for part := range 100 {
		all.Go(func() {
			for i := part; i < len(locks); i += 100 {
				locks[i] = must(l.Lock(c.Context(), strconv.Itoa(i), redlock.WithLinger(2*time.Second),
					redlock.WithTTL(30*time.Second)))(c)
			}
		})
	}
	all.Wait()
	k := must(l.Lock(c.Context(), "extended", redlock.WithTTL(time.Second)))(c)
	for _, one := range locks {
		c.noError(one.Unlock(c.Context()))
	}
	least := time.Second
	for range 800 {
		least = min(least, k.Remaining())
		time.Sleep(5 * time.Millisecond)
	}
	if least < 500*time.Millisecond || k.Err() != nil {
		t.Errorf("a lock of 1 s that is extended had %v left, and ended with %v", least, k.Err())
	}
}

// While the passwords of all masters rotate, one master after the other, and all connections are closed, a held lock is
// kept and no call fails.
func TestPasswordsRotateUnderLoad(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 3)
	f.admitted()
	var password atomic.Value
	password.Store("password-0")
	f.allow(">password-0", "<pw")
	p := f.dial(pool.WithCredentialsProvider(func(context.Context) (string, string, error) {
		return "lock", password.Load().(string), nil
	}))
	l := locker(t, p)
	for i := range f.servers {
		f.awaitState(l, i, "voting")
	}
	kept := must(l.Lock(f.Context(), "kept"))(f)
	ctx, stop := context.WithCancel(context.Background())
	var load sync.WaitGroup
	for g := range 4 {
		load.Go(func() {
			for ctx.Err() == nil {
				err := l.Do(ctx, fmt.Sprint("n", g%2), nothing)
				if err != nil && ctx.Err() == nil {
					t.Errorf("a call failed: %v", err)
					return
				}
			}
		})
	}
	defer load.Wait()
	defer stop()
	session := func(i int) (session uint64) {
		transport.Of(p).Watch(func(e transport.Event) {
			if e.Master == i {
				session = e.Session
			}
		})()
		return session
	}
	for round := 1; round <= 5; round++ {
		password.Store(fmt.Sprint("password-", round))
		for i := range f.servers {
			before := session(i)
			f.do(i, "ACL", "SETUSER", "lock", fmt.Sprint(">password-", round), fmt.Sprint("<password-", round-1))
			f.do(i, "CLIENT", "KILL", "USER", "lock")
			redistest.Await(t, hang, func() string {
				if now := session(i); now <= before {
					return fmt.Sprintf("master %d has no new session (%d, then %d)", i, before, now)
				}
				return ""
			})
			f.awaitState(l, i, "voting")
		}
	}
	f.noError(kept.Unlock(f.Context()))
}

// durableArgs are the settings of a master that never loses a write that it has acknowledged.
var durableArgs = []string{"--appendonly", "yes", "--appendfsync", "always", "--no-appendfsync-on-rewrite", "no"}

// Masters that fsync every write, and are configured as durable, are killed. When they are back with their data,
// they vote immediately: a lock on exactly these masters is not granted again, and the next acquire need not wait
// for the max TTL.
func TestDurableMastersVoteAtOnceAndRemember(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 5, durableArgs...)
	guard := redlock.WithMaxTTL(10 * time.Minute)
	holder := f.admitted(guard, redlock.WithAllMastersDurable())
	other := f.locker(guard, redlock.WithAllMastersDurable())
	lock := must(holder.Lock(f.Context(), "n", redlock.WithExtension(false), redlock.WithTTL(5*time.Minute)))(f)
	redistest.Await(f, hang, func() string { // three grants are enough for Lock
		if on, _ := client.HeldOn(lock); on < 5 {
			return fmt.Sprintf("only %d masters have granted the lock", on)
		}
		return ""
	})
	f.kill(3, 4) // from now on the other three decide
	f.restart(0, 1, 2)
	for _, i := range []int{0, 1, 2} {
		f.awaitState(other, i, "voting")
		f.awaitState(holder, i, "voting")
		if m := f.record(i); !strings.Contains(m, "state=admitted") {
			t.Errorf("master %d has the record %q", i, m)
		}
	}
	redistest.Await(f, hang, func() string { // on a busy machine a vote may be late
		switch err := errOf(other.TryLock(f.withTimeout(hang), "n")); {
		case err == nil:
			f.Fatal("two holders")
		case !errors.Is(err, redlock.ErrHeld):
			return err.Error()
		}
		return ""
	})
	f.noError(lock.Extend(f.withTimeout(hang)))
	f.noError(lock.Unlock(f.Context()))
	got := must(other.Lock(f.Context(), "n", redlock.WithTries(1)))(f)
	f.wantLater(got, lock)
	f.noError(got.Unlock(f.withTimeout(hang)))
}

// H162: the settings of a durable master are changed while it runs. It has no vote until they are corrected.
func TestDurableMasterWithChangedSettings(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 3, durableArgs...)
	l := locker(t, f.dial(transport.WithHeartbeat(100*time.Millisecond)), redlock.WithAllMastersDurable())
	f.admit(l)
	redistest.Await(t, hang, func() string {
		if m := f.record(0); !strings.Contains(m, " durable=") {
			return "the record does not call master 0 durable: " + m
		}
		return ""
	})
	for _, change := range [][3]string{
		{"appendonly", "no", "yes"}, {"appendfsync", "everysec", "always"}, {"no-appendfsync-on-rewrite", "yes", "no"},
	} {
		f.do(0, "CONFIG", "SET", change[0], change[1])
		f.awaitState(l, 0, "blocked")
		if err := admin.Of(l).Masters()[0].Err; err == nil || !strings.Contains(err.Error(), change[0]+" "+change[1]) {
			t.Errorf("the error of master 0 is %v, want one that contains %s", err, change[0])
		}
		f.do(0, "CONFIG", "SET", change[0], change[2])
		f.awaitState(l, 0, "voting")
	}
}

// A master that is not configured as durable goes into quarantine after a restart, and so does a durable master that
// has lost its data or was a replica in between.
func TestOnlyDurableMastersWithDataVoteAtOnce(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 5, append([]string{"--repl-diskless-sync-delay", "0"}, durableArgs...)...)
	named := redlock.WithDurableMasters(f.servers[0].Addr(), f.servers[1].Addr(), f.servers[2].Addr())
	opts := []redlock.Option{redlock.WithMaxTTL(10 * time.Minute), named}
	l := locker(t, f.dial(transport.WithHeartbeat(100*time.Millisecond)), opts...)
	f.admit(l)
	if w := client.SetOf(l).Warnings(); len(w) != 0 {
		t.Errorf("the warnings are %q, want none", w)
	}
	f.restart(0, 3)
	f.awaitState(l, 0, "voting")
	f.awaitState(l, 3, "quarantine")

	f.do(1, "FLUSHALL")
	f.restart(1)
	f.awaitState(l, 1, "quarantine")

	f.demote(2, 4) // master 2 gets the data of master 4, and changes its role
	f.do(2, "REPLICAOF", "NO", "ONE")
	f.awaitState(l, 2, "quarantine")
	f.admit(l)
	f.must(l.Close())
	f.demote(2, 4)
	f.do(2, "REPLICAOF", "NO", "ONE")
	redistest.Await(t, hang, func() string { // otherwise master 2 restarts with its old data
		text := string(f.do(2, "INFO", "persistence").([]byte))
		if !strings.Contains(text, "aof_rewrite_in_progress:0") || !strings.Contains(text, "aof_rewrite_scheduled:0") {
			return "the append-only file is still being rewritten"
		}
		return ""
	})
	f.restart(2)
	f.awaitState(f.locker(opts...), 2, "quarantine")
}

// H187: a machine starts with a clock that is ahead, which is set before a client connects. Keys of its durable master
// have expired meanwhile, so the master is in quarantine.
func TestDurableMasterThatStartsWithAClockAhead(t *testing.T) {
	t.Parallel()
	f := &deployment{tester: tester{t}}
	shifted := redistest.Shifted(t, 3, redisproc.Config{Args: durableArgs})
	for _, s := range shifted {
		f.servers, f.urls = append(f.servers, s.Server), append(f.urls, s.URL())
	}
	l := f.admitted(redlock.WithAllMastersDurable())
	f.must(l.Close())
	shifted[0].Shift(time.Hour)
	f.restart(0, 1)
	shifted[0].Shift(0)
	fresh := f.locker(redlock.WithAllMastersDurable())
	f.awaitState(fresh, 1, "voting")
	f.awaitState(fresh, 0, "quarantine")
}
