package quorum

import "github.com/redlock-go/redlock/internal/scripts"

// A Verdict is what the votes of a round decide so far.
type Verdict uint8

// The verdicts.
const (
	Pending Verdict = iota // more votes are needed
	Won                    // a majority of each set voted yes
	Lost                   // in one set no majority can vote yes
)

// A Tally counts the votes of one round, one a master.
type Tally struct {
	Rule Rule
	by   [8]Set // the masters that voted so, by scripts.Kind
}

// Add counts the vote of master i.
func (t *Tally) Add(i int, o scripts.Outcome) { t.by[o&7] |= One(i) }

// Of returns the set of masters with this vote.
func (t *Tally) Of(o scripts.Outcome) Set { return t.by[o&7] }

// In returns the set of masters whose votes have arrived.
func (t *Tally) In() (in Set) {
	for _, s := range t.by {
		in |= s
	}
	return in
}

// Verdict returns the decision of the votes so far.
func (t *Tally) Verdict() Verdict {
	yes := t.by[scripts.Granted]
	switch {
	case t.Rule.Won(yes):
		return Won
	case t.Rule.Lost(t.In() &^ yes):
		return Lost
	}
	return Pending
}

// Unable returns the set of masters that cannot vote yes, regardless of the holder: they failed, are not admitted,
// refuse the TTL or the epoch, or miss the lease of the round.
func (t *Tally) Unable() Set {
	return t.by[scripts.Failed] | t.by[scripts.Abstained] | t.by[scripts.Refused] | t.by[scripts.Missing]
}

// BallotOnly reports, of a round that was lost, whether a better ballot could have won it.
func (t *Tally) BallotOnly() bool {
	return t.by[scripts.Stale]|t.by[scripts.Ahead] != 0 && !t.Rule.Lost(t.Unable()|t.by[scripts.Held])
}
