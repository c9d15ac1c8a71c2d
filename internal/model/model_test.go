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

// Everything that can happen within these bounds keeps the lock with one client, lets tokens grow, and leaves no lock
// behind. These run on every change.
func TestExclusionTokenGrowthAndNoOrphans(t *testing.T) {
	nothingWrong(t,
		Bounds{Attempts: [2]int{1, 1}, Repeats: 3},
		Bounds{Attempts: [2]int{1, 1}, Forgets: 1, Repeats: 1, Passes: true},
		Bounds{Attempts: [2]int{2, 1}, OwnConnection: true},
		Bounds{Attempts: [2]int{1, 1}, OwnConnection: true, Forgets: 1, Passes: true},
	)
	if !race.Enabled { // it makes this ten times slower, and there is one goroutine
		nothingWrong(t, Bounds{Attempts: [2]int{2, 1}, Passes: true})
	}
}

// The same for larger bounds.
func TestFull(t *testing.T) {
	if !*full {
		t.Skip("needs hours, for larger bounds: go test ./internal/model -run TestFull -timeout 0 -args -full")
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

// Without the restart guard one master that forgets gives a held lock away; without the tombstone an acquire that comes
// behind its own release stays; without the fence a later hold has a smaller token. Each is found, by a shortest story.
func TestWithoutAProtectionAShortestStoryIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		bounds Bounds
		what   string
		story  []string // words that it must have, in this order
		most   int      // lines
	}{
		"guard": {Bounds{Attempts: [2]int{1, 1}, Forgets: 1, NoGuard: true}, "both clients hold",
			[]string{"and holds", "forgets everything", "granted", "and holds"}, 12},
		"tombstone": {Bounds{Attempts: [2]int{1, 1}, NoTombstone: true}, "is over, and has read all its messages",
			[]string{"gives up", "reads the release of", "'s acquire: granted"}, 6},
		"fence": {Bounds{Attempts: [2]int{1, 1}, NoFence: true}, "is not larger than that of a hold before",
			[]string{"and holds", "unlocks", "and holds"}, 16},
		"no repeats of what was refused": {Bounds{Attempts: [2]int{1, 1}, Repeats: 1, RepeatRefused: true},
			"is over, and has read all its messages",
			[]string{"will get it once more", "'s acquire: granted"}, 14},
	} {
		t.Run(name, func(t *testing.T) {
			v := search(t, c.bounds).Violation
			if v == nil {
				t.Fatal("nothing is found: the search is blind")
			}
			text := strings.Join(v.Story, "\n\t")
			t.Logf("%s\n\t%s", v.What, text)
			if !strings.Contains(v.What, c.what) || len(v.Story) > c.most {
				t.Errorf("it is %q by %d lines", v.What, len(v.Story))
			}
			for _, word := range c.story {
				_, rest, found := strings.Cut(text, word)
				if !found {
					t.Errorf("the story has no %q where it should", word)
				}
				text = rest
			}
		})
	}
}

// With the protection the same bounds are sound: the stories above come from its absence.
func TestTheSameBoundsWithTheProtections(t *testing.T) {
	nothingWrong(t, Bounds{Attempts: [2]int{1, 1}, Forgets: 1}, Bounds{Attempts: [2]int{1, 1}},
		Bounds{Attempts: [2]int{1, 1}, Repeats: 1})
}
