package integration

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/history"
	"github.com/redlock-go/redlock/internal/long"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// Masters behind Sentinel in containers, as in production. The master of each service is killed, frozen, or
// disconnected, and comes back after a replica has been promoted. Its last writes reach no replica, and the client that
// made them makes no connection until the end. In this test no client stays with the old master while others follow the
// new one, because a container off its network cannot be reached from here. Package storetest tests that case.
func TestMastersBehindSentinelInContainers(t *testing.T) {
	if !long.Enabled() {
		t.Skip("needs -long: a promoted master waits for 30 s")
	}
	needContainers(t)
	t.Parallel()
	began := time.Now()
	list := services(t, "killed", "paused", "cut", "first", "second")
	plain := masters(t, 3)
	t.Logf("everything is ready after %v", time.Since(began).Round(time.Millisecond))
	for i, f := range failures {
		t.Run("one "+f.name, func(t *testing.T) {
			t.Parallel()
			newRivals(t, nil, list[i]).outlive(f)
		})
	}
	t.Run("two of five cut", func(t *testing.T) {
		t.Parallel()
		newRivals(t, plain, list[3:]...).outlive(failures[2])
	})
}

// A failure disables a master, and brings it back.
type failure struct {
	name         string
	strike, mend func(Master, context.Context) error
}

var failures = []failure{
	{"killed", Master.Kill, Master.Start},
	{"paused", Master.Pause, Master.Resume},
	{"cut", Master.Cut, Master.Join},
}

// rivalTTL is longer than a failover and the return of the old master. A lock that no replica knows is still held when
// the promoted master could vote if there were no quarantine, but has expired by the end of the quarantine.
const rivalTTL = 25 * time.Second

// Quick names are contended all the time. Kept names are free when replication stops. Then the first client acquires
// and keeps them; the others want them too as soon as the master has failed.
var (
	quickNames = []string{"quick-1", "quick-2"}
	keptNames  = []string{"kept-1", "kept-2"}
)

// rivals are clients in this process that compete for the same locks, each with a pool and a Locker. The first is
// isolated after the failure: it makes no connection, and does not learn that its locks are lost.
type rivals struct {
	*deployment

	services            []*service
	alone, struck, over chan struct{} // closed when replication stops, when the master fails, and at the end
	stop                func()        // ends the clients
}

// newRivals admits the masters and starts the clients.
func newRivals(t *testing.T, plain []Master, list ...*service) *rivals {
	t.Helper()
	dir := t.TempDir()
	r := &rivals{
		deployment: &deployment{T: t, list: plain}, services: list,
		alone: make(chan struct{}), struck: make(chan struct{}), over: make(chan struct{}),
	}
	r.history = history.Tail{Dir: dir}
	r.args = workerArgs{Dir: dir, URLs: urls(plain), TTL: rivalTTL}
	for _, s := range list {
		r.args.URLs = append(r.args.URLs, s.url())
	}
	t.Cleanup(r.keep)
	r.locker = r.open()
	r.admit()
	ctx, cancel := context.WithCancel(t.Context())
	errs := make([]error, processes)
	var wg sync.WaitGroup
	for i := range processes {
		w := r.program(i)
		wg.Go(func() { errs[i] = r.run(ctx, w, i == 0) })
	}
	r.stop = sync.OnceFunc(func() {
		cancel()
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(r.stop)
	return r
}

// program returns the pool, the Locker and the history of one client.
func (r *rivals) program(i int) *workload {
	r.Helper()
	var opts []pool.Option
	if i == 0 {
		opts = append(opts, pool.WithDialer(r.dial))
	}
	p, err := pool.Open(r.args.URLs, opts...)
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { _ = p.Close() })
	quiet := redlock.WithLogger(slog.New(slog.DiscardHandler)) // r.locker logs the same
	l, err := redlock.New(p, append(r.args.options(), quiet)...)
	if err != nil {
		r.Fatal(err)
	}
	w := &workload{args: r.args, l: l}
	w.args.ID = fmt.Sprint("p", i+1)
	if w.rec, err = history.NewRecorder(r.args.Dir, w.args.ID); err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), hang)
		defer cancel()
		if err := errors.Join(l.Close(ctx), w.rec.Close()); err != nil {
			r.Errorf("close: %v", err)
		}
	})
	return w
}

// dial is the dialer of the first client.
func (r *rivals) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if passed(r.struck) && !passed(r.over) {
		return nil, errors.New("this program is cut off")
	}
	return (&net.Dialer{}).DialContext(ctx, network, addr)
}

func passed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// run acquires every name again and again until ctx ends.
func (r *rivals) run(ctx context.Context, w *workload, first bool) error {
	now := make(chan struct{})
	close(now)
	var wg sync.WaitGroup
	var errs [2][2]error
	want := func(err *error, name string, from, until <-chan struct{}) {
		wg.Go(func() {
			select {
			case <-from:
			case <-ctx.Done():
			}
			for turn := 0; ctx.Err() == nil && *err == nil; turn++ {
				*err = hold1(ctx, w, name, fmt.Sprintf("%s/%s/%d", name, w.args.ID, turn), until)
				pause(ctx, 10*time.Millisecond)
			}
		})
	}
	for i := range errs {
		want(&errs[i][0], quickNames[i], now, now)
		if first {
			want(&errs[i][1], keptNames[i], r.alone, r.over)
		} else {
			want(&errs[i][1], keptNames[i], r.struck, now)
		}
	}
	wg.Wait()
	return errors.Join(append(errs[0][:], errs[1][:]...)...)
}

// hold1 acquires a name and keeps it for a moment, and until a channel is closed or the lock is lost.
func hold1(ctx context.Context, w *workload, name, id string, until <-chan struct{}) error {
	lock, err := w.lock(ctx, name, id, false)
	if lock == nil {
		return err
	}
	for more := true; more && err == nil; more = ctx.Err() == nil && lock.Err() == nil && !passed(until) {
		err = w.rec.Look(lock, id)
		pause(lock.Context(ctx), 10*time.Millisecond)
	}
	return errors.Join(err, w.unlock(lock, id))
}

// outlive makes the masters of all services fail, and checks the histories of the clients.
func (r *rivals) outlive(f failure) {
	r.Helper()
	var replicas, old []Master
	for _, s := range r.services {
		replicas, old = append(replicas, s.replicas...), append(old, s.master)
	}
	r.taken(quickNames, "the start")
	r.note("the replicas are cut off")
	each(r.T, Master.Cut, replicas...)
	r.note("they are")
	close(r.alone)
	alone := len(keptNames) - len(r.missing(keptNames, time.Second))
	close(r.struck)
	each(r.T, f.strike, old...)
	r.began = history.Stamp()
	r.note("%s, with %d locks that no replica knows", f.name, alone)
	each(r.T, Master.Join, replicas...)
	r.eventually(2*hang, func() string {
		for _, s := range r.services {
			if !s.promoted() {
				return "no replica is promoted of " + s.name
			}
		}
		return ""
	})
	promoted := time.Duration(history.Stamp() - r.began)
	r.note("promoted")
	each(r.T, f.mend, old...)
	r.note("the old master is back")
	r.settle()
	r.taken(quickNames, "the failover")
	close(r.over)
	r.taken(slices.Concat(quickNames, keptNames), "the end")
	r.stop()
	r.judge(f, alone, promoted)
}

// settle waits until every master votes: the promoted one, with the old one as its replica, after its quarantine.
func (r *rivals) settle() {
	r.Helper()
	r.eventually(3*hang, func() string {
		if r.holding() < len(r.locker.Admin().Masters()) {
			return "not all masters vote: " + r.states()
		}
		return ""
	})
}

// taken waits until each name was acquired after now.
func (r *rivals) taken(names []string, since string) {
	r.Helper()
	if left := r.missing(names, 2*hang); len(left) > 0 {
		r.Fatalf("no lock of %q since %s: %s", left, since, r.states())
	}
}

// missing waits like taken, and returns the names that were not acquired within bound.
func (r *rivals) missing(names []string, bound time.Duration) []string {
	r.Helper()
	from, left := history.Stamp(), slices.Clone(names)
	seen := len(r.history.Events)
	for end := time.Now().Add(bound); ; pause(r.Context(), 10*time.Millisecond) {
		if err := r.history.More(); err != nil {
			r.Fatal(err)
		}
		for ; seen < len(r.history.Events); seen++ {
			if e := r.history.Events[seen]; e.Op == history.Lock && e.OK() && e.Ret >= from {
				left = slices.DeleteFunc(left, func(name string) bool { return name == e.Name })
			}
		}
		if len(left) == 0 || time.Now().After(end) {
			return left
		}
	}
}

// judge checks the history, and logs the effect of the failure on users.
func (r *rivals) judge(f failure, alone int, promoted time.Duration) {
	r.Helper()
	if err := r.history.More(); err != nil {
		r.Fatal(err)
	}
	if err := checkHistory(r.history.Events, checkBound); err != nil {
		r.Error(err)
	}
	holds, err := history.Holds(r.history.Events)
	if err != nil {
		r.Fatal(err)
	}
	r.Logf("%s: promoted after %v; %d holds; %d locks that no replica knew; longest times without a holder: %v",
		f.name, promoted.Round(time.Millisecond), len(holds), alone, history.Gaps(holds))
}
