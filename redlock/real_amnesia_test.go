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

	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// An amnesia is one way in which master 0 loses, or seems to lose, a lock that it has granted.
type amnesia struct {
	name string
	// before is called when the master is admitted and nothing is held yet; forget afterwards, under the hold.
	before, forget func(a *patient)
	// remembers is true where the lock is still there: then even without the guard nobody else gets it.
	remembers func(aof bool) bool
}

// A patient is a fleet whose master 0 has a replica, and may be replaced by it.
type patient struct {
	*fleet
	aof      bool
	replica  *redisproc.Server
	promoted atomic.Bool
	copy     string // of the files, where there is one
}

func never(bool) bool { return false }

func amnesias() []amnesia {
	nothing := func(*patient) {}
	return []amnesia{
		{"flushed", nothing, func(a *patient) { a.do(0, "FLUSHALL") }, never},
		{"restarted", nothing, func(a *patient) { a.restart(0) }, func(aof bool) bool { return aof }},
		{"restored from an old snapshot", (*patient).keepCopy, (*patient).restoreCopy, never},
		{"its replica was promoted", (*patient).promote, func(a *patient) {
			a.promoted.Store(true)
			a.kill(0)
		}, never},
		{"it was a replica in between", nothing, func(a *patient) {
			a.demote(0, 3)
			a.do(0, "REPLICAOF", "NO", "ONE")
		}, never},
	}
}

// H53, H57: whatever way a master loses a lock, with persistence or without, the lock is not given away by it. Each way is
// shown to give it away where the guard is off.
func TestNoWayOfForgettingGivesAHeldLockAway(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a run without -short: it starts a hundred servers")
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
	x := newPatient(t, aof)
	guard := redlock.WithoutGuard()
	if guarded {
		guard = redlock.WithGuardTime(guardTime)
	}
	holder := locker(t, x.reach(), guard, redlock.WithTTL(guardTime))
	x.admit(holder)
	other := locker(t, x.reach(), guard, redlock.WithTTL(time.Second))
	for i := range x.servers {
		stateOf(t, holder, i, "voting")
		stateOf(t, other, i, "voting")
	}
	a.before(x)
	lock := x.everywhere(holder)
	for _, i := range []int{3, 4} { // the hold is on 0, 1 and 2
		x.do(i, "DEL", redlock.DefaultPrefix+":{n}")
	}
	until := lock.Until()
	a.forget(x)
	tries, two := thief(t, other, lock, until)
	t.Logf("%d tries, two holders: %v", tries, two)
	if want := !guarded && !a.remembers(aof); two != want {
		t.Errorf("two holders at once: %v, want %v", two, want)
	}
	got := held(t)(other.Lock(bounded(t), "n"))
	if got.Token() <= lock.Token() {
		t.Errorf("token %d after %d", got.Token(), lock.Token())
	}
	// A lock that was got by a forgetting is on master 0, 3 and 4; whoever finds just now that master 0 has forgotten
	// has no quorum for its release.
	if err := got.Unlock(bounded(t)); err != nil && guarded {
		t.Error(err)
	}
	if guarded { // it comes back by itself
		x.atItsAddress().hasten(time.Second, 0)
		stateOf(t, other, 0, "voting")
	}
}

// everywhere locks "n" so that all masters have it: one of which nothing was heard for a moment, on a busy machine, is not
// asked.
func (f *fleet) everywhere(l *redlock.Locker) *redlock.Lock {
	f.t.Helper()
	for end := time.Now().Add(hang); ; {
		lock := held(f.t)(l.Lock(bounded(f.t), "n", redlock.WithExtension(false)))
		for lock.Remaining() > guardTime/2 {
			missing := slices.ContainsFunc([]int{0, 1, 2, 3, 4}, func(i int) bool { return len(f.keys(i, "lock")) == 0 })
			if !missing {
				return lock
			}
		}
		if time.Now().After(end) {
			f.t.Fatal("no lock reaches all masters")
		}
		_ = lock.Unlock(bounded(f.t))
	}
}

func newPatient(t *testing.T, aof bool) *patient {
	args := []string{"--repl-diskless-sync-delay", "0"}
	if aof {
		args = append(args, "--appendonly", "yes", "--appendfsync", "always")
	}
	x := &patient{fleet: newFleet(t, 5, args...), aof: aof}
	x.replica = redistest.Test(t, 1, redisproc.Config{Args: args})[0]
	replica := &fleet{t: t, servers: []*redisproc.Server{x.replica, x.servers[0]}}
	replica.demote(0, 1)
	return x
}

// reach is dial, with the promoted replica at the address of master 0.
func (x *patient) reach() *pool.Pool {
	return x.dial(pool.WithHeartbeat(100*time.Millisecond), pool.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
		if x.promoted.Load() && addr == x.servers[0].Addr() {
			addr = x.replica.Addr()
		}
		return (&net.Dialer{}).DialContext(ctx, network, addr)
	}))
}

// atItsAddress is what stands at the address of master 0 now.
func (x *patient) atItsAddress() *fleet {
	if x.promoted.Load() {
		return &fleet{t: x.t, servers: []*redisproc.Server{x.replica}}
	}
	return x.fleet
}

// promote makes the replica a master of its own while it has the record and does not have the lock yet.
func (x *patient) promote() {
	x.t.Helper()
	replica := &fleet{t: x.t, servers: []*redisproc.Server{x.replica}}
	eventually(x.t, hang, func() string {
		if m := replica.record(0); m != x.record(0) {
			return "the replica has the record " + m
		}
		return ""
	})
	replica.do(0, "REPLICAOF", "NO", "ONE")
}

// keepCopy keeps the files of master 0 as they are now.
func (x *patient) keepCopy() {
	x.t.Helper()
	if !x.aof {
		eventually(x.t, hang, func() string { // the copy for the replica may still be on its way to its file
			if _, err := x.ask(0, "SAVE"); err != nil {
				return err.Error()
			}
			return ""
		})
	}
	eventually(x.t, hang, func() string { // else files are taken away while they are copied
		if text := string(x.do(0, "INFO", "persistence").([]byte)); !strings.Contains(text, "aof_rewrite_in_progress:0") {
			return "its file is being written anew"
		}
		return ""
	})
	x.copy = filepath.Join(x.t.TempDir(), "copy")
	if err := os.CopyFS(x.copy, files(x.servers[0].Dir())); err != nil {
		x.t.Fatal(err)
	}
}

// restoreCopy starts master 0 with the files that were kept.
func (x *patient) restoreCopy() {
	x.t.Helper()
	x.kill(0)
	dir := x.servers[0].Dir()
	for _, name := range []string{"dump.rdb", "appendonlydir", "appendonly.aof"} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			x.t.Fatal(err)
		}
	}
	if err := os.CopyFS(dir, files(x.copy)); err != nil {
		x.t.Fatal(err)
	}
	x.restart(0)
	if keys := x.keys(0, "lock"); len(keys) != 0 || !strings.Contains(x.record(0), "state=") && x.record(0) != "redigo: nil returned" {
		x.t.Fatalf("the old files have %v, and the record %q: nothing is shown", keys, x.record(0))
	}
}

// files are those of a directory that hold a server's data.
func files(dir string) fs.FS { return dataFiles{os.DirFS(dir)} }

type dataFiles struct{ fs.FS }

// ReadDir leaves out of the top what is no data: the socket, and logs.
func (d dataFiles) ReadDir(name string) ([]fs.DirEntry, error) {
	list, err := fs.ReadDir(d.FS, name)
	if name != "." {
		return list, err
	}
	return slices.DeleteFunc(list, func(e fs.DirEntry) bool {
		return e.Name() != "dump.rdb" && e.Name() != "appendonlydir" && e.Name() != "appendonly.aof"
	}), err
}
