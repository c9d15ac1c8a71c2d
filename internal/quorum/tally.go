package quorum

import "strconv"

// An Outcome is the vote of one master: the result of a call there.
type Outcome uint8

// The outcomes, with the numbers that the scripts reply. No script replies Failed, which means no reply or an error.
const (
	Failed    Outcome = 0
	Granted   Outcome = 1
	Held      Outcome = 2
	Stale     Outcome = 3
	Ahead     Outcome = 4
	Missing   Outcome = 5
	Abstained Outcome = 6
	Refused   Outcome = 7
)

var outcomeNames = [...]string{"failed", "granted", "held", "too old", "too new", "missing", "not voting", "refused"}

// String returns the name of o that errors and traces use.
func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return "outcome(" + strconv.Itoa(int(o)) + ")"
}

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
	by   [8]Set // the masters that voted so, by Outcome
}

// Add counts the vote of master i.
func (t *Tally) Add(i int, o Outcome) { t.by[o&7] |= One(i) }

// Of returns the set of masters with this vote.
func (t *Tally) Of(o Outcome) Set { return t.by[o&7] }

// In returns the set of masters whose votes have arrived.
func (t *Tally) In() (in Set) {
	for _, s := range t.by {
		in |= s
	}
	return in
}

// Verdict returns the decision of the votes so far.
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

// Unable returns the set of masters that cannot vote yes, regardless of the holder: they failed, are not admitted,
// refuse the TTL or the epoch, or miss the lease of the round.
func (t *Tally) Unable() Set {
	return t.by[Failed] | t.by[Abstained] | t.by[Refused] | t.by[Missing]
}

// BallotOnly reports, of a round that was lost, whether a better ballot could have won it.
func (t *Tally) BallotOnly() bool {
	return t.by[Stale]|t.by[Ahead] != 0 && !t.Rule.Lost(t.Unable()|t.by[Held])
}
