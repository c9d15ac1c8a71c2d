package model

import (
	"fmt"
	"slices"

	"github.com/redlock-go/redlock/internal/scripts"
)

// Invariants of locks with readers.

// wrong returns which invariant t breaks, "" if none; s is its predecessor.
func (x *shareMachine) wrong(s, t *shareState) string {
	b := x.bounds
	writers, all := 0, 0
	for c := range clientsOfShares {
		if t.phase[c] == holding {
			all++
			if b.Roles[c] == scripts.Writer {
				writers++
			}
		}
	}
	if writers > 0 && all > 1 {
		return "a writer is not alone"
	}
	if t.gap && b.turns(1) && t.phase[1] == holding {
		return "another writer held in the gap of a downgrade"
	}
	for c := range clientsOfShares {
		if t.phase[c] == holding && s.phase[c] != holding &&
			(b.Roles[c] == scripts.Writer && b.Ballots[c] <= s.held || b.Ballots[c] <= s.wrote) {
			return "the token of " + x.name(c) + " is not larger than one before"
		}
	}
	// A reader's acquire that is read twice may leave a share that lasts for its TTL; see the scripts. A ballot of the
	// future leaves no fence.
	if b.Repeats > 0 || slices.Max(b.Ballots[:]) > late || b.NoFences || b.NoGuard {
		return ""
	}
	for i := range t.master {
		for c := range clientsOfShares {
			col, ended := &t.master[i], t.phase[c] == gone
			if t.phase[c] == passed {
				ended = t.phase[1] == gone && col.ask[1] == 0 && !col.release[1]
			}
			if col.share[c] && ended && col.ask[c] == 0 && !col.release[c] {
				return fmt.Sprintf("master %d has a share of %s, which has ended, and has read all its messages", i+1, x.name(c))
			}
		}
	}
	return ""
}

// keep records the tokens of holds that have just begun.
func (s *shareState) keep(before *shareState, b *ShareBounds) {
	for c := range clientsOfShares {
		if s.phase[c] == holding && before.phase[c] != holding {
			s.held = max(s.held, b.Ballots[c])
			if b.Roles[c] == scripts.Writer {
				s.wrote = max(s.wrote, b.Ballots[c])
				s.gap = s.gap || s.phase[0] == passed && s.phase[1] == asking
			}
		}
	}
	if s.phase[1] != asking {
		s.gap = false
	}
}
