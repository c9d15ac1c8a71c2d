package walkthroughs

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/redlock-go/redlock/clock"
	clients "github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/internal/jitter"
	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// A scenario is one walkthrough: its masters, its clients, and its events. It runs in a bubble of virtual time.
type scenario struct {
	t       *testing.T
	start   time.Time
	masters *memory.Masters
	wg      sync.WaitGroup // goroutines that read from the masters
	clocks  sync.RWMutex   // guards the clocks of the clients

	mu      sync.Mutex
	ahead   time.Duration                    // total length of all freezes: the scenario is ahead of the bubble
	wrong   map[*memory.Master]time.Duration // offsets of the masters' clocks
	clients []*client
	news    []entry           // events since the last step
	short   map[string]string // short names of ids
	tokens  map[string]int64  // by name: the largest token
}

// A client is one Locker with its own pool, on its own machine.
type client struct {
	*redlock.Locker
	w          *scenario
	name       string
	number     int
	pool       *pool.Pool
	links      []*link       // by master
	boot, wall time.Duration // how far the boot clock and the wall clock are ahead of the bubble
	dead       bool
	locks      map[string][]*redlock.Lock // by name; the innermost last
	waiting    map[string]int             // by name: number of calls in progress
}

// steady is the random source of pauses and of the stamps of records. Its values differ only in their last bits, so
// that of several waiting clients the first also wakes up first, and each stamp is new.
type steady struct{ last uint64 }

func (s *steady) Uint64() uint64 {
	s.last++
	return 0x9e3779b97f4a0000 + s.last
}

// newScenario starts a walkthrough.
func newScenario(t *testing.T) *scenario {
	t.Cleanup(jitter.Use(rand.New(&steady{})))
	uuid.SetRand(rand.NewChaCha8([32]byte{}))
	t.Cleanup(func() { uuid.SetRand(nil) })
	return &scenario{
		t: t, start: time.Now(), wrong: map[*memory.Master]time.Duration{}, short: map[string]string{},
		tokens: map[string]int64{},
	}
}

// close closes the clients and the masters, and returns when all goroutines of the walkthrough have ended.
func (w *scenario) close() {
	w.mu.Lock()
	for _, p := range w.clients {
		for _, l := range p.links {
			l.hold = [2]bool{}
		}
	}
	w.mu.Unlock()
	for _, p := range w.clients {
		_ = p.Close() // errors do not matter after the walkthrough
	}
	<-time.After(time.Minute) // until late operations have ended
	for _, p := range w.clients {
		_ = p.pool.Close()
	}
	if w.masters != nil {
		w.masters.Close()
	}
	w.wg.Wait()
}

// now returns the time of the walkthrough.
func (w *scenario) now() time.Duration { return time.Since(w.start) + w.ahead }

// passes lets d of virtual time pass, waits until all goroutines are blocked, and checks that no name has two holders.
func (w *scenario) passes(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.checkLocked()
}

// checkLocked fails the walkthrough if two clients believe that they hold a name.
func (w *scenario) checkLocked() {
	holders := map[string]string{}
	for _, p := range w.clients {
		for name := range p.locks {
			if k := p.lock(name); k == nil || p.dead || k.Err() != nil {
				continue
			}
			if other := holders[name]; other != "" {
				w.t.Errorf("at %s both %s and %s hold %s, want one holder", seconds(w.now()), other, p.name, name)
			}
			holders[name] = p.name
		}
	}
}

// newClient starts a client.
func (w *scenario) newClient(name string, o options) {
	p := &client{
		w: w, name: name, number: len(w.clients), boot: w.ahead, wall: w.ahead,
		locks: map[string][]*redlock.Lock{}, waiting: map[string]int{},
	}
	for i := range w.masters.N() {
		l := &link{p: p, master: i + 1, delay: oneWay}
		l.cut = slices.Contains(numbers(o["without"]), i+1)
		p.links = append(p.links, l)
	}
	urls := w.masters.URLs()
	if n := o.number("masters"); n > 0 {
		urls = urls[:n]
	}
	var err error
	p.pool, err = pool.Open(urls, pool.WithDialer(p.dial), transport.WithClock(p.clock()))
	if err == nil {
		settings := clients.WithClock(p.clock())
		p.Locker, err = redlock.New(p.pool, settings, redlock.WithLabel(name))
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clients = append(w.clients, p)
}

// lockOptions returns the options of a call of the client.
func (p *client) lockOptions(o options) (opts []redlock.LockOption) {
	if d := o.duration("ttl"); d > 0 {
		opts = append(opts, redlock.WithTTL(d))
	}
	if o["extension"] == "off" {
		opts = append(opts, redlock.WithExtension(false))
	}
	return opts
}

// clock returns the clock of the client's machine, with a boot reading and a wall reading.
func (p *client) clock() *clock.Clock {
	return clock.New(func() clock.Instant {
		p.w.clocks.RLock()
		defer p.w.clocks.RUnlock()
		run := time.Since(p.w.start)
		return clock.At(int64(run+p.boot)+1, p.w.start.UnixNano()+int64(run+p.wall))
	})
}

// freeze advances the scenario by d instantly: the clocks of all machines advance, but timers do not notice. If virtual
// is set, client p runs in a virtual machine that was frozen, and of p's clocks only the wall clock advances.
func (w *scenario) freeze(p *client, d time.Duration, virtual bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clocks.Lock()
	defer w.clocks.Unlock()
	w.ahead += d
	for _, other := range w.clients {
		other.wall += d
		if other != p || !virtual {
			other.boot += d
		}
	}
	for i := range w.masters.N() {
		m := w.masters.Master(i)
		m.SetClock(w.ahead+w.wrong[m], 1)
	}
}

// lock returns the innermost lock of a name that the client has acquired and not unlocked, or nil if there is none.
func (p *client) lock(name string) *redlock.Lock {
	if list := p.locks[name]; len(list) > 0 {
		return list[len(list)-1]
	}
	return nil
}

// call starts f as a call of the client for a name. When f ends, call records the acquired lock, the text done if there
// is no lock, or that the client cannot do what.
func (p *client) call(
	o options, what, done, name string, f func(ctx context.Context) (*redlock.Lock, error),
) {
	ctx, cancel := context.WithCancel(context.Background())
	if d := o.duration("within"); d > 0 {
		cancel()
		ctx, cancel = context.WithTimeout(context.Background(), d)
	}
	w := p.w
	w.mu.Lock()
	defer w.mu.Unlock()
	p.waiting[name]++
	begun := w.now()
	go func() {
		defer cancel()
		k, err := f(ctx)
		w.mu.Lock()
		defer w.mu.Unlock()
		p.waiting[name]--
		switch {
		case p.dead:
		case err != nil:
			w.say(p, "cannot %s; the call ends after %s: %s", what, seconds(w.now()-begun), plainly(err))
		case k == nil:
			w.say(p, "%s", done)
		default:
			p.gotLocked(k)
		}
	}()
}

// gotLocked records a lock, and later the end of the lock.
func (p *client) gotLocked(k *redlock.Lock) {
	w, name, left := p.w, k.Name(), k.Remaining()
	p.locks[name] = append(p.locks[name], k)
	w.say(p, "has %s until %s, token %s", name, seconds(w.now()+left), w.ballot(k.Token()))
	if last := w.tokens[name]; k.Token() < last || left <= 0 {
		w.t.Errorf("%s acquired %s with %v of validity left, and token %d after token %d", p.name, name, left,
			k.Token(), last)
	}
	w.tokens[name] = k.Token()
	w.checkLocked()
	go func() {
		<-k.Done()
		w.mu.Lock()
		defer w.mu.Unlock()
		if !p.dead && p.lock(name) == k {
			w.say(p, "learns that its lock of %s has ended: %s", name, plainly(errors.Unwrap(k.Err())))
		}
	}()
}

// say records an action of a client. The caller must hold the scenario's mu.
func (w *scenario) say(p *client, format string, args ...any) {
	w.log(entry{who: p.name, what: fmt.Sprintf(format, args...)})
}
