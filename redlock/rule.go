package redlock

import "math/bits"

// quorumOf is the number of votes that decide among n configured masters, whether they answer or not.
func quorumOf(n int) int { return n/2 + 1 }

// A rule says which votes decide: those of a majority of each of its sets of masters. It has two sets while the masters
// are changed, and they may share masters. Sets of masters are bits. It is a value: no I/O, no time, no lock.
type rule struct {
	first  uint64
	second uint64 // 0: there is one set
}

// oneSet is the rule of n masters, the first n.
func oneSet(n int) rule { return rule{first: ^uint64(0) >> (maxMasters - n)} }

// joint reports whether a majority of two sets is needed.
func (r rule) joint() bool { return r.second != 0 }

// all is every master that votes.
func (r rule) all() uint64 { return r.first | r.second }

// n is how many masters vote.
func (r rule) n() int { return bits.OnesCount64(r.all()) }

// sets lists the sets; the second is 0 where there is one.
func (r rule) sets() [2]uint64 { return [2]uint64{r.first, r.second} }

// majority reports whether the votes have a majority of the set.
func majority(votes, set uint64) bool {
	return 2*bits.OnesCount64(votes&set) > bits.OnesCount64(set)
}

// has reports whether the votes have a majority of each set.
func (r rule) has(votes uint64) bool {
	return majority(votes, r.first) && (r.second == 0 || majority(votes, r.second))
}

// either reports whether the votes have a majority of one of the sets.
func (r rule) either(votes uint64) bool {
	return majority(votes, r.first) || r.second != 0 && majority(votes, r.second)
}

// least is the smallest number of votes that can decide.
func (r rule) least() int {
	first := quorumOf(bits.OnesCount64(r.first))
	if r.second == 0 {
		return first
	}
	second := quorumOf(bits.OnesCount64(r.second))
	return max(first, second, first+second-bits.OnesCount64(r.first&r.second))
}

// of is the rule of those sets that master i is of.
func (r rule) of(i int) rule {
	switch {
	case r.second&bit(i) == 0:
		return rule{first: r.first}
	case r.first&bit(i) == 0:
		return rule{first: r.second}
	}
	return r
}
