package redlock

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/redlock-go/redlock/internal/scripts"
)

// roundOf is a round with these votes: "g" granted, "f" failed, "a" abstained, "s" stale, "." not in yet, "-" free with
// others first, and any capital letter held by the one of that name.
func roundOf(text string) *round {
	r := new(Locker).newRound(firstMembers(len(text)), "lock", nil)
	for i, c := range text {
		v := scripts.Vote{Kind: scripts.Held, Holder: string(c)}
		switch c {
		case '.':
			continue
		case 'g':
			v = scripts.Vote{Kind: scripts.Granted}
		case 'f':
			v = scripts.Vote{Kind: scripts.Failed}
		case 'a':
			v = scripts.Vote{Kind: scripts.Abstained}
		case 's':
			v = scripts.Vote{Kind: scripts.Stale}
		case '-':
			v.Holder = ""
		}
		r.add(i, vote{Vote: v, err: errNotYet})
	}
	return r
}

// A name is held, and not split, where one other has it on a majority of the masters that can vote.
func TestHeldByOneAsTable(t *testing.T) {
	for text, want := range map[string]bool{
		"AAAgg": true, "AAAAA": true, "AABBg": false, "ABCgg": false, "AAAff": true, "AAgff": true, "ABgff": false, "Aggff": false,
		"AABgf": false, "AAABf": true, "ABCff": false, "AAaag": true, "---gg": false, "-AAA-": true, "AA-gg": false,
		"AA": true, "Ag": false, "A": true, "AAA....": false, "AAAA...": true, "sssss": false,
	} {
		if got := roundOf(text).heldByOne(); got != want {
			t.Errorf("%s: held by one: %t, want %t", text, got, want)
		}
	}
}

// Where nothing fails the rule takes a holder for what it is: whoever has a quorum leaves none to others.
func TestAHolderOfAQuorumIsNeverTakenForASplit(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 5))
	for range 20_000 {
		n := 1 + random.IntN(9)
		text := make([]byte, n)
		a := 0
		for i := range text {
			text[i] = "AABCg"[random.IntN(5)]
			if text[i] == 'A' {
				a++
			}
		}
		if r := roundOf(string(text)); a >= quorumOf(n) && !r.heldByOne() {
			t.Fatalf("%s: not seen as held", text)
		}
	}
}

// Of all contenders of a name, at most one is granted by the lead, and those who see the same masters answer agree on
// which that is.
func TestAtMostOneContenderLeads(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 5))
	led := 0
	for n := range 20_000 {
		name := fmt.Sprint("n", n)
		masters := 2*random.IntN(4) + 1
		k := 1 + random.IntN(5)
		votes := make([][]byte, k)
		for c := range votes {
			votes[c] = make([]byte, masters)
		}
		for i := range masters {
			owner := random.IntN(k + 2) // k: nobody; k+1: the master is down for all
			for c := range k {
				votes[c][i] = 'f'
				if owner <= k {
					votes[c][i] = byte('A' + owner)
				}
				if owner == c {
					votes[c][i] = 'g'
				}
			}
		}
		leads := 0
		for c := range k {
			if roundOf(string(votes[c])).leads(name) {
				leads++
			}
		}
		if leads > 1 {
			t.Fatalf("%d contenders lead: %q", leads, votes)
		}
		led += leads
	}
	if led < 5000 {
		t.Errorf("only %d races had a lead: too few to say anything", led)
	}
}

// The lead is the first master that answered, from where the order of the name begins; the order of another name begins
// elsewhere, so that no master is everybody's lead.
func TestTheLeadIsTheFirstThatAnsweredInTheOrderOfTheName(t *testing.T) {
	starts := map[int]string{}
	for i := range 200 {
		name := fmt.Sprint("n", i)
		starts[orderOf(name, 5)] = name
	}
	if len(starts) != 5 {
		t.Fatalf("the order of 200 names begins at %v", starts)
	}
	for text, want := range map[string][]bool{ // by where the order begins
		"gBBBB": {true, false, false, false, false},
		"fgBBB": {true, true, false, false, false},
		"Bg.af": {false, true, false, false, false},
		"gBfff": {true, false, true, true, true},
		"fffff": {false, false, false, false, false},
		"sgggg": {false, true, true, true, true},
		"-gggg": {false, true, true, true, true},
	} {
		for from, leads := range want {
			if got := roundOf(text).leads(starts[from]); got != leads {
				t.Errorf("%s, from master %d: leads %t, want %t", text, from, got, leads)
			}
		}
	}
}

// The masters on which a name is free for another are those that are asked to give it away.
func TestOthersAreTheMastersWhereANameIsFreeForAnother(t *testing.T) {
	if set := roundOf("-A-gf").others(); set != 0b101 {
		t.Errorf("%b", set)
	}
}

// A block of ballots begins at the masters' present time, or there is none: blocks of one name do not overlap, whoever
// reserves them, and none reaches further than it is long.
func TestBlocksOfBallotsBeginNow(t *testing.T) {
	b := newBallots(1)
	b.learn(0, 1, atMicros(0)) // the master's clock is one ahead of ours
	first, last, err := b.propose(atMicros(1000), "n", 0, 16)
	if err != nil || first != 1001 || last != 1017 {
		t.Fatalf("%d to %d, %v", first, last, err)
	}
	// While the name's block is not over a proposal is above the floor that a refusal has shown, and is no block.
	b.saw(atMicros(1001), "n", last)
	if first, last, _ = b.propose(atMicros(1002), "n", last, 16); first != 1018 || last != 1018 {
		t.Errorf("%d to %d within the block before", first, last)
	}
	if first, last, _ = b.propose(atMicros(1030), "n", 1018, 16); first != 1031 || last != 1047 {
		t.Errorf("%d to %d after it", first, last)
	}
	if first, last, _ = b.propose(atMicros(scripts.MaxBallot-5), "m", 0, 16); first != scripts.MaxBallot-4 || last >= scripts.MaxBallot {
		t.Errorf("%d to %d at the end of the numbers", first, last)
	}
}

// Whatever programs reserve, in whatever order, with whatever floors, an accepted block begins above the one before it.
func TestAcceptedBlocksOfANameNeverOverlap(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		programs := []*ballots{knowing(0, 3, 9), knowing(40, 43, 38), knowing(-25, 0, 0)}
		bar, now := int64(0), int64(1_000_000)
		for range 200 {
			now += int64(random.IntN(30))
			b := programs[random.IntN(len(programs))]
			at := atMicros(now)
			first, last, err := b.propose(at, "n", 0, int64(random.IntN(20)))
			if err != nil || last < first {
				t.Fatalf("%d to %d, %v", first, last, err)
			}
			if first <= bar { // a master refuses it as stale, and tells the bar
				b.saw(at, "n", bar)
				if first, last, _ = b.propose(at, "n", bar, 16); first <= bar || last < first {
					t.Fatalf("%d to %d above a bar of %d at %d", first, last, bar, now)
				}
			}
			bar = last
		}
	}
}
