package redlock

import (
	"math/bits"
	"slices"
	"time"

	"github.com/redlock-go/redlock/pool"
)

// Members are the masters that a Locker goes by in one state of its configuration. They are never changed once made: a
// round goes by one of them from its beginning to its end. Masters are numbered as in the pool, and keep their numbers.
type members struct {
	epoch   int64
	rule    rule
	order   []int         // the masters as they were named, those of both sets once
	slots   int           // above every number of a master
	follow  rule          // as rule, or as that of the next state, while its masters are being admitted
	slowest time.Duration // the pool's longest timeout: by then every call has its reply
}

// firstMembers are the first n masters of the pool, or of a pool that has no others.
func firstMembers(n int) *members {
	m := &members{rule: oneSet(n), follow: oneSet(n), slots: n, order: make([]int, n)}
	for i := range m.order {
		m.order[i] = i
	}
	return m
}

// membersOf are the masters of one or two sets, as the pool numbers them.
func membersOf(p *pool.Pool, epoch int64, first, second []int) *members {
	m := &members{epoch: epoch, slots: p.N()}
	for k, list := range [][]int{first, second} {
		for _, i := range list {
			if m.rule.all()&bit(i) == 0 {
				m.order = append(m.order, i)
			}
			if k == 0 {
				m.rule.first |= bit(i)
			} else {
				m.rule.second |= bit(i)
			}
			m.slowest = max(m.slowest, p.Timeout(i))
		}
	}
	m.follow = m.rule
	return m
}

// following is m that prepares next: its masters are admitted, and do not vote.
func (m *members) following(next *members) *members {
	c := *m
	c.slots, c.follow, c.slowest = next.slots, next.rule, max(m.slowest, next.slowest)
	return &c
}

// n is how many masters there are.
func (m *members) n() int { return len(m.order) }

// needs is what the marker of master i must let act alone for i to vote: the epoch of the set that it votes in. A master
// that is only of the next set votes together with the present one, and needs nothing.
func (m *members) needs(i int) int64 {
	switch {
	case m.epoch%2 == 0:
		return m.epoch
	case m.rule.first&bit(i) != 0:
		return m.epoch - 1
	}
	return 0
}

// within reports whether m goes by one set that is one of those of o.
func (m *members) within(o *members) bool {
	return !m.rule.joint() && (m.rule.first == o.rule.first || m.rule.first == o.rule.second)
}

// bit is the set of master i alone.
func bit(i int) uint64 { return 1 << i }

// popFirst takes the first master out of a set that is not empty.
func popFirst(set *uint64) int {
	i := bits.TrailingZeros64(*set)
	*set &= *set - 1
	return i
}

// nth is the n-th smallest of a list that has as many.
func nth(list []time.Duration, n int) time.Duration {
	slices.Sort(list)
	return list[n-1]
}
