package lease

import (
	"testing"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/admission"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/round"
)

// H97, H123: a master is repaired only after a majority has confirmed the lease in the same round. While the masters
// change, the majority of one set is enough only for masters that vote.
func TestRepairNeedsMajority(t *testing.T) {
	plain := quorum.Rule{Old: 0b111}
	joint := quorum.Rule{Old: 0b0111, Next: 0b11000}
	for _, c := range []struct {
		what               string
		rule               quorum.Rule
		voting             quorum.Set
		confirmed, missing quorum.Set
		want               quorum.Set
	}{
		{"one of three", plain, 0b111, 0b001, 0b110, 0},
		{"two of three", plain, 0b111, 0b011, 0b100, 0b100},
		{"a master in quarantine", plain, 0b011, 0b011, 0b100, 0b100},
		{"the old set", joint, 0b11111, 0b00011, 0b11100, 0b11100},
		{"the old set, masters in quarantine", joint, 0b00111, 0b00011, 0b11100, 0b00100},
		{"the next set, masters in quarantine", joint, 0b11000, 0b11000, 0b00111, 0},
		{"both sets, masters in quarantine", joint, 0b11011, 0b11011, 0b00100, 0b00100},
		{"a minority of each set", joint, 0b11111, 0b01001, 0b10110, 0},
	} {
		view := &admission.View{
			Config: &quorum.Config{Rule: c.rule}, Masters: make([]admission.State, 5), Voting: c.voting,
		}
		r := (&round.Sender{Health: round.NewHealth(nil), Clock: clock.Runtime()}).New(view, "extend", "", nil)
		for i := range c.rule.All().All() {
			v := round.Vote{}
			switch {
			case c.confirmed.Has(i):
				v.Outcome = quorum.Granted
			case c.missing.Has(i):
				v.Outcome = quorum.Missing
			default:
				continue
			}
			r.Record(i, v)
		}
		if got := repairable(r); got != c.want {
			t.Errorf("%s: the masters %05b may be repaired, want %05b", c.what, got, c.want)
		}
	}
}
