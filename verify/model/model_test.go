package model

import (
	"flag"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/redlock-go/redlock/internal/race"
)

var full = flag.Bool("full", false, "search the large bounds of TestFull too: hours, and gigabytes of memory")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func (b Bounds) String() string {
	passes := "behind a forgetting"
	if b.Passes {
		passes = "at any moment"
	}
	own := ""
	if b.OwnConnection {
		own = ", releases behind their acquires"
	}
	return fmt.Sprintf("%d + %d attempts, %d read twice, %d forget, time passes %s%s",
		b.Attempts[0], b.Attempts[1], b.Repeats, b.Forgets, passes, own)
}

func search(t *testing.T, b Bounds) Result {
	t.Helper()
	start := time.Now()
	r, err := Search(b, 0)
	if err != nil {
		t.Fatal(err)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.Logf("%v: %d states, %d steps, depth %d, %v, %d MB", b, r.States, r.Steps, r.Depth,
		time.Since(start).Round(time.Millisecond), m.Sys>>20)
	return r
}

func nothingWrong(t *testing.T, list ...Bounds) {
	t.Helper()
	for _, b := range list {
		if v := search(t, b).Violation; v != nil {
			t.Errorf("%s\n\t%s", v.What, strings.Join(v.Story, "\n\t"))
		}
	}
}

// No sequence of events within these bounds gives the lock to two clients, a later hold a smaller token, or leaves a
// lock behind. These bounds run on every change.
func TestExclusionTokenGrowthAndNoOrphans(t *testing.T) {
	nothingWrong(t,
		Bounds{Attempts: [2]int{1, 1}, Repeats: 3},
		Bounds{Attempts: [2]int{1, 1}, Forgets: 1, Repeats: 1, Passes: true},
		Bounds{Attempts: [2]int{2, 1}, OwnConnection: true},
		Bounds{Attempts: [2]int{1, 1}, OwnConnection: true, Forgets: 1, Passes: true},
	)
	if !race.Enabled { // the race detector is ten times slower, and there is one goroutine
		nothingWrong(t, Bounds{Attempts: [2]int{2, 1}, Passes: true})
	}
}

// The same for larger bounds.
func TestFull(t *testing.T) {
	if !*full {
		t.Skip("needs hours, for larger bounds: go test ./verify/model -run TestFull -timeout 0 -args -full")
	}
	nothingWrong(t,
		Bounds{Attempts: [2]int{2, 2}},
		Bounds{Attempts: [2]int{2, 2}, Passes: true},
		Bounds{Attempts: [2]int{2, 1}, Repeats: 1},
		Bounds{Attempts: [2]int{2, 1}, Forgets: 1},
		Bounds{Attempts: [2]int{2, 2}, Repeats: 1},
		Bounds{Attempts: [2]int{2, 2}, Forgets: 1},
		Bounds{Attempts: [2]int{2, 2}, Repeats: 1, Forgets: 1, Passes: true},
	)
}

// Without the restart guard, a master that loses its data gives a held lock away. Without the tombstone, an acquire
// that arrives after its own release leaves a lock. Without the fence, a later hold has a smaller token. The search
// finds each, with a shortest sequence of steps.
func TestWithoutAProtectionAShortestStoryIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		bounds Bounds
		what   string
		story  []string // words that the steps contain, in this order
		most   int      // maximum number of lines
	}{
		"guard": {Bounds{Attempts: [2]int{1, 1}, Forgets: 1, NoGuard: true}, "both clients hold",
			[]string{"and holds", "forgets everything", "granted", "and holds"}, 12},
		"tombstone": {Bounds{Attempts: [2]int{1, 1}, NoTombstone: true}, "has ended, and has read all its messages",
			[]string{"gives up", "reads the release of", "'s acquire: granted"}, 6},
		"fence": {Bounds{Attempts: [2]int{1, 1}, NoFence: true}, "is not larger than that of a hold before",
			[]string{"and holds", "unlocks", "and holds"}, 16},
		"no repeats of what was refused": {Bounds{Attempts: [2]int{1, 1}, Repeats: 1, RepeatRefused: true},
			"has ended, and has read all its messages",
			[]string{"will get it once more", "'s acquire: granted"}, 14},
	} {
		t.Run(name, func(t *testing.T) {
			v := search(t, c.bounds).Violation
			if v == nil {
				t.Fatal("no violation found: the search is blind")
			}
			text := strings.Join(v.Story, "\n\t")
			t.Logf("%s\n\t%s", v.What, text)
			if !strings.Contains(v.What, c.what) || len(v.Story) > c.most {
				t.Errorf("got %q in %d lines", v.What, len(v.Story))
			}
			for _, word := range c.story {
				_, rest, found := strings.Cut(text, word)
				if !found {
					t.Errorf("the steps do not contain %q in its place", word)
				}
				text = rest
			}
		})
	}
}

// With the protections the same bounds are safe, so the violations above come from their absence.
func TestTheSameBoundsWithTheProtections(t *testing.T) {
	nothingWrong(t, Bounds{Attempts: [2]int{1, 1}, Forgets: 1}, Bounds{Attempts: [2]int{1, 1}},
		Bounds{Attempts: [2]int{1, 1}, Repeats: 1})
}
