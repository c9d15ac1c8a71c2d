package model

import (
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/long"
	"github.com/redlock-go/redlock/internal/race"
	"github.com/redlock-go/redlock/internal/scripts"
)

const (
	rd = scripts.Reader
	wr = scripts.Writer
)

// noClient is a client without an attempt.
const noClient = scripts.Plain

func searchShares(t *testing.T, b ShareBounds) *Violation {
	t.Helper()
	start := time.Now()
	r := SearchShares(b)
	t.Logf("%v, ballots %v, %d read twice, %d forget: %d states, %d steps, depth %d, %v", b.Roles, b.Ballots, b.Repeats,
		b.Forgets, r.States, r.Steps, r.Depth, time.Since(start).Round(time.Millisecond))
	return r.Violation
}

func soundShares(t *testing.T, b ShareBounds) {
	t.Helper()
	if v := searchShares(t, b); v != nil {
		t.Errorf("%s\n\t%s", v.What, strings.Join(v.Story, "\n\t"))
	}
}

// For readers and writers within these bounds, a writer is alone, tokens grow as required, and no share is left behind.
func TestReadersAndWritersWithinSmallBounds(t *testing.T) {
	for _, roles := range [][3]scripts.Role{{wr, rd, noClient}, {wr, wr, noClient}, {rd, rd, noClient}} {
		for _, ballots := range [][3]uint8{{1, 2}, {2, 1}, {1, 1}} {
			if (!long.Enabled() || race.Enabled) && ballots != [3]uint8{1, 2} {
				continue // the race detector is ten times slower, and there is one goroutine
			}
			soundShares(t, ShareBounds{Roles: roles, Ballots: ballots, Repeats: 1})
			soundShares(t, ShareBounds{Roles: roles, Ballots: ballots, Forgets: 1})
			soundShares(t, ShareBounds{Roles: roles, Ballots: ballots, OwnConnection: true})
		}
	}
	soundShares(t, ShareBounds{Roles: [3]scripts.Role{wr, rd, wr}, Ballots: [3]uint8{1, 2, 3}, Downgrade: true,
		OwnConnection: true})
	if !long.Enabled() || race.Enabled {
		return
	}
	for _, ballots := range [][3]uint8{{1, 2, 3}, {1, 3, 2}, {2, 3, 1}, {1, late + 2, late + 1}, {1, 2, late + 1}} {
		b := ShareBounds{Roles: [3]scripts.Role{wr, rd, wr}, Ballots: ballots, Downgrade: true}
		soundShares(t, b)
		b.Repeats = 1
		soundShares(t, b)
		b.Repeats, b.Roles[2] = 0, rd
		soundShares(t, b)
		b.Roles[2], b.Forgets, b.OwnConnection = wr, 1, true
		soundShares(t, b)
	}
	for _, roles := range [][3]scripts.Role{{wr, rd, rd}, {wr, wr, rd}} {
		for _, ballots := range [][3]uint8{{1, 2, 3}, {1, 3, 2}, {2, 1, 3}, {2, 3, 1}, {3, 1, 2}, {3, 2, 1}} {
			soundShares(t, ShareBounds{Roles: roles, Ballots: ballots})
		}
	}
}

// Without any one of the protections of readers and writers, the search finds a violation, with a shortest sequence of
// steps.
func TestWithoutAProtectionOfReadersAShortestStoryIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		bounds ShareBounds
		what   string
		most   int // maximum number of lines
	}{
		"a writer waits for readers": {ShareBounds{Roles: [3]scripts.Role{wr, rd}, Ballots: [3]uint8{2, 1},
			BesideReaders: true}, "a writer is not alone", 8},
		"readers wait for a writer": {ShareBounds{Roles: [3]scripts.Role{wr, rd}, Ballots: [3]uint8{1, 2},
			BesideWriters: true}, "a writer is not alone", 8},
		"the fences": {ShareBounds{Roles: [3]scripts.Role{wr, wr}, Ballots: [3]uint8{1, 2}, NoFences: true},
			"is not larger than one before", 14},
		"the readers' fence": {ShareBounds{Roles: [3]scripts.Role{wr, rd}, Ballots: [3]uint8{1, 2}, OwnConnection: true,
			NoReads: true},
			"is not larger than one before", 14},
		"a reader's tombstone": {ShareBounds{Roles: [3]scripts.Role{rd, noClient}, Ballots: [3]uint8{1}, NoTombstone: true},
			"has a share of reader A, which has ended", 5},
		"the guard": {ShareBounds{Roles: [3]scripts.Role{wr, rd}, Ballots: [3]uint8{1, 2}, Forgets: 1, NoGuard: true},
			"a writer is not alone", 10},
		"a downgrade is for who still has the share": {ShareBounds{Roles: [3]scripts.Role{wr, rd, wr},
			Ballots: [3]uint8{1, late + 2, late + 1}, Downgrade: true, Forgets: 1, Blind: true},
			"a writer is not alone", 14},
		"a downgrade is one step": {ShareBounds{Roles: [3]scripts.Role{wr, rd, wr}, Ballots: [3]uint8{1, 3, 2},
			Downgrade: true, TwoSteps: true}, "in the gap of a downgrade", 14},
	} {
		t.Run(name, func(t *testing.T) {
			v := searchShares(t, c.bounds)
			if v == nil {
				t.Fatal("no violation found: the search is blind")
			}
			t.Logf("%s\n\t%s", v.What, strings.Join(v.Story, "\n\t"))
			if !strings.Contains(v.What, c.what) || len(v.Story) > c.most {
				t.Errorf("got %q in %d lines", v.What, len(v.Story))
			}
		})
	}
}
