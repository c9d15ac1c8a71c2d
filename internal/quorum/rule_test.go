package quorum

import (
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/redlock-go/redlock/internal/property"
)

// randomRule returns a rule with two sets of up to seven masters that may overlap, or sometimes a rule with one set.
func randomRule(r *rand.Rand) Rule {
	some := func() (set Set) {
		for range 1 + r.IntN(7) {
			set |= One(r.IntN(9))
		}
		return set
	}
	if r.IntN(8) == 0 {
		return Rule{Old: some()}
	}
	return Rule{Old: some(), Next: some()}
}

// listOf returns the elements of Set.All. It is a simple reference implementation.
func listOf(set Set) (list []int) {
	for i := range Most {
		if set>>i&1 == 1 {
			list = append(list, i)
		}
	}
	return list
}

// naiveMajority reports whether yes contains a majority of set. It counts the masters one by one.
func naiveMajority(set, yes Set) bool {
	n, all := 0, listOf(set)
	for _, i := range all {
		if yes>>i&1 == 1 {
			n++
		}
	}
	return n > len(all)/2
}

func naiveWon(r Rule, yes Set) bool {
	return naiveMajority(r.Old, yes) && (len(listOf(r.Next)) == 0 || naiveMajority(r.Next, yes))
}

// Won, Lost and WonHalf return the same results as naive counts of the masters.
func TestRulesMatchCounting(t *testing.T) {
	property.Check(t, func(t *testing.T, r *rand.Rand) {
		ru, votes := randomRule(r), Set(r.Uint64())
		if got, want := ru.Won(votes), naiveWon(ru, votes); got != want {
			t.Errorf("%+v: Won(%b) is %v", ru, votes, got)
		}
		if got, want := ru.Lost(votes), !naiveWon(ru, ru.All()&^votes); got != want {
			t.Errorf("%+v: Lost(%b) is %v", ru, votes, got)
		}
		want := naiveMajority(ru.Old, votes) || ru.Joint() && naiveMajority(ru.Next, votes)
		if got := ru.WonHalf(votes); got != want {
			t.Errorf("%+v: WonHalf(%b) is %v", ru, votes, got)
		}
		if got := ru.N(); got != len(listOf(ru.Old|ru.Next)) {
			t.Errorf("%+v: N is %d", ru, got)
		}
		if sets := ru.Sets(); sets[0] != ru.Old || ru.Joint() != (len(sets) == 2) || ru.Joint() && sets[1] != ru.Next {
			t.Errorf("%+v has the sets %b", ru, sets)
		}
		for i := range ru.All().All() {
			of := ru.Of(i)
			both := ru.Old.Has(i) && ru.Next.Has(i)
			if !of.Old.Has(i) || of.Joint() != both || of.Old != ru.Old && of.Old != ru.Next {
				t.Errorf("the rule of master %d in %+v is %+v", i, ru, of)
			}
		}
	})
}

// In a joint configuration a round needs a majority of each set. Verdict returns Won or Lost only if all combinations
// of the outstanding votes lead to this result. The test tries all combinations.
func TestJointVerdict(t *testing.T) {
	property.Check(t, func(t *testing.T, r *rand.Rand) {
		ru := randomRule(r)
		c := Tally{Rule: ru}
		open := Set(0)
		for i := range ru.All().All() {
			switch r.IntN(4) {
			case 0:
				open |= One(i)
			case 1:
				c.Add(i, allOutcomes[r.IntN(len(allOutcomes))])
			default:
				c.Add(i, granted)
			}
		}
		with, without := false, false
		for some := open; ; some = (some - 1) & open {
			if naiveWon(ru, c.Of(granted)|some) {
				with = true
			} else {
				without = true
			}
			if some == 0 {
				break
			}
		}
		want := Pending
		switch {
		case !without:
			want = Won
		case !with:
			want = Lost
		}
		if got := c.Verdict(); got != want {
			t.Errorf("%+v, granted %b, open %b: the verdict is %d, want %d", ru, c.Of(granted), open, got, want)
		}
	})
}

// One client has majorities of two sets. Another client has a majority of one of these sets, alone or together with
// a majority of a third set. Then the two clients have a common master. Therefore the masters can be changed while
// locks are held.
func TestJointQuorumsMeetThoseOfEachSet(t *testing.T) {
	property.Check(t, func(t *testing.T, r *rand.Rand) {
		both := randomRule(r)
		next := randomRule(r)
		next.Old = both.Next
		if !both.Joint() {
			next.Old = both.Old
		}
		for _, other := range []Rule{{Old: both.Old}, {Old: next.Old}, both, next} {
			a, b := winning(r, both), winning(r, other)
			if a&b == 0 {
				t.Errorf("%b wins with the rule %+v, and %b wins with %+v, but they have no common master", a, both, b, other)
			}
		}
	})
}

// winning returns a random set of masters that is just large enough to win with the rule ru.
func winning(r *rand.Rand, ru Rule) Set {
	list := listOf(ru.All())
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	set := Set(0)
	for _, i := range list {
		if set |= One(i); ru.Won(set) {
			return set
		}
	}
	panic("the set of all masters does not win")
}

func TestLeastIsSmallestQuorum(t *testing.T) {
	property.Check(t, func(t *testing.T, r *rand.Rand) {
		ru := randomRule(r)
		least := Most
		for some := ru.All(); some != 0; some = (some - 1) & ru.All() {
			if ru.Won(some) {
				least = min(least, bits.OnesCount64(uint64(some)))
			}
		}
		if got := ru.Least(); got != least {
			t.Errorf("%+v: Least is %d, want %d", ru, got, least)
		}
	})
}

// A configuration with a single set is within each configuration that has this set. A joint configuration is within no
// other.
func TestWithinAsTable(t *testing.T) {
	a, b := &Config{Rule: Rule{Old: 0b111}}, &Config{Epoch: 2, Rule: Rule{Old: 0b111000}}
	other := &Config{Rule: Rule{Old: 0b1111}}
	joint := &Config{Epoch: 1, Rule: Rule{Old: 0b111, Next: 0b111000}}
	for _, c := range []struct {
		in, of *Config
		want   bool
	}{
		{a, a, true}, {a, joint, true}, {b, joint, true}, {joint, joint, false}, {joint, a, false}, {other, joint, false},
		{b, a, false},
	} {
		if got := c.in.Within(c.of); got != c.want {
			t.Errorf("%+v within %+v is %v, want %v", c.in.Rule, c.of.Rule, got, c.want)
		}
	}
}

// A master of the old set may vote in an odd epoch only if its record says that this set could decide alone in the
// epoch before. A master that is only in the next set needs no such record.
func TestNeedsAsTable(t *testing.T) {
	for _, c := range []struct {
		epoch  int64
		master int
		want   int64
	}{{0, 0, 0}, {1, 0, 0}, {1, 1, 0}, {1, 2, 0}, {2, 1, 2}, {3, 0, 2}, {3, 1, 2}, {3, 2, 0}} {
		config := &Config{Epoch: c.epoch, Rule: Rule{Old: 0b11}}
		if c.epoch%2 == 1 {
			config.Rule.Next = 0b110
		}
		if got := config.LeastFinal(c.master); got != c.want {
			t.Errorf("in epoch %d master %d needs %d, want %d", c.epoch, c.master, got, c.want)
		}
	}
}
