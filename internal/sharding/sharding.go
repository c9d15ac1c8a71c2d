package sharding

import (
	"fmt"

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

// Pick returns the number, from 1 to n, of the shard to which name belongs. The algorithm must never change. Otherwise
// clients of two versions would look for the same name in different shards.
func Pick(name string, n int) (shard int) {
	hash := uint64(14695981039346656037) // FNV-1a
	for i := range len(name) {
		hash = (hash ^ uint64(name[i])) * 1099511628211
	}
	hash = mix(hash)
	largest := uint64(0)
	for i := 1; i <= n; i++ {
		if weight := mix(hash + uint64(i)*0x9e3779b97f4a7c15); weight >= largest {
			shard, largest = i, weight
		}
	}
	return shard
}

// mix applies the finalizer of SplitMix64, in which each bit of x affects about half of the bits of the result.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
