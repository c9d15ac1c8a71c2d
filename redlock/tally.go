package redlock

import "github.com/redlock-go/redlock/internal/scripts"

// A verdict is what the votes of a round decide so far.
type verdict uint8

const (
	pending verdict = iota // more votes are needed
	won                    // a quorum said yes
	lost                   // a quorum can no longer say yes
)

// quorumOf is the number of votes that decide among n configured masters, whether they answer or not.
func quorumOf(n int) int { return n/2 + 1 }

// A tally counts the votes of one round. It is a value: no I/O, no time, no lock.
type tally struct {
	n     int
	count [8]uint8 // by scripts.Kind
}

func (t *tally) add(k scripts.Kind) { t.count[k&7]++ }

func (t *tally) of(k scripts.Kind) int { return int(t.count[k&7]) }

// in is the number of votes that have come.
func (t *tally) in() int {
	sum := 0
	for _, c := range t.count {
		sum += int(c)
	}
	return sum
}

func (t *tally) verdict() verdict {
	yes := t.of(scripts.Granted)
	switch no := t.in() - yes; {
	case yes >= quorumOf(t.n):
		return won
	case t.n-no < quorumOf(t.n):
		return lost
	}
	return pending
}

// unable is the number of masters that cannot say yes whoever holds the name: failed, not admitted, refusing the TTL,
// or missing what the round is about.
func (t *tally) unable() int {
	return t.of(scripts.Failed) + t.of(scripts.Abstained) + t.of(scripts.Refused) + t.of(scripts.Missing)
}

// decision is the sentinel for a lost round of an acquire. A minority that is down never turns "held" into "no
// quorum", and no number of refusals turns "no quorum" into "held".
func (t *tally) decision() error {
	if t.n-t.unable() < quorumOf(t.n) {
		return ErrNoQuorum
	}
	return ErrHeld
}

// mayRepropose reports whether a quorum could be had if every master that refused the ballot alone accepted another.
func (t *tally) mayRepropose() bool {
	if t.of(scripts.Stale)+t.of(scripts.Ahead) == 0 {
		return false
	}
	return t.n-t.unable()-t.of(scripts.Held) >= quorumOf(t.n)
}
