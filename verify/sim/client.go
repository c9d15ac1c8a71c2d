package sim

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	clients "github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// A client is one process on its own machine: a clock, a pool, a Locker, and workers that use it.
type client struct {
	w       *simulation
	index   int
	watch   *watch
	links   map[string]*link // by the master's address
	inOrder []*link          // by the number of the master
	pool    *pool.Pool

	// Guarded by simulation.mu.
	locker  *redlock.Locker
	old     []*redlock.Locker        // closed Lockers
	closing bool                     // a Locker is being closed
	left    map[*redlock.Locker]bool // Lockers whose Close has returned
	beliefs []*belief                // spans that have not ended
	machine
	unblocked chan struct{}         // closed when callbacks that block may return
	file      redlock.Configuration // configuration of the next Locker, in runs that change the masters
}

// machine is the state of the client's machine.
type machine struct {
	asleep     bool
	awake      chan struct{} // closed on wake-up; not nil while asleep
	woken      time.Time     // when the machine last woke up
	jumped     time.Time     // when the clocks last jumped relative to timers, in the time of the bubble
	turned     bool          // the wall clock was set forward, so it is unknown whether validity was left before that
	freezeNext time.Duration // all machines stop for this long before the client next reads a reply
}

func newClient(w *simulation, i int) (*client, error) {
	p := &w.plan
	r := rand.New(rand.NewPCG(w.Seed, 100+uint64(i)))
	c := &client{w: w, index: i, unblocked: make(chan struct{})}
	c.links, c.left = map[string]*link{}, map[*redlock.Locker]bool{}
	c.watch = newWatch(w.now, 1-p.lean*p.rate, between(r, time.Second, 20*time.Minute),
		between(r, -20*time.Minute, 20*time.Minute))
	own := [2]time.Duration{between(r, 0, p.unlike), between(r, 0, p.unlike)}
	for j, s := range w.servers {
		l := &link{w: w, c: c, s: s, slot: (i*maxMasters + j) * slotsPerLink,
			random: rand.New(rand.NewPCG(w.Seed, uint64(1000+10*i+j)))}
		if i == p.clients { // the guest
			l.slow = [2]time.Duration{p.away, p.away}
		}
		if p.unlike > 0 {
			l.slow = [2]time.Duration{own[0] + between(r, 0, p.unlike/4), own[1] + between(r, 0, p.unlike/4)}
		}
		c.links[s.addr] = l
		c.inOrder = append(c.inOrder, l)
	}
	timeout := p.timeout
	if i == 1 {
		timeout += p.patience
	}
	var masters []pool.Master
	for j, s := range w.servers {
		if p.lists != nil && p.lists[i] != nil && !slices.Contains(p.lists[i], j) {
			continue
		}
		// A round is sent to all masters at the same instant. The timeouts differ, so that the requests do not time out at
		// the same instant.
		masters = append(masters, pool.URL("redis://"+s.addr, pool.WithTimeout(timeout+time.Duration(j*maxClients+i)*tick)))
	}
	var err error
	c.pool, err = pool.New(masters, pool.WithDialer(c.dial), transport.WithClock(c.watch.clock()),
		pool.WithDialTimeout(redialEvery+8*timeout), transport.WithHeartbeat(p.heartbeat),
		transport.WithRedial(15*time.Millisecond, 40*time.Millisecond))
	if err != nil {
		return nil, err
	}
	if p.move != nil {
		c.file = w.stateOf(0)
	}
	c.locker, err = c.begin(string(rune('A'+i)), c.file)
	return c, err
}

// begin creates a Locker with the given label and, in runs that change the masters, the given configuration.
func (c *client) begin(label string, file redlock.Configuration) (*redlock.Locker, error) {
	guard := c.w.plan.guards[c.index]
	if c.w.plan.oneLabel {
		label = "host"
	}
	opts := []redlock.Option{
		clients.WithClock(c.watch.clock()),
		redlock.WithLabel(label), redlock.WithPrefix(string(prefix)),
		redlock.WithMaxTTL(guard), redlock.WithTTL(guard), redlock.WithTrace(c.trace()),
	}
	if c.w.plan.kind == durables {
		opts = append(opts, redlock.WithAllMastersDurable())
	}
	if c.w.plan.move != nil {
		opts = append(opts, redlock.WithConfiguration(file))
	}
	return redlock.New(c.pool, opts...)
}

// now returns the current Locker of the client.
func (c *client) now() *redlock.Locker {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	return c.locker
}

// trace returns the trace callbacks of the client, which record events of leases.
func (c *client) trace() *redlockinfo.Trace {
	note := func(what, name string, n int64, err error) {
		w := c.w
		w.mu.Lock()
		defer w.mu.Unlock()
		w.record(entry{at: w.since(w.start), client: int8(c.index), master: -1, what: what, name: name, n: n, err: err})
	}
	return &redlockinfo.Trace{Event: func(i redlockinfo.Event) {
		switch i.Kind {
		case "acquired":
			note("has won", i.ID, i.Token, nil)
			c.w.won(c.index, i)
		case "lost":
			note("has lost", i.ID, i.Token, i.Err)
		case "extended":
			note("has extended", i.ID, i.Token, i.Err)
		case "repaired":
			note("has repaired", i.ID+" on "+i.Master, 0, nil)
			c.w.mu.Lock()
			c.w.count.Repairs++
			c.w.mu.Unlock()
		case "vote":
			switch c.w.plan.callbacks[c.index] {
			case blocks:
				<-c.unblocked
			case panics:
				panic("the callback of a vote panics")
			}
		}
	}}
}

// waitAwake waits until the client is not suspended, and reports whether it had to wait.
func (k *worker) waitAwake() (slept bool) {
	c := k.c
	w := c.w
	w.mu.Lock()
	for c.asleep {
		awake := c.awake
		w.mu.Unlock()
		<-awake
		slept = true
		time.Sleep(time.Until(w.instant(time.Now(), k.slot)))
		w.mu.Lock()
	}
	w.mu.Unlock()
	return slept
}

// A worker is one goroutine of a client.
type worker struct {
	c      *client
	slot   int
	random *rand.Rand
	ctx    context.Context // ends with the run
}

func newWorker(c *client, n int, ctx context.Context) *worker {
	return &worker{c: c, slot: slotWorkers + c.index*maxBusy + n, ctx: ctx,
		random: rand.New(rand.NewPCG(c.w.Seed, uint64(2000+10*c.index+n)))}
}

func (k *worker) upTo(d time.Duration) time.Duration {
	return time.Duration(k.random.Int64N(int64(d) + 1)).Round(time.Microsecond)
}

func (k *worker) chance(p float64) bool { return k.random.Float64() < p }

// sleep waits until d has passed, the run has ended, or done is closed. It reports whether d has passed.
func (k *worker) sleep(d time.Duration, done <-chan struct{}) bool {
	timer := time.NewTimer(time.Until(k.c.w.instant(time.Now().Add(d), k.slot)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-done:
	case <-k.ctx.Done():
	}
	return false
}

// within returns a child of ctx that ends after about d.
func (k *worker) within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithDeadline(ctx, k.c.w.instant(time.Now().Add(d), k.slot))
}

// call makes one call of the library and checks that the call ends with its context. If the client is suspended,
// call returns when the client wakes up.
func (k *worker) call(what string, ctx context.Context, f func() error) error {
	err := f()
	if end, ok := ctx.Deadline(); ok {
		if late := time.Since(end); late > callGrace {
			k.c.w.problem("client %d: %s returned %v after the end of its context, want at most %v: %v", k.c.index, what, late,
				callGrace, err)
		}
	}
	k.waitAwake()
	return err
}

// spinning returns a retry policy whose pauses come from the seed.
func (k *worker) spinning() redlock.LockOption {
	return clients.WithPoll(func(n int) time.Duration {
		pause := time.Duration(min(n, 8))*time.Millisecond + k.upTo(10*time.Millisecond+k.c.w.plan.most/50)
		due := k.c.w.instant(time.Now().Add(pause), k.slot)
		return max(0, time.Until(due))
	})
}
