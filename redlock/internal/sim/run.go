package sim

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/redlock-go/redlock/internal/jitter"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock"
)

// Everything that is due at a moment of its own gets one: a whole tick, and the slot of what it belongs to, so that no
// two things happen at once and the seed decides their order.
const (
	tick     = time.Microsecond
	tickPart = time.Nanosecond

	maxMasters, maxClients, maxBusy = 5, 4, 3

	slotsPerLink = 8
	slotsDown    = 200 // above maxClients * maxMasters * slotsPerLink
	slotWorkers  = 500
	slotFaults   = 600
	slotMain     = 700
	slotTold     = 720
)

const (
	prefix = scripts.Prefix("sim")
	barTTL = 30 * time.Second // the least that is allowed

	// callGrace is how much later than its context a call may return: the grace of a release, and a moment.
	callGrace = 15 * time.Millisecond
)

// A world is one run. mu guards all that is not said to be read only; it is never held while anything waits.
type world struct {
	seed     uint64
	plan     plan             // read only
	opts     []redlock.Option // read only: of every Locker, after the usual ones
	start    time.Time        // read only
	servers  []*server        // read only
	clients  []*client        // read only
	agenda   *agenda
	restarts sync.WaitGroup

	mu       sync.Mutex
	random   *rand.Rand // of the faults
	faults   bool       // there are any, still
	endings  []func()
	calmFrom time.Time // when the last fault is over that cannot be ended before
	repeats  time.Time // when the last message is executed that comes twice
	log      []entry
	problems []string
	tenures  []tenure
	written  map[string]tenure    // by name: the last writer that the resource has accepted
	wins     map[win]string       // the hold that each token belongs to
	asked    map[string]time.Time // by hold: when the call began that has won it; zero where nobody took it
	loose    bool                 // a key may live on to its TTL
	setBack  time.Duration        // by how much a master's clock was set back at the end, at the most: keys live longer by that
	leapt    bool                 // masters' clocks were so far apart that one may have refused to raise a bar

	locks, imports, healings, writes, connections, scripts, grants int
}

// A Result is what a run has shown.
type Result struct {
	Seed     uint64
	Problems []string // what was wrong; none is how it should be
	// Locks is how many locks were held, Imports how many of them were handed over, Healings how often a master was given
	// a hold back, Writes how often the resource was written to, Connections how many were made, Scripts how many the
	// masters have executed, Grants how many holds releases have written.
	Locks, Imports, Healings, Writes, Connections, Scripts, Grants int

	plan plan
	log  []entry
}

// Run runs one seed, inside a synctest bubble, and returns when nothing of it is left. opts are given to every Locker,
// after the usual options.
func Run(seed uint64, opts ...redlock.Option) (*Result, error) {
	w := &world{seed: seed, plan: draw(seed), opts: opts, start: time.Now(), faults: true, written: map[string]tenure{},
		wins: map[win]string{}, asked: map[string]time.Time{},
		random: rand.New(rand.NewPCG(seed, 1))}
	w.agenda = newAgenda(w)
	defer jitter.Use(rand.New(rand.NewPCG(seed, 2)))()
	for i := range w.plan.masters {
		s := newServer(w, i)
		s.set(w.upTo(w.plan.spread)-w.plan.spread/2, 1+w.plan.lean*w.plan.rate)
		s.admit(w.plan.guard)
		w.servers = append(w.servers, s)
	}
	for i := range w.plan.clients {
		c, err := newClient(w, i)
		if err != nil {
			return nil, err
		}
		w.clients = append(w.clients, c)
		w.sleep(100 * time.Microsecond)
	}
	w.work()
	w.checkTenures()
	if !w.bad() {
		w.complete()
	}
	if !w.bad() {
		w.settle()
	}
	for _, c := range w.clients {
		w.close(c)
	}
	w.agenda.stop()
	return &Result{Seed: seed, Problems: w.problems, Locks: w.locks, Imports: w.imports, Healings: w.healings, Writes: w.writes, Grants: w.grants,
		Connections: w.connections, Scripts: w.scripts, plan: w.plan, log: w.log}, nil
}

func (w *world) sleep(d time.Duration) {
	time.Sleep(time.Until(w.instant(time.Now().Add(d), slotMain)))
}

func (w *world) bad() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.problems) > 0
}

// work lets the workers work while faults happen, ends both, and waits for the workers.
func (w *world) work() {
	var workers sync.WaitGroup
	var stops []context.CancelFunc
	for _, c := range w.clients {
		for n := range w.plan.busy {
			ctx, stop := context.WithCancel(context.Background())
			stops = append(stops, stop) // each by itself: the children of one context end in no order
			workers.Go(newWorker(c, n, ctx).run)
		}
	}
	for _, c := range w.clients {
		if w.plan.move != nil {
			ctx, stop := context.WithCancel(context.Background())
			stops = append(stops, stop)
			workers.Go(newTeller(c, ctx).run)
		}
	}
	for end := w.start.Add(w.plan.length); time.Now().Before(end) && !w.bad(); {
		pause := w.plan.length
		if every := w.plan.every; every > 0 {
			w.mu.Lock()
			pause = time.Duration(float64(every) * min(w.random.ExpFloat64(), 4))
			w.mu.Unlock()
		}
		w.sleep(min(pause, time.Until(end)))
		w.mu.Lock()
		if len(w.problems) == 0 && time.Now().Before(end) {
			w.fault()
		}
		w.mu.Unlock()
	}
	w.mu.Lock()
	w.calm()
	calm := time.Until(w.calmFrom)
	w.mu.Unlock()
	w.sleep(max(calm, 0) + 50*time.Millisecond)
	for _, stop := range stops {
		stop()
		w.sleep(tick)
	}
	workers.Wait()
	w.restarts.Wait()
}

func (w *world) close(c *client) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, l := range append(c.old, c.now()) {
		if err := l.Close(ctx); err != nil {
			w.problem("client %d: close: %v", c.index, err)
		}
	}
	if err := c.pool.Close(); err != nil {
		w.problem("client %d: close of the pool: %v", c.index, err)
	}
}
