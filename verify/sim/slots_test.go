package sim

import (
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
)

// The check of a semaphore counts its holders, whichever slots they have, and the holders of each size alone.
func TestTooManyHolders(t *testing.T) {
	start := time.Now()
	held := func(number, of int, from, to time.Duration) span {
		return span{name: scripts.Slot{Number: number, Of: of}.Name(semaphoreName), from: start.Add(from), to: start.Add(to)}
	}
	for _, c := range []struct {
		what  string
		spans []span
		want  int
	}{
		{"as many as slots", []span{held(1, 2, 0, 9), held(2, 2, 1, 9)}, 0},
		{"one after another", []span{held(1, 2, 0, 5), held(2, 2, 1, 9), held(1, 2, 5, 9)}, 0},
		{"two sizes", []span{held(1, 2, 0, 9), held(2, 2, 1, 9), held(1, 1, 2, 9)}, 0},
		{"one slot twice", []span{held(1, 2, 0, 9), held(2, 2, 1, 9), held(1, 2, 3, 9)}, 1},
		{"begun together", []span{held(1, 1, 0, 9), held(1, 1, 0, 9), held(1, 1, 0, 9)}, 2},
		{"reported late", []span{held(1, 2, 3, 9), held(2, 2, 1, 9), held(1, 2, 0, 4)}, 1},
	} {
		if problems := tooMany(c.spans, start); len(problems) != c.want {
			t.Errorf("%s: %d violations %q, want %d", c.what, len(problems), problems, c.want)
		}
	}
}
