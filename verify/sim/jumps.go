package sim

import (
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/redlock-go/redlock/internal/frame"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/scripts/reference"
	"github.com/redlock-go/redlock/internal/skew"
)

// aheadReturns says whether a clock that was ahead by more than the window may return during a run. Without the
// quarantine of masters whose clocks were far ahead, these returns cause two holders.
const aheadReturns = true

// farthestJump is the maximum error of a master's clock in runs of the kind jumps.
const farthestJump = time.Hour

// jumping describes how the clocks of some masters jump.
type jumping struct {
	wrong   []int         // masters whose clocks jump: a minority, in a change a minority of each set; nil for none
	near    time.Duration // largest jump within the window
	distant float64       // probability that a jump goes beyond the window
	narrow  float64       // probability that only a bare majority, with masters in wrong, accepts a lease
	stay    bool          // clocks that are wrong when the faults end stay wrong
	dwells  time.Duration // a clock stays wrong for up to this time
}

// A moment is the instant at which a clock jumps.
type moment int

const (
	anytime       moment = iota
	beforeAcquire        // just before the master executes an acquire
	betweenVotes         // when other masters have voted for a lease, but no majority yet
	moments
)

// A wrongClock is the simulator's record of a master's clock that jumps.
type wrongClock struct {
	by    time.Duration // how far the clock is wrong; 0: it is right
	since time.Time     // when it became wrong by more than the window
	back  time.Duration // by how much it was set back altogether: keys may last longer by this time
	beats map[*client]int
	next  moment // the clock jumps at this moment; anytime for none
	count int    // number of jumps
}

// A narrowLease is a lease that only a bare majority accepts.
type narrowLease struct{ on, have quorum.Set }

// jumpState is the state of a run in which clocks jump.
type jumpState struct {
	random *rand.Rand
	narrow map[string]*narrowLease // by lease; nil for a lease that all masters accept
	votes  map[string]quorum.Set   // by lease: the masters that have granted it
}

// jumps chooses a minority of the masters whose clocks jump, and other faults.
func (p *plan) jumps(r *rand.Rand) {
	p.masters = pick(r, 3, 3, 3, 4, 5, 5)
	p.guard = between(r, 500*time.Millisecond, 1500*time.Millisecond)
	p.least, p.most = p.guard/2, p.guard
	p.length = between(r, 2*time.Second, 5*time.Second)
	p.heartbeat = between(r, 200*time.Millisecond, 600*time.Millisecond)
	p.extend, p.toEnd, p.hand = r.Float64(), 0.6*r.Float64(), some(r, 0.3)
	p.idle = between(r, time.Millisecond, 20*time.Millisecond)
	p.dwell = between(r, 5*time.Millisecond, 300*time.Millisecond)
	p.write, p.distant, p.narrow = 1, r.Float64()*r.Float64(), 0.8*r.Float64()
	p.stay, p.dwells = r.IntN(2) == 0, p.guard
	p.near = skew.Window - time.Second
	if r.IntN(3) == 0 {
		p.near = 2 * p.guard
	}
	often := 6
	switch r.IntN(8) {
	case 0: // quarantines end
		p.slowly(r, between(r, 2*time.Second, 40*time.Second))
		p.few(r, crashEmpty, flush, failback, split)
		p.every, p.dwells, p.retry = p.every/3, 30*time.Second, 0
	case 1:
		p.change(r)
		p.every, p.dwells, p.retry = p.every/2, 10*time.Second, 0
	case 2: // a clock is wrong for longer than keys last
		p.slowly(r, between(r, 2*time.Second, 6*time.Second))
		p.length, p.dwells = between(r, 100*time.Second, 150*time.Second), time.Minute
		p.extend, p.toEnd, p.longest, p.narrow, p.write = 0.9, 0.5, 2*time.Minute, 0.9, 0.2
		p.distant, p.clients, p.names, p.retry = max(p.distant, 0.5), pick(r, 2, 3), []string{"a"}, 0
	case 3, 4, 5:
		p.few(r, crashEmpty, crashFull, flush, split, cutOff, stall, loseReply, suspend, restart)
	}
	p.weights[jump] = often
	if p.move == nil && r.IntN(3) == 0 {
		p.readers, p.reads, p.hand = true, 0.3+0.5*r.Float64(), some(r, 0.5)
	}
	rule := p.rule()
	var chosen quorum.Set
	for _, i := range r.Perm(p.masters) {
		more := chosen | quorum.One(i)
		if !slices.ContainsFunc(rule.Sets(), func(s quorum.Set) bool { return (more & s).Len() > (s.Len()-1)/2 }) {
			chosen = more
			p.wrong = append(p.wrong, i)
		}
	}
	if len(p.wrong) > 1 && r.IntN(3) == 0 {
		p.wrong = p.wrong[:1]
	}
}

// rule returns the rule that the votes of every client satisfy: during a change, that of the joint configuration.
func (p *plan) rule() quorum.Rule {
	if m := p.move; m != nil {
		return quorum.Rule{Old: setFrom(m.old), Next: setFrom(m.next)}
	}
	return quorum.Rule{Old: quorum.One(p.masters) - 1}
}

func setFrom(list []int) (s quorum.Set) {
	for _, i := range list {
		s |= quorum.One(i)
	}
	return s
}

// jumpSoon makes the clock of a master jump: now, or at a worse instant.
func (w *simulation) jumpSoon() {
	s := w.anyWrong(w.plan.wrong)
	if s == nil {
		return
	}
	if s.wrong.next = moment(w.jumping.random.IntN(int(moments))); s.wrong.next == anytime {
		w.jump(s)
	}
}

// anyWrong returns one of the masters in list, or nil if the list is empty.
func (w *simulation) anyWrong(list []int) *server {
	if len(list) == 0 {
		return nil
	}
	return w.servers[list[w.jumping.random.IntN(len(list))]]
}

// jump makes the clock of s jump. If it is wrong already, it may return, or jump once more.
func (w *simulation) jump(s *server) {
	r, c := w.jumping.random, &s.wrong
	c.next = anytime
	if !w.faults {
		return
	}
	if c.by != 0 && r.IntN(2) == 0 {
		w.returns(s)
		return
	}
	by := min(time.Millisecond+w.jumpTo(w.plan.near), w.plan.near)
	if r.Float64() < w.plan.distant {
		seconds := pick(r, 30, 300, int(farthestJump/time.Second))
		by = min(skew.Window+time.Second+w.jumpTo(time.Duration(seconds)*time.Second), farthestJump)
	}
	if r.IntN(3) == 0 {
		by = -by
	}
	if beyond(c.by) && !w.seenWrong(s) && (!beyond(by) || by > 0 != (c.by > 0)) {
		return
	}
	w.shift(s, by)
	d := w.jumpTo(pick2(r, 20*time.Millisecond, w.plan.most, w.plan.dwells))
	if beyond(by) {
		d += 2*w.plan.heartbeat + 4*w.plan.timeout
	}
	w.returnAfter(s, d)
}

func pick2(r *rand.Rand, list ...time.Duration) time.Duration { return list[r.IntN(len(list))] }

func (w *simulation) jumpTo(d time.Duration) time.Duration {
	return time.Duration(w.jumping.random.Int64N(int64(d) + 1)).Round(time.Microsecond)
}

// returnAfter makes the clock of s right again after d or, if no client has seen then that it is wrong by more than the
// window, soon after one has.
func (w *simulation) returnAfter(s *server, d time.Duration) {
	count := s.wrong.count
	w.at(d, slotFaults, func() {
		if w.faults && s.wrong.count == count && !w.returns(s) {
			w.returnAfter(s, w.plan.heartbeat)
		}
	})
}

// returns makes the clock of s right again, and reports whether that is possible.
func (w *simulation) returns(s *server) bool {
	if !w.seenWrong(s) {
		return false
	}
	w.shift(s, 0)
	return true
}

// seenWrong reports whether the clock of s may return: it is wrong by less than the window, or some client has seen
// that it is wrong by more. The documented limit is a jump that begins and ends between two heartbeats.
func (w *simulation) seenWrong(s *server) bool {
	c := &s.wrong
	if !beyond(c.by) {
		return true
	}
	if c.by > 0 && !aheadReturns || w.since(c.since) < 2*w.plan.heartbeat+2*w.plan.timeout {
		return false
	}
	for _, n := range c.beats {
		if n > 2 { // when a client sends a heartbeat, it has read the reply to the last one
			return true
		}
	}
	return false
}

// beyond reports whether a clock that is wrong by this much differs by more than the window from a right one.
func beyond(by time.Duration) bool { return by.Abs() > skew.Window }

// shift makes the clock of s wrong by this much.
func (w *simulation) shift(s *server, by time.Duration) {
	c := &s.wrong
	d := by - c.by
	s.set(s.off()+d, s.clock.rate)
	c.back += max(0, -d)
	if !beyond(c.by) || by > 0 != (c.by > 0) {
		c.since, c.beats = w.now(), map[*client]int{}
	}
	w.note(-1, s.index, "has its clock jump by", "", int64(d))
	w.sawJump(s, by)
	if beyond(by) || beyond(c.by) {
		s.forgot = w.now()
		w.leapt = true // the master may have refused to raise a fence
	}
	c.by = by
	c.count++
}

// sawJump detects the situations of a jump.
func (w *simulation) sawJump(s *server, to time.Duration) {
	from, o := s.wrong.by, &w.seen
	_, quarantine := o.quarantine[int8(s.index)]
	o.reach(jumpedInQuarantine, quarantine)
	for _, epoch := range o.epochs {
		o.reach(jumpedInChange, epoch == 1)
	}
	o.reach(jumpedFarAhead, to > 0 && beyond(to))
	o.reach(jumpedFarBack, to < 0 && beyond(to))
	o.reach(returnedNear, to == 0 && !beyond(from))
	o.reach(returnedFarBack, from < 0 && beyond(from) && !beyond(to))
	for _, c := range w.clients {
		for _, b := range c.beliefs {
			n := w.jumping.narrow[w.wins[winOf(c.index, b.name, b.token)]]
			bareMajority := n != nil && n.on.Has(s.index) && b.ctx.Err() == nil
			_, slot := scripts.CutSlot(b.name)
			o.reach(jumpedBareMajority, bareMajority && !b.reads)
			o.reach(jumpedBareSlot, bareMajority && slot.Of > 0)
			o.reach(jumpedBareReader, bareMajority && b.reads)
		}
	}
}

// beforeScript makes clocks jump before a master executes a script, and reports whether the master refuses the script.
func (w *simulation) beforeScript(s *server, one *frame.Script, words []string) (refuses bool) {
	if w.plan.wrong == nil || !w.faults || !acquires(one.SHA) {
		return false
	}
	id, mode := words[wordID], modeOf(words)
	if s.wrong.next == beforeAcquire {
		w.seen.reach(jumpedBeforeAcquire, true)
		w.jump(s)
	}
	j := &w.jumping
	n, known := j.narrow[id]
	if !known && mode != "repair" {
		if j.random.Float64() < w.plan.narrow {
			n = w.narrowLease()
		}
		j.narrow[id] = n
	}
	return n != nil && !n.on.Has(s.index)
}

// narrowLease chooses a bare majority, which usually includes the masters whose clocks jump.
func (w *simulation) narrowLease() *narrowLease {
	r, rule := w.jumping.random, w.plan.rule()
	on := rule.All()
	drop := func(i int) {
		if rest := on &^ quorum.One(i); rule.Won(rest) {
			on = rest
		}
	}
	all, usual := r.Perm(w.plan.masters), r.IntN(4) > 0
	for _, i := range all {
		if !usual || !slices.Contains(w.plan.wrong, i) {
			drop(i)
		}
	}
	for _, i := range all {
		drop(i)
	}
	return &narrowLease{on: on}
}

// afterScript makes clocks jump after a master has executed a script.
func (w *simulation) afterScript(s *server, n *conn, keys []string, m *message) {
	if w.plan.wrong == nil {
		return
	}
	switch m.script {
	case scripts.Acquire, scripts.SharedAcquire:
		w.sawTwoClocks(s, keys, m)
		if quorum.Outcome(m.code) == quorum.Granted {
			w.afterVote(s, m)
		}
	case scripts.Admit:
		if scripts.AdmitStep(m.words[wordStep]) == scripts.AdmitStart && slices.Contains(w.plan.wrong, s.index) {
			w.jumpAfter(s, w.quarantine())
		}
	}
}

// afterVote makes clocks jump after a master has granted a lease: between two votes, or when exactly the chosen bare
// majority has the lease.
func (w *simulation) afterVote(s *server, m *message) {
	j := &w.jumping
	w.seen.reach(wrongImport, modeOf(m.words) == "import" && s.wrong.by != 0)
	j.votes[m.id] |= quorum.One(s.index)
	have := j.votes[m.id]
	for _, i := range w.plan.wrong {
		o := w.servers[i]
		if o.wrong.next == betweenVotes && !have.Has(i) && !w.plan.rule().Won(have) {
			w.seen.reach(jumpedBetweenVotes, true)
			w.jump(o)
		}
	}
	n := j.narrow[m.id]
	if n == nil || have&n.on != n.on || n.have == n.on {
		return
	}
	n.have = n.on
	list := slices.DeleteFunc(slices.Clone(w.plan.wrong), func(i int) bool { return !n.on.Has(i) })
	for range list {
		w.jumpAfter(w.anyWrong(list), pick2(j.random, 0, 5*time.Millisecond, w.plan.most/2, w.plan.most))
	}
}

// jumpAfter makes the clock of s jump half of the time: within d.
func (w *simulation) jumpAfter(s *server, d time.Duration) {
	if after := w.jumpTo(d); w.jumping.random.IntN(2) == 0 {
		w.at(after, slotFaults, func() { w.jump(s) })
	}
}

// sawTwoClocks detects that a lease has expired by one of the two clocks only, and still refuses an acquire.
func (w *simulation) sawTwoClocks(s *server, keys []string, m *message) {
	if quorum.Outcome(m.code) != quorum.Held || m.by == "" {
		return
	}
	now := s.clock.now()
	for _, name := range w.plan.names {
		if prefix.Lock(name) != keys[0] {
			continue
		}
		id, _ := s.holder(name)
		_, slot := scripts.CutSlot(name)
		w.seen.reach(keptByBallot, id == "")
		w.seen.reach(slotKeptByBallot, id == "" && slot.Of > 0)
		if id, text, _ := s.State.Lease(now, keys[0]); id != "" {
			words := strings.Fields(text)
			w.seen.reach(keptByOwnClock, m.ballot > number(words[3]))
		}
	}
}

// clocksWrong reports whether the clock of a master is wrong. An operator corrects clocks before admitting masters.
func (w *simulation) clocksWrong() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.plan.wrong, func(i int) bool { return w.servers[i].wrong.by != 0 })
}

// calmClocks makes wrong clocks right at the end of the faults, unless they stay wrong.
func (w *simulation) calmClocks() {
	for _, i := range w.plan.wrong {
		if s := w.servers[i]; s.wrong.by != 0 && !w.plan.stay {
			w.returns(s)
		}
	}
}

// releaseForced deletes the leases that ended on masters whose clocks were set back, as an operator would: these leases
// last longer by the amount that the clock was set back. So does the kind of a name.
func (w *simulation) releaseForced() {
	for _, i := range w.plan.wrong {
		s := w.servers[i]
		if w.plan.kinds && s.wrong.back > 0 {
			w.note(-1, s.index, "forgets, for an operator, the kind of", semaphoreName, 0)
			s.State.Delete(s.clock.now(), prefix.Lock(semaphoreName))
		}
		for _, name := range w.plan.names {
			if id, left := s.holder(name); id != "" && left <= s.wrong.back+w.plan.guard {
				w.note(-1, s.index, "releases, for an operator, the lease", id, 0)
				now := s.clock.now()
				s.State.Delete(now, prefix.Lock(name))
				s.State.Delete(now, prefix.Shares(name))
			}
		}
	}
}

const errFull reference.Error = "OOM command not allowed when used memory > 'maxmemory'."
