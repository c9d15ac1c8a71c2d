package redlock_test

import (
	"flag"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/redlock"
)

var (
	seedCount = flag.Int("seeds", 0, "how many randomised runs; 0 means 300, 150 with the race detector, 30 with -short")
	oneSeed   = flag.Int64("seed", -1, "the seed of a single randomised run")
)

// Whatever happens to messages, connections, masters' memories, clocks and programs, within what the design survives:
// two holds of a name never overlap, tokens grow, nothing is left on a master, and no goroutine either. H01-H04, H10,
// H14, H20-H26, H53, H55.
func TestVirtualRandomFaultsNeverMakeTwoHolders(t *testing.T) {
	first, n := uint64(0), runs()
	if *oneSeed >= 0 {
		first, n = uint64(*oneSeed), 1
	}
	var total struct{ tenures, imports, healed int }
	t.Run("seeds", func(t *testing.T) {
		for i := range n {
			seed := first + uint64(i)
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					s := simulate(t, seed, defaultPlan)
					for _, p := range s.problems {
						t.Errorf("%s\nagain: go test -run '^%s$' -seed %d -count 20", p, "TestVirtualRandomFaultsNeverMakeTwoHolders", seed)
					}
					totals.Lock()
					defer totals.Unlock()
					total.tenures += len(s.tenures)
					total.imports += s.imports
					total.healed += s.healed
				})
			})
		}
	})
	t.Logf("%d runs: %d locks held, %d handed on, %d healings", n, total.tenures, total.imports, total.healed)
	if n > 10 && (total.tenures < 10*n || total.imports == 0 || total.healed == 0) {
		t.Errorf("too little has happened for the checks to say anything")
	}
}

var totals sync.Mutex

const normalRuns = 300

// runs is how many runs are wanted.
func runs() int {
	switch {
	case *seedCount > 0:
		return *seedCount
	case testing.Short():
		return normalRuns / 10
	case raceDetector:
		return normalRuns / 2
	}
	return normalRuns
}

// bites bounds the runs in which a missing protection must be found: many times what it takes, since the order of the
// goroutines of one instant is not in the seed.
const bites = 3000

// bite runs seeds until one finds something, and returns after how many; 0 where none does.
func bite(t *testing.T, opts ...redlock.Option) (after int, found string) {
	pl := defaultPlan
	pl.opts = opts
	for seed := range uint64(max(*seedCount, bites)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if s := simulate(t, seed, pl); len(s.problems) > 0 {
					after, found = int(seed)+1, s.problems[0]
				}
			})
		})
		if after > 0 {
			break
		}
	}
	return after, found
}

// The same runs with one protection taken away find a violation: the checks above can fail.
func TestVirtualWithoutOneProtectionTheRunsFindAViolation(t *testing.T) {
	if raceDetector || testing.Short() {
		t.Skip("it is the same code, run hundreds of times: to have it run, leave out -race and -short")
	}
	for name, tooth := range map[string]struct {
		off  *bool
		opts []redlock.Option
	}{
		"guard":     {opts: []redlock.Option{redlock.WithoutGuard()}},
		"drift":     {opts: []redlock.Option{redlock.WithDrift(clock.Drift{})}},
		"tombstone": {off: redlock.Teeth.NoTombstone},
		"recheck":   {off: redlock.Teeth.NoRecheck},
		"unknown":   {off: redlock.Teeth.NoUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			if tooth.off != nil {
				*tooth.off = true
				defer func() { *tooth.off = false }()
			}
			start := time.Now()
			after, found := bite(t, tooth.opts...)
			if after == 0 {
				t.Fatal("nothing was found")
			}
			t.Logf("found by run %d (%v): %s", after, time.Since(start).Round(time.Millisecond), found)
		})
	}
}
