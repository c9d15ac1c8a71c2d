package redlock_test

import (
	"context"
	"flag"
	"fmt"
	"net"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/long"
	"github.com/redlock-go/redlock/internal/worker"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// quick is the heartbeat of pools that must soon detect a change of a master.
const quick = 50 * time.Millisecond

// info returns one line of INFO of master i.
func (f *deployment) info(i int, section, line string) string {
	f.t.Helper()
	text, err := redis.String(f.do(i, "INFO", section), nil)
	if err != nil {
		f.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(text, line+":")
	value, _, _ := strings.Cut(rest, "\r")
	return value
}

// queueDead writes dead waiters into the queue of name on master i. Only this function depends on the format of the
// queue.
func (f *deployment) queueDead(i int, name string, n int) {
	f.t.Helper()
	stem := redlock.DefaultPrefix + ":{" + name + "}:"
	const script = `
for n = 1, tonumber(ARGV[1]) do
  local waiter = string.format('%016d:dead:%d:label', n, n)
  redis.call('ZADD', KEYS[1], '0', waiter)
  redis.call('ZADD', KEYS[2], '1', waiter)
end
for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, '60000') end`
	f.do(i, "EVAL", script, 2, stem+"queue", stem+"waiters", n)
}

// H65: dead waiters are dropped a few at a time. A release with 100 000 of them in the queue takes a master at most 5
// ms. The fastest of several releases counts, since a busy machine may delay any of them.
func TestHazardAReleaseBehindDeadWaitersIsQuick(t *testing.T) {
	t.Parallel()
	const most, bound = 20, 5 * time.Millisecond
	dead := rounds(100_000, 10_000)
	f := newDeployment(t, 3)
	l := f.admitted(redlock.WithTTL(20*time.Second), redlock.WithExtension(false))
	best := time.Hour
	for round := 0; round < most && best > bound; round++ {
		name := fmt.Sprint("n", round)
		lock := held(t)(l.Lock(bounded(t), name))
		for i := range f.servers {
			f.queueDead(i, name, dead)
			f.do(i, "CONFIG", "RESETSTAT")
		}
		if err := lock.Unlock(bounded(t)); err != nil {
			t.Error(err)
		}
		f.noLocks(hang)
		for i := range f.servers {
			best = min(best, f.scriptTime(i))
		}
	}
	if best > bound {
		t.Errorf("%d releases took each master at least %v, want at most %v", most, best, bound)
	}
}

// scriptTime returns the time that all scripts took on master i since its counts began.
func (f *deployment) scriptTime(i int) (sum time.Duration) {
	f.t.Helper()
	for _, command := range []string{"cmdstat_evalsha", "cmdstat_eval"} {
		_, rest, found := strings.Cut(f.info(i, "commandstats", command), "usec=")
		if !found {
			continue
		}
		text, _, _ := strings.Cut(rest, ",")
		us, err := strconv.Atoi(text)
		if err != nil {
			f.t.Fatal(err)
		}
		sum += time.Duration(us) * time.Microsecond
	}
	if sum == 0 {
		f.t.Fatal("no script has run")
	}
	return sum
}

// H75, on real servers: all restart empty during a hold, another client with half of the max TTL connects first, and
// the loss is reported soon after the holder has reconnected. Three deployments run in parallel.
func TestHazardAHolderOnRealServersThatRestartEmptyIsTold(t *testing.T) {
	for i := range 3 {
		t.Run(strconv.Itoa(i), allRestartEmpty)
	}
}

func allRestartEmpty(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 3)
	var pause atomic.Int64
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		timer := time.NewTimer(time.Duration(pause.Load()))
		defer timer.Stop()
		select {
		case <-timer.C:
			return new(net.Dialer).DialContext(ctx, network, addr)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	p := f.dial(pool.WithDialer(dial), pool.WithHeartbeat(quick))
	holder := locker(t, p, redlock.WithMaxTTL(longGuard), redlock.WithTTL(longGuard))
	f.admit(holder)
	lock := held(t)(holder.Lock(bounded(t), "n"))
	f.locker(redlock.WithMaxTTL(longGuard / 2)).Ready(bounded(t))
	pause.Store(int64(time.Second))
	f.restart(0, 1, 2)
	bound := time.NewTimer(2*time.Second + 20*quick)
	defer bound.Stop()
	select {
	case <-lock.Done():
	case <-bound.C:
		t.Errorf("all masters are new servers, and the lock is held for another %v", lock.Remaining())
	}
}

// stopRounds is the number of times that a process is stopped.
var stopRounds = flag.Int("hazard.stops", 20, "how often the test of H76 stops a process")

func init() { roles["spin"] = spinRole }

// spinRole acquires locks, one after the other, and checks each in a loop until it has ended. It reports when it last
// saw the lock held.
func spinRole(ctx context.Context, l *redlock.Locker, a workerArgs) error {
	for round := range a.Count {
		k, err := l.Lock(ctx, fmt.Sprint("n", round), redlock.WithExtension(false))
		if err != nil {
			return err
		}
		lockCtx := k.Context(ctx)
		worker.Say("held")
		var byLock, byContext int64
		for start, ended, n := time.Now(), false, 0; !ended && time.Since(start) < hang; n++ {
			if n%1024 == 0 {
				runtime.Gosched() // otherwise the Go scheduler preempts the loop as soon as the process resumes
			}
			before := time.Now().UnixNano()
			lost, over := k.Err() != nil, lockCtx.Err() != nil
			if !lost {
				byLock = before
			}
			if !over {
				byContext = before
			}
			ended = lost && over
		}
		worker.Say("last %d %d", byLock, byContext)
	}
	return nil
}

// H76: a process that spins on one processor is stopped until another has its lock, and resumes. No check after that
// reports the lock as held, so a client that checks before each write stops writing.
func TestHazardAProcessThatWasStoppedSeesItsLossAtTheFirstLook(t *testing.T) {
	t.Parallel()
	rounds := *stopRounds
	if !long.Enabled() {
		rounds = min(rounds, 4)
	}
	f := newDeployment(t, 3)
	next := f.admitted()
	args := workerArgs{URLs: f.urls, Count: rounds, TTL: 300 * time.Millisecond}
	w := startWorker(t, "spin", args, "GOMAXPROCS=1")
	for round := range rounds {
		w.Line("held")
		w.Signal(stopSignal)
		lock := held(t)(next.Lock(bounded(t), fmt.Sprint("n", round)))
		since := time.Now().UnixNano()
		w.Signal(continueSignal)
		var byLock, byContext int64
		if _, err := fmt.Sscan(w.Line("last"), &byLock, &byContext); err != nil {
			t.Fatal(err)
		}
		for what, last := range map[string]int64{"lock": byLock, "context": byContext} {
			if late := time.Duration(last - since); late > 0 {
				t.Errorf("round %d: %v after another had the lock, %s reports it as held", round, late, what)
			}
		}
		_ = lock.Unlock(bounded(t))
		if t.Failed() {
			return
		}
	}
	w.Finish()
}
