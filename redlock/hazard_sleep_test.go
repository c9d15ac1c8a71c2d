package redlock_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/redlock"
)

// A sleeper is a client whose machine sleeps for a minute at a given moment of its next call.
type sleeper struct {
	*program
	moment atomic.Pointer[string]
	slept  atomic.Bool
}

// The moments between the replies of the masters and the return of a call: the replies are in transit, the deciding one
// is counted, the round is won, the lock is won, the extension is won, and, in a local hand-off, the lock of another
// goroutine is released.
var moments = []string{"reply", "vote", "attempt", "acquired", "extended", "released"}

func (s *stage) sleeper() *sleeper {
	s.Helper()
	p := &sleeper{}
	p.program = s.program()
	redlock.Interrupt(p.Locker, p.reached)
	return p
}

// reached makes the machine sleep if the moment is the chosen one.
func (p *sleeper) reached(moment string) {
	if at := p.moment.Load(); at != nil && *at == moment && p.moment.CompareAndSwap(at, nil) {
		p.slept.Store(true)
		p.s.freeze(p.program, time.Minute, true)
	}
}

// sleepIn makes the machine sleep at a moment of call, which acquires or extends a lock. If the call returns nil, the
// lock must be valid.
func (p *sleeper) sleepIn(moment string, call func() (*redlock.Lock, error)) {
	s := p.s
	s.Helper()
	p.slept.Store(false)
	p.moment.Store(&moment)
	const way = 5 * time.Millisecond
	s.each(func(m *memory.Master) { m.Delay(way) })
	if moment == "reply" {
		time.AfterFunc(way+way/2, func() { p.reached(moment) })
	}
	k, err := call()
	if err == nil && p.slept.Load() && k.Remaining() <= 0 {
		s.Errorf("slept at the moment %q: it succeeds %v after the end of the lock", moment, -k.Remaining())
	}
	p.moment.Store(nil)
	s.each(func(m *memory.Master) { m.Delay(0) })
	after(time.Minute) // so that the next run finds no keys
}

// everyMoment tries all moments, each with a separate client, and at least least of them must occur.
func (s *stage) everyMoment(least int, call func(p *sleeper) func() (*redlock.Lock, error)) {
	s.Helper()
	came := 0
	for _, moment := range moments {
		p := s.sleeper()
		p.sleepIn(moment, call(p))
		if p.slept.Load() {
			came++
		}
		if err := p.Close(s.within(time.Minute)); err != nil {
			s.Fatal(err)
		}
		synctest.Wait()
	}
	if came < least {
		s.Fatalf("only %d of the moments came", came)
	}
}

// H62: the machine sleeps for a minute between the replies of the masters and the return of the call. Each call that
// succeeds returns a valid lock.
func TestHazardACallSucceedsOnlyWithValidityLeft(t *testing.T) {
	ways := map[string]func(s *stage, p *sleeper) func() (*redlock.Lock, error){
		"H62 Lock": func(s *stage, p *sleeper) func() (*redlock.Lock, error) {
			return func() (*redlock.Lock, error) { return p.Lock(s.within(time.Minute), "n") }
		},
		"H62 TryLock": func(s *stage, p *sleeper) func() (*redlock.Lock, error) {
			return func() (*redlock.Lock, error) { return p.TryLock(s.within(time.Minute), "n") }
		},
		"H62 re-entry": func(s *stage, p *sleeper) func() (*redlock.Lock, error) {
			outer := p.take("n")
			return func() (*redlock.Lock, error) { return p.Lock(outer.Context(s.within(time.Minute)), "n") }
		},
		"H62 Extend": func(s *stage, p *sleeper) func() (*redlock.Lock, error) {
			k := p.take("n")
			return func() (*redlock.Lock, error) { return k, k.Extend(s.within(time.Minute)) }
		},
		"H62 Import": func(s *stage, p *sleeper) func() (*redlock.Lock, error) {
			handle, err := s.program().take("n").Export()
			if err != nil {
				s.Fatal(err)
			}
			return func() (*redlock.Lock, error) { return p.Import(s.within(time.Minute), handle) }
		},
		"H62 handoff": handoff,
	}
	for id, way := range ways {
		t.Run(id, func(t *testing.T) {
			onStage(t, 5, func(s *stage) {
				s.everyMoment(2, func(p *sleeper) func() (*redlock.Lock, error) { return way(s, p) })
			})
		})
	}
}

// handoff acquires the lock in a goroutine that waits behind another one of the same client.
func handoff(s *stage, p *sleeper) func() (*redlock.Lock, error) {
	first := p.take("n")
	type result struct {
		k   *redlock.Lock
		err error
	}
	got := make(chan result, 1)
	go func() {
		k, err := p.Lock(s.within(time.Minute), "n")
		if err == nil && k.Remaining() > 0 { // as it was at the return
			_ = k.Unlock(s.Context())
			k = nil
		}
		got <- result{k, err}
	}()
	synctest.Wait()
	return func() (*redlock.Lock, error) {
		_ = first.Unlock(s.within(time.Minute))
		r := <-got
		if r.k == nil && r.err == nil {
			r.err = redlock.ErrReleased
		}
		return r.k, r.err
	}
}
