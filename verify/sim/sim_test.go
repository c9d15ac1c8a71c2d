package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/long"
	"github.com/redlock-go/redlock/internal/race"
)

const (
	normalSeeds = 500
	fewSeeds    = 100
	shortSeeds  = 30
)

// Tolerated faults affect messages, connections, data of masters, clocks and clients. With them, two holds of a name
// never overlap in true time, and tokens increase. A resource that checks tokens accepts no older writer. Nothing
// remains on a master, a held lock is restored on all masters, every call ends, and no goroutine remains. With other
// faults all of this applies, except that holds may overlap. H01-H05, H10, H14, H20-H26, H30, H31, H37, H51-H53,
// H55, H57, H58, H176.
func TestSchedules(t *testing.T) {
	if *oneSeed >= 0 {
		printTranscript(t, uint64(*oneSeed))
		return
	}
	n := *seedCount
	if n == 0 {
		switch n = normalSeeds; {
		case !long.Enabled():
			n = shortSeeds
		case race.Enabled:
			n = fewSeeds
		}
	}
	began, worst := time.Now(), 0
	sum := inParallel(t, n, func(b badSeed) {
		switch worst++; {
		case worst <= 2:
			t.Errorf("%v\n%s\nto repeat it: go test ./verify/sim -run '^TestSchedules$' -args -seed %d -kind %q",
				b.Problems, tail(b.Transcript), b.Seed, *kindForce)
		case worst <= 100:
			t.Errorf("seed %d found a violation: %.300s", b.Seed, b.Problems[0])
		}
	})
	t.Logf("%d schedules in %v: %d locks, %d imports, %d repairs, %d writes, %d connections, %d scripts; "+
		"%d schedules with a violation", sum.Runs, time.Since(began).Round(time.Millisecond), sum.Locks, sum.Imports,
		sum.Repairs, sum.Writes, sum.Connections, sum.Scripts, worst)
	reachedAll(t, sum)
	if sum.Runs != n {
		t.Errorf("%d schedules ran, want %d", sum.Runs, n)
	}
	little := sum.Locks < 3*n || sum.Imports == 0 || sum.Repairs < n/10 || sum.Writes < n
	if n >= shortSeeds && *kindForce+*kindGiven+*withoutGiven == "" && little {
		t.Error("too few locks, imports, repairs or writes for a meaningful check")
	}
}

// allReachedIn is the number of schedules that must reach every situation.
const allReachedIn = 10_000

// reachedAll logs the number of schedules that reached each situation. After at least allReachedIn schedules, it fails
// the test if a situation was not reached.
func reachedAll(t *testing.T, sum summary) {
	t.Helper()
	for i, n := range sum.Reached {
		t.Logf("%7d  %s", n, situationNames[i])
		if n == 0 && sum.Runs >= allReachedIn && *kindForce+*kindGiven == "" {
			t.Errorf("none of %d schedules reached the situation %q", sum.Runs, situationNames[i])
		}
	}
}

// printTranscript runs one seed, and prints its transcript.
func printTranscript(t *testing.T, seed uint64) {
	t.Helper()
	r := one(t, seed)
	t.Log(r.Transcript())
	for _, p := range r.Problems {
		t.Error(p)
	}
}

// tail returns the start of a transcript, and the events before the first violation.
func tail(transcript string) string {
	const most = 16 << 10
	end := len(transcript)
	if i := strings.Index(transcript, "VIOLATION"); i >= 0 {
		end = min(i+2<<10, end)
	}
	begin := max(0, end-most)
	return transcript[:min(600, begin)] + "\n...\n" + transcript[begin:end]
}
