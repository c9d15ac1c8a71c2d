package quorum

import (
	"math/rand/v2"
	"testing"

	"github.com/redlock-go/redlock/internal/property"
)

const (
	failed    = Failed
	granted   = Granted
	held      = Held
	stale     = Stale
	ahead     = Ahead
	missing   = Missing
	abstained = Abstained
	refused   = Refused
)

var allOutcomes = []Outcome{failed, granted, held, stale, ahead, missing, abstained, refused}

func tallyOf(n int, votes []Outcome) *Tally {
	t := &Tally{Rule: Rule{Old: First(n)}}
	for i, o := range votes {
		t.Add(i, o)
	}
	return t
}

func count(votes []Outcome, outcomes ...Outcome) (sum int) {
	for _, v := range votes {
		for _, o := range outcomes {
			if v == o {
				sum++
			}
		}
	}
	return sum
}

// randomVotes returns the votes of some of n masters. Each call prefers some outcomes, so that rare combinations
// occur.
func randomVotes(r *rand.Rand) (n int, votes []Outcome) {
	if n = 1 + r.IntN(9); r.IntN(100) == 0 {
		n = 1 + r.IntN(Most)
	}
	taste := make([]Outcome, 1+r.IntN(4))
	for i := range taste {
		taste[i] = allOutcomes[r.IntN(len(allOutcomes))]
	}
	votes = make([]Outcome, r.IntN(n+1))
	for i := range votes {
		votes[i] = taste[r.IntN(len(taste))]
	}
	return n, votes
}

func TestQuorumIsMajorityOfConfigured(t *testing.T) {
	for n := 1; n <= Most; n++ {
		q := Quorum(n)
		if 2*q <= n {
			t.Errorf("two quorums of %d among %d masters may have no common master", q, n)
		}
		if 2*(q-1) > n {
			t.Errorf("%d of %d is more than a majority needs", q, n)
		}
		if (Rule{Old: First(n)}).Least() != q || !First(q).MajorityOf(First(n)) || First(q-1).MajorityOf(First(n)) {
			t.Errorf("a quorum of %d among %d masters: the rule or the set has another quorum", q, n)
		}
	}
}

// A round with a better ballot is worthwhile only if it could win a quorum with the votes of all masters that granted,
// have not answered, or refused only because of the ballot.
func TestBallotOnlyMatchesPlainRule(t *testing.T) {
	property.Check(t, func(t *testing.T, r *rand.Rand) {
		n, votes := randomVotes(r)
		ballotAlone := count(votes, stale, ahead)
		couldGrant := ballotAlone + count(votes, granted) + n - len(votes)
		want := ballotAlone > 0 && 2*couldGrant > n
		c := tallyOf(n, votes)
		if got := c.BallotOnly(); got != want {
			t.Errorf("with the votes %v of %d masters BallotOnly is %v, want %v", votes, n, got, want)
		}
		if c.BallotOnly() && c.Rule.Lost(c.Unable()) {
			t.Errorf("with the votes %v of %d masters BallotOnly is true, although no quorum is possible", votes, n)
		}
	})
}
