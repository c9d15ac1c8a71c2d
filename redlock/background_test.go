package redlock_test

import (
	"context"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/redlock"
)

// A call is a call that acquires a lock, in progress.
type call struct {
	w    *cluster
	done chan struct{}
	lock *redlock.Lock
	err  error
	took time.Duration
}

// background calls acquire in a goroutine, and returns once this call waits or has returned.
func (w *cluster) background(acquire func() (*redlock.Lock, error)) *call {
	c := &call{w: w, done: make(chan struct{})}
	start := time.Now()
	go func() {
		defer close(c.done)
		c.lock, c.err = acquire()
		c.took = time.Since(start)
	}()
	synctest.Wait()
	return c
}

// goLock calls Lock of l, a *redlock.Locker or *peer, in the background.
func (w *cluster) goLock(ctx context.Context, l locks, name string, opts ...redlock.LockOption) *call {
	return w.background(func() (*redlock.Lock, error) { return l.Lock(ctx, name, opts...) })
}

type locks interface {
	Lock(ctx context.Context, name string, opts ...redlock.LockOption) (*redlock.Lock, error)
}

// goAcquire calls Acquire of s in the background.
func (w *cluster) goAcquire(ctx context.Context, s *redlock.Semaphore, opts ...redlock.LockOption) *call {
	return w.background(func() (*redlock.Lock, error) { return s.Acquire(ctx, opts...) })
}

// goUnlock calls Unlock of k in a goroutine.
func (w *cluster) goUnlock(k *redlock.Lock) {
	go func() { w.noError(k.Unlock(w.Context())) }()
}

// mustWait waits for a second, in which the call joins the queues of all masters that it can reach. It fails the test
// if the call has returned.
func (c *call) mustWait() *call {
	c.w.Helper()
	after(time.Second)
	if c.returned() {
		c.w.Fatalf("the call does not wait: %v", c.err)
	}
	return c
}

// returned reports whether the call has returned.
func (c *call) returned() bool {
	synctest.Wait()
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// mustLock waits until the call has acquired the lock. It fails the test if that takes longer than bound.
func (c *call) mustLock(bound time.Duration) *redlock.Lock {
	c.w.Helper()
	k, _ := c.timed(bound)
	return k
}

// timed is like mustLock, and also returns the elapsed time.
func (c *call) timed(bound time.Duration) (*redlock.Lock, time.Duration) {
	c.w.Helper()
	start := time.Now()
	select {
	case <-c.done:
	case <-time.After(bound + 1):
		c.w.Fatalf("the call still waits after %v", bound)
	}
	c.w.must(c.err)
	return c.lock, time.Since(start)
}

// mustFail waits until the call has failed, and returns the error of the call. It fails the test if that takes longer
// than bound.
func (c *call) mustFail(bound time.Duration) error {
	c.w.Helper()
	select {
	case <-c.done:
	case <-time.After(bound):
		c.w.Fatalf("the call still waits after %v", bound)
	}
	if c.err == nil {
		c.w.Fatal("the call got the lock")
	}
	return c.err
}

// queued returns the number of masters that have a queue of waiters for name.
func (w *cluster) queued(name string) (n int) {
	w.each(func(_ int, m *memory.Master) {
		if slices.Contains(m.Keys(), defaultPrefix.Queue(name)) {
			n++
		}
	})
	return n
}

// nothingLeft fails the test if a master has keys other than admission records and fences, or if a client is still
// subscribed when its inbox should have been closed. The masters answer without a delay from then on.
func (w *cluster) nothingLeft(names ...string) {
	w.Helper()
	w.delay(0)
	after(100 * time.Millisecond) // for messages in transit
	allowed := []string{defaultPrefix.Admission()}
	for _, name := range names {
		allowed = append(allowed, defaultPrefix.Lock(name))
	}
	w.each(func(i int, m *memory.Master) {
		for _, key := range m.Keys() {
			if !slices.Contains(allowed, key) && !isProbeFence(key) {
				w.Errorf("master %d still has %s", i, key)
			}
		}
	})
	after(inboxIdle + time.Second)
	w.each(func(i int, _ *memory.Master) {
		for _, p := range w.peers {
			if p.inbox() == "" {
				continue
			}
			if n := w.replay(sent{master: i, args: []string{"PUBLISH", p.inbox(), "anybody"}}); n != int64(0) {
				w.Errorf("master %d: the inbox of %s still has a subscriber %v after the last wait", i, p.id, inboxIdle)
			}
		}
	})
}

// isProbeFence reports whether a key is the fence of a health check.
func isProbeFence(key string) bool {
	return strings.HasPrefix(key, string(defaultPrefix)+":{redlock-probe:") && strings.HasSuffix(key, "}")
}
