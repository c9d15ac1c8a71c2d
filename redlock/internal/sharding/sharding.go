package sharding

import (
	"fmt"
	"sync/atomic"

	"github.com/redlock-go/redlock/internal/scripts"
)

// Most is the largest number of shards. Finding the shard of a name takes three nanoseconds per shard.
const Most = 300

// Check returns an error if g is not a valid shard.
func Check(g scripts.Shard) error {
	if g.Of < 1 || g.Of > Most || g.Number < 1 || g.Number > g.Of {
		return fmt.Errorf("shard %d of %d: there are 1 to %d shards, and the first is shard 1", g.Number, g.Of, Most)
	}
	return nil
}

// Pick returns the number, from 1, of the shard of n to which name belongs. The result must never change, because
// clients of two versions would otherwise look for one name in two shards.
func Pick(name string, n int) (shard int) {
	hash := uint64(14695981039346656037) // FNV-1a
	for i := range len(name) {
		hash = (hash ^ uint64(name[i])) * 1099511628211
	}
	hash = mix(hash)
	most := uint64(0)
	for i := 1; i <= n; i++ {
		if number := mix(hash + uint64(i)*0x9e3779b97f4a7c15); number >= most {
			shard, most = i, number
		}
	}
	return shard
}

// mix applies the finalizer of SplitMix64: each bit of x changes half of the bits.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// A Member connects the Locker of one shard with the Lockers of the other shards. All methods are safe for concurrent
// use.
type Member struct {
	Shard     scripts.Shard
	AgainFunc func() // called when Agreed may have changed; it must not block
	named     atomic.Bool
	begun     atomic.Bool
	other     atomic.Bool
	notified  atomic.Bool // all members were notified after Agreed became true
	all       atomic.Pointer[[]*Member]
}

// Join connects the members of all shards. It fails if one of them has been joined before.
func Join(all []*Member) error {
	for i, m := range all {
		if !m.all.CompareAndSwap(nil, &all) {
			for _, before := range all[:i] {
				before.all.Store(nil)
			}
			return fmt.Errorf("the Locker of shard %d of %d has been joined before", m.Shard.Number, m.Shard.Of)
		}
	}
	all[0].notify()
	return nil
}

// Record records the state of the shard: named is true if the records of all its masters name the shard, begun if one
// of its masters was admitted as a master of the shard, and other if the record of a master names another shard. Only
// other can become false again.
func (m *Member) Record(named, begun, other bool) {
	news := named && !m.named.Swap(true)
	news = begun && !m.begun.Swap(true) || news
	if m.other.Swap(other) != other || news {
		m.notify()
	}
}

// notify calls AgainFunc of all members, unless they were notified after Agreed became true.
func (m *Member) notify() {
	all := m.all.Load()
	if all == nil || m.notified.Load() {
		return
	}
	agreed, _ := m.Agreed()
	for _, one := range *all {
		if agreed {
			one.notified.Store(true)
		}
		one.AgainFunc()
	}
}

// Agreed reports whether a shard has begun, or the masters of all shards name their own shard. If not, stranger reports
// whether the records of a master name another shard. Before Join both results are false.
func (m *Member) Agreed() (agreed, stranger bool) {
	all := m.all.Load()
	if m.notified.Load() || all == nil {
		return m.notified.Load(), false
	}
	named := true
	for _, one := range *all {
		if one.begun.Load() {
			return true, false
		}
		named = named && one.named.Load()
		stranger = stranger || one.other.Load()
	}
	return named, stranger && !named
}
