package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/internal/long"
	"github.com/redlock-go/redlock/internal/race"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// scriptTime is the duration of a script on the masters of these tests. A master can execute 2 500 pairs of acquire
// and release a second, so ten thousand simultaneous calls would keep it busy for eight times the pool's timeout.
const scriptTime = 200 * time.Microsecond

// A load is one client with many goroutines over five busy masters.
type load struct {
	*cluster
	pool   *pool.Pool
	locker *redlock.Locker
	silent atomic.Int64 // number of times that a master was down because it did not answer
	lost   atomic.Int64 // number of lost locks

	mu    sync.Mutex
	conns []net.Conn
}

// loaded runs f in a bubble with a client that knows its masters.
func loaded(t *testing.T, f func(l *load)) {
	t.Helper()
	bubble(t, 5, func(w *cluster) {
		l := &load{cluster: w}
		l.pool = w.pool(pool.WithDialer(l.dial))
		l.locker = w.newLocker(l.pool, redlock.WithTrace(redlock.On("master", func(i redlockinfo.Event) {
			if errors.Is(i.Err, pool.ErrTimeout) {
				l.silent.Add(1)
			}
		}), redlock.On("lost", func(redlockinfo.Event) { l.lost.Add(1) })))
		client.SetOf(l.locker).AwaitKnown(w.Context())
		w.scriptTime(scriptTime)
		f(l)
	})
}

// dial does not record the messages, since there are too many.
func (l *load) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := l.masters.Dial(ctx, network, addr)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.conns = append(l.conns, c)
	}
	return c, err
}

// A traffic describes the repeated calls of the goroutines of a load.
type traffic struct {
	goroutines, names int  // 0 names: each goroutine has its own names
	try, cut          bool // try: TryLock instead of Lock; cut: all connections are cut once
}

// one acquires and releases one lock, and reports whether it succeeded.
func (l *load) one(ctx context.Context, tr traffic, goroutine, n int) bool {
	name := fmt.Sprintf("own-%d-%d", goroutine, n%4)
	if tr.names > 0 {
		name = fmt.Sprintf("shared-%d", goroutine%tr.names)
	}
	call := l.locker.Lock
	if tr.try {
		call = l.locker.TryLock
	}
	k, err := call(ctx, name)
	switch {
	case err == nil:
		_ = k.Unlock(ctx)
		return true
	case tr.try: // the caller leaves, and another arrives
		select {
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	return false
}

// pairs runs the traffic, and returns the number of locks that were acquired and released within d. It starts to
// count after a first second, or later if the connections are cut.
func (l *load) pairs(tr traffic, d time.Duration) int64 {
	ctx, cancel := context.WithCancel(l.Context())
	var counted atomic.Bool
	var pairs atomic.Int64
	var wg sync.WaitGroup
	for i := range tr.goroutines {
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				if l.one(ctx, tr, i, n) && counted.Load() {
					pairs.Add(1)
				}
			}
		})
	}
	after(time.Second)
	if tr.cut {
		l.cutConnections()
		after(2 * time.Second)
	}
	counted.Store(true)
	after(d)
	done := pairs.Load()
	cancel()
	wg.Wait()
	return done
}

// H101: a client with far more calls than the masters can serve has the throughput of a client with sixty-four
// calls. No master is considered down, no held lock is lost, and two seconds later the next lock is acquired
// immediately.
func TestOverload(t *testing.T) {
	sizes := []int{64, 512, 10_000, 50_000}
	short := !long.Enabled() || race.Enabled
	if short {
		sizes = []int{64, 1_000} // the race detector allows 8 128 goroutines
	}
	for _, tr := range []traffic{
		{try: true}, {try: true, names: 4}, {}, {names: 4},
		{try: true, cut: true}, {try: true, names: 4, cut: true}, {cut: true}, {names: 4, cut: true},
	} {
		if short && (tr.cut != (tr.names > 0) || tr.cut == tr.try) {
			continue // only two of the eight cases run
		}
		var least int64
		for _, tr.goroutines = range sizes {
			t.Run(fmt.Sprintf("%+v", tr), func(t *testing.T) {
				loaded(t, func(l *load) { l.overload(tr, &least) })
			})
		}
	}
}

func (l *load) overload(tr traffic, least *int64) {
	held := must(l.locker.Lock(l.Context(), "held", redlock.WithTTL(3*time.Second)))(l)
	seconds := rounds(4, 2)
	n := l.pairs(tr, time.Duration(seconds)*time.Second) / int64(seconds)
	after(2 * time.Second)
	began := time.Now()
	next, err := l.locker.TryLock(l.Context(), "next")
	if took := time.Since(began); err != nil || took > 100*time.Millisecond {
		l.Errorf("two seconds after the load TryLock took %v: %v", took, err)
	} else {
		_ = next.Unlock(l.Context())
	}
	pending := 0
	for i := range 5 {
		pending += transport.Of(l.pool).Pending(i)
	}
	if held.Err() != nil || l.lost.Load() > 0 || l.silent.Load() > 0 || pending > 0 {
		l.Errorf("held lock: %v; %d locks lost, %d masters down, %d releases pending", held.Err(), l.lost.Load(),
			l.silent.Load(), pending)
	}
	_ = held.Unlock(l.Context())
	if n < *least*9/10 {
		l.Errorf("%d pairs of Lock and Unlock, but %d under a smaller load", n, *least)
	}
	*least = max(*least, n)
	l.Logf("%d pairs a second", n)
}

// H101: a call that ends while it waits for its turn sends nothing, even if the client is subscribed to its inbox and
// its attempts join the queues of the masters. Otherwise thousands of such calls would fill the connections.
func TestCallsWithoutATurnSendNothing(t *testing.T) {
	loaded(t, func(l *load) {
		must(l.locker.Lock(l.Context(), "held"))(l)
		after(2 * time.Second) // the client subscribes after one second
		before := l.masters.Master(0).Commands()
		ctx, cancel := context.WithCancel(l.Context())
		var wg sync.WaitGroup
		const calls = 4_000
		for i := range calls {
			wg.Go(func() { _, _ = l.locker.Lock(ctx, fmt.Sprint("own-", i)) })
		}
		after(10 * time.Millisecond)
		cancel()
		wg.Wait()
		after(2 * time.Second)
		sent := l.masters.Master(0).Commands()
		acquires, releases := sent["acquire"]-before["acquire"], sent["release"]-before["release"]
		if acquires == 0 || acquires+releases > calls/2 {
			l.Errorf("%d acquires and %d releases for %d calls", acquires, releases, calls)
		}
	})
}

// H101: a TryLock waits for its turn for ten timeouts of the pool, and fails only after that. So no call fails if
// the masters can serve all calls within that time.
func TestTryLockWaitsForItsTurn(t *testing.T) {
	loaded(t, func(l *load) {
		l.scriptTime(4 * scriptTime) // 625 pairs of lock and unlock a second, 3125 in ten timeouts
		for _, c := range []struct{ calls, least, most int }{{2000, 0, 0}, {5000, 1000, 3000}} {
			var failed atomic.Int64
			var wg sync.WaitGroup
			for i := range c.calls {
				wg.Go(func() {
					k, err := l.locker.TryLock(l.Context(), fmt.Sprintf("own-%d", i))
					switch {
					case err == nil:
						_ = k.Unlock(l.Context())
					case errors.Is(err, redlock.ErrOverloaded):
						failed.Add(1)
					default:
						l.Errorf("call %d returned %v", i, err)
					}
				})
			}
			wg.Wait()
			if n := int(failed.Load()); n < c.least || n > c.most {
				l.Errorf("%d of %d calls failed, want %d to %d", n, c.calls, c.least, c.most)
			}
			after(time.Second)
		}
	})
}

// H167: a TryLock fails after ten timeouts, also if it shares the attempt of another call, which waits for its turn for
// longer than that.
func TestTryLockDoesNotWaitForTheTurnOfAnother(t *testing.T) {
	loaded(t, func(l *load) {
		l.scriptTime(4 * time.Millisecond) // 250 locks a second
		ctx, cancel := context.WithCancel(l.Context())
		defer cancel()
		var wg sync.WaitGroup
		lock := func(name string, opts ...redlock.LockOption) {
			wg.Go(func() {
				opts = append(opts, redlock.WithTTL(30*time.Second), redlock.WithExtension(false))
				_, _ = l.locker.Lock(ctx, name, opts...)
			})
		}
		for i := range 4_000 {
			lock(fmt.Sprintf("own-%d", i))
		}
		after(time.Millisecond)
		lock("shared", redlock.WithTries(3))
		after(time.Millisecond)
		for range 10 {
			wg.Go(func() {
				began := time.Now()
				l.isError(errOf(l.locker.TryLock(l.Context(), "shared")), redlock.ErrOverloaded)
				l.wantSince(began, 5100*time.Millisecond)
			})
		}
		after(10 * time.Second)
		cancel()
		wg.Wait()
	})
}

// H101: thousands of calls wait, and the subscription of each master is cut. All calls try again, and no master is
// considered down because of that.
func TestOverloadByResubscription(t *testing.T) {
	waiters := 8_000
	if !long.Enabled() || race.Enabled {
		waiters = 2_000
	}
	loaded(t, func(l *load) {
		held := must(l.locker.Lock(l.Context(), "held", redlock.WithTTL(3*time.Second)))(l)
		ctx, cancel := context.WithCancel(l.Context())
		var wg sync.WaitGroup
		for i := range waiters {
			name := fmt.Sprintf("taken-%d", i)
			l.masters.Take(name, time.Hour)
			wg.Go(func() { _, _ = l.locker.Lock(ctx, name) })
		}
		after(2 * time.Second)
		l.mu.Lock()
		subscriptions := l.conns[len(l.conns)-5:]
		l.mu.Unlock()
		for _, c := range subscriptions {
			_ = c.Close()
		}
		after(2 * time.Second)
		if held.Err() != nil || l.lost.Load() > 0 || l.silent.Load() > 0 {
			l.Errorf("held lock: %v; %d locks lost, %d masters down", held.Err(), l.lost.Load(), l.silent.Load())
		}
		cancel()
		wg.Wait()
		_ = held.Unlock(l.Context())
	})
}

// H101: calls of one client that try to lock one name at the same time share a single round.
func TestTryLocksShareAttempts(t *testing.T) {
	loaded(t, func(l *load) {
		before := l.masters.Master(0).Commands()["acquire"]
		var wg sync.WaitGroup
		var won atomic.Int64
		for range 100 {
			wg.Go(func() {
				_, err := l.locker.TryLock(l.Context(), "one")
				switch {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, redlock.ErrHeld):
					l.Error(err)
				}
			})
		}
		wg.Wait()
		after(time.Second) // for the last master, which answers after the decision
		if n := l.masters.Master(0).Commands()["acquire"] - before; n != 1 || won.Load() != 1 {
			l.Errorf("%d rounds, and %d calls have won, want one each", n, won.Load())
		}
		l.hang()
		for range 3 { // the calls that share an attempt fail with it
			wg.Go(func() {
				if _, err := l.locker.TryLock(l.Context(), "two"); !errors.Is(err, redlock.ErrNoQuorum) {
					l.Error(err)
				}
			})
		}
		wg.Wait()
	})
}

// H101: thousands of re-entries at one time wait for their turn, so that the queues to the masters stay short, and no
// lock is lost.
func TestManyReentriesLoseNoLock(t *testing.T) {
	loaded(t, func(l *load) {
		l.scriptTime(time.Millisecond)
		outer := must(l.locker.Lock(l.Context(), "outer"))(l)
		other := must(l.locker.Lock(l.Context(), "other", redlock.WithTTL(2*time.Second)))(l)
		own := outer.Context(l.Context())
		var wg sync.WaitGroup
		var failed atomic.Int64
		for range 6000 {
			wg.Go(func() {
				if _, err := l.locker.Lock(own, "outer", redlock.WithReentry()); err != nil {
					failed.Add(1)
				}
			})
		}
		wg.Wait()
		l.must(outer.Err())
		l.must(other.Err())
		if n := failed.Load(); n > 0 {
			l.Errorf("%d re-entries have failed", n)
		}
		ctx, cancel := context.WithCancel(own) // of callers that give up, after which the turns are free again
		for range 1000 {
			wg.Go(func() { _, _ = l.locker.Lock(ctx, "outer", redlock.WithReentry()) })
		}
		synctest.Wait()
		cancel()
		wg.Wait()
		again, cancel := context.WithTimeout(own, 5*time.Second)
		defer cancel()
		must(l.locker.Lock(again, "outer", redlock.WithReentry()))(l)
	})
}
