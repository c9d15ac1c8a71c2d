package round_test

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/property"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/round"
)

// freeIn returns the time after which the master is free according to v: one millisecond more than Left, because a key
// exists until the end of its last millisecond.
func freeIn(v round.Vote) time.Duration {
	if v.Left < 0 || v.Free {
		return v.Left
	}
	return v.Left + ms
}

// naiveFree returns the first time at which a majority of a set is free, or -1 if waiting does not help. It tries all
// reported times.
func naiveFree(set quorum.Set, votes map[int]round.Vote) time.Duration {
	freeAt := func(at time.Duration) bool {
		n := 0
		for i := range set.All() {
			v, in := votes[i]
			switch {
			case !in, v.Outcome == quorum.Granted, v.Outcome == quorum.Stale, v.Outcome == quorum.Missing:
				n++
			case v.Outcome == quorum.Held && v.Left >= 0 && freeIn(v) <= at:
				n++
			}
		}
		return 2*n > set.Len()
	}
	if freeAt(-1) {
		return -1 // waiting does not help
	}
	best := time.Duration(-1)
	for i := range set.All() {
		if v := votes[i]; v.Outcome == quorum.Held && v.Left >= 0 && freeAt(freeIn(v)) && (best < 0 || freeIn(v) < best) {
			best = freeIn(v)
		}
	}
	return best
}

// Left returns the time until so many of the reported TTLs have expired that a quorum of each set may be free.
func TestLeftUntilQuorumMayBeFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, 7)
		outcomes := []quorum.Outcome{
			quorum.Held, quorum.Held, quorum.Held, quorum.Granted, quorum.Failed, quorum.Abstained, quorum.Refused,
			quorum.Stale, quorum.Missing, quorum.OtherKind,
		}
		property.Check(t, func(t *testing.T, r *rand.Rand) {
			config := *b.Monitor.View().Config
			config.Rule = quorum.Rule{Old: quorum.First(1 + r.IntN(7))}
			if r.IntN(3) == 0 {
				config.Rule.Next = quorum.Set(1 + r.IntN(127))
			}
			view := *b.Monitor.View()
			view.Config = &config
			rd, votes := b.Sender.New(&view, "lock", "", nil), map[int]round.Vote{}
			for i := range config.Rule.All().All() {
				if r.IntN(5) > 0 {
					v := voteOf(outcomes[r.IntN(len(outcomes))])
					v.Left, v.Free = time.Duration(r.IntN(10)-1)*ms, r.IntN(4) == 0
					votes[i] = v
					rd.Record(i, v)
				}
			}
			want := time.Duration(-1)
			for _, set := range config.Rule.Sets() {
				want = max(want, naiveFree(set, votes))
			}
			if got := rd.Failure(round.ErrHeld, nil).Left; got != want {
				t.Errorf("with the rule %+v and the votes %v Left is %v, want %v", config.Rule, votes, got, want)
			}
		})
	})
}
