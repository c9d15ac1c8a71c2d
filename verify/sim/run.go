package sim

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/redlock-go/redlock/internal/jitter"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/verify/sim/trace"
)

// Every event gets a unique instant: a whole tick, plus the slot of its source. So no two events coincide, and the
// seed determines their order.
const (
	tick     = time.Microsecond
	tickPart = time.Nanosecond

	maxMasters, maxClients, maxBusy = 5, 4, 3

	slotsPerLink   = 8
	slotsDown      = 200 // above maxClients * maxMasters * slotsPerLink
	slotWorkers    = 500
	slotFaults     = 600
	slotMain       = 700
	slotConfigurer = 720
)

const (
	prefix = scripts.Prefix("sim")

	// callGrace is the maximum time from the end of a context to the return of its call: the grace of a release, plus a
	// margin.
	callGrace = 15 * time.Millisecond
)

// A simulation is one run. mu guards all fields that are not marked read only. No goroutine may wait while it holds mu.
type simulation struct {
	Setup
	plan     plan // read only
	seen     observer
	dying    *dying
	guest    *guest
	start    time.Time    // read only
	leaped   atomic.Int64 // true time minus the time of the bubble, in ns
	servers  []*server    // read only
	clients  []*client    // read only
	agenda   *agenda
	restarts sync.WaitGroup

	mu      sync.Mutex
	jumping jumpState
	troubles
	books
}

// The troubles are the current faults of a run.
type troubles struct {
	random   *rand.Rand
	faults   bool // faults may still happen
	endings  []func()
	calmFrom time.Time     // end of the last fault that cannot be ended early
	repeats  time.Time     // when the last duplicate of a message is executed
	loose    bool          // a key may remain until its TTL expires
	aborting bool          // the operator has called AbortChange
	aborted  bool          // the change of the masters has been cancelled
	setBack  time.Duration // maximum amount by which a master's clock was set back at the end, so that keys last longer
	lapsing  bool          // a lapse is in progress
	leapt    bool          // the masters' clocks differed so much that one may have refused to raise a fence
}

// The books record the history of a run.
type books struct {
	log       []entry
	problems  []string
	spans     []span
	written   map[string]span  // by name: the last hold whose write the resource has accepted
	wins      map[win]string   // the lease to which each token belongs
	shown     map[holdOf]int64 // by hold: the number of the hold's newest value that a quorum has had
	valuesSet int64
	asked     map[string]time.Time // by lease: when the call that acquired the lease began; the zero time if unknown
	count     Counts
	rules     *trace.Checker // checks the transition rules of the specification
}

// Counts holds the numbers of acquired locks, imported locks, repairs, accepted writes, connections, and executed
// scripts.
type Counts struct{ Locks, Imports, Repairs, Writes, Connections, Scripts int }

// A Result is the result of a run.
type Result struct {
	Seed     uint64
	Problems []string // the violations
	Counts

	plan    plan
	log     []entry
	reached [situationCount]bool
}

// Run runs one seed and returns when all goroutines of the run have ended. It must be called in a synctest bubble.
func Run(setup Setup) (*Result, error) {
	w := &simulation{Setup: setup, start: time.Now()}
	w.troubles = troubles{faults: true, random: rand.New(rand.NewPCG(setup.Seed, 1))}
	w.books = books{
		written: map[string]span{}, wins: map[win]string{}, asked: map[string]time.Time{},
		shown: map[holdOf]int64{},
	}
	w.plan = draw(&w.Setup)
	w.jumping = jumpState{random: rand.New(rand.NewPCG(setup.Seed, 8)), narrow: map[string]*narrowLease{},
		votes: map[string]quorum.Set{}}
	w.rules = trace.NewChecker(w.plan.masters, w.plan.move != nil || w.plan.kind == strangers)
	w.seen = newObserver()
	w.agenda = newAgenda(w)
	defer jitter.Use(rand.New(rand.NewPCG(setup.Seed, 2)))()
	var identities [32]byte
	binary.BigEndian.PutUint64(identities[:], setup.Seed)
	uuid.SetRand(rand.NewChaCha8(identities))
	defer uuid.SetRand(nil)
	if err := w.begin(); err != nil {
		return nil, err
	}
	w.work()
	w.checkBuried()
	w.checkHolds()
	for _, check := range []func(){w.checkServed, w.checkEndless, w.joinAgain, w.complete, w.settle} {
		if !w.bad() {
			check()
		}
	}
	w.endDying()
	w.joinAgain()
	for _, c := range w.clients {
		w.close(c)
	}
	w.agenda.stop()
	return &Result{
		Seed: setup.Seed, Problems: w.problems, Counts: w.count, plan: w.plan, log: w.log, reached: w.seen.reached,
	}, nil
}

// begin creates the masters and the clients.
func (w *simulation) begin() error {
	for i := range w.plan.masters {
		s := newServer(w, i)
		s.set(w.upTo(w.plan.spread)-w.plan.spread/2, 1+w.plan.lean*w.plan.rate)
		if w.random.IntN(2) == 0 { // the master was a replica once
			s.promote()
		}
		if set := w.setOf(i); set != nil {
			s.admit(set)
		}
		w.servers = append(w.servers, s)
	}
	for i := range w.plan.clients {
		c, err := newClient(w, i)
		if err != nil {
			return err
		}
		w.clients = append(w.clients, c)
		w.sleep(100 * time.Microsecond)
	}
	if err := w.startDying(); err != nil {
		return err
	}
	if err := w.startGuest(); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.plan.apart != nil {
		w.at(w.plan.cutAfter, slotFaults, w.cutApart)
	}
	return nil
}

func (w *simulation) sleep(d time.Duration) {
	time.Sleep(time.Until(w.instant(time.Now().Add(d), slotMain)))
}

func (w *simulation) bad() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.problems) > 0
}

// work runs the workers while faults happen, ends the workers and the faults, and waits for the workers.
func (w *simulation) work() {
	var workers sync.WaitGroup
	var stops []context.CancelFunc
	for _, c := range w.clients {
		for n := range w.plan.busy {
			ctx, stop := context.WithCancel(context.Background())
			stops = append(stops, stop) // no common parent, because the children of a context end in no particular order
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
	for _, c := range w.clients {
		close(c.unblocked)
		w.sleep(tick) // during this time, the client delivers its events
	}
}

func (w *simulation) close(c *client) {
	for _, l := range append(c.old, c.now()) {
		// A Locker that was shut down while a callback blocked has given up.
		if err := l.Close(); err != nil && (l == c.now() || !strings.Contains(err.Error(), "gave up")) {
			w.problem("client %d: close of the Locker: %v", c.index, err)
		}
	}
	if err := c.pool.Close(); err != nil {
		w.problem("client %d: close of the pool: %v", c.index, err)
	}
}
