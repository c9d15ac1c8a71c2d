package redlock_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// The tests in files named hazard_* verify claims of verify/hazards.md through the public API only. This file has the
// helpers of those in virtual time.

// A stage is one bubble of virtual time with masters and clients, each client on its own machine.
type stage struct {
	testing.TB
	masters *memory.Masters

	mu       sync.Mutex
	ahead    time.Duration // how far the world is ahead of the bubble
	programs []*program
}

// A program is one Locker with its own pool, on its own machine.
type program struct {
	*redlock.Locker
	s     *stage
	pool  *pool.Pool
	host  *host
	never context.Context // for tests whose calls must return before the context ends
}

// A host is the clocks of one machine.
type host struct {
	mu         sync.Mutex
	base       time.Time
	boot, wall time.Duration // how far each is ahead of the bubble
}

// onStage runs body in a bubble with n masters.
func onStage(t *testing.T, n int, body func(s *stage), opts ...memory.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &stage{TB: t, masters: memory.New(n, opts...)}
		t.Cleanup(s.masters.Close)
		body(s)
	})
}

// program starts a program over all masters, and waits until it knows them.
func (s *stage) program(opts ...redlock.Option) *program {
	s.Helper()
	p := s.starting(nil, nil, opts...)
	p.Ready(s.Context())
	synctest.Wait()
	return p
}

// starting starts a program without waiting.
func (s *stage) starting(urls []string, dial []pool.Option, opts ...redlock.Option) *program {
	s.Helper()
	h := &host{base: time.Now()}
	p := &program{s: s, host: h}
	if urls == nil {
		urls = s.masters.URLs()
	}
	s.mu.Lock()
	h.boot, h.wall = s.ahead, s.ahead
	s.programs = append(s.programs, p)
	s.mu.Unlock()
	common := []pool.Option{pool.WithDialer(s.masters.Dial), transport.WithClock(h.clock())}
	var err error
	if p.pool, err = pool.Open(urls, append(common, dial...)...); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = p.pool.Close() })
	opts = append([]redlock.Option{redlock.WithClock(h.clock())}, opts...)
	if p.Locker, err = redlock.New(p.pool, opts...); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = p.Close(ctx) // a test of Close may have closed it already
	})
	return p
}

// take locks a name that is free.
func (p *program) take(name string, opts ...redlock.LockOption) *redlock.Lock {
	p.s.Helper()
	ctx, cancel := context.WithTimeout(p.s.Context(), time.Minute)
	defer cancel()
	k, err := p.Lock(ctx, name, opts...)
	if err != nil {
		p.s.Fatalf("lock %s: %v", name, err)
	}
	return k
}

// within returns a context with the given timeout.
func (s *stage) within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(s.Context(), d)
	s.Cleanup(cancel)
	return ctx
}

// each calls f for every master.
func (s *stage) each(f func(m *memory.Master)) {
	for i := range s.masters.N() {
		f(s.masters.Master(i))
	}
}

// on returns the number of masters on which a client holds name.
func (s *stage) on(name string) (n int) {
	s.each(func(m *memory.Master) {
		if id, _, _ := m.Holds(name); id != "" {
			n++
		}
	})
	return n
}

// freeze stops the machine of p for d: its timers stop, the masters and the other machines go on. A machine
// that suspends knows by both clocks afterwards. One that its hypervisor has stopped knows by the wall clock
// alone.
func (s *stage) freeze(p *program, d time.Duration, suspend bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ahead += d
	s.each(func(m *memory.Master) { m.SetClock(s.ahead, 1) })
	for _, other := range s.programs {
		boot := d
		if other == p && !suspend {
			boot = 0
		}
		other.host.jump(boot, d)
	}
}

func (h *host) clock() *clock.Clock {
	return clock.New(func() clock.Instant {
		h.mu.Lock()
		defer h.mu.Unlock()
		run := time.Since(h.base)
		return clock.At(int64(run+h.boot)+1, h.base.UnixNano()+int64(run+h.wall))
	})
}

// jump sets the clocks of a single machine.
func (h *host) jump(boot, wall time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.boot += boot
	h.wall += wall
}

// over reports whether a lock has reported its end.
func over(k *redlock.Lock) bool {
	select {
	case <-k.Done():
		return true
	default:
		return false
	}
}
