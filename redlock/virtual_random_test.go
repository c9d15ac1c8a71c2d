package redlock_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlocktest"
)

// A randomised run: five masters, a few programs with a Locker, a pool and a clock of their own, two names, and faults
// at random. Everything that is drawn comes from the seed; what the goroutines of one instant do first does not, so a
// failing seed may need a few repetitions.
const (
	simMasters = 5
	simGuard   = 6 * time.Second
	simSettle  = 2 * time.Second // by then, without faults, every debt is paid
	simRate    = 0.0045          // the largest error of a clock's rate; two of them are below the drift
)

var simNames = []string{"a", "b"}

// A plan says how hard a run is.
type plan struct {
	rounds, steps int
	opts          []redlock.Option // of the Lockers, after the usual ones
}

var defaultPlan = plan{rounds: 2, steps: 50}

// A simulation is one run.
type simulation struct {
	t       *testing.T
	seed    uint64
	plan    plan
	masters *redlocktest.Masters
	clients []*program
	random  *rand.Rand // of the goroutine that makes the faults

	forgot  [simMasters]time.Time // when a master last lost its memory
	pending []func()              // the ends of faults that last
	delayed lockedRand

	mu       sync.Mutex
	tenures  []tenure
	problems []string
	loose    bool // a lock was handed on in this round: where that did not reach a master, its key lives on to its TTL
	imports  int
	healed   int
}

// A tenure is a stretch of real time for which one Lock was believed to be held.
type tenure struct {
	name     string
	client   int
	token    int64
	from, to time.Time
}

// A lockedRand is drawn from by several goroutines.
type lockedRand struct {
	mu sync.Mutex
	r  *rand.Rand
}

func (l *lockedRand) duration(upTo time.Duration) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Duration(l.r.Int64N(int64(upTo)))
}

// A program is one client process.
type program struct {
	s      *simulation
	index  int
	rate   float64
	clock  *shiftClock
	wire   *wire
	pool   *pool.Pool
	locker *redlock.Locker

	mu    sync.Mutex
	awake chan struct{} // closed while it is not suspended
}

// simulate runs one seed in the bubble of t and returns what was wrong.
func simulate(t *testing.T, seed uint64, pl plan) *simulation {
	s := &simulation{t: t, seed: seed, plan: pl, random: seeded(seed), masters: redlocktest.New(simMasters, redlocktest.Guard(simGuard))}
	defer s.masters.Close()
	s.delayed.r = seeded(seed + 1<<32)
	for i := range simMasters {
		s.masters.Master(i).SetClock(s.upTo(simGuard/4)-simGuard/8, s.rate(1))
	}
	var slewing sync.WaitGroup
	stop := make(chan struct{})
	slewing.Go(func() { s.slew(stop) })
	defer slewing.Wait()
	defer close(stop)
	for i := range 3 + int(seed%2) {
		s.clients = append(s.clients, s.program(i))
	}
	for range pl.rounds {
		if s.round(); len(s.problems) > 0 {
			break
		}
	}
	if len(s.problems) == 0 {
		s.checkHealing()
	}
	for _, p := range s.clients {
		if err := p.locker.Close(context.Background()); err != nil {
			s.problem("close: %v", err)
		}
		_ = p.pool.Close()
	}
	return s
}

// slew keeps the masters' clocks together, as NTP does: never by a step, by their rate alone.
func (s *simulation) slew(stop <-chan struct{}) {
	ticker := time.NewTicker(2 * time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-stop:
			return
		}
		for i := range simMasters {
			m := s.masters.Master(i)
			switch off := time.Until(m.Time()); {
			case off > simGuard/8:
				m.SetClock(off, 1-simRate)
			case off < -simGuard/8:
				m.SetClock(off, 1+simRate)
			}
		}
	}
}

func (s *simulation) upTo(d time.Duration) time.Duration {
	return time.Duration(s.random.Int64N(int64(d)))
}

// rate is the rate of a clock: as wrong as the drift allows for, as a rule. In one run the masters lean to one side and
// the programs to the other.
func (s *simulation) rate(side int) float64 {
	if s.random.IntN(5) == 0 {
		return 1
	}
	return 1 + float64(side)*float64(int(s.seed/2%2)*2-1)*simRate
}

func (s *simulation) problem(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problems = append(s.problems, fmt.Sprintf(format, args...))
}

func (s *simulation) program(i int) *program {
	p := &program{s: s, index: i, rate: s.rate(-1), awake: make(chan struct{}), wire: &wire{masters: s.masters, quiet: true}}
	close(p.awake)
	p.clock = newShiftClock(p.rate)
	var err error
	p.pool, err = pool.Dial(s.masters.URLs(), pool.WithDialer(p.wire.dial), pool.WithClock(p.clock.clock()),
		pool.WithTimeout(300*time.Millisecond), pool.WithDialTimeout(300*time.Millisecond), pool.WithHeartbeat(time.Second),
		pool.WithRedial(20*time.Millisecond, 200*time.Millisecond))
	if err != nil {
		s.t.Fatal(err)
	}
	opts := []redlock.Option{
		redlock.WithClock(p.clock.clock()), redlock.WithGuardTime(simGuard), redlock.WithTTL(simGuard / 2), redlock.WithBarTTL(30 * time.Second),
		redlock.WithDelays(redlock.Delays{Fixed: 10 * time.Millisecond, Random: 40 * time.Millisecond, Growth: 1.5, Cap: 80 * time.Millisecond}),
		redlock.WithTrace(&redlock.Trace{Healed: func(redlock.HealInfo) {
			s.mu.Lock()
			s.healed++
			s.mu.Unlock()
		}}),
	}
	p.locker, err = redlock.New(p.pool, append(opts, s.plan.opts...)...)
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}

// round lets the programs work while faults happen, stops both, and checks what is left.
func (s *simulation) round() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	s.loose = false
	var workers sync.WaitGroup
	for _, p := range s.clients {
		for range 2 {
			random := seeded(s.random.Uint64())
			workers.Go(func() {
				for ctx.Err() == nil {
					p.work(ctx, random)
				}
			})
		}
	}
	for range s.plan.steps {
		s.fault()
		<-time.After(s.upTo(200 * time.Millisecond))
		if s.bad() {
			break
		}
	}
	s.calm()
	<-time.After(300 * time.Millisecond)
	stop()
	workers.Wait()
	s.checkTenures()
	s.mu.Lock()
	loose := s.loose
	s.mu.Unlock()
	if s.bad() {
		return
	}
	after(simSettle)
	if loose {
		after(simGuard)
	}
	s.checkKeys()
}

func (s *simulation) bad() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.problems) > 0
}

// calm ends every fault that lasts.
func (s *simulation) calm() {
	for _, end := range s.pending {
		end()
	}
	s.pending = nil
	for i := range simMasters {
		m := s.masters.Master(i)
		m.Delay(0)
		m.DropReplies(0)
		m.DropRequests(0)
	}
}

// checkTenures reports holds of one name that overlap in real time, and tokens that do not grow.
func (s *simulation) checkTenures() {
	s.mu.Lock()
	list := append([]tenure(nil), s.tenures...)
	s.mu.Unlock()
	for _, problem := range overlaps(list) {
		s.problem("%s", problem)
	}
}

// checkKeys reports what finished holds have left on the masters.
func (s *simulation) checkKeys() {
	for i := range simMasters {
		for _, name := range simNames {
			if id, depth, left := s.masters.Master(i).Holds(name); id != "" {
				s.problem("%s: the finished hold %s is still on master %d, depth %d, for %v", name, id, i, depth, left)
			}
		}
	}
}

// checkHealing reports a hold that is not on all masters a TTL after the last fault.
func (s *simulation) checkHealing() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	k, err := s.clients[0].locker.Lock(ctx, "a")
	if err != nil {
		s.problem("without faults the name cannot be locked: %v", err)
		return
	}
	after(simGuard)
	if on, n := k.HeldOn(); on != n || k.Err() != nil {
		s.problem("a TTL after the last fault a hold is on %d of %d, %v", on, n, k.Err())
	}
	if err := k.Unlock(ctx); err != nil {
		s.problem("without faults: %v", err)
	}
}
