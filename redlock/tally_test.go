package redlock

import (
	"errors"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/redlock-go/redlock/internal/scripts"
)

const (
	voteFailed    = scripts.Failed
	voteGranted   = scripts.Granted
	voteHeld      = scripts.Held
	voteStale     = scripts.Stale
	voteAhead     = scripts.Ahead
	voteMissing   = scripts.Missing
	voteAbstained = scripts.Abstained
	voteRefused   = scripts.Refused
)

var allKinds = []scripts.Kind{voteFailed, voteGranted, voteHeld, voteStale, voteAhead, voteMissing, voteAbstained, voteRefused}

func tallyOf(n int, votes []scripts.Kind) *tally {
	t := &tally{rule: oneSet(n)}
	for i, k := range votes {
		t.add(i, k)
	}
	return t
}

func count(votes []scripts.Kind, kinds ...scripts.Kind) int {
	sum := 0
	for _, v := range votes {
		for _, k := range kinds {
			if v == k {
				sum++
			}
		}
	}
	return sum
}

// randomVotes are those of some of n masters, with a taste of its own for each round, so that rare mixtures come up.
func randomVotes(r *rand.Rand) (n int, votes []scripts.Kind) {
	if n = 1 + r.IntN(9); r.IntN(100) == 0 {
		n = 1 + r.IntN(maxMasters)
	}
	taste := make([]scripts.Kind, 1+r.IntN(4))
	for i := range taste {
		taste[i] = allKinds[r.IntN(len(allKinds))]
	}
	votes = make([]scripts.Kind, r.IntN(n+1))
	for i := range votes {
		votes[i] = taste[r.IntN(len(taste))]
	}
	return n, votes
}

func TestQuorumIsAMajorityOfTheConfigured(t *testing.T) {
	for n := 1; n <= maxMasters; n++ {
		q := quorumOf(n)
		if 2*q <= n {
			t.Errorf("two quorums of %d among %d masters need not meet", q, n)
		}
		if 2*(q-1) > n {
			t.Errorf("%d of %d is more than a majority needs", q, n)
		}
	}
}

// H51: a master that does not answer still counts, so few answers that all say yes decide nothing.
func TestVerdictAsTable(t *testing.T) {
	for _, c := range []struct {
		n     int
		votes []scripts.Kind
		want  verdict
	}{
		{1, nil, pending},
		{1, []scripts.Kind{voteGranted}, won},
		{1, []scripts.Kind{voteHeld}, lost},
		{2, []scripts.Kind{voteGranted}, pending},
		{2, []scripts.Kind{voteFailed}, lost},
		{3, []scripts.Kind{voteGranted, voteFailed}, pending},
		{3, []scripts.Kind{voteGranted, voteFailed, voteGranted}, won},
		{4, []scripts.Kind{voteGranted, voteGranted}, pending},
		{4, []scripts.Kind{voteGranted, voteGranted, voteHeld, voteHeld}, lost},
		{5, []scripts.Kind{voteGranted, voteGranted}, pending},
		{5, []scripts.Kind{voteFailed, voteFailed, voteGranted, voteGranted}, pending},
		{5, []scripts.Kind{voteFailed, voteFailed, voteGranted, voteGranted, voteGranted}, won},
		{5, []scripts.Kind{voteFailed, voteAbstained, voteMissing}, lost},
	} {
		if got := tallyOf(c.n, c.votes).verdict(); got != c.want {
			t.Errorf("%v of %d masters: verdict %d, want %d", c.votes, c.n, got, c.want)
		}
	}
}

// completions counts, of all ways in which the open votes can come, those that end with a quorum and those that do not.
func completions(n, yes, open int) (with, without int) {
	if open == 0 {
		if 2*yes > n {
			return 1, 0
		}
		return 0, 1
	}
	a, b := completions(n, yes+1, open-1)
	c, d := completions(n, yes, open-1)
	return a + c, b + d
}

func naiveVerdict(n int, votes []scripts.Kind) verdict {
	switch with, without := completions(n, count(votes, voteGranted), n-len(votes)); {
	case without == 0:
		return won
	case with == 0:
		return lost
	}
	return pending
}

func TestVerdictIsWhatAllCompletionsAgreeOn(t *testing.T) {
	property(t, func(t *testing.T, r *rand.Rand) {
		n, votes := randomVotes(r)
		if n-len(votes) > 10 {
			votes = append(votes, make([]scripts.Kind, n-len(votes)-10)...) // the twin takes 2^open steps
		}
		if got, want := tallyOf(n, votes).verdict(), naiveVerdict(n, votes); got != want {
			t.Errorf("%v of %d masters: verdict %d, want %d", votes, n, got, want)
		}
	})
}

func TestVerdictOnceDecidedStays(t *testing.T) {
	property(t, func(t *testing.T, r *rand.Rand) {
		n, votes := randomVotes(r)
		c, decided := tally{rule: oneSet(n)}, pending
		for i, k := range votes {
			c.add(i, k)
			if got := bits.OnesCount64(c.in()); got != i+1 {
				t.Errorf("%d votes are counted after %d", got, i+1)
			}
			got := c.verdict()
			if decided != pending && got != decided {
				t.Errorf("%v of %d masters: verdict %d became %d at vote %d", votes, n, decided, got, i)
			}
			decided = got
		}
	})
}

// H05: what the masters said is told apart: held by another, or no quorum.
func TestDecisionAsTable(t *testing.T) {
	for _, c := range []struct {
		n     int
		votes []scripts.Kind
		want  error
	}{
		{5, []scripts.Kind{voteHeld, voteHeld, voteHeld}, ErrHeld},
		{5, []scripts.Kind{voteFailed, voteFailed, voteHeld}, ErrHeld},
		{5, []scripts.Kind{voteFailed, voteFailed, voteFailed}, ErrNoQuorum},
		{5, []scripts.Kind{voteFailed, voteAbstained, voteRefused, voteHeld, voteHeld}, ErrNoQuorum},
		{5, []scripts.Kind{voteMissing, voteMissing, voteMissing}, ErrNoQuorum},
		{5, []scripts.Kind{voteStale, voteStale, voteAhead}, ErrHeld},
		{3, []scripts.Kind{voteFailed, voteGranted, voteHeld}, ErrHeld},
		{3, []scripts.Kind{voteFailed, voteFailed}, ErrNoQuorum},
		{1, []scripts.Kind{voteAbstained}, ErrNoQuorum},
	} {
		if got := tallyOf(c.n, c.votes).decision(); !errors.Is(got, c.want) {
			t.Errorf("%v of %d masters: %v, want %v", c.votes, c.n, got, c.want)
		}
	}
}

// The rule in words: without a majority that could say yes if the name were free there is no quorum; else it is held.
func TestDecisionIsTheRuleReadPlainly(t *testing.T) {
	property(t, func(t *testing.T, r *rand.Rand) {
		n, votes := randomVotes(r)
		able := n - count(votes, voteFailed, voteAbstained, voteRefused, voteMissing)
		want := ErrHeld
		if 2*able <= n {
			want = ErrNoQuorum
		}
		if got := tallyOf(n, votes).decision(); !errors.Is(got, want) {
			t.Errorf("%v of %d masters: %v, want %v", votes, n, got, want)
		}
	})
}

// H05: one more dead master in a minority does not change the decision, nor does one more refusal.
func TestDecisionIsNotTurnedByWhatDoesNotDecide(t *testing.T) {
	property(t, func(t *testing.T, r *rand.Rand) {
		n, votes := randomVotes(r)
		if len(votes) == n {
			return
		}
		before := tallyOf(n, votes)
		was := before.decision()
		for _, k := range []scripts.Kind{voteHeld, voteStale, voteAhead, voteGranted} {
			after := tallyOf(n, append(votes[:len(votes):len(votes)], k))
			if got := after.decision(); !errors.Is(got, was) {
				t.Errorf("%v of %d masters: %v became %v by a vote of %v", votes, n, was, got, k)
			}
		}
	})
}

// A better ballot is worth a round only if a quorum could be had by it: everyone who refused the ballot alone, granted,
// or has not answered then says yes.
func TestReproposalIsTheRuleReadPlainly(t *testing.T) {
	property(t, func(t *testing.T, r *rand.Rand) {
		n, votes := randomVotes(r)
		ballotAlone := count(votes, voteStale, voteAhead)
		couldGrant := ballotAlone + count(votes, voteGranted) + n - len(votes)
		want := ballotAlone > 0 && 2*couldGrant > n
		c := tallyOf(n, votes)
		if got := c.mayRepropose(); got != want {
			t.Errorf("%v of %d masters: repropose %v, want %v", votes, n, got, want)
		}
		if c.mayRepropose() && errors.Is(c.decision(), ErrNoQuorum) {
			t.Errorf("%v of %d masters: a better ballot is tried where no quorum is possible", votes, n)
		}
	})
}

func TestReproposalAsTable(t *testing.T) {
	for _, c := range []struct {
		n     int
		votes []scripts.Kind
		want  bool
	}{
		{5, []scripts.Kind{voteStale, voteStale, voteStale}, true},
		{5, []scripts.Kind{voteStale, voteHeld, voteHeld}, true},
		{5, []scripts.Kind{voteStale, voteHeld, voteHeld, voteHeld}, false},
		{5, []scripts.Kind{voteHeld, voteHeld, voteHeld}, false},
		{3, []scripts.Kind{voteAhead, voteFailed}, true},
		{3, []scripts.Kind{voteAhead, voteFailed, voteHeld}, false},
		{1, []scripts.Kind{voteStale}, true},
	} {
		if got := tallyOf(c.n, c.votes).mayRepropose(); got != c.want {
			t.Errorf("%v of %d masters: %v, want %v", c.votes, c.n, got, c.want)
		}
	}
}
