package voters

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock/internal/admission"
	"github.com/redlock-go/redlock/redlock/internal/ballot"
	"github.com/redlock-go/redlock/redlock/internal/quorum"
)

// Settings are what Voters go by.
type Settings struct {
	Pool     *pool.Pool
	Clock    *clock.Clock
	Clocks   *ballot.Clocks
	Prefix   scripts.Prefix
	Guard    time.Duration          // guard time; 0: the guard is off, and every master that is up votes
	Durable  func(addr string) bool // whether a master remembers every write; nil: none does
	Observer bool                   // starts, ends and writes nothing
	Group    scripts.Group          // that the masters are; zero: there are no groups
	// AgreedFunc tells admission.Fleet.Agreed and Stranger. That they have changed is told by Again.
	AgreedFunc func() (agreed, stranger bool)
	Closed     error // of calls that wait after Close
	// OnView is called with each View that differs, by the goroutine of Run and with no lock held. It must not block, nor
	// call Use, Look, Step or Quarantine.
	OnView func(last, next *admission.View)
}

// Voters know which masters may vote. All methods are safe for concurrent use.
type Voters struct {
	set   Settings
	view  atomic.Pointer[admission.View]
	wake  chan struct{} // cap 1: there is something in the inbox
	close func()
	over  <-chan struct{} // closed by close

	mu    sync.Mutex
	inbox []func()      // guarded by mu; what Run is to do next
	moved chan struct{} // guarded by mu; closed and replaced with each View that differs

	// The rest belongs to the goroutine of Run.
	config    *quorum.Config
	facts     []admission.Fact
	tracks    []track
	sent      uint64     // steps
	after     []func()   // done when the View goes by all that was in the inbox
	retained  quorum.Set // masters that the pool was told are in use
	admitting int        // calls of Admit under way
	let       quorum.Set // masters that vote, or have voted, since the last call of Admit began
}

// A track is what Run keeps of a master beside the facts.
type track struct {
	session  uint64
	memory   admission.Memory
	inFlight bool              // a step was sent and not answered
	done     scripts.AdmitStep // the last step, if it was done
	asked    clock.Instant     // when the last step was sent
	refused  scripts.AdmitStep // the last step that ended in an error
	failed   clock.Instant     // when the last step was answered by a refusal; zero: it was not
	rest     time.Duration     // for how long no step is sent after failed
	read     int64             // the master's time when its record was read
}

// New returns Voters that go by c. They know nothing until Run runs. Until the end of Run the pool knows that the
// masters are in use.
func New(set Settings, c *quorum.Config) *Voters {
	over := make(chan struct{})
	v := &Voters{
		set: set, config: c, wake: make(chan struct{}, 1), moved: make(chan struct{}),
		over: over, close: sync.OnceFunc(func() { close(over) }),
	}
	v.grow(c.Slots)
	v.retain(c.Rule.All())
	v.view.Store(&admission.View{
		Config: c, Masters: make([]admission.State, c.Slots), Connecting: c.Rule.All(),
		Encoder: scripts.NewEncoder(set.Prefix, c.Epoch),
	})
	return v
}

// Run follows the masters until Close.
func (v *Voters) Run() {
	defer v.set.Pool.Watch(func(e pool.Event) { v.tell(func() { v.event(e) }) })()
	defer func() { v.giveBack(v.retained) }()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-v.wake:
		case <-timer.C:
		case <-v.over:
			return
		}
		v.mu.Lock()
		inbox := v.inbox
		v.inbox = nil
		v.mu.Unlock()
		for _, do := range inbox {
			do()
		}
		timer.Reset(v.act())
		after := v.after
		v.after = nil
		for _, do := range after {
			do()
		}
	}
}

// Close ends Run, and calls that wait. It does not wait for Run.
func (v *Voters) Close() { v.close() }

// tell has Run do something.
func (v *Voters) tell(do func()) {
	v.mu.Lock()
	v.inbox = append(v.inbox, do)
	v.mu.Unlock()
	select {
	case v.wake <- struct{}{}:
	default: // it was told already
	}
}

// grow makes room for masters up to n: another user of the pool may have named them.
func (v *Voters) grow(n int) {
	for i := len(v.facts); i < n; i++ {
		f := admission.Fact{}
		if addr := v.set.Pool.Addr(i); v.set.Durable != nil && !v.set.Pool.FailsOver(i) && v.set.Durable(addr) {
			f.Home = scripts.Escape(addr)
		}
		v.facts, v.tracks = append(v.facts, f), append(v.tracks, track{})
	}
}

// event takes note of what the pool says of a master.
func (v *Voters) event(e pool.Event) {
	v.grow(e.Master + 1)
	f, t := &v.facts[e.Master], &v.tracks[e.Master]
	if e.Err != nil {
		f.Lose()
		f.Err, t.session, t.inFlight, t.failed = e.Err, 0, false, clock.Instant{}
		return
	}
	fresh := e.Session != t.session
	if fresh || e.Info.RTT <= v.config.Slowest { // a longer one was stretched by a suspension
		v.set.Clocks.Learn(e.Master, e.Info.Time, e.Info.Read, e.Info.RTT/2)
	}
	if fresh {
		f.Lose()
		f.Up, t.session, t.inFlight, t.failed = true, e.Session, false, clock.Instant{}
		if f.Moved = e.Info.Moved; f.Moved {
			t.memory.Forget()
		}
	}
	f.Identity, f.Backlog, f.Late = e.Info.Identity(), e.Info.BacklogTTL, e.Info.Late
	t.memory.See(f)
}

// act decides what is to be done for each master, does it, publishes a View, and returns when to act again.
func (v *Voters) act() time.Duration {
	now, c, idle := v.set.Clock.Now(), v.config, never
	fleet := v.fleet(now)
	if epoch := fleet.Adopts(); v.set.Guard > 0 && epoch > 0 {
		v.use(c.Final(epoch))
		c, fleet = v.config, v.fleet(now)
	}
	next := &admission.View{
		Config: c, Masters: make([]admission.State, len(v.facts)), Encoder: scripts.NewEncoder(v.set.Prefix, c.Epoch),
	}
	if fleet.Group.Of > 0 {
		next.Named, next.Begun, next.Other = fleet.Named(), fleet.Begun(), fleet.Other()
	}
	for i := range masters(c).All() {
		st, m := fleet.Judge(i)
		idle = min(idle, v.take(i, m, fleet, now))
		next.Masters[i] = st
		if st.Phase == admission.Voting {
			v.let |= quorum.One(i)
		}
		switch {
		case !c.Rule.All().Has(i): // it is only being admitted
		case st.Phase == admission.Voting:
			next.Voting |= quorum.One(i)
		case st.Phase == admission.Connecting:
			next.Connecting |= quorum.One(i)
		}
	}
	// While no quorum votes nobody asks, so nobody else would notice that one that votes has lost its record.
	if v.set.Guard > 0 && !c.Rule.Won(next.Voting) {
		for i := range next.Voting.All() {
			idle = min(idle, v.take(i, admission.Move{Look: admission.Look}, fleet, now))
		}
	}
	for i := range next.Masters { // also of those that have left: a grant may still go by them
		t, st := &v.tracks[i], &next.Masters[i]
		st.Session, st.Generation, st.Read = t.session, t.memory.Generation, t.read
		if st.Stamp == "" && v.set.Guard > 0 {
			st.Stamp = admission.Unread
		}
	}
	v.publish(next)
	return max(idle, time.Millisecond)
}

// fleet is what is decided by at this instant.
func (v *Voters) fleet(at clock.Instant) *admission.Fleet {
	v.grow(v.config.Slots)
	for i := range v.facts {
		v.facts[i].Own, v.facts[i].Away = v.set.Clocks.Own(at, i), v.set.Clocks.Away(i)
	}
	now := quorum.Set(0)
	if v.admitting > 0 {
		now = quorum.First(v.config.Slots) &^ v.let // one that has voted may have granted locks, and lost them since
	}
	agreed, stranger := false, false
	if v.set.Group.Of > 0 {
		agreed, stranger = v.set.AgreedFunc()
	}
	return &admission.Fleet{
		Config: v.config, Guard: v.set.Guard, Observer: v.set.Observer, Now: now,
		Group: v.set.Group, Agreed: agreed, Stranger: stranger,
		Facts: v.facts, Clocks: v.set.Clocks.Read(at), Addr: v.set.Pool.Addr,
	}
}

// publish makes next what rounds go by, and tells those who want to know of a difference.
func (v *Voters) publish(next *admission.View) {
	last := v.view.Load()
	differs := last.Config != next.Config || last.Named != next.Named || last.Begun != next.Begun ||
		last.Other != next.Other || !slices.EqualFunc(last.Masters, next.Masters, same)
	v.mu.Lock()
	v.view.Store(next)
	if differs {
		close(v.moved)
		v.moved = make(chan struct{})
	}
	v.mu.Unlock()
	if differs {
		v.set.OnView(last, next)
	}
}

// same reports whether nobody who waits for a change need hear of one from a to b.
func same(a, b admission.State) bool {
	a.Err, b.Err, a.Read, b.Read = nil, nil, 0, 0
	return a == b
}

// use goes by c. Masters that it does not have are told of releases until the longest TTL is over.
func (v *Voters) use(c *quorum.Config) {
	left := v.config.Rule.All() &^ masters(c)
	v.config = c
	v.retain(masters(c))
	longest := v.set.Guard
	for _, st := range v.view.Load().Masters {
		longest = max(longest, st.Longest)
	}
	time.AfterFunc(longest, func() { v.tell(func() { v.giveBack(left &^ masters(v.config)) }) })
}

// masters are those of c, and those that it has admitted.
func masters(c *quorum.Config) quorum.Set { return c.Rule.All() | c.Follow.All() }

// retain tells the pool that masters are in use.
func (v *Voters) retain(set quorum.Set) {
	for i := range (set &^ v.retained).All() {
		v.set.Pool.Retain(i)
	}
	v.retained |= set
}

// giveBack tells the pool that masters are not used here any more. Those that are still named stay for the next Locker.
func (v *Voters) giveBack(set quorum.Set) {
	for i := range (set & v.retained).All() {
		v.set.Pool.Release(i, !masters(v.config).Has(i))
	}
	v.retained &^= set
}
