package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/long"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// H02, H03, H04: 512 goroutines contend for a few names while a minority of the masters hangs and resumes at random.
// Afterwards no key of a lock is left on any master, long before the TTL: neither of a released lock, nor of a refused
// or abandoned attempt, nor of the locks that Close released.
func TestContentionWithHangingMastersLeavesNoKey(t *testing.T) {
	pairs := int64(10_000)
	switch {
	case longRun():
		pairs = 100_000
	case !long.Enabled():
		pairs = 1000
	}
	f := newDeployment(t, 5)
	l := locker(t, f.dial(pool.WithTimeout(transport.DefaultTimeout)), redlock.WithTTL(30*time.Second))
	f.admit(l)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var flapping, working sync.WaitGroup
	flapping.Go(func() { flap(ctx, f) })
	var done, refused, given atomic.Int64
	timeout := time.AfterFunc(longHang, cancel)
	defer timeout.Stop()
	for g := range 512 {
		working.Go(func() {
			rnd := rand.New(rand.NewPCG(7, uint64(g)))
			for done.Load() < pairs && ctx.Err() == nil {
				switch err := contend(ctx, l, fmt.Sprint("n", rnd.IntN(64)), rnd); {
				case err == nil:
					done.Add(1)
				case errors.Is(err, context.DeadlineExceeded):
					given.Add(1)
				case errors.Is(err, redlock.ErrHeld), errors.Is(err, redlock.ErrNoQuorum), errors.Is(err, redlock.ErrTooSlow):
					refused.Add(1)
				default:
					t.Error(err)
					return
				}
			}
		})
	}
	working.Wait()
	if ctx.Err() != nil {
		t.Errorf("only %d of %d pairs after %v", done.Load(), pairs, longHang)
	}
	for i := range 50 { // what Close has to release
		held(t)(l.Lock(bounded(t), fmt.Sprint("kept", i)))
	}
	if err := l.Close(bounded(t)); err != nil {
		t.Error(err)
	}
	cancel()
	flapping.Wait()
	f.noLocks(15 * time.Second)
	t.Logf("%d pairs, %d attempts refused, %d given up", done.Load(), refused.Load(), given.Load())
}

// contend locks and releases a name once, in one of several ways.
func contend(ctx context.Context, l *redlock.Locker, name string, rnd *rand.Rand) error {
	delays := redlock.WithDelays(redlock.Delays{Fixed: time.Millisecond, Random: 200 * time.Millisecond})
	var lock *redlock.Lock
	var err error
	switch rnd.IntN(8) {
	case 0:
		lock, err = l.TryLock(ctx, name)
	case 1: // a context that may end in the middle of a round
		try, cancel := context.WithTimeout(ctx, time.Duration(rnd.Int64N(int64(20*time.Millisecond))))
		defer cancel()
		lock, err = l.Lock(try, name, delays)
	default:
		lock, err = l.Lock(ctx, name, delays)
	}
	if err != nil {
		return err
	}
	if rnd.IntN(4) == 0 {
		inner, err := l.Lock(lock.Context(ctx), name)
		if err != nil {
			return errors.Join(err, lock.Unlock(ctx))
		}
		if err := inner.Unlock(ctx); err != nil {
			return errors.Join(err, lock.Unlock(ctx))
		}
	}
	return lock.Unlock(ctx)
}

// flap repeatedly stops one or two of the five masters for a moment, until ctx ends, and leaves all running.
func flap(ctx context.Context, f *deployment) {
	rnd := rand.New(rand.NewPCG(11, 13))
	for ctx.Err() == nil {
		down := rnd.Perm(5)[:1+rnd.IntN(2)]
		for _, i := range down {
			_ = f.servers[i].Pause() // the servers run until the test ends
		}
		rest(ctx, time.Duration(rnd.IntN(700))*time.Millisecond)
		for _, i := range down {
			_ = f.servers[i].Resume()
		}
		rest(ctx, time.Duration(rnd.IntN(300))*time.Millisecond)
	}
}

// rest waits for d or the end of ctx.
func rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
