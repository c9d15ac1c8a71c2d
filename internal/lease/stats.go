package lease

import (
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/round"
)

// AcquireStats counts the rounds and votes of one call. Only the goroutine of the call uses it. A nil AcquireStats
// records nothing.
type AcquireStats struct {
	Rounds int // number of rounds sent
	// Granted is the number of masters, of N, that had granted the lease when the last round was decided or given up.
	Granted, N int
	// Place is the position at which the call first waited in a queue, from 1; 0: the call has not waited in a queue.
	Place int
}

// recordRound counts r and records its votes.
func (s *AcquireStats) recordRound(r *round.Round) {
	if s == nil {
		return
	}
	t := r.Tally()
	s.Rounds++
	s.Granted, s.N = t.Of(quorum.Granted).Len(), t.Rule.N()
	place := 0
	r.Each(func(_ int, v *round.Vote) {
		if v.Outcome == quorum.Held {
			place = max(place, v.Place+1)
		}
	})
	s.RecordPlace(place)
}

// Add adds the rounds of part, a call that was part of this call. Granted and N become those of part.
func (s *AcquireStats) Add(part *AcquireStats) {
	if s == nil || part.Rounds == 0 {
		return
	}
	s.Rounds += part.Rounds
	s.Granted, s.N = part.Granted, part.N
	s.RecordPlace(part.Place)
}

// RecordPlace records a position in a queue, unless a position is recorded already.
func (s *AcquireStats) RecordPlace(place int) {
	if s != nil && s.Place == 0 {
		s.Place = place
	}
}
