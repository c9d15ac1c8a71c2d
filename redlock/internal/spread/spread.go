// Package spread says to which of several groups of masters a name belongs, and joins the Lockers of all groups.
//
// It is rendezvous hashing: each group has a number for each name, and the name belongs to the group with the largest.
// Nothing is kept, every program computes the same, and a fleet that gets one more group moves to it only the names
// that now belong there.
package spread

import (
	"fmt"
	"sync/atomic"

	"github.com/redlock-go/redlock/internal/scripts"
)

// Most is the largest number of groups. To find that of a name takes three nanoseconds a group.
const Most = 300

// Check says what is wrong with a group.
func Check(g scripts.Group) error {
	if g.Of < 1 || g.Of > Most || g.Number < 1 || g.Number > g.Of {
		return fmt.Errorf("group %d of %d: there are 1 to %d groups, and the first is group 1", g.Number, g.Of, Most)
	}
	return nil
}

// Pick is the number of the group, from 1, of n to which name belongs. It must never change: programs of two versions
// would find one name in two groups.
func Pick(name string, n int) (group int) {
	hash := uint64(14695981039346656037) // FNV-1a
	for i := range len(name) {
		hash = (hash ^ uint64(name[i])) * 1099511628211
	}
	hash = mix(hash)
	most := uint64(0)
	for i := 1; i <= n; i++ {
		if number := mix(hash + uint64(i)*0x9e3779b97f4a7c15); number >= most {
			group, most = i, number
		}
	}
	return group
}

// mix is the finalizer of SplitMix64: each bit of x changes half of the bits.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// A Member is what the Locker of one group knows of the others. All methods are safe for concurrent use.
type Member struct {
	Group     scripts.Group
	AgainFunc func() // called when Agreed may have become true; it must not block
	named     atomic.Bool
	begun     atomic.Bool
	agreed    atomic.Bool // what Agreed has told
	all       atomic.Pointer[[]*Member]
}

// Join has the members of all groups know each other. It fails where one of them has been joined before.
func Join(all []*Member) error {
	for i, m := range all {
		if !m.all.CompareAndSwap(nil, &all) {
			for _, before := range all[:i] {
				before.all.Store(nil)
			}
			return fmt.Errorf("the Locker of group %d of %d was spread before", m.Group.Number, m.Group.Of)
		}
	}
	all[0].tell()
	return nil
}

// See takes note that all masters of the group have records that name it, and that one of them has been admitted as one
// of it. What was seen once stays so.
func (m *Member) See(named, begun bool) {
	if named && !m.named.Swap(true) || begun && !m.begun.Swap(true) {
		m.tell()
	}
}

// tell has all members look again, once they agree.
func (m *Member) tell() {
	if all := m.all.Load(); all != nil && m.Agreed() {
		for _, other := range *all {
			other.AgainFunc()
		}
	}
}

// Agreed reports whether one of the groups was seen to have begun, or all masters of all groups to name theirs. Before
// Join it knows of its own group alone, and that does not do.
func (m *Member) Agreed() bool {
	all := m.all.Load()
	if m.agreed.Load() || all == nil {
		return m.agreed.Load()
	}
	named := true
	for _, other := range *all {
		if other.begun.Load() {
			m.agreed.Store(true)
			return true
		}
		named = named && other.named.Load()
	}
	m.agreed.Store(named)
	return named
}
