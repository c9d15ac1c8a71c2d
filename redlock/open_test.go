package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/admin"
)

// opened returns a Locker that owns its pool. The end of the bubble fails the test if a goroutine of the pool is left.
func (w *cluster) opened(opts ...redlock.Option) *redlock.Locker {
	w.Helper()
	l, err := redlock.Open(w.masters.URLs(), append([]redlock.Option{
		redlock.WithPool(pool.WithDialer(w.wire.dial), transport.WithClock(clock.Runtime())),
	}, opts...)...)
	w.must(err)
	w.must(l.WaitReady(w.Context()))
	return l
}

// Close waits no longer than the timeout of the pool for a master that hangs, and is not the worse for it.
func TestCloseWithHungMaster(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l := w.opened()
		must(l.Lock(w.Context(), "a"))(w)
		w.hang(0)
		began := time.Now()
		w.noError(l.Close())
		w.wantSince(began, 600*time.Millisecond)
		for i := 1; i < 3; i++ {
			if id, _, _ := w.masters.Master(i).Holds("a"); id != "" {
				w.Errorf("the name is still held on master %d", i)
			}
		}
		w.resume(0)
	})
}

// A call that waits for masters ends when the shared pool is closed, even if no master was connected.
func TestWaitEndsWithSharedPool(t *testing.T) {
	for name, wait := range map[string]func(context.Context, *redlock.Locker) error{
		"WaitReady": func(ctx context.Context, l *redlock.Locker) error { return l.WaitReady(ctx) },
		"Admit":     func(ctx context.Context, l *redlock.Locker) error { return admin.Of(l).Admit(ctx) },
		"Lock":      func(ctx context.Context, l *redlock.Locker) error { _, err := l.Lock(ctx, "a"); return err },
	} {
		for _, before := range []bool{false, true} { // whether the pool is closed before the call
			t.Run(fmt.Sprintf("%s/%t", name, before), func(t *testing.T) {
				virtual(t, 3, func(w *cluster) {
					w.stop(0, 1, 2)
					p := w.pool()
					l := must(redlock.New(p))(w)
					defer l.Close()
					after(10 * time.Second) // the pauses between attempts to connect are long
					if before {
						w.must(p.Close())
					} else {
						time.AfterFunc(10*time.Millisecond, func() { _ = p.Close() })
					}
					ctx := w.withTimeout(time.Minute)
					err := wait(ctx, l)
					if !errors.Is(err, redlock.ErrClosed) || ctx.Err() != nil || strings.Contains(err.Error(), "closed (") {
						w.Errorf("got %v", err)
					}
				})
			})
		}
	}
}

// Close of a Locker whose shared pool was closed first released nothing, and says so each time.
func TestCloseAfterSharedPool(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		p := w.pool()
		l := must(redlock.New(p))(w)
		must(l.Lock(w.Context(), "a"))(w)
		w.must(p.Close())
		for range 2 {
			err := l.Close()
			if !errors.Is(err, pool.ErrClosed) || !strings.Contains(err.Error(), "close the Locker first") {
				w.Errorf("Close returned %v", err)
			}
		}
	})
}

// Any number of calls of Close and Shutdown may run at once. Each returns only when the locks are released and the
// connections are closed. A Close ends the Shutdowns that wait for running work.
func TestConcurrentCloseAndShutdown(t *testing.T) {
	for _, hold := range []bool{false, true} {
		subtest(t, fmt.Sprint("held=", hold), 3, func(w *cluster) {
			l := w.opened()
			var ks []*redlock.Lock
			for i := range 20 {
				k := must(l.Lock(w.Context(), fmt.Sprint("n", i)))(w)
				if ks = append(ks, k); !hold {
					w.noError(k.Unlock(w.Context()))
				}
			}
			w.delay(20 * time.Millisecond)
			var wg sync.WaitGroup
			ended := func(f func() error) {
				wg.Go(func() {
					w.noError(f())
					for _, k := range ks {
						if k.Err() == nil {
							w.Error("a lock is held after the call")
						}
					}
					if id, _, _ := w.masters.Master(0).Holds("n0"); id != "" {
						w.Error("a name is held after the call")
					}
				})
			}
			for range 10 {
				ended(func() error { return l.Shutdown(w.Context()) })
			}
			after(time.Second)
			began := time.Now()
			for range 10 {
				ended(l.Close)
			}
			wg.Wait()
			w.wantSince(began, time.Second)
		})
	}
}

// Shutdown with a context that has ended closes a Locker that is not in use, without an error.
func TestShutdownOfUnusedLocker(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l := w.opened()
		after(time.Second) // until the probe of WaitReady has been released
		w.noError(l.Shutdown(deadContext()))
	})
}

// Open makes a shard of each bucket of a cluster, and New refuses options of the pool.
func TestOpen(t *testing.T) {
	l, err := redlock.Open([]string{"redis+cluster://127.0.0.1:1?buckets=3", "redis://127.0.0.1:2"})
	if err != nil {
		t.Fatal(err)
	}
	if m := admin.Of(l).Masters(); len(m) != 6 || m[5].Shard != 3 {
		t.Errorf("the masters are %+v", m)
	}
	w := tester{t}
	w.noError(l.Close(), l.Close())
	_, err = redlock.Open([]string{"redis://127.0.0.1:1"}, redlock.WithPool(pool.WithTimeout(-1)))
	w.isError(err, redlock.ErrInvalid)
	_, err = redlock.OpenSharded([][]string{{"redis://127.0.0.1:1"}, {"redis://127.0.0.1:99999"}})
	w.says(err, redlock.ErrInvalid, "shard 2 of 2")
	_, err = redlock.OpenSharded([][]string{{"redis://127.0.0.1:1"}, {"redis://127.0.0.1:2", "redis://127.0.0.1:1/3"}})
	w.says(err, redlock.ErrInvalid, "master 127.0.0.1:1 is in shard 1 and in shard 2")
	_, err = redlock.OpenSharded(nil)
	w.isError(err, redlock.ErrInvalid)
	p := must(pool.Open([]string{"redis://127.0.0.1:1"}))(w)
	defer p.Close()
	for _, opts := range [][]pool.Option{{pool.WithTimeout(time.Second)}, nil} {
		_, err = redlock.New(p, redlock.WithPool(opts...))
		w.says(err, redlock.ErrInvalid, "WithPool")
	}
}
