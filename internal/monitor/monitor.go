package monitor

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/admission"
	"github.com/redlock-go/redlock/internal/ballot"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/internal/transport/fault"
)

// Settings configure a Monitor.
type Settings struct {
	Pool     *transport.Transport
	Clock    *clock.Clock
	Clocks   *ballot.Clocks
	Prefix   scripts.Prefix
	MaxTTL   time.Duration          // the client's max TTL; 0 if the restart guard is off: all masters that are up vote
	Durable  func(addr string) bool // reports whether a master persists every write; nil if none does
	Observer bool                   // whether the Monitor writes no records
	Shard    scripts.Shard          // the shard of the masters; zero without shards
	Shards   *Shards                // what the Monitors of all shards of a Locker share; nil without shards
	Closed   error                  // the error of calls that are waiting when Close is called
	// OnView is called with each View that differs from the previous one. It runs on the goroutine of Run, with no lock
	// held. OnView must not block, and must not call SetConfig, ReadRecords, Step or Quarantine.
	OnView func(last, next *admission.View)
	// OnRefused, if not nil, is called when a master has refused the script of a heartbeat. It must not block.
	OnRefused func(master int)
}

// A Monitor tracks which masters may vote. All methods are safe for concurrent use.
type Monitor struct {
	settings Settings
	view     atomic.Pointer[admission.View]
	wake     chan struct{} // cap 1; contains a value when todo is not empty
	close    func()
	closed   <-chan struct{} // closed by close

	mu      sync.Mutex
	todo    []func()      // guarded by mu; functions that Run will call
	changed chan struct{} // guarded by mu; closed and replaced when a different View is published

	// The fields below are used only by the goroutine of Run.
	config   *quorum.Config
	facts    []admission.Fact
	tracks   []track
	after    []func()      // functions to call when the View contains the effects of todo
	retained quorum.Set    // masters registered with the pool as in use
	looked   clock.Instant // when decide last began
	doubt    bool          // whether it is doubtful which clock is wrong
	byHand   byHand
}

// byHand records the calls of Admit.
type byHand struct {
	calls int        // number of calls in progress
	voted quorum.Set // masters that have voted since the latest call began
}

// A track is the state of one master that Run keeps in addition to the facts.
type track struct {
	session    uint64
	moves      uint64 // Info.Moves of the session
	memory     admission.Memory
	inFlight   bool              // whether a step was sent and not yet answered
	doneStep   scripts.AdmitStep // the last step, if it has written the record; "" otherwise
	sentAt     clock.Instant     // when the last step was sent
	failedStep scripts.AdmitStep // the last step that ended in an error
	refusedAt  clock.Instant     // when the last step was refused, failed or had no effect; zero otherwise
	pause      time.Duration     // how long after refusedAt the next step may be sent
	read       int64             // the master's time when its record was read
}

// New returns a Monitor with configuration c. The state of the masters is unknown until Run is called. The masters are
// registered with the pool as in use until Run returns.
func New(settings Settings, c *quorum.Config) *Monitor {
	closed := make(chan struct{})
	if settings.Shards == nil {
		settings.Shards = new(Shards)
	}
	m := &Monitor{
		settings: settings, config: c, wake: make(chan struct{}, 1), changed: make(chan struct{}),
		closed: closed, close: sync.OnceFunc(func() { close(closed) }),
	}
	m.settings.Shards.monitors = append(m.settings.Shards.monitors, m)
	m.grow(c.Slots)
	m.retain(c.Rule.All())
	m.view.Store(&admission.View{
		Config: c, Masters: make([]admission.State, c.Slots), Connecting: c.Rule.All(),
		Encoder: scripts.NewEncoder(settings.Prefix, c.Epoch),
	})
	return m
}

// Run tracks the state of the masters, and admits them, until Close is called.
func (m *Monitor) Run() {
	defer m.settings.Pool.Watch(func(e transport.Event) { m.enqueue(func() { m.recordEvent(e) }) })()
	defer func() { m.release(m.retained) }()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-m.wake:
		case <-timer.C:
		case <-m.closed:
			return
		}
		m.mu.Lock()
		todo := m.todo
		m.todo = nil
		m.mu.Unlock()
		for _, do := range todo {
			do()
		}
		timer.Reset(m.decide())
		after := m.after
		m.after = nil
		for _, do := range after {
			do()
		}
	}
}

// Close ends Run and all waiting calls. It does not wait for Run.
func (m *Monitor) Close() { m.close() }

// enqueue makes Run call do.
func (m *Monitor) enqueue(do func()) {
	m.mu.Lock()
	m.todo = append(m.todo, do)
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default: // Run was woken already
	}
}

// grow extends facts and tracks to n masters, including masters of the pool that are not in the configuration.
func (m *Monitor) grow(n int) {
	for i := len(m.facts); i < n; i++ {
		s, addr := &m.settings, m.settings.Pool.Addr(i)
		f := admission.Fact{Database: s.Pool.Database(i)}
		if s.Durable != nil && !s.Pool.FailsOver(i) && s.Durable(addr) {
			f.DurableName = scripts.Escape(addr)
		}
		m.facts, m.tracks = append(m.facts, f), append(m.tracks, track{})
	}
}

// recordEvent records an event of the pool.
func (m *Monitor) recordEvent(e transport.Event) {
	m.grow(e.Master + 1)
	f, t := &m.facts[e.Master], &m.tracks[e.Master]
	if e.Err != nil {
		if f.Up {
			// countOutages will add the time since looked, in which the master was up.
			f.Lost = -max(0, m.settings.Clock.Now().Sub(m.looked))
		}
		f.Lose()
		f.Err, t.session, t.inFlight, t.refusedAt = e.Err, 0, false, clock.Instant{}
		return
	}
	fresh := e.Session != t.session
	if fresh || e.Info.RTT <= m.config.Slowest { // a longer round trip includes a suspension of this machine
		m.settings.Clocks.Learn(e.Master, e.Info.Time, e.Info.Read, e.Info.RTT/2)
	}
	if fresh {
		f.Lose()
		f.Up, f.Lost, t.session, t.inFlight, t.refusedAt = true, 0, e.Session, false, clock.Instant{}
		// Another Locker with the same pool may have begun the quarantine that the moves require before this one started.
		f.Moved = !m.settings.Pool.Quarantined(e.Master, e.Info.Moves, string(m.settings.Prefix))
		if t.moves = e.Info.Moves; f.Moved {
			t.memory.Forget()
		}
	}
	if e.Info.Refused && m.settings.OnRefused != nil {
		m.settings.OnRefused(e.Master)
	}
	f.Identity, f.Backlog, f.Late = e.Info.Identity(), e.Info.BacklogTTL, e.Info.Late
	f.Started, f.SetBack = e.Info.Started, e.Info.SetBack
	f.Lossy, f.Unverified = e.Info.Lossy(), e.Info.Unverified()
	t.memory.See(f)
}

// decide makes the next move for each master, publishes a View, and returns the time until the next call.
func (m *Monitor) decide() time.Duration {
	now, c, idle := m.settings.Clock.Now(), m.config, never
	m.countOutages(now)
	deployment := m.deployment(now)
	if epoch := deployment.Adopts(); m.settings.MaxTTL > 0 && epoch > 0 {
		m.applyConfig(c.Final(epoch))
		c, deployment = m.config, m.deployment(now)
	}
	next := &admission.View{
		Config: c, Masters: make([]admission.State, len(m.facts)), Encoder: scripts.NewEncoder(m.settings.Prefix, c.Epoch),
	}
	last := m.view.Load()
	next.Voted = last.Voted || deployment.Voted()
	if deployment.Shard.Of > 0 {
		next.Evidence = deployment.Evidence()
		idle = m.readSought(now)
	}
	for i := range c.All().All() {
		st, move := deployment.Judge(i)
		idle = min(idle, m.makeMove(i, move, deployment, now))
		next.Masters[i] = st
	}
	in := func(p admission.Phase) quorum.Set {
		return c.All().Where(func(i int) bool { return next.Masters[i].Phase == p })
	}
	m.byHand.voted |= in(admission.Voting)
	// The masters outside of the rule are being admitted for the next configuration, and do not vote yet.
	next.Voting, next.Connecting = in(admission.Voting)&c.Rule.All(), in(admission.Connecting)&c.Rule.All()
	// While no quorum votes, no client acquires locks, so no vote would show that a voting master has lost its record.
	// While it is doubtful whether a clock is wrong, the others must be read more often than by heartbeats.
	m.doubt = slices.ContainsFunc(m.facts, func(f admission.Fact) bool { return f.Up && f.Doubted })
	if m.settings.MaxTTL > 0 && (!c.Rule.Won(next.Voting) || m.doubt) {
		for i := range next.Voting.All() {
			idle = min(idle, m.makeMove(i, admission.Move{Look: admission.Look}, deployment, now))
		}
	}
	for i := range next.Masters { // including masters that have left the configuration: a lease may use them
		t, st := &m.tracks[i], &next.Masters[i]
		st.Session, st.Incarnation, st.Read = t.session, t.memory.Incarnation, t.read
		switch {
		case m.settings.MaxTTL == 0: // masters are assumed to keep their data; if one does not, an extension finds no lease
			st.Incarnation = min(st.Incarnation, 1)
		case st.Stamp == "":
			st.Stamp = admission.Unread
		}
	}
	m.publish(next)
	return max(idle, time.Millisecond)
}

// countOutages adds the time since its last call to the outages of the masters that are down. It adds at most twice
// admission.Look: a longer time means that this client was frozen and did not observe the masters, or that its wall
// clock was set forward.
func (m *Monitor) countOutages(now clock.Instant) {
	passed := min(now.Sub(m.looked), 2*admission.Look)
	m.looked = now
	for i := range m.facts {
		if f := &m.facts[i]; !f.Up {
			f.Lost += passed
		}
	}
}

// deployment returns the input for the decisions of package admission.
func (m *Monitor) deployment(now clock.Instant) *admission.Deployment {
	m.grow(m.config.Slots)
	for i := range m.facts {
		f := &m.facts[i]
		f.Own, f.Off = m.settings.Clocks.Own(now, i), m.settings.Clocks.Off(i)
	}
	m.noticeLeaps()
	exempt := quorum.Set(0)
	if m.byHand.calls > 0 { // a master that has voted may have granted locks and lost them since
		exempt = quorum.First(m.config.Slots) &^ m.byHand.voted
	}
	var others []admission.Evidence
	if m.settings.Shard.Of > 0 {
		others = m.settings.Shards.others(m)
	}
	return &admission.Deployment{
		Config: m.config, MaxTTL: m.settings.MaxTTL, Observer: m.settings.Observer, Exempt: exempt,
		Shard: m.settings.Shard, Others: others,
		Facts: m.facts, Clocks: m.settings.Clocks.Read(now), Addr: m.settings.Pool.Addr,
	}
}

// noticeLeaps records which masters' clocks are so far off that keys may have expired early, or will when the clock is
// right again. While the first connections are being made, too few clocks are known for that.
func (m *Monitor) noticeLeaps() {
	up := quorum.Set(0)
	for i := range m.config.All().All() {
		if !m.facts[i].Known {
			return
		}
		if m.facts[i].Up {
			up |= quorum.One(i)
		}
	}
	for i := range m.facts {
		f, t := &m.facts[i], &m.tracks[i]
		if f.Up && f.Compare(m.settings.Clocks.Standing(i, up), m.settings.Clocks.Moved(i)) {
			m.settings.Clocks.Remember(i)
			t.memory.Forget()
			t.memory.See(f)
		}
	}
}

// publish makes next the current View. If it differs from the last one, publish wakes waiting calls and calls OnView.
func (m *Monitor) publish(next *admission.View) {
	last := m.view.Load()
	differs := last.Config != next.Config || !slices.EqualFunc(last.Masters, next.Masters, same)
	m.mu.Lock()
	m.view.Store(next)
	if differs {
		close(m.changed)
		m.changed = make(chan struct{})
	}
	m.mu.Unlock()
	if differs {
		m.settings.OnView(last, next)
	}
	m.settings.Shards.learned(m, &last.Evidence, &next.Evidence)
}

// same reports whether a and b are equal, except for changes that need no notification. A closed pool needs one: no
// call needs to wait any more.
func same(a, b admission.State) bool {
	if errors.Is(a.Err, fault.ErrPoolClosed) != errors.Is(b.Err, fault.ErrPoolClosed) {
		return false
	}
	a.Err, b.Err, a.Read, b.Read, a.Off, b.Off = nil, nil, 0, 0, 0, 0
	return a == b
}

// applyConfig makes c the configuration. Masters that are not in c stay in use until the longest TTL has expired, since
// releases may still have to be sent to them.
func (m *Monitor) applyConfig(c *quorum.Config) {
	left := m.config.All() &^ c.All()
	m.config = c
	m.settings.Clocks.Use(c.Rule, c.All())
	m.retain(c.All())
	longest := m.settings.MaxTTL
	for _, st := range m.view.Load().Masters {
		longest = max(longest, st.Record.MaxTTL)
	}
	time.AfterFunc(longest, func() { m.enqueue(func() { m.release(left &^ m.config.All()) }) })
}

// retain registers masters as in use with the pool.
func (m *Monitor) retain(set quorum.Set) {
	for i := range (set &^ m.retained).All() {
		m.settings.Pool.Retain(i)
	}
	m.retained |= set
}

// release drops the references to masters of the pool. The pool keeps the connections to masters of the present
// configuration, for the next Locker.
func (m *Monitor) release(set quorum.Set) {
	for i := range (set & m.retained).All() {
		m.settings.Pool.Release(i, !m.config.All().Has(i))
	}
	m.retained &^= set
}
