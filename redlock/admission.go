package redlock

import (
	"math"
	"math/bits"
	"strings"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/teeth"
)

// The times of an admission that no one sets.
const (
	// minQuarantine is how long a fleet without any marker waits at the least: nobody knows what guard time those had
	// who locked here before.
	minQuarantine = 30 * time.Second
	// blindQuarantine is how long a master waits when too few others could be asked for the fleet's guard time.
	blindQuarantine = 5 * time.Minute
	// gatherGrace is how long a master without a marker waits for the others to be read before that is decided.
	gatherGrace = 2 * time.Second
	// admitRetry is the pause after a step that did not succeed.
	admitRetry = time.Second
)

// A step is what is to be done next for the admission of a master.
type step uint8

const (
	stepNone  step = iota // nothing: it is down, or admitted, or beyond help
	stepWait              // nothing before wait is over
	stepRead              // read the marker
	stepStart             // start a quarantine
	stepEnd               // end it
	stepNow               // admit without waiting: it has forgotten nothing
)

// A phase is how far a master is from voting.
type phase uint8

const (
	phaseConnecting phase = iota // never up so far, or its marker not yet read
	phaseDown                    // not reachable, or refused by its connection
	phasePending                 // in quarantine
	phaseAdmitted                // votes
	phaseBlocked                 // cannot be admitted until somebody mends something
)

// A fact is what is known of one master's admission.
type fact struct {
	up       bool
	identity string // of its connection
	read     bool   // marker below was read on this connection
	text     string // the marker as it stands there, "" for none
	marker   scripts.Marker
	bad      bool          // text is no marker
	now      int64         // its own time by our reckoning, us
	settled  bool          // up, or known to be down
	age      time.Duration // how long ago the reading of the marker was asked for
	home     string        // where it is reached, if the operator has named it as one that remembers every write
}

// own reports whether the marker was written for the server that the connection reaches.
func (f *fact) own() bool { return f.text != "" && !f.bad && f.marker.Identity == f.identity }

// past reports whether the marker tells of the time before a restart. That of a quarantine does not: it knows no more
// than the one who began it.
func (f *fact) past() bool { return f.text != "" && !f.bad && (f.marker.Admitted() || !f.own()) }

// remembers reports whether the master has restarted with all that it had, by its operator's word: it was admitted, and is
// another process now. A role that has changed in the same process is no restart, and a marker with another home was
// copied from another master: then it is not the own memory that is there.
func (f *fact) remembers() bool {
	return f.home != "" && f.past() && f.marker.Admitted() && f.marker.Home == f.home && runID(f.marker.Identity) != runID(f.identity)
}

// runID is the part of an identity that each start of a server makes anew.
func runID(identity string) string {
	id, _, _ := strings.Cut(identity, "/")
	return id
}

// A move is a step with what it needs.
type move struct {
	step       step
	gather     bool          // stepWait: for markers of others that are read anew
	look       bool          // stepWait: others may change the marker meanwhile, so read it now and then
	wait       time.Duration // stepWait: how long at the most
	quarantine time.Duration // stepStart
	guard      time.Duration
	epoch      int64
	alone      int64
}

// A reckoning is what is known of the masters' clocks: their median, the upper one of the middle two, and which they
// are.
type reckoning struct {
	median int64
	known  uint64
}

// nextMove decides what is to be done for master i. It is pure: facts are all masters', waited is how long master i has
// been known not to be admitted, guard and epoch are the Locker's own.
func nextMove(facts []fact, r rule, i int, clocks reckoning, waited, guard time.Duration, epoch int64) (move, phase) {
	f := &facts[i]
	switch {
	case !f.up && f.settled:
		return move{}, phaseDown
	case !f.up:
		return move{}, phaseConnecting
	case !f.read:
		return move{step: stepRead}, phaseConnecting
	case f.bad:
		return move{step: stepWait, look: true, wait: admitRetry}, phaseBlocked
	case f.own() && f.marker.Admitted() && f.home != "" && f.marker.Home == "": // it is named since
		return move{step: stepNow, guard: f.marker.Guard, epoch: f.marker.Epoch, alone: f.marker.Alone}, phaseAdmitted
	case f.own() && f.marker.Admitted() && f.marker.Guard < guard: // it may be raised, and then nobody tells us
		return move{step: stepWait, look: true, wait: admitRetry}, phaseAdmitted
	case f.own() && f.marker.Admitted():
		return move{}, phaseAdmitted
	}
	own := r.of(i)
	if !own.has(clocks.known) { // its clock may be wrong, and nobody could tell
		for rest := own.all(); rest != 0; {
			if !facts[popFirst(&rest)].settled {
				return move{step: stepWait, wait: admitRetry}, phaseConnecting
			}
		}
		return move{step: stepWait, look: true, wait: admitRetry}, phaseBlocked
	}
	tolerance := max(guard, f.marker.Guard) / 2
	if off := fromMicros(f.now - clocks.median); off > tolerance || off < -tolerance {
		return move{step: stepWait, look: true, wait: admitRetry}, phaseBlocked
	}
	if f.remembers() { // as if it had only been out of reach: guard time and epoch are what it had
		return move{step: stepNow, guard: f.marker.Guard, epoch: f.marker.Epoch, alone: f.marker.Alone}, phaseConnecting
	}
	start := startMove(facts, r, i, waited, guard, epoch)
	if f.own() {
		if left := f.marker.Pending - f.now; left > 0 {
			// One that was begun when too few others could be asked may be longer than what they say now. The deadline of
			// another is counted as the script does, from the later of two clocks, and must be clearly nearer: else a
			// clock that is behind, or reckoned so, has it begun again for ever.
			q := start.quarantine
			if start.step == stepStart && max(f.now, clocks.median)+(q+q/8).Microseconds() < f.marker.Pending {
				return start, phasePending
			}
			// A marker can hold any number: one that no Duration holds must not wrap around to "over".
			return move{step: stepWait, look: true, gather: start.gather, wait: fromMicros(left)}, phasePending
		}
		return move{step: stepEnd}, phasePending
	}
	return start, phaseConnecting
}

// startMove decides how long the quarantine of master i is, and what its marker says. The guard time and the epoch are
// the largest in the markers of N-Q+1 other masters and its own: any quorum that a hold was ever won with has one of
// them, so no longer TTL is alive anywhere. Only markers that were read after master i was found wanting count, for they
// may have changed before; and none that was begun lately, or is empty, tells of the past. Where all that were read are
// such, the fleet is new; where too few are left, a bound that no one sets takes their place. Those that are missing are
// waited for a moment, since masters that restarted together come back together.
//
// Where the masters are changed, that holds for each set that master i is of. The guard time and the epoch are the largest
// in all markers that were read, those of the other set among them.
func startMove(facts []fact, r rule, i int, waited, guard time.Duration, epoch int64) move {
	if teeth.OwnGuardTime {
		return move{step: stepStart, quarantine: guard, guard: guard, epoch: epoch, alone: epoch &^ 1}
	}
	var m move
	for _, set := range r.sets() {
		if set&bit(i) != 0 {
			m = m.and(startMoveIn(facts, set, r.all(), i, waited, guard, epoch))
		}
	}
	return m
}

// and is what does for both: a wait where one has to wait, else the longer quarantine.
func (m move) and(o move) move {
	if m.step == stepNone || m.step == stepStart && o.step == stepWait {
		return o
	}
	if o.step == stepStart {
		m.quarantine, m.guard = max(m.quarantine, o.quarantine), max(m.guard, o.guard)
	}
	return m
}

// startMoveIn is startMove as far as one set is concerned; all is every master.
func startMoveIn(facts []fact, set, all uint64, i int, waited, guard time.Duration, epoch int64) move {
	n := bits.OnesCount64(set)
	m := move{step: stepStart}
	needed, read, tell, marked := n-quorumOf(n)+1, 0, 0, false
	for rest := all; rest != 0; {
		j := popFirst(&rest)
		f := &facts[j]
		if !f.read || f.bad {
			continue
		}
		m.guard = max(m.guard, f.marker.Guard)
		m.epoch, m.alone = max(m.epoch, f.marker.Epoch), max(m.alone, f.marker.Alone)
		if set&bit(j) == 0 {
			continue
		}
		past := f.past()
		marked = marked || past
		if j == i || f.age > waited {
			continue
		}
		if read++; past {
			tell++
		}
	}
	// The own epoch counts where no others tell: a program that is ahead must not bar those that are not.
	if !marked {
		m.epoch, m.alone = max(m.epoch, epoch), max(m.alone, epoch&^1)
	}
	if n == 1 {
		m.guard = max(m.guard, guard)
		m.quarantine = m.guard
		return m
	}
	if read < needed || marked && tell < needed {
		if waited < gatherGrace {
			return move{step: stepWait, gather: true, wait: gatherGrace - waited}
		}
		m.guard, m.epoch = max(m.guard, guard), max(m.epoch, epoch)
		m.quarantine = max(blindQuarantine, m.guard)
		return m
	}
	if !marked {
		m.quarantine = max(m.guard, guard, minQuarantine)
		if m.guard == 0 {
			m.guard = guard
		}
		return m
	}
	m.quarantine = m.guard
	return m
}

// fromMicros converts a difference of two masters' times, the largest there is standing for what no Duration holds.
func fromMicros(us int64) time.Duration {
	const most = math.MaxInt64 / int64(time.Microsecond)
	return time.Duration(max(-most, min(us, most))) * time.Microsecond
}
