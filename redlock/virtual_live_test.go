package redlock_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/long"
	"github.com/redlock-go/redlock/redlock"
)

// A siege is a workload over masters of which a minority fails at random.
type siege struct {
	*world
	random  *rand.Rand
	mu      sync.Mutex
	current map[string]*redlock.Lock
	taken   int
}

// turnsEach is the number of locks that each goroutine acquires.
const turnsEach = 8

// work locks names in turn, as one goroutine of a client, and waits for each without a limit.
func (s *siege) work(p *peer, g int, random *rand.Rand) {
	for range turnsEach {
		name := fmt.Sprint("n", random.IntN(2))
		opts := [][]redlock.LockOption{
			nil, nil, {redlock.WithFair()}, {redlock.WithPriority(random.IntN(3))}, {redlock.WithHandoff(0, 0)},
		}[random.IntN(5)]
		k, err := p.Lock(s.Context(), name, opts...)
		if err != nil {
			s.Errorf("%s, goroutine %d: %v", p.id, g, err)
			return
		}
		s.mu.Lock()
		if last := s.current[name]; last != nil {
			if last.Err() == nil && last.Remaining() > 0 {
				s.Errorf("%s is held twice", name)
			}
			if k.Token() <= last.Token() {
				s.Errorf("token %d of %s after %d", k.Token(), name, last.Token())
			}
		}
		s.current[name] = k
		s.taken++
		s.mu.Unlock()
		<-time.After(time.Duration(random.IntN(20_000)) * time.Microsecond)
		_ = k.Unlock(s.Context()) // it may have been lost with the masters
	}
}

// fail makes one or two of the five masters fail for a while, each in a different way, and restores them.
func (s *siege) fail() {
	var ends []func()
	for _, i := range s.random.Perm(5)[:1+s.random.IntN(2)] {
		m := s.masters.Master(i)
		switch s.random.IntN(6) {
		case 0:
			m.Hang()
			ends = append(ends, m.Resume)
		case 1:
			m.Stop()
			ends = append(ends, func() {
				m.Restart(true)
				m.Admit(redlock.DefaultPrefix, redlock.DefaultMaxTTL)
			})
		case 2:
			m.Refuse("OOM command not allowed when used memory > 'maxmemory'.")
			ends = append(ends, func() { m.Refuse("") })
		case 3:
			m.Delay(time.Duration(s.random.IntN(300)) * time.Millisecond)
			ends = append(ends, func() { m.Delay(100 * time.Microsecond) })
		case 4:
			m.DropReplies(1 + s.random.IntN(20))
			ends = append(ends, func() { m.DropReplies(0) })
		case 5:
			m.DropRequests(1 + s.random.IntN(20))
			ends = append(ends, func() { m.DropRequests(0) })
		}
	}
	<-time.After(time.Duration(s.random.IntN(1500)) * time.Millisecond)
	for _, end := range ends {
		end()
	}
	<-time.After(time.Duration(s.random.IntN(300)) * time.Millisecond)
}

// tamperRandomly drops a tenth of the messages and duplicates another tenth.
func tamperRandomly(seed uint64) func(int, string) []string {
	delays := &lockedDelays{random: seeded(seed)}
	return func(_ int, payload string) []string {
		switch delays.below(10) {
		case 0:
			return nil
		case 1:
			return []string{payload, payload}
		}
		return []string{payload}
	}
}

// With any minority of the masters failing at random, messages lost and duplicated, subscriptions cut, and one client
// killed meanwhile, every waiter of a bounded workload gets the lock, one at a time, and no keys are left.
func TestVirtualWithAMinorityFailingEveryWaiterGetsIn(t *testing.T) {
	seeds := uint64(6)
	if !long.Enabled() {
		seeds = 3
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			virtual(t, 5, func(w *world) { besiege(w, seed) })
		})
	}
}

func besiege(w *world, seed uint64) {
	s := &siege{world: w, random: seeded(seed), current: map[string]*redlock.Lock{}}
	w.delay(100 * time.Microsecond)
	var workers sync.WaitGroup
	var peers []*peer
	const programs, goroutines = 4, 6
	for i := range programs {
		p := w.peer(fmt.Sprint("p", i), redlock.WithTTL(3*time.Second))
		p.tampering(tamperRandomly(seed + uint64(i)))
		peers = append(peers, p)
		for g := range goroutines {
			random := seeded(s.random.Uint64())
			workers.Go(func() { s.work(p, g, random) })
		}
	}
	victim := w.peer("victim", redlock.WithTTL(3*time.Second))
	doomed := w.call(w.Context(), victim.Locker, "n0")
	done := make(chan struct{})
	go func() {
		defer close(done)
		workers.Wait()
	}()
	start := time.Now()
	for n := 0; ; n++ {
		s.fail()
		if n == 2 {
			victim.kill()
		}
		if p := peers[s.random.IntN(programs)]; s.random.IntN(3) == 0 {
			p.deafen()
			<-time.After(time.Duration(s.random.IntN(400)) * time.Millisecond)
			p.hear()
		}
		select {
		case <-done:
		default:
			if time.Since(start) < 5*time.Minute {
				continue
			}
			w.Errorf("%d of %d have got in after five minutes", s.taken, programs*goroutines*turnsEach)
		}
		break
	}
	w.Logf("%d holds in %v", s.taken, time.Since(start).Round(time.Millisecond))
	w.delay(0)
	after(30 * time.Second) // pending releases are delivered, and what a killed program left has run out
	if doomed.over() && doomed.err == nil {
		_ = doomed.lock.Unlock(w.Context())
	}
	for _, p := range append(peers, victim) {
		if err := p.Close(w.Context()); err != nil {
			w.Error(err)
		}
	}
	after(10 * time.Second)
	w.nothingLeft("n0", "n1")
}
