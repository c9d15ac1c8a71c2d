package quorum

import "strconv"

// An Outcome is the vote of one master, that is, the result of a call to that master.
type Outcome uint8

// The outcomes, with the numbers in the replies of the scripts. Failed means that there was no reply, or an error; no
// script returns its number.
const (
	Failed    Outcome = 0
	Granted   Outcome = 1
	Held      Outcome = 2
	Stale     Outcome = 3
	Ahead     Outcome = 4
	Missing   Outcome = 5
	Abstained Outcome = 6
	Refused   Outcome = 7
	OtherKind Outcome = 8
)

var outcomeNames = [...]string{
	"failed",
	"granted",
	"held",
	"too old",
	"too new",
	"missing",
	"not voting",
	"refused",
	"other kind",
}

// String returns the name of o in errors and traces.
func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return "outcome(" + strconv.Itoa(int(o)) + ")"
}

// A Verdict is the result of a round according to the votes so far.
type Verdict uint8

// The verdicts.
const (
	Pending Verdict = iota // more votes are needed
	Won                    // a majority of each set voted yes
	Lost                   // in at least one set, a majority of yes votes is impossible
)

// A Tally counts the votes of one round, one vote per master.
type Tally struct {
	Rule Rule
	by   [OtherKind + 1]Set // the masters that voted with each Outcome
}

// Add counts the vote of master i.
func (t *Tally) Add(i int, o Outcome) { t.by[o] |= One(i) }

// Of returns the set of masters with this vote.
func (t *Tally) Of(o Outcome) Set { return t.by[o] }

// In returns the set of masters whose votes have arrived.
func (t *Tally) In() (in Set) {
	for _, s := range t.by {
		in |= s
	}
	return in
}

// Verdict returns the result of the votes so far.
func (t *Tally) Verdict() Verdict {
	yes := t.by[Granted]
	switch {
	case t.Rule.Won(yes):
		return Won
	case t.Rule.Lost(t.In() &^ yes):
		return Lost
	}
	return Pending
}

// Unable returns the set of masters that cannot vote yes even if no client holds the name: they failed, are not
// admitted, refuse the TTL or the epoch, have a name of another kind, or do not store the lease of the round.
func (t *Tally) Unable() Set {
	return t.by[Failed] | t.by[Abstained] | t.by[Refused] | t.by[Missing] | t.by[OtherKind]
}

// BallotOnly reports whether a round that was lost could have been won with another ballot.
func (t *Tally) BallotOnly() bool {
	return t.by[Stale]|t.by[Ahead] != 0 && !t.Rule.Lost(t.Unable()|t.by[Held])
}
