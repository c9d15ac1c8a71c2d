package redlock

import (
	"context"
	"fmt"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/teeth"
	"github.com/redlock-go/redlock/pool"
)

// unknownMarker is what calls that work in quarantine expect of a master whose marker was not read: no marker is
// written so, and the script then looks at the marker itself. The empty string would turn the guard off.
const unknownMarker = "-"

// A masterState is what a round needs to know of one master. It is never changed once it is in a snapshot.
type masterState struct {
	phase    phase
	stamp    pool.Stamp     // for an acquire: the session, and the marker that was read on it
	text     string         // for calls that work in quarantine: the marker
	guard    time.Duration  // the guard time in the marker, 0 where the guard is off
	pending  int64          // phasePending: when the quarantine is over, in the master's microseconds
	change   scripts.Marker // of it the epoch, since when, and what may act alone; zero where it was not read
	admitted bool           // whatever it says about sets
	read     int64          // the master's time when its marker was read
	err      error          // phaseDown and phaseBlocked: why
}

// A snapshot is what all rounds that begin now go by.
type snapshot struct {
	set        *members
	masters    []masterState
	voting     uint64 // masters that are up and admitted
	connecting uint64 // masters of which nothing is known yet
	fleet      scripts.Fleet
}

// hopeful reports whether it is worth waiting before a round is sent: no quorum votes yet, and there may soon be one.
func (s *snapshot) hopeful() bool {
	r := s.set.rule
	return !r.has(s.voting) && r.has(s.voting|s.connecting)
}

// A guard admits masters, and tells the rounds which of them vote. One goroutine, run, owns all facts; what others
// have to say to it goes through an inbox, and what it says to others through an immutable snapshot.
type guard struct {
	l     *Locker
	homes []string // of the durable masters, by master; see WithDurableMasters; run's own
	gone  []leaver // run's own
	wake  chan struct{}
	snap  atomic.Pointer[snapshot]

	mu    sync.Mutex
	inbox []note        // guarded by mu
	moved chan struct{} // guarded by mu; closed and replaced with each snapshot that differs
}

// A note is one thing that the guard is told.
type note struct {
	master    int
	event     *pool.Event        // of the pool, or nil
	session   uint64             // of the connection that the rest was read on
	admission *scripts.Admission // answer to a step, or nil
	err       error              // why a step failed
	doubt     bool               // the marker is another than we know
	leave     uint64             // masters that are no longer of the set
	heard     chan<- struct{}    // closed once this and what was told before is in the snapshot
}

// tracked is what run keeps of a master beside the facts.
type tracked struct {
	session  uint64
	inFlight bool          // a step was sent and not answered
	retry    clock.Instant // after a step that failed: no other before
	look     clock.Instant // while waiting: when the marker is read again
	asked    clock.Instant // when the step in flight was sent
	seen     clock.Instant // when the reading that gave the marker was sent
	clock    int64         // the master's time at it
	needed   clock.Instant // since when it is known not to be admitted; zero: it is
	err      error
	told     phase // last phase that the trace was told
	toldOnce bool
}

func newGuard(l *Locker) *guard {
	g := &guard{l: l, wake: make(chan struct{}, 1), moved: make(chan struct{})}
	set := l.set.Load()
	s := &snapshot{set: set, masters: make([]masterState, set.slots), connecting: set.rule.all(), fleet: l.fleet(set, l.cfg.guard, l.cfg.barTTL)}
	g.snap.Store(s)
	return g
}

// window is how far from a master's time a ballot is accepted: half of the guard time.
func (l *Locker) window(guard time.Duration) time.Duration {
	if l.cfg.guard == 0 {
		return openWindow
	}
	return guard / 2
}

// fleet boxes what all calls share.
func (l *Locker) fleet(set *members, guard, barTTL time.Duration) scripts.Fleet {
	// A word to a waiter and its acquire take a round trip, which the pool allows to take this long. Were it longer than
	// the reservation, those who are told would find the name promised to the next again and again.
	reserve := max(scripts.Reservation, set.slowest)
	return scripts.NewFleet(scripts.Prefix(l.cfg.prefix), l.window(guard), barTTL, set.epoch).Reserving(reserve)
}

func (g *guard) tell(n note) {
	g.mu.Lock()
	g.inbox = append(g.inbox, n)
	g.mu.Unlock()
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// ready returns the present snapshot, and waits for a better one only while no quorum votes and one may soon: when a
// program has just started. It never waits for a minority.
func (g *guard) ready(ctx context.Context) (*snapshot, error) {
	for {
		s := g.snap.Load()
		if !s.hopeful() {
			return s, nil
		}
		g.mu.Lock()
		moved := g.moved
		g.mu.Unlock()
		if s != g.snap.Load() {
			continue
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return s, contextError(ctx)
		case <-g.l.closing:
			return s, ErrClosed
		}
	}
}

// changes is a channel that is closed with the next snapshot that differs.
func (g *guard) changes() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.moved
}

// run is the guard's goroutine. It ends when the Locker closes.
func (g *guard) run() {
	defer g.l.joined.Done()
	defer g.l.pool.Watch(func(e pool.Event) { g.tell(note{master: e.Master, event: &e}) })()
	var facts []fact
	var track []tracked
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	defer func() {
		for _, x := range g.gone {
			g.l.giveBack(x.set)
		}
	}()
	for {
		g.mu.Lock()
		notes := g.inbox
		g.inbox = nil
		g.mu.Unlock()
		set := g.l.set.Load() // after the notes: one may say that it is another
		slots := set.slots
		for _, n := range notes {
			slots = max(slots, n.master+1)
		}
		if n := slots - len(facts); n > 0 { // another Locker of this pool may have named them
			facts, track = append(facts, make([]fact, n)...), append(track, make([]tracked, n)...)
			g.homes = g.l.homesFor(g.homes, slots)
		}
		for _, n := range notes {
			g.apply(n, &facts[n.master], &track[n.master])
		}
		timer.Reset(g.act(set, facts, track))
		for _, n := range notes {
			if n.heard != nil {
				close(n.heard)
			}
		}
		select {
		case <-g.wake:
		case <-timer.C:
		case <-g.l.closing:
			return
		}
	}
}

// apply takes one note into account.
func (g *guard) apply(n note, f *fact, t *tracked) {
	switch {
	case n.leave != 0:
		g.gone = append(g.gone, leaver{n.leave, g.l.now().Add(g.l.longestTTL())})
	case n.heard != nil: // says nothing itself
	case n.event != nil && n.event.Err != nil:
		*f = fact{settled: true}
		*t = tracked{err: n.event.Err, told: t.told, toldOnce: t.toldOnce}
	case n.event != nil:
		e := n.event
		if e.Session != t.session || e.Info.RTT <= g.l.set.Load().slowest { // a longer one was stretched by a suspension
			g.l.ballots.learn(n.master, e.Info.Time, e.Info.Read)
		}
		if e.Session != t.session {
			*f = fact{up: true, settled: true, identity: e.Info.Identity()}
			*t = tracked{session: e.Session, told: t.told, toldOnce: t.toldOnce}
		}
	case n.doubt:
		f.read = false
	case n.session != t.session: // of a connection that is gone
	case n.admission != nil:
		t.inFlight = false
		t.err = nil
		t.seen, t.clock = t.asked, n.admission.Time
		g.observe(f, n.admission.Marker)
		switch n.admission.Result {
		case scripts.AdmitOtherIdentity, scripts.AdmitClockDiffers:
			t.retry = g.l.now().Add(admitRetry)
		case scripts.AdmitTooEarly: // its clock is a little behind what we reckon
			t.retry = g.l.now().Add(admitRetry / 10)
		}
	case n.err != nil:
		t.inFlight = false
		t.err = n.err
		t.retry = g.l.now().Add(admitRetry)
	}
}

// observe takes note of what a master's marker says now.
func (g *guard) observe(f *fact, text string) {
	f.read, f.text, f.bad, f.marker = true, text, false, scripts.Marker{}
	if text == "" {
		return
	}
	m, err := scripts.ParseMarker(text)
	f.marker, f.bad = m, err != nil
}

// act sends the steps that are due, publishes a snapshot, and returns how long nothing more is due.
func (g *guard) act(set *members, facts []fact, track []tracked) time.Duration {
	now := g.l.now()
	idle := time.Hour
	clocks := g.l.ballots.reckon(now)
	for i := range facts {
		_, facts[i].now = g.l.ballots.time(now, i)
		facts[i].age = now.Sub(track[i].seen)
		facts[i].home = g.homes[i]
	}
	s := &snapshot{set: set, masters: make([]masterState, len(facts))}
	if wait := g.dismiss(now); wait > 0 {
		idle = min(idle, wait)
	}
	guardTime, barTTL := g.l.cfg.guard, g.l.cfg.barTTL
	for rest := s.set.rule.all() | s.set.follow.all(); rest != 0; {
		i := popFirst(&rest)
		f, t := &facts[i], &track[i]
		waited := time.Duration(0)
		switch {
		case f.read && f.own() && f.marker.Admitted():
			t.needed = clock.Instant{}
		case f.read && t.needed.IsZero():
			t.needed = now
		case f.read:
			waited = now.Sub(t.needed)
		}
		m, ph := g.next(facts, s.set, i, clocks, waited)
		if m.gather {
			g.gather(i, s.set.follow.of(i).all(), facts, track, now)
		}
		if wait := g.take(i, f, t, m, clocks.median, now); wait > 0 {
			idle = min(idle, wait)
		}
		st := &s.masters[i]
		*st = g.state(i, s.set, f, t, ph, clocks)
		switch st.phase {
		case phaseAdmitted:
			s.voting |= bit(i)
		case phaseConnecting:
			s.connecting |= bit(i)
		}
		if st.guard > 0 {
			guardTime, barTTL = min(guardTime, st.guard), max(barTTL, st.guard)
		}
	}
	s.fleet = g.l.fleet(s.set, guardTime, barTTL)
	g.publish(s)
	for rest := s.set.rule.all() | s.set.follow.all(); rest != 0; {
		i := popFirst(&rest)
		g.trace(i, &s.masters[i], &track[i], facts[i].now)
	}
	return max(idle, time.Millisecond)
}

// next is nextMove, or with the guard off: every master that is up votes.
func (g *guard) next(facts []fact, set *members, i int, clocks reckoning, waited time.Duration) (move, phase) {
	if g.l.cfg.guard == 0 {
		switch f := &facts[i]; {
		case f.up:
			return move{}, phaseAdmitted
		case f.settled:
			return move{}, phaseDown
		}
		return move{}, phaseConnecting
	}
	m, ph := nextMove(facts, set.follow, i, clocks, waited, g.l.cfg.guard, set.epoch)
	if ph == phaseAdmitted && m.step == stepNone && facts[i].marker.Alone < set.needs(i) { // nobody tells us when it may
		m = move{step: stepWait, look: true, wait: admitRetry}
	}
	return m, ph
}

// gather has the markers of others of a set read again that were last read before master i was found wanting.
func (g *guard) gather(i int, set uint64, facts []fact, track []tracked, now clock.Instant) {
	for set != 0 {
		j := popFirst(&set)
		f, t := &facts[j], &track[j]
		resting := !t.retry.IsZero() && t.retry.Sub(now) > 0 // it answered the last one with an error
		if j != i && f.up && f.read && !t.inFlight && !resting && t.seen.Sub(track[i].needed) < 0 {
			t.inFlight, t.asked = true, now
			g.send(j, t.session, scripts.AdmitRequest{Step: scripts.AdmitRead}, nil)
		}
	}
}

// take sends the step of m, if one is due, and returns how long to wait for the next; 0 for no time of its own.
func (g *guard) take(i int, f *fact, t *tracked, m move, median int64, now clock.Instant) time.Duration {
	if m.step == stepNone || t.inFlight {
		return 0
	}
	if !t.retry.IsZero() {
		if left := t.retry.Sub(now); left > 0 {
			return left
		}
		t.retry = clock.Instant{}
		m = move{step: stepRead} // the world may have changed: look before acting
	}
	if m.step == stepWait {
		if !m.look {
			return m.wait
		}
		if t.look.IsZero() {
			t.look = now.Add(admitRetry)
		}
		if left := t.look.Sub(now); left > 0 {
			return min(left, m.wait)
		}
		m = move{step: stepRead}
	}
	t.look = clock.Instant{}
	req := scripts.AdmitRequest{
		Identity: f.identity, Seen: f.text, Median: median, Tolerance: max(g.l.cfg.guard, f.marker.Guard) / 2,
		Quarantine: m.quarantine, Guard: m.guard, Epoch: m.epoch, Alone: m.alone, Home: f.home,
	}
	switch m.step {
	case stepRead:
		req.Step = scripts.AdmitRead
	case stepStart:
		req.Step = scripts.AdmitStart
	case stepEnd:
		req.Step = scripts.AdmitEnd
	case stepNow:
		req.Step = scripts.AdmitNow
	}
	t.inFlight, t.asked = true, now
	g.send(i, t.session, req, nil)
	return 0
}

// send sends one step; the answer comes back as a note, and to done where that is not nil.
func (g *guard) send(i int, session uint64, req scripts.AdmitRequest, done chan<- error) {
	a := &admitting{g: g, session: session, done: done}
	call := g.snap.Load().fleet.AdmitCall(req)
	if err := g.l.pool.Send(i, call, pool.Stamp{Session: session}, a); err != nil {
		a.Reply(i, nil, err)
	}
}

// admitting receives the answer to one step.
type admitting struct {
	g       *guard
	session uint64
	done    chan<- error // capacity for every answer
}

func (a *admitting) Reply(i int, value any, err error) {
	var adm scripts.Admission
	if err == nil {
		if adm, err = scripts.DecodeAdmission(value); err != nil {
			err = &pool.Error{Addr: a.g.l.pool.Addr(i), Op: "admit", Err: err}
		}
	}
	if err != nil {
		a.g.tell(note{master: i, session: a.session, err: err})
	} else {
		a.g.tell(note{master: i, session: a.session, admission: &adm})
	}
	if a.done != nil {
		a.done <- err
	}
}

// state is what rounds need to know of a master with these facts.
func (g *guard) state(i int, set *members, f *fact, t *tracked, ph phase, clocks reckoning) masterState {
	st := masterState{phase: ph, err: t.err, text: unknownMarker}
	st.stamp.Session = t.session
	if g.l.cfg.guard == 0 {
		st.text = ""
		return st
	}
	if f.read && f.text != "" {
		st.guard, st.read = f.marker.Guard, t.clock
		st.change = scripts.Marker{Epoch: f.marker.Epoch, Since: f.marker.Since, Alone: f.marker.Alone}
		if f.marker.Epoch <= set.epoch || teeth.NoEpoch {
			st.text = f.text
		} // else the master itself is to look at the epoch that the call carries
	}
	switch ph {
	case phaseAdmitted:
		st.stamp.Text, st.admitted = f.text, true
		switch {
		case f.marker.Epoch > set.epoch && !teeth.NoEpoch:
			st.phase = phaseBlocked
			st.err = fmt.Errorf("%w: its set of masters has epoch %d, this program's %d", ErrOldMasters, f.marker.Epoch, set.epoch)
		case f.marker.Alone < set.needs(i) && !teeth.NoTogether:
			st.phase = phaseBlocked
			st.err = fmt.Errorf("%w: it may act alone up to epoch %d, this program's set of masters has %d", ErrIncomplete, f.marker.Alone, set.needs(i))
		}
	case phasePending:
		st.pending = f.marker.Pending
	case phaseBlocked:
		if f.bad {
			st.err = fmt.Errorf("the admission marker %.80q cannot be read; delete the key %q, and the master is admitted anew after a quarantine", f.text, scripts.Prefix(g.l.cfg.prefix).Marker())
		} else if r := set.follow.of(i); st.err == nil && !r.has(clocks.known) {
			st.err = fmt.Errorf("it may have forgotten locks, and its quarantine waits until the clocks of %d masters can be compared; %d can", r.least(), bits.OnesCount64(clocks.known&r.all()))
		} else if st.err == nil {
			st.err = fmt.Errorf("its clock is %v away from the median of the masters, more than half of the guard time; set the clocks right", fromMicros(f.now-clocks.median))
		}
	case phaseConnecting:
		if t.err != nil && f.up { // a step failed: say so instead of waiting for ever
			st.phase = phaseBlocked
		}
	}
	return st
}

func (g *guard) publish(s *snapshot) {
	g.mu.Lock()
	defer g.mu.Unlock()
	last := g.snap.Load()
	g.snap.Store(s)
	if !slices.EqualFunc(last.masters, s.masters, sameState) {
		close(g.moved)
		g.moved = make(chan struct{})
	}
}

// sameState reports whether nobody who waits for a change need hear of one from a to b.
func sameState(a, b masterState) bool {
	a.err, b.err, a.read, b.read = nil, nil, 0, 0
	return a == b
}

func (g *guard) trace(i int, st *masterState, t *tracked, now int64) {
	if t.toldOnce && t.told == st.phase {
		return
	}
	t.told, t.toldOnce = st.phase, true
	info := MasterInfo{Addr: g.l.pool.Addr(i), State: phaseNames[st.phase], Guard: st.guard, Epoch: st.change.Epoch, Err: st.err}
	if st.phase == phasePending {
		info.Left = fromMicros(st.pending - now)
	}
	g.l.traceMaster(info)
}

var phaseNames = [...]string{
	phaseConnecting: "connecting", phaseDown: "down", phasePending: "quarantine", phaseAdmitted: "voting", phaseBlocked: "blocked",
}

// doubt has the marker of master i read anew: a vote has shown that it is another than we know.
func (g *guard) doubt(i int) { g.tell(note{master: i, doubt: true}) }
