package redlock_test

import (
	"context"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/long"
	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// An amnesia is one way in which master 0 loses, or seems to lose, a lock that it has granted.
type amnesia struct {
	name string
	// before is called when the master is admitted and nothing is held yet; forget is called later, during the hold.
	before, forget func(a *replicated)
	// remembers reports whether the lock still exists, so that no other client gets it even without the guard.
	remembers func(aof bool) bool
}

// A replicated is a deployment whose master 0 has a replica, which may replace master 0.
type replicated struct {
	*deployment
	aof      bool
	replica  *redisproc.Server
	promoted atomic.Bool
	copy     string // directory with a copy of the files, or ""
}

func never(bool) bool { return false }

func amnesias() []amnesia {
	nothing := func(*replicated) {}
	return []amnesia{
		{"flushed", nothing, func(a *replicated) { a.do(0, "FLUSHALL") }, never},
		{"restarted", nothing, func(a *replicated) { a.restart(0) }, func(aof bool) bool { return aof }},
		{"restored from an old snapshot", (*replicated).keepCopy, (*replicated).restoreCopy, never},
		{"its replica was promoted", (*replicated).promote, func(a *replicated) {
			a.promoted.Store(true)
			a.kill(0)
		}, never},
		{"it was a replica in between", nothing, func(a *replicated) {
			a.demote(0, 3)
			a.do(0, "REPLICAOF", "NO", "ONE")
		}, never},
	}
}

// H53, H57: a master that loses a lock in any of these ways, with persistence or without, does not grant the lock
// again. With the guard off this master grants the lock again, unless it still has the lock.
func TestForgetfulMasterDoesNotGrantHeldLock(t *testing.T) {
	if !long.Enabled() {
		t.Skip("needs -long: it starts a hundred servers")
	}
	t.Parallel()
	for _, a := range amnesias() {
		for aof, file := range map[bool]string{false: "no file", true: "append-only file"} {
			for guarded, how := range map[bool]string{true: "guard", false: "no guard"} {
				t.Run(a.name+", "+file+", "+how, func(t *testing.T) {
					t.Parallel()
					forgetUnderAHold(t, a, aof, guarded)
				})
			}
		}
	}
}

func forgetUnderAHold(t *testing.T, a amnesia, aof, guarded bool) {
	x := newReplicated(t, aof)
	guard := redlock.WithoutRestartGuard()
	if guarded {
		guard = redlock.WithMaxTTL(guardTime)
	}
	holder := locker(t, x.reach(), guard, redlock.WithTTL(guardTime))
	x.admit(holder)
	other := locker(t, x.reach(), guard, redlock.WithTTL(time.Second))
	for i := range x.servers {
		x.awaitState(holder, i, "voting")
		x.awaitState(other, i, "voting")
	}
	a.before(x)
	lock := x.everywhere(holder)
	for _, i := range []int{3, 4} { // so the lock is on 0, 1 and 2
		x.do(i, "DEL", redlock.DefaultPrefix+":{n}")
	}
	until := lock.Until()
	a.forget(x)
	tries, two := x.thief(other, lock, until)
	t.Logf("%d tries, two holders: %v", tries, two)
	if want := !guarded && !a.remembers(aof); two != want {
		t.Errorf("two holders at the same time: %v, want %v", two, want)
	}
	got := must(other.Lock(x.Context(), "n"))(x)
	x.wantLater(got, lock)
	// A lock that was acquired after a data loss is on masters 0, 3 and 4. A client that detects the loss of master 0 only
	// now has no quorum for its release.
	if err := got.Unlock(x.withTimeout(hang)); err != nil && guarded {
		t.Error(err)
	}
	if guarded { // the master votes again by itself
		x.atItsAddress().hasten(time.Second, 0)
		x.awaitState(other, 0, "voting")
	}
}

// everywhere locks "n" on all masters. It may need several attempts, because on a busy machine an attempt skips a
// master that did not answer for a moment.
func (f *deployment) everywhere(l *redlock.Locker) *redlock.Lock {
	f.Helper()
	for end := time.Now().Add(hang); ; {
		lock := must(l.Lock(f.Context(), "n", redlock.WithExtension(false)))(f)
		for lock.Remaining() > guardTime/2 {
			missing := slices.ContainsFunc([]int{0, 1, 2, 3, 4}, func(i int) bool { return len(f.locks(i)) == 0 })
			if !missing {
				return lock
			}
		}
		if time.Now().After(end) {
			f.Fatal("no lock reaches all masters")
		}
		_ = lock.Unlock(f.withTimeout(hang))
	}
}

func newReplicated(t *testing.T, aof bool) *replicated {
	args := []string{"--repl-diskless-sync-delay", "0"}
	if aof {
		args = append(args, "--appendonly", "yes", "--appendfsync", "always")
	}
	x := &replicated{deployment: newDeployment(t, 5, args...), aof: aof}
	x.replica = redistest.Test(t, 1, redisproc.Config{Args: args})[0]
	replica := &deployment{tester: tester{t}, servers: []*redisproc.Server{x.replica, x.servers[0]}}
	replica.demote(0, 1)
	return x
}

// reach returns a pool like dial. Once the replica is promoted, connections to the address of master 0 lead to the
// replica.
func (x *replicated) reach() *pool.Pool {
	return x.dial(transport.WithHeartbeat(100*time.Millisecond),
		pool.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			if x.promoted.Load() && addr == x.servers[0].Addr() {
				addr = x.replica.Addr()
			}
			return (&net.Dialer{}).DialContext(ctx, network, addr)
		}))
}

// atItsAddress returns the server that is now at the address of master 0.
func (x *replicated) atItsAddress() *deployment {
	if x.promoted.Load() {
		return &deployment{tester: x.tester, servers: []*redisproc.Server{x.replica}}
	}
	return x.deployment
}

// promote waits until the replica has the admission record of master 0, and makes the replica a master. It must be
// called before a lock is acquired.
func (x *replicated) promote() {
	x.Helper()
	replica := &deployment{tester: x.tester, servers: []*redisproc.Server{x.replica}}
	eventually(x, hang, func() string {
		if m := replica.record(0); m != x.record(0) {
			return "the replica has the record " + m
		}
		return ""
	})
	replica.do(0, "REPLICAOF", "NO", "ONE")
}

// keepCopy copies the current files of master 0.
func (x *replicated) keepCopy() {
	x.Helper()
	if !x.aof {
		eventually(x, hang, func() string { // the snapshot for the replica may not be in its file yet
			if _, err := redistest.Dial(x, x.servers[0]).Do("SAVE"); err != nil {
				return err.Error()
			}
			return ""
		})
	}
	eventually(x, hang, func() string { // otherwise files may be deleted while they are copied
		if text := string(x.do(0, "INFO", "persistence").([]byte)); !strings.Contains(text, "aof_rewrite_in_progress:0") {
			return "the append-only file is being rewritten"
		}
		return ""
	})
	x.copy = filepath.Join(x.TempDir(), "copy")
	if err := os.CopyFS(x.copy, files(x.servers[0].Dir())); err != nil {
		x.Fatal(err)
	}
}

// restoreCopy starts master 0 with the copied files.
func (x *replicated) restoreCopy() {
	x.Helper()
	x.kill(0)
	dir := x.servers[0].Dir()
	for _, name := range []string{"dump.rdb", "appendonlydir", "appendonly.aof"} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			x.Fatal(err)
		}
	}
	if err := os.CopyFS(dir, files(x.copy)); err != nil {
		x.Fatal(err)
	}
	x.restart(0)
	if keys := x.locks(0); len(keys) != 0 ||
		!strings.Contains(x.record(0), "state=") && x.record(0) != "redigo: nil returned" {
		x.Fatalf("the old files have %v, and the record %q: want the record without the lock", keys, x.record(0))
	}
}

// files returns the files of a directory that hold a server's data.
func files(dir string) fs.FS { return dataFiles{os.DirFS(dir)} }

type dataFiles struct{ fs.FS }

// ReadDir lists a directory. In the top directory it omits what is not data: the socket and the logs.
func (d dataFiles) ReadDir(name string) ([]fs.DirEntry, error) {
	list, err := fs.ReadDir(d.FS, name)
	if name != "." {
		return list, err
	}
	return slices.DeleteFunc(list, func(e fs.DirEntry) bool {
		return e.Name() != "dump.rdb" && e.Name() != "appendonlydir" && e.Name() != "appendonly.aof"
	}), err
}
