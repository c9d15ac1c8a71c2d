package main

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestHistoryOfTwoWorkers(t *testing.T) {
	h, gaveUp := newTurnList([]turn{
		{Process: 1, Asked: 5, Got: 22, Releasing: 30},
		{Process: 0, Asked: 0, Got: 10, Releasing: 20},
		{Process: 0, Asked: 21, Got: 32, Releasing: 40},
		{Process: 1, Asked: 31, Got: 99, Releasing: 99, GaveUp: true},
	})
	if len(h) != 3 || len(gaveUp) != 1 || h[0].Got != 10 || h[2].Got != 32 {
		t.Fatalf("the history is %v, and these turns gave up: %v", h, gaveUp)
	}
	if n := h.during(10, 32); n != 2 {
		t.Errorf("there are %d holds from 10 to 32, want 2", n)
	}
	if w := h.waits(0, 20); !slices.Equal(w, []time.Duration{10, 17}) {
		t.Errorf("the waits are %v, want 10ns and 17ns", w)
	}
	if d := h.handOffs(true); !slices.Equal(d, []time.Duration{2, 2}) {
		t.Errorf("the hand-offs are %v, want 2ns twice", d)
	}
}

func TestHandOffsAcrossProcessesOnly(t *testing.T) {
	h, _ := newTurnList([]turn{
		{Process: 0, Asked: 0, Got: 1, Releasing: 10},
		{Process: 0, Asked: 2, Got: 11, Releasing: 20},  // was waiting; same process as the last holder
		{Process: 1, Asked: 3, Got: 25, Releasing: 30},  // was waiting; another process
		{Process: 0, Asked: 31, Got: 32, Releasing: 33}, // no client was waiting
	})
	if d := h.handOffs(true); !slices.Equal(d, []time.Duration{5}) {
		t.Errorf("the hand-offs between processes are %v, want only 5ns", d)
	}
	if d := h.handOffs(false); !slices.Equal(d, []time.Duration{1, 5}) {
		t.Errorf("all hand-offs are %v, want 1ns and 5ns", d)
	}
}

func TestHistoryReportsOverlapsAndTokens(t *testing.T) {
	fine := []turn{{Got: 1, Releasing: 2, Token: 5}, {Got: 2, Releasing: 3, Token: 6}}
	for _, c := range []struct {
		name  string
		turns []turn
		want  int
	}{
		{"fine", fine, 0},
		{"early", []turn{fine[0], {Got: 1, Releasing: 3, Token: 6}}, 1},
		{"token", []turn{fine[0], {Got: 2, Releasing: 3, Token: 5}}, 1},
		{"no tokens", []turn{{Got: 1, Releasing: 2}, {Got: 3, Releasing: 4}}, 0},
	} {
		h, _ := newTurnList(c.turns)
		if n := h.overlaps(); n != c.want {
			t.Errorf("%s: %d violations, want %d", c.name, n, c.want)
		}
	}
}

// overtaken agrees with its definition in random histories: the number of turns that requested the lock later and
// acquired it earlier.
func TestOvertakenMatchesDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var turns []turn
		for _, got := range rng.Perm(30) {
			turns = append(turns, turn{Asked: int64(got - rng.IntN(25)), Got: int64(got)})
		}
		h, _ := newTurnList(turns)
		for i, n := range h.overtaken() {
			want := 0
			for _, o := range h {
				if o.Asked > h[i].Asked && o.Got < h[i].Got {
					want++
				}
			}
			if n != want {
				t.Fatalf("%+v was overtaken %d times, want %d", h[i], n, want)
			}
		}
	}
}

func TestPreferredCountsPassedWaiters(t *testing.T) {
	h, _ := newTurnList([]turn{
		{Process: 0, Asked: 1, Got: 3},
		{Process: 1, Asked: 1, Got: 6}, // overtaken by process 2
		{Process: 2, Asked: 2, Got: 4},
		{Process: 1, Asked: 5, Got: 7}, // requested too late to be overtaken
	})
	if share := h.preferred(2); share != 0.5 {
		t.Errorf("the fraction is %v, want 0.5", share)
	}
	if !math.IsNaN(h.preferred(9)) {
		t.Error("the fraction is not NaN although no client was waiting")
	}
}
