package quorum

import (
	"iter"
	"math/bits"
)

// Most is the largest number of masters, since a Set has 64 bits.
const Most = 64

// A Set is a set of masters: bit i is master i of the pool.
type Set uint64

// One returns the set of master i alone.
func One(i int) Set { return 1 << i }

// First returns the set of the masters 0 to n-1.
func First(n int) Set { return ^Set(0) >> (Most - n) }

// Has reports whether master i is in s.
func (s Set) Has(i int) bool { return s&One(i) != 0 }

// Len returns the number of masters in s.
func (s Set) Len() int { return bits.OnesCount64(uint64(s)) }

// All yields the masters of s in order.
func (s Set) All() iter.Seq[int] {
	return func(yield func(int) bool) {
		for ; s != 0; s &= s - 1 {
			if !yield(bits.TrailingZeros64(uint64(s))) {
				return
			}
		}
	}
}

// Where returns the masters of s for which f returns true.
func (s Set) Where(f func(i int) bool) (found Set) {
	for i := range s.All() {
		if f(i) {
			found |= One(i)
		}
	}
	return found
}

// Quorum returns the number of votes that are a majority of n masters.
func Quorum(n int) int { return n/2 + 1 }

// MajorityOf reports whether s has a majority of set.
func (s Set) MajorityOf(set Set) bool { return 2*(s&set).Len() > set.Len() }

// A Rule says which votes win: a majority of Old and, if Next is not empty, also a majority of Next. Both sets may
// contain the same masters.
type Rule struct {
	Old  Set // the present masters; the only set while they are not being changed
	Next Set // 0 while the masters are not being changed
}

// Joint reports whether majorities of two sets are needed.
func (r Rule) Joint() bool { return r.Next != 0 }

// All returns every master that votes.
func (r Rule) All() Set { return r.Old | r.Next }

// N returns the number of masters that vote.
func (r Rule) N() int { return r.All().Len() }

// Sets returns the one or two sets of the rule.
func (r Rule) Sets() []Set {
	if r.Joint() {
		return []Set{r.Old, r.Next}
	}
	return []Set{r.Old}
}

// Won reports whether the votes have a majority of each set.
func (r Rule) Won(votes Set) bool {
	return votes.MajorityOf(r.Old) && (r.Next == 0 || votes.MajorityOf(r.Next))
}

// Lost reports whether the masters that voted no make a majority impossible in one of the sets.
func (r Rule) Lost(against Set) bool { return !r.Won(r.All() &^ against) }

// WonHalf reports whether the votes have a majority of one of the sets.
func (r Rule) WonHalf(votes Set) bool {
	return votes.MajorityOf(r.Old) || r.Next != 0 && votes.MajorityOf(r.Next)
}

// Least returns the smallest number of votes that can win.
func (r Rule) Least() int {
	old := Quorum(r.Old.Len())
	if r.Next == 0 {
		return old
	}
	next := Quorum(r.Next.Len())
	return max(old, next, old+next-(r.Old&r.Next).Len())
}

// Of returns the rule reduced to those sets that contain master i.
func (r Rule) Of(i int) Rule {
	switch {
	case !r.Next.Has(i):
		return Rule{Old: r.Old}
	case !r.Old.Has(i):
		return Rule{Old: r.Next}
	}
	return r
}
