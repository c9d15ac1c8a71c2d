package integration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/history"
	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/admin"
)

const (
	// scenarioTTL is the TTL of the workload's locks and the max TTL of its deployment.
	scenarioTTL = 2 * time.Second
	processes   = 3
)

// A scenario applies a fault while a workload runs. With any fault, the history must be valid for a lock, each process
// must end by itself, work must continue afterwards, and no lock may be left on a master.
type scenario struct {
	number int // position in the list of all scenarios
	name   string
	short  bool // part of the short set
	setup  func(t *testing.T) setup
	links  bool                // the workload reaches the masters through links
	aside  func(x *deployment) // runs before any client connects
	fault  func(x *deployment)
	// If steady is set, locks that are held throughout must survive the fault. If minority is set, a majority of the
	// masters is healthy at each moment, so calls for uncontended names must not fail either.
	steady, minority bool

	durable bool          // the masters persist every write, and the Lockers' options say so
	ttl     time.Duration // TTL of the workload's locks; 0 for scenarioTTL
	// reach returns the addresses at which the workload reaches the masters, if they differ from the usual ones.
	reach func(x *deployment) []string
}

// A deployment contains the masters of one scenario, and the processes that use them.
type deployment struct {
	*testing.T

	sc      scenario
	list    []Master
	links   []*link
	args    workerArgs
	locker  *redlock.Locker // a Locker in this process, for observation
	workers []*client
	retired []*client // killed by the scenario
	history history.Tail
	began   int64 // stamps of the start and the end of the fault
	ended   int64
	faults  []string // log of the faults, with times
}

func (sc scenario) run(t *testing.T) {
	x := newDeployment(t, sc)
	x.progress("the start")
	x.wholeHolds()
	x.began = history.Stamp()
	x.note("the fault begins")
	sc.fault(x)
	if x.ended == 0 {
		x.ended = history.Stamp()
	}
	x.note("the fault has ended")
	x.progress("the end of the fault")
	x.finish()
	x.report()
}

// newDeployment starts five masters and the workload.
func newDeployment(t *testing.T, sc scenario) *deployment {
	t.Helper()
	var s setup
	if sc.setup != nil {
		s = sc.setup(t)
	}
	x := &deployment{T: t, sc: sc, list: mastersWith(t, 5, s)}
	dir := t.TempDir()
	x.history = history.Tail{Dir: dir}
	t.Cleanup(x.keep)
	x.args = workerArgs{Dir: dir, URLs: urls(x.list), TTL: scenarioTTL, Durable: sc.durable,
		Seed: uint64(time.Now().UnixNano())}
	if sc.ttl > 0 {
		x.args.TTL = sc.ttl
	}
	if s.tls {
		x.args.TLSDir = s.dir
	}
	if sc.links {
		for i, m := range x.list {
			x.links = append(x.links, newLink(t, m.Name(), hostPort(m.URL())))
			x.args.URLs[i] = "redis://" + x.links[i].addr
		}
	}
	if sc.aside != nil {
		sc.aside(x)
	}
	if sc.reach != nil {
		x.args.URLs = sc.reach(x)
	}
	x.locker = x.open()
	x.admit()
	for i := range processes {
		x.spawn(fmt.Sprint("p", i+1))
	}
	return x
}

// open returns a Locker in this process that reaches the masters in the same way as the workload.
func (x *deployment) open() *redlock.Locker {
	x.Helper()
	p := must.Get(dialPool(x.args))(x)
	l := must.Get(redlock.New(p, x.args.options()...))(x)
	x.Cleanup(func() {
		if err := l.Close(); err != nil {
			x.Errorf("Close failed: %v", err)
		}
		p.Close()
	})
	return l
}

// admit admits all reachable masters without waiting for their quarantines. It must be called while there are no
// locks. It tries again if a master is late because the machine is busy, and gives up soon, because a scenario may be
// about a master that cannot be reached.
func (x *deployment) admit() {
	x.Helper()
	var err error
	for range 3 {
		ctx, cancel := context.WithTimeout(x.Context(), firstLockBound)
		err = admin.Of(x.locker).Admit(ctx)
		if cancel(); err == nil {
			return
		}
	}
	x.Logf("Admit failed: %v", err)
}

// spawn starts a process of the workload.
func (x *deployment) spawn(id string) {
	x.Helper()
	a := x.args
	a.ID = id
	a.Seed += uint64(len(x.workers) + len(x.retired))
	x.workers = append(x.workers, startWorker(x, a))
}

// wait lets the workload run for d.
func (x *deployment) wait(d time.Duration) { pause(x.Context(), d) }

// progress waits until every process has locked its own name and checked its long lock again, and some process has
// locked each shared name, a slot and the leadership.
func (x *deployment) progress(since string) {
	x.Helper()
	from := history.Stamp()
	want := make(map[string]bool)
	for _, w := range x.workers {
		want[ownName+w.id] = true
		want[longName+w.id] = true
	}
	for i := range sharedNames {
		want[fmt.Sprint(sharedName, i)] = true
	}
	want[slotName], want[leaderName] = true, true
	seen := len(x.history.Events)
	redistest.Await(x, 2*hang, func() string {
		must.Do(x, x.history.More())
		for ; seen < len(x.history.Events); seen++ {
			e := x.history.Events[seen]
			if e.Call >= from && e.OK() && (e.Op == history.Lock || e.Op == history.Alive) {
				delete(want, e.Name)
			}
		}
		x.checkWorkers()
		for name := range want {
			return fmt.Sprintf("no lock of %s since %s: %s", name, since, x.states())
		}
		return ""
	})
}

// checkWorkers ends the test if a worker process has ended by itself.
func (x *deployment) checkWorkers() {
	x.Helper()
	for _, w := range x.workers {
		select {
		case <-w.Ended:
			x.Fatalf("worker %s has ended: %v: %s", w.id, w.Err, w.Errors())
		default:
		}
	}
}

// states returns the states of the masters according to this process, for messages.
func (x *deployment) states() string {
	var b strings.Builder
	for _, m := range admin.Of(x.locker).Masters() {
		fmt.Fprintf(&b, "%s %s %v %v; ", m.Addr, m.State, m.Left, m.Err)
	}
	return b.String()
}

// wholeHolds waits until each long lock is on all masters. If a process acquires a lock while it is still connecting,
// only a bare majority has the lock until its first extension, and a fault of a minority could end it.
func (x *deployment) wholeHolds() {
	x.Helper()
	whole := make(map[string]bool)
	seen := 0
	redistest.Await(x, hang, func() string {
		must.Do(x, x.history.More())
		for ; seen < len(x.history.Events); seen++ {
			if e := x.history.Events[seen]; e.Op == history.Alive {
				whole[e.Name] = e.On >= x.holding()
			}
		}
		for _, w := range x.workers {
			if !whole[longName+w.id] {
				return fmt.Sprintf("%s%s is not on all masters: %s", longName, w.id, x.states())
			}
		}
		return ""
	})
}

// holding returns the number of masters that vote, and so can store a lock.
func (x *deployment) holding() int {
	n := 0
	for _, m := range admin.Of(x.locker).Masters() {
		if m.State == "voting" {
			n++
		}
	}
	return n
}

// voting waits until all masters vote, according to this process. Meanwhile this process keeps making calls, because
// otherwise it may not notice until its next heartbeat that a master has lost its data.
func (x *deployment) voting() {
	x.Helper()
	const turns = 25 // 20 ms each
	good := 0
	redistest.Await(x, 2*hang, func() string {
		_ = x.refusal()
		good++
		if x.holding() < len(admin.Of(x.locker).Masters()) {
			good = 0
			x.hasten()
		}
		if good < turns {
			return "not all masters vote: " + x.states()
		}
		return ""
	})
}

// finish ends the processes, and checks for locks that are left and for violations in the history.
func (x *deployment) finish() {
	x.Helper()
	var wg sync.WaitGroup
	for _, w := range x.workers {
		wg.Go(func() { w.Finish() })
	}
	wg.Wait()
	x.noLocks()
	must.Do(x, x.history.More())
	if err := history.Check(x.history.Events); err != nil {
		x.Error(err)
	}
}

// noLocks waits until no master has a lease, because all locks were released or have expired. Keys with fences remain.
func (x *deployment) noLocks() {
	x.Helper()
	words := func(m Master, name string, args ...any) []string {
		return must.Get(redis.Strings(command(x, m, name, args...), nil))(x)
	}
	for _, m := range x.list {
		redistest.Await(x, hang, func() string {
			for _, key := range words(m, "KEYS", "redlock:{*}") {
				left := time.Duration(command(x, m, "PTTL", key).(int64)) * time.Millisecond
				leases := slices.DeleteFunc(words(m, "HKEYS", key), func(field string) bool {
					return slices.Contains([]string{scripts.FieldFence, scripts.FieldQueue, scripts.FieldKept}, field)
				})
				if left > scripts.FenceKept && len(leases) > 0 {
					return fmt.Sprintf("%s still has %q in %s", m.Name(), leases, key)
				}
			}
			return ""
		})
	}
}

// try sends a command to each master of list. It ends the test if a command fails.
func (x *deployment) try(list []Master, name string, args ...any) {
	x.Helper()
	for _, m := range list {
		command(x, m, name, args...)
	}
}

// refusal tries to acquire a lock in this process, and returns the error. If the lock is granted, refusal releases it
// and returns an error that says so.
func (x *deployment) refusal() error {
	ctx, cancel := context.WithTimeout(x.Context(), patience)
	defer cancel()
	lock, err := x.locker.Lock(ctx, "looking on")
	if err == nil {
		err = errors.Join(errors.New("the lock was granted"), lock.Unlock(ctx))
	}
	return err
}
