package sim

import (
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/frame"
	"github.com/redlock-go/redlock/internal/scripts"
)

// The simulator decodes the id of a lease, the ballots, the mode and the waiter as the library has encoded them.
var term = scripts.Term{TTL: time.Second, Until: 4712}

func TestWordPositions(t *testing.T) {
	enc, ticket := scripts.NewEncoder(prefix, 0), scripts.NewTicket(scripts.Plain, "L", 1, "me", 0, 0)
	words := func(c *frame.Call) (list []string) {
		_, argv := c.Arguments("")
		return argv
	}
	for _, role := range []scripts.Role{scripts.Plain, scripts.Reader} {
		keys, imports, release := prefix.KeysOf("a", role), "import", scripts.Release
		if role == scripts.Reader {
			imports, release = "downgrade", scripts.SharedRelease
		}
		for mode, c := range map[string]*frame.Call{
			"acquire": enc.Acquire(&keys, "the grant", term, 4711, 4711, 1, ticket),
			"repair":  enc.Repair(&keys, "the grant", "", term, 4711, 4710, 1, ""),
			imports:   enc.Import(&keys, "the grant", "the previous one", term, 4711, 4711),
		} {
			w := words(c)
			if w[wordID] != "the grant" || number(w[wordFirst]) != 4711 || number(w[wordLast]) != 4711 || modeOf(w) != mode ||
				mode == "acquire" && role == scripts.Plain && w[wordWaiter] != ticket.Waiter() {
				t.Errorf("the words of the mode %s are decoded wrongly: %q", mode, w)
			}
		}
		if w := words(enc.Extend(&keys, "the grant", term, 1, "")); w[wordID] != "the grant" {
			t.Errorf("the id of an extension is decoded wrongly: %q", w)
		}
		for what, end := range map[string]scripts.Ending{
			scripts.Release.Name: {Leases: []string{"the grant"}, Ballot: 4713, Waiter: ticket, Back: true, AskBallot: 1},
			leaves:               {Waiter: ticket}, joins: {Waiter: ticket, Back: true, AskBallot: 1},
		} {
			m, id := read(release, words(enc.Release(&keys, end)), int64(0)), ticket.Waiter()
			if what == scripts.Release.Name {
				id = "the grant"
			}
			if m.what != what || m.ballot != end.Ballot || m.id != id {
				t.Errorf("the message %q is decoded wrongly: %+v", what, m)
			}
		}
	}
	if w := words(enc.Admit(scripts.AdmitRequest{Step: scripts.AdmitStart})); w[wordStep] != "start" {
		t.Errorf("the step of an admission is decoded wrongly: %q", w)
	}
}
