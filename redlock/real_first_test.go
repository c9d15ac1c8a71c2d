package redlock_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/long"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/worker"
	"github.com/redlock-go/redlock/redlock"
)

// firstRounds is the number of rounds in which the first waiter is stopped, and in which it is killed.
var firstRounds = flag.Int("first.rounds", 3, "how often a first waiter is stopped, and killed")

func init() { roles["wait"] = waitRole }

// waitRole acquires one name and releases it.
func waitRole(ctx context.Context, l *redlock.Locker, a workerArgs) error {
	lock, err := l.Lock(ctx, a.Name)
	if err != nil {
		return err
	}
	worker.Say("got %d", lock.Token())
	return lock.Unlock(ctx)
}

// waitersOf returns the waiters of a name on master i in the order of the queue.
func (f *deployment) waitersOf(i int, name string) []string {
	f.t.Helper()
	queue := scripts.Prefix(redlock.DefaultPrefix).Queue(name)
	return must[[]string](f.t)(redis.Strings(f.do(i, "ZRANGE", queue, 0, -1), nil))
}

// queued waits until the queue of a name has n waiters on each master.
func (f *deployment) queued(name string, n int) {
	f.t.Helper()
	for i := range f.servers {
		eventually(f.t, hang, func() string {
			if got := f.waitersOf(i, name); len(got) != n {
				return fmt.Sprintf("%d wait on master %d, want %d", len(got), i, n)
			}
			return ""
		})
	}
}

// passed starts a process that waits first, makes this process wait second, applies a fault to the first, and returns
// how long after the release the second had the lock. By then the first has left the queues of a quorum.
func (f *deployment) passed(
	holder, second *redlock.Locker, name string, harm func(first *worker.Process),
) time.Duration {
	t := f.t
	t.Helper()
	lock := held(t)(holder.Lock(bounded(t), name))
	first := startWorker(t, "wait", workerArgs{URLs: f.urls, Name: name})
	f.queued(name, 1)
	ids := f.waitersOf(0, name)
	type result struct {
		lock *redlock.Lock
		err  error
		at   time.Time
	}
	got := make(chan result, 1)
	ctx := bounded(t)
	go func() {
		l, err := second.Lock(ctx, name)
		got <- result{l, err, time.Now()}
	}()
	f.queued(name, 2)
	harm(first)
	began := time.Now()
	if err := lock.Unlock(bounded(t)); err != nil {
		t.Error(err)
	}
	r := <-got
	if r.err != nil {
		t.Fatal(r.err)
	}
	kept := 0 // on a quorum the entry would delay the next waiter as much
	for i := range f.servers {
		if slices.Contains(f.waitersOf(i, name), ids[0]) {
			kept++
		}
	}
	if kept > len(f.servers)/2 {
		t.Errorf("%d masters still have the first waiter in the queue", kept)
	}
	if err := r.lock.Unlock(bounded(t)); err != nil {
		t.Error(err)
	}
	return r.at.Sub(began)
}

// H42, on real servers: a first waiter that is stopped delays the others once, by its second and a little more, since
// it leaves the queues. One that is killed does not delay them, since the hint to it has no receiver.
func TestAFirstWaiterThatIsStoppedOrKilledIsPassed(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 5)
	holder, second := f.admitted(redlock.WithTTL(20*time.Second)), f.locker()
	var stopped, killed []time.Duration
	for round := range *firstRounds {
		stopped = append(stopped, f.passed(holder, second, fmt.Sprint("stopped", round), func(w *worker.Process) {
			stop(f.t, w)
		}))
		killed = append(killed, f.passed(holder, second, fmt.Sprint("killed", round), func(w *worker.Process) {
			if err := w.Cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			w.Join()
		}))
	}
	slices.Sort(stopped)
	slices.Sort(killed)
	middle, last := *firstRounds/2, *firstRounds-1
	t.Logf("the second waiter had the lock %v after the release, at most %v, if the first was stopped; "+
		"%v, at most %v, if it was killed", stopped[middle], stopped[last], killed[middle], killed[last])
}

// If no master may publish hints, no lock is lost, and every client gets each turn; waiting only takes longer.
func TestHintsLostOnAllMastersCostOnlyTime(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 5)
	if text := f.info(0, "server", "redis_version"); strings.HasPrefix(text, "6.") {
		t.Skipf("needs Redis 7: Redis %s lets every user publish from a script", text)
	}
	f.admitted()
	for i := range f.servers {
		f.do(i, "ACL", "SETUSER", "default", "resetchannels")
	}
	const programs, turns = 4, 3
	var working sync.WaitGroup
	var mu sync.Mutex
	var last int64
	inside := 0
	began := time.Now()
	for range programs {
		l := f.locker()
		working.Go(func() {
			for range turns {
				lock, err := l.Lock(bounded(t), "n")
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if inside++; inside != 1 || lock.Token() <= last {
					t.Errorf("%d holders at once, token %d after %d", inside, lock.Token(), last)
				}
				last = lock.Token()
				mu.Unlock()
				rest(t.Context(), 5*time.Millisecond)
				if err := lock.Err(); err != nil {
					t.Error(err)
				}
				mu.Lock()
				inside--
				mu.Unlock()
				if err := lock.Unlock(bounded(t)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	working.Wait()
	t.Logf("%d locks without any hint in %v", programs*turns, time.Since(began).Round(time.Millisecond))
}

// H55, H73: after many names have been locked, the masters have no keys but their admission records, once the fences
// have expired.
func TestNothingIsLeftOfManyNames(t *testing.T) {
	if !long.Enabled() {
		t.Skip("needs -long: it waits for a minute, until fences expire")
	}
	t.Parallel()
	names := 10_000
	if longRun() {
		names = 200_000
	}
	f := newDeployment(t, 5)
	l := f.admitted()
	const goroutines = 64
	var working sync.WaitGroup
	for g := range goroutines {
		working.Go(func() {
			for n := g; n < names; n += goroutines {
				lock, err := l.Lock(bounded(t), fmt.Sprint("name", n))
				if err == nil {
					err = lock.Unlock(bounded(t))
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	working.Wait()
	ended := time.Now()
	kept := must[int64](t)(redis.Int64(f.do(0, "DBSIZE"), nil))
	for i := range f.servers {
		eventually(t, 80*time.Second+hang, func() string {
			f.do(i, "SCAN", 0, "COUNT", 1_000_000) // a scan makes the server delete expired keys
			n, err := redis.Int64(f.do(i, "DBSIZE"), nil)
			return problem(err, n != 1, "master %d has %d keys", i, n)
		})
		if keys := must[[]string](t)(redis.Strings(f.do(i, "KEYS", "*"), nil)); !slices.Equal(keys, []string{admissionKey}) {
			t.Errorf("master %d still has keys %q", i, keys)
		}
	}
	t.Logf("%d names: %d keys on a master at once, one %v after the last release", names, kept,
		time.Since(ended).Round(time.Second))
}

// problem describes a problem; "" if there is none.
func problem(err error, wrong bool, format string, args ...any) string {
	if err == nil && !wrong {
		return ""
	}
	return fmt.Sprintf(format, args...) + fmt.Sprint(" ", errors.Join(err))
}
