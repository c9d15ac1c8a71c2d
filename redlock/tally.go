package redlock

import (
	"math/bits"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/teeth"
)

// A verdict is what the votes of a round decide so far.
type verdict uint8

const (
	pending verdict = iota // more votes are needed
	won                    // a majority of each set said yes
	lost                   // of one set, a majority can no longer say yes
)

// A tally counts the votes of one round. It is a value: no I/O, no time, no lock.
type tally struct {
	rule rule
	by   [8]uint64 // the masters that voted so, by scripts.Kind
}

func (t *tally) add(i int, k scripts.Kind) { t.by[k&7] |= 1 << i }

// turn makes the vote of a master another.
func (t *tally) turn(i int, from, to scripts.Kind) {
	t.by[from&7] &^= bit(i)
	t.add(i, to)
}

// of is how many votes of this kind have come.
func (t *tally) of(k scripts.Kind) int { return bits.OnesCount64(t.by[k&7]) }

// set is the masters that voted so.
func (t *tally) set(k scripts.Kind) uint64 { return t.by[k&7] }

// in is the masters whose votes have come.
func (t *tally) in() (set uint64) {
	for _, s := range t.by {
		set |= s
	}
	return set
}

func (t *tally) verdict() verdict {
	yes, r := t.by[scripts.Granted], t.rule
	if teeth.QuorumOfConnected {
		r.first, r.second = r.first&^t.by[scripts.Failed], r.second&^t.by[scripts.Failed]
	}
	switch no := t.in() &^ yes; {
	case r.has(yes):
		return won
	case !r.has(r.all() &^ no):
		return lost
	}
	return pending
}

// unable is the masters that cannot say yes whoever holds the name: failed, not admitted, refusing the TTL, or missing
// what the round is about.
func (t *tally) unable() uint64 {
	return t.by[scripts.Failed] | t.by[scripts.Abstained] | t.by[scripts.Refused] | t.by[scripts.Missing]
}

// decision is the sentinel for a lost round of an acquire. A minority that is down never turns "held" into "no
// quorum", and no number of refusals turns "no quorum" into "held".
func (t *tally) decision() error {
	if !t.rule.has(t.rule.all() &^ t.unable()) {
		return ErrNoQuorum
	}
	return ErrHeld
}

// mayRepropose reports whether a quorum could be had if every master that refused the ballot alone accepted another.
func (t *tally) mayRepropose() bool {
	if t.by[scripts.Stale]|t.by[scripts.Ahead] == 0 {
		return false
	}
	return t.rule.has(t.rule.all() &^ t.unable() &^ t.by[scripts.Held])
}
