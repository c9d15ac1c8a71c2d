package admission

import (
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/ballot"
	"github.com/redlock-go/redlock/internal/scripts"
)

// H176: a record does not count any more if the clock of its master was seen far off. After a doubt it counts again if
// the clock was not set meanwhile.
func TestClockThatWasFarOff(t *testing.T) {
	for _, c := range []struct {
		what   string
		seen   []ballot.Standing
		moved  time.Duration // at the last standing
		counts bool
	}{
		{"near", []ballot.Standing{ballot.Near}, 0, true},
		{"unclear", []ballot.Standing{ballot.Unclear}, 0, true},
		{"far", []ballot.Standing{ballot.Far}, 0, false},
		{"far, then near", []ballot.Standing{ballot.Far, ballot.Near}, 0, false},
		{"doubtful", []ballot.Standing{ballot.Doubtful}, 0, false},
		{"doubtful, then near", []ballot.Standing{ballot.Doubtful, ballot.Near}, 0, true},
		{"doubtful, then near after it was set", []ballot.Standing{ballot.Doubtful, ballot.Near}, time.Hour, false},
		{"doubtful, then far, then near", []ballot.Standing{ballot.Doubtful, ballot.Far, ballot.Near}, 0, false},
	} {
		record := scripts.Record{Identity: "a" + noReplid2, Admitted: true, Since: 7}
		f := Fact{Known: true, Up: true, Read: true, Identity: record.Identity, Text: "text", Record: record}
		lost := false
		for k, s := range c.seen {
			moved := time.Duration(0)
			if k == len(c.seen)-1 {
				moved = c.moved
			}
			lost = f.Compare(s, moved) || lost
		}
		if f.isOfServer() != c.counts || lost != (c.seen[0] >= ballot.Doubtful) {
			t.Errorf("%s: own %v, lost %v", c.what, f.isOfServer(), lost)
		}
		f.Record.Since = 8 // another record
		if !f.isOfServer() {
			t.Errorf("%s: a later record does not count", c.what)
		}
	}
}
