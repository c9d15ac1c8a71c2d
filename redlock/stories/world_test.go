package stories

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/jitter"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlocktest"
)

// A world is one story: its masters, its programs, and all that has happened. It lives in a bubble of virtual time.
type world struct {
	t       *testing.T
	start   time.Time
	masters *redlocktest.Masters
	wg      sync.WaitGroup                        // what listens to the masters
	offsets map[*redlocktest.Master]time.Duration // by how much their clocks are wrong
	clocks  sync.RWMutex                          // guards the clocks of the programs

	mu       sync.Mutex
	ahead    time.Duration // by how much the world is ahead of the bubble, after freezes
	programs []*program
	names    names
	news     []entry          // since the last step
	tokens   map[string]int64 // the largest of each name
	handle   string           // what was exported last
}

// A program is one Locker with a pool of its own, on a machine of its own.
type program struct {
	*redlock.Locker
	w      *world
	name   string
	number int
	pool   *pool.Pool
	links  map[string]*link // by address
	list   []*link          // by master
	dead   bool

	boot, wall time.Duration            // by how much its two clocks are ahead of the bubble
	locks      map[string][]*tenure     // by name; the innermost last
	waiting    map[string]int           // calls under way, by name
	ended      map[string]error         // why the last lock of a name ended
	hang       map[string]chan struct{} // functions of the program's own that hang
	cancels    map[string][]func()      // of the calls, by name
}

// A tenure is one lock that a program has got.
type tenure struct {
	*redlock.Lock
	ctx  context.Context
	told bool // the program knows that it has ended
}

// steady is where the random part of pauses comes from: always the same part, whoever asks first.
type steady struct{}

func (steady) Uint64() uint64 { return 0x9e3779b97f4a7c15 }

// newWorld begins a story.
func newWorld(t *testing.T) *world {
	w := &world{t: t, start: time.Now(), tokens: map[string]int64{}, names: newNames(),
		offsets: map[*redlocktest.Master]time.Duration{}}
	t.Cleanup(jitter.Use(rand.New(steady{})))
	uuid.SetRand(rand.NewChaCha8([32]byte{}))
	t.Cleanup(func() { uuid.SetRand(nil) })
	return w
}

// close ends everything that the story has left running.
func (w *world) close() {
	for _, p := range w.programs {
		for _, gate := range p.hang {
			close(gate)
		}
		for _, l := range p.list {
			l.holdUp, l.holdDown = false, false
		}
	}
	for _, p := range w.programs {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		_ = p.Close(ctx) // the story is over
		cancel()
	}
	<-time.After(time.Minute) // what ends late ends now
	for _, p := range w.programs {
		_ = p.pool.Close()
	}
	if w.masters != nil {
		w.masters.Close()
	}
	w.wg.Wait()
}

// now is the time of the story.
func (w *world) now() time.Duration { return time.Since(w.start) + w.ahead }

// passes lets time pass, and then everything come to rest that happens at its end.
func (w *world) passes(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.checkLocked()
}

// checkLocked fails the story where two programs hold one name, by their own word.
func (w *world) checkLocked() {
	holders := map[string]string{}
	for _, p := range w.programs {
		for name, list := range p.locks {
			if len(list) == 0 || p.dead || list[len(list)-1].Err() != nil {
				continue
			}
			if other := holders[name]; other != "" {
				w.t.Errorf("at %s both %s and %s hold %s", seconds(w.now()), other, p.name, name)
			}
			holders[name] = p.name
		}
	}
}

// newMasters makes the masters of the story.
func (w *world) newMasters(n int, o options) {
	opts := []redlocktest.Option{}
	if o.has("fresh") {
		opts = append(opts, redlocktest.Fresh())
	}
	if d := o.duration("guard", 0); d > 0 {
		opts = append(opts, redlocktest.Guard(d))
	}
	w.masters = redlocktest.New(n, opts...)
}

// newProgram starts a program over the first masters, or all, and lets it learn what they are.
func (w *world) newProgram(name string, o options) {
	p := &program{
		w: w, name: name, number: len(w.programs), links: map[string]*link{}, locks: map[string][]*tenure{},
		waiting: map[string]int{}, ended: map[string]error{}, hang: map[string]chan struct{}{},
		cancels: map[string][]func(){},
		boot:    w.ahead, wall: w.ahead,
	}
	urls := w.masters.URLs()[:o.number("masters", w.masters.N())]
	apart := o.masters("without")
	for i := range w.masters.N() {
		l := &link{w: w, p: p, master: i + 1, delay: oneWay, cut: apart[i+1]}
		p.links[w.masters.Master(i).Addr()] = l
		p.list = append(p.list, l)
	}
	var err error
	p.pool, err = pool.Dial(urls, pool.WithDialer(p.dial), pool.WithClock(p.clock()))
	if err == nil {
		p.Locker, err = redlock.New(p.pool, p.options(o)...)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.mu.Lock()
	w.programs = append(w.programs, p)
	w.mu.Unlock()
}

// options are those of a program.
func (p *program) options(o options) []redlock.Option {
	opts := []redlock.Option{redlock.WithClock(p.clock()), redlock.WithOwner(o.text("label", p.name))}
	if d := o.duration("guard", 0); d > 0 {
		opts = append(opts, redlock.WithGuardTime(d))
	}
	if o.has("trace") {
		gate := make(chan struct{})
		p.hang["trace"] = gate
		opts = append(opts, redlock.WithTrace(&redlock.Trace{Lost: func(redlock.LockInfo) { <-gate }}))
	}
	for _, lo := range p.lockOptions(o) {
		opts = append(opts, lo)
	}
	return opts
}

// lockOptions are those of a call.
func (p *program) lockOptions(o options) (opts []redlock.LockOption) {
	if d := o.duration("ttl", 0); d > 0 {
		opts = append(opts, redlock.WithTTL(d))
	}
	if d := o.duration("longest", 0); d > 0 {
		opts = append(opts, redlock.WithMaxHold(d))
	}
	if o.text("extension", "on") == "off" {
		opts = append(opts, redlock.WithExtension(false))
	}
	if n := o.number("tries", 0); n > 0 {
		opts = append(opts, redlock.WithDelays(redlock.Delays{Fixed: 10 * time.Millisecond, Tries: n}))
	}
	if o.text("hand-on", "on") == "off" {
		opts = append(opts, redlock.WithHandOn(0, 0))
	}
	if o.has("backoff") {
		gate := make(chan struct{})
		p.hang["backoff"] = gate
		opts = append(opts, redlock.WithBackoff(func() redlock.Backoff { return hanging(gate) }))
	}
	return opts
}

// hanging is a policy of retries that says nothing until it is closed.
type hanging chan struct{}

func (h hanging) Next() (time.Duration, bool) {
	<-h
	return 0, false
}

// clock is that of the program's machine: time since it was started, and the wall clock.
func (p *program) clock() *clock.Clock {
	return clock.New(func() clock.Instant {
		run := time.Since(p.w.start)
		p.w.clocks.RLock()
		defer p.w.clocks.RUnlock()
		return clock.At(int64(run+p.boot)+1, p.w.start.UnixNano()+int64(run+p.wall))
	})
}

// freeze lets the world go on for d at once, while no timer of any program runs. The machine of p knows of it by both
// clocks, or, where it is a virtual machine that its host has stopped, by the wall clock alone.
func (w *world) freeze(p *program, d time.Duration, virtual bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clocks.Lock()
	w.ahead += d
	for _, other := range w.programs {
		other.wall += d
		if other != p || !virtual {
			other.boot += d
		}
	}
	w.clocks.Unlock()
	for i := range w.masters.N() {
		m := w.masters.Master(i)
		m.SetClock(w.ahead+w.offsets[m], 1)
	}
}

// call runs f as a call of the program, and takes down how it ended: cannot what, or has done.
func (p *program) call(what, done, name string, f func(ctx context.Context) (*redlock.Lock, error), o options) {
	ctx, cancel := context.WithCancel(context.Background())
	if d := o.duration("within", 0); d > 0 {
		cancel()
		ctx, cancel = context.WithTimeout(context.Background(), d)
	}
	if o.has("cancelled") {
		cancel()
	}
	w := p.w
	w.mu.Lock()
	p.waiting[name]++
	p.cancels[name] = append(p.cancels[name], cancel)
	w.mu.Unlock()
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
			w.log(entry{who: p.name, what: fmt.Sprintf("cannot %s, and is told after %s: %s",
				what, seconds(w.now()-begun), w.clean(err))})
		case k == nil:
			w.log(entry{who: p.name, what: done})
		default:
			w.gotLocked(p, &tenure{Lock: k, ctx: k.Context(context.Background())})
		}
	}()
}

// gotLocked takes down a lock, and has its end told.
func (w *world) gotLocked(p *program, k *tenure) {
	name := k.Name()
	p.locks[name] = append(p.locks[name], k)
	w.log(entry{who: p.name, what: fmt.Sprintf("has %s until %s, token %s",
		name, seconds(w.now()+k.Remaining()), w.ballot(k.Token()))})
	if last := w.tokens[name]; k.Token() < last {
		w.t.Errorf("the token %d of %s is below %d", k.Token(), name, last)
	}
	w.tokens[name] = k.Token()
	w.checkLocked()
	if k.Remaining() <= 0 {
		w.t.Errorf("%s gets %s without validity", p.name, name)
	}
	go func() {
		<-k.Done()
		w.mu.Lock()
		defer w.mu.Unlock()
		k.told = true
		if p.dead {
			return
		}
		p.ended[name] = k.Err()
		if list := p.locks[name]; len(list) > 0 && list[len(list)-1] == k {
			w.log(entry{who: p.name, what: fmt.Sprintf("is told that its lock of %s has ended: %s", name, w.clean(k.Err()))})
		}
	}()
}
