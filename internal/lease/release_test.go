package lease

import (
	"testing"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/admission"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/race"
	"github.com/redlock-go/redlock/internal/round"
)

// Each Unlock waits for its release, so the wait allocates nothing.
func TestConfirmedDoesNotAllocate(t *testing.T) {
	if race.Enabled {
		t.Skip("with the race detector a sync.Pool drops some of its values")
	}
	rule := quorum.Rule{Old: quorum.First(1)}
	view := &admission.View{Config: &quorum.Config{Rule: rule}, Masters: make([]admission.State, 1)}
	r := (&round.Sender{Health: round.NewHealth(nil), Clock: clock.Runtime()}).New(view, "unlock", "", nil)
	granted := round.Vote{}
	granted.Outcome = quorum.Granted
	r.Record(0, granted)
	m, ctx := &Manager{}, t.Context()
	if n := testing.AllocsPerRun(100, func() { _ = m.confirmed(ctx, r, time.Minute) }); n != 0 {
		t.Errorf("a wait for a release allocates %v times", n)
	}
}
