package redlock

import (
	"errors"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/redlock-go/redlock/internal/scripts"
)

// randomRule is two sets of up to seven masters each that may share some, or now and then one.
func randomRule(r *rand.Rand) rule {
	some := func() (set uint64) {
		for range 1 + r.IntN(7) {
			set |= bit(r.IntN(9))
		}
		return set
	}
	if r.IntN(8) == 0 {
		return rule{first: some()}
	}
	return rule{first: some(), second: some()}
}

// naiveHas counts, for each set, who said yes.
func naiveHas(r rule, yes uint64) bool {
	for k, set := range [][]int{members64(r.first), members64(r.second)} {
		n := 0
		for _, i := range set {
			if yes>>i&1 == 1 {
				n++
			}
		}
		if n <= len(set)/2 && (k == 0 || len(set) > 0) {
			return false
		}
	}
	return true
}

func members64(set uint64) (list []int) {
	for i := range maxMasters {
		if set>>i&1 == 1 {
			list = append(list, i)
		}
	}
	return list
}

// While the masters are changed a round is decided by a majority of each set: the verdict is what all ways agree on in
// which the votes that are still to come can be, by a twin that tries them.
func TestJointVerdictIsWhatAllCompletionsAgreeOn(t *testing.T) {
	property(t, func(t *testing.T, r *rand.Rand) {
		ru := randomRule(r)
		c := tally{rule: ru}
		open := 0
		for _, i := range members64(ru.all()) {
			switch r.IntN(4) {
			case 0:
				open |= 1 << i
			case 1:
				c.add(i, allKinds[r.IntN(len(allKinds))])
			default:
				c.add(i, scripts.Granted)
			}
		}
		with, without := false, false
		for some := open; ; some = (some - 1) & open {
			if naiveHas(ru, c.set(scripts.Granted)|uint64(some)) {
				with = true
			} else {
				without = true
			}
			if some == 0 {
				break
			}
		}
		want := pending
		switch {
		case !without:
			want = won
		case !with:
			want = lost
		}
		if got := c.verdict(); got != want {
			t.Errorf("%b and %b, granted %b, open %b: verdict %d, want %d", ru.first, ru.second, c.set(scripts.Granted), open, got, want)
		}
	})
}

func TestJointVerdictAsTable(t *testing.T) {
	apart, grown := rule{first: 0b11111, second: 0b11111 << 5}, rule{first: 0b111, second: 0b11111}
	for _, c := range []struct {
		rule
		yes, no uint64
		want    verdict
	}{
		{apart, 0b11111, 0, pending},
		{apart, 0b11111, 0b111 << 5, lost},
		{apart, 0b00111_00111, 0, won},
		{apart, 0b00011_11111, 0b11000_00000, pending},
		{apart, 0b11111_00000, 0b00111, lost},
		{grown, 0b00011, 0, pending},
		{grown, 0b00111, 0, won},
		{grown, 0b11100, 0b00011, lost},
		{grown, 0b11110, 0, won},
		{rule{first: 0b111}, 0b110, 0, won},
		{rule{first: 0b111, second: 0b111}, 0b110, 0, won},
		{rule{first: 0b111, second: 1 << 63}, 0b111, 0, pending},
		{rule{first: 0b111, second: 1 << 63}, 1<<63 | 0b101, 0, won},
	} {
		ta := tally{rule: c.rule}
		for _, i := range members64(c.yes) {
			ta.add(i, scripts.Granted)
		}
		for _, i := range members64(c.no) {
			ta.add(i, scripts.Held)
		}
		if got := ta.verdict(); got != c.want {
			t.Errorf("%b and %b, granted %b, not %b: verdict %d, want %d", c.first, c.second, c.yes, c.no, got, c.want)
		}
	}
}

// Whoever wins by two sets shares a master with whoever wins by either of them, and with whoever wins by another pair
// that has one of them in common: that is why the set can be changed while locks are held.
func TestJointQuorumsMeetThoseOfEachSet(t *testing.T) {
	property(t, func(t *testing.T, r *rand.Rand) {
		both := randomRule(r)
		next := randomRule(r)
		next.first = both.second
		if !both.joint() {
			next.first = both.first
		}
		for _, other := range []rule{{first: both.first}, {first: next.first}, both, next} {
			a, b := winning(r, both), winning(r, other)
			if a&b == 0 {
				t.Errorf("%b wins by %b and %b, and %b by %b and %b", a, both.first, both.second, b, other.first, other.second)
			}
		}
	})
}

// winning draws masters that win.
func winning(r *rand.Rand, ru rule) uint64 {
	list := members64(ru.all())
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	set := uint64(0)
	for _, i := range list {
		if set |= bit(i); ru.has(set) {
			return set
		}
	}
	panic("all masters do not win")
}

func TestLeastIsTheSmallestQuorumThereIs(t *testing.T) {
	property(t, func(_ *testing.T, r *rand.Rand) {
		ru := randomRule(r)
		least := maxMasters
		for some := ru.all(); some != 0; some = (some - 1) & ru.all() {
			if ru.has(some) {
				least = min(least, bits.OnesCount64(some))
			}
		}
		if got := ru.least(); got != least {
			t.Errorf("%b and %b: %d, want %d", ru.first, ru.second, got, least)
		}
	})
}

// H05: held and no quorum are told apart for each set.
func TestJointDecision(t *testing.T) {
	ta := tally{rule: rule{first: 0b111, second: 0b111000}}
	ta.add(0, voteHeld)
	ta.add(1, voteHeld)
	if got := ta.decision(); !errors.Is(got, ErrHeld) {
		t.Errorf("held by a majority of the first set: %v", got)
	}
	ta.add(3, voteFailed)
	ta.add(4, voteAbstained)
	if got := ta.decision(); !errors.Is(got, ErrNoQuorum) {
		t.Errorf("and the second cannot vote: %v", got)
	}
}
