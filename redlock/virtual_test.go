package redlock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// The tests in files named virtual_* run the real coordinator and the real pool over in-memory masters, in a bubble
// whose time moves only when everything in it waits: a second of virtual time takes microseconds, and times are exact.

// A world is one bubble with masters, and the wire between them and the Lockers.
type world struct {
	*testing.T
	masters *memory.Masters
	wire    *wire
	peers   []*peer
}

// virtual runs f in a bubble with n masters, which are admitted unless an option says otherwise. Pools and Lockers that
// f makes are closed after it. Such tests run in parallel.
func virtual(t *testing.T, n int, f func(w *world), opts ...memory.Option) {
	t.Helper()
	t.Parallel()
	bubble(t, n, f, opts...)
}

// bubble runs f like virtual, for a test that has several bubbles, one after the other.
func bubble(t *testing.T, n int, f func(w *world), opts ...memory.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, masters: memory.New(n, opts...)}
		w.wire = &wire{masters: w.masters}
		t.Cleanup(w.masters.Close)
		f(w)
	})
}

// after waits for d of the bubble's time, and then until everything in it waits.
func after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// pool makes a pool whose connections are recorded by the wire.
func (w *world) pool(opts ...pool.Option) *pool.Pool {
	w.Helper()
	common := []pool.Option{pool.WithDialer(w.wire.dial), transport.WithClock(clock.Runtime())}
	p, err := pool.Open(w.masters.URLs(), append(common, opts...)...)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = p.Close() })
	return p
}

// over makes a Locker over p and waits until it knows the masters.
func (w *world) over(p *pool.Pool, opts ...redlock.Option) *redlock.Locker {
	w.Helper()
	l, err := redlock.New(p, append([]redlock.Option{redlock.WithClock(clock.Runtime())}, opts...)...)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		if err := l.Close(context.WithoutCancel(w.Context())); err != nil {
			w.Errorf("close: %v", err)
		}
	})
	l.Ready(w.Context())
	synctest.Wait()
	return l
}

// locker returns a Locker with its own pool, like that of a separate client.
func (w *world) locker(opts ...redlock.Option) *redlock.Locker {
	w.Helper()
	return w.over(w.pool(), opts...)
}

// take locks name and fails the test if that fails.
func (w *world) take(l *redlock.Locker, name string, opts ...redlock.LockOption) *redlock.Lock {
	w.Helper()
	k, err := l.Lock(w.Context(), name, opts...)
	if err != nil {
		w.Fatalf("lock %s: %v", name, err)
	}
	return k
}

// each calls f for the given masters, or for all if none is given.
func (w *world) each(f func(i int, m *memory.Master), which ...int) {
	if len(which) == 0 {
		for i := range w.masters.N() {
			which = append(which, i)
		}
	}
	for _, i := range which {
		f(i, w.masters.Master(i))
	}
}

func (w *world) hang(which ...int) {
	w.each(func(_ int, m *memory.Master) { m.Hang() }, which...)
}

func (w *world) resume(which ...int) {
	w.each(func(_ int, m *memory.Master) { m.Resume() }, which...)
}

func (w *world) delay(d time.Duration, which ...int) {
	w.each(func(_ int, m *memory.Master) { m.Delay(d) }, which...)
}

func (w *world) stop(which ...int) {
	w.each(func(_ int, m *memory.Master) { m.Stop() }, which...)
	synctest.Wait()
}

// on returns the number of masters on which a client holds name.
func (w *world) on(name string) (n int) {
	w.each(func(_ int, m *memory.Master) {
		if id, _, _ := m.Holds(name); id != "" {
			n++
		}
	})
	return n
}

// count returns how often the masters together have executed a command.
func (w *world) count(command string) (n int) {
	w.each(func(_ int, m *memory.Master) { n += m.Commands()[command] })
	return n
}

// isError fails the test unless err matches all of want.
func (w *world) isError(err error, want ...error) {
	w.Helper()
	for _, e := range want {
		if !errors.Is(err, e) {
			w.Errorf("got %v; want %v in it", err, e)
		}
	}
}

// notError fails the test if err matches one of others.
func (w *world) notError(err error, others ...error) {
	w.Helper()
	for _, e := range others {
		if errors.Is(err, e) {
			w.Errorf("%v matches %v", err, e)
		}
	}
}

// replay sends a recorded command once more, on a separate connection, and returns the reply.
func (w *world) replay(s sent) any {
	w.Helper()
	nc, err := w.masters.Dial(w.Context(), "tcp", w.masters.Master(s.master).Addr())
	if err != nil {
		w.Fatal(err)
	}
	c := redis.NewConn(nc, 0, 0)
	defer c.Close()
	args := make([]any, len(s.args)-1)
	for i, a := range s.args[1:] {
		args[i] = a
	}
	reply, err := c.Do(s.args[0], args...)
	if err != nil {
		w.Fatalf("the replay of %s: %v", s.script(), err)
	}
	return reply
}

// A shiftClock is the clock of one client: it follows the bubble's time at a rate, and can be set forward.
type shiftClock struct {
	mu   sync.Mutex
	base time.Time
	rate float64
	boot time.Duration // how far each of the two clocks is ahead
	wall time.Duration
}

func newShiftClock(rate float64) *shiftClock { return &shiftClock{base: time.Now(), rate: rate} }

func (c *shiftClock) clock() *clock.Clock {
	return clock.New(func() clock.Instant {
		c.mu.Lock()
		defer c.mu.Unlock()
		run := int64(float64(time.Since(c.base)) * c.rate)
		return clock.At(run+int64(c.boot)+1, c.base.UnixNano()+run+int64(c.wall))
	})
}

// jump sets the two clocks forward.
func (c *shiftClock) jump(boot, wall time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.boot += boot
	c.wall += wall
}

// ended waits for the end of ctx, at most for the bound, and returns the elapsed time and the cause.
func (w *world) ended(ctx context.Context, bound time.Duration) (took time.Duration, cause error) {
	w.Helper()
	start := time.Now()
	select {
	case <-ctx.Done():
		return time.Since(start), context.Cause(ctx)
	case <-time.After(bound):
		w.Fatalf("the context has not ended within %v", bound)
		return 0, nil
	}
}

const defaultPrefix = scripts.Prefix(redlock.DefaultPrefix)

// asError wraps errors.As.
func asError[T error](err error, to *T) bool { return errors.As(err, to) }

// seeded returns a random source with the same numbers in each run.
func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x5eed)) }
