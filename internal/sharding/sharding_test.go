package sharding

import (
	"fmt"
	"math"
	"testing"

	"github.com/redlock-go/redlock/internal/scripts"
)

// kinds contains functions that return typical names of clients.
var kinds = map[string]func(i int) string{
	"numbers":    func(i int) string { return fmt.Sprint(i) },
	"orders":     func(i int) string { return fmt.Sprint("orders:", i) },
	"at the end": func(i int) string { return fmt.Sprintf("customer/%d/invoices", i) },
}

// Each shard gets its share of 100 000 names, within 5 %.
func TestNamesAreDistributedEvenly(t *testing.T) {
	const names = 100_000
	for kind, name := range kinds {
		for n := 1; n <= 10; n++ {
			count := make([]int, n)
			for i := range names {
				count[Pick(name(i), n)-1]++
			}
			for i, c := range count {
				if off := float64(c)*float64(n)/names - 1; math.Abs(off) > 0.05 {
					t.Errorf("%s: shard %d of %d has %+.1f %% of its share", kind, i+1, n, 100*off)
				}
			}
		}
	}
}

// An added shard takes its share of the names from the other shards, and no other name moves.
func TestAddedShardTakesItsShare(t *testing.T) {
	for n := 1; n < 20; n++ {
		for i := range 5000 {
			name := fmt.Sprint("job-", i)
			if before, after := Pick(name, n), Pick(name, n+1); after != before && after != n+1 {
				t.Fatalf("%q moves from shard %d of %d to %d of %d", name, before, n, after, n+1)
			}
		}
	}
}

// Clients of two versions must find a name in the same shard, so the shards of these names must never change.
func TestNamesStayWhereTheyAre(t *testing.T) {
	for name, want := range map[string][]int{
		"":               {1, 1, 9, 15},
		"a":              {2, 2, 8, 109},
		"b":              {2, 2, 9, 157},
		"orders:42":      {2, 2, 4, 154},
		"nightly-report": {2, 3, 9, 291},
		"Straße/12":      {1, 3, 4, 162},
	} {
		got := []int{Pick(name, 2), Pick(name, 3), Pick(name, 10), Pick(name, Most)}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%q: Pick of 2, 3, 10 and %d shards returned %v, want %v", name, Most, got, want)
		}
	}
}

func TestShardsAreChecked(t *testing.T) {
	for g, ok := range map[scripts.Shard]bool{
		{Number: 1, Of: 1}: true, {Number: Most, Of: Most}: true, {Number: 2, Of: 3}: true,
		{}: false, {Number: 0, Of: 3}: false, {Number: 4, Of: 3}: false, {Number: 1, Of: Most + 1}: false, {Number: 1}: false,
		{Number: -1, Of: 3}: false,
	} {
		if err := Check(g); (err == nil) != ok {
			t.Errorf("Check of %v returned %v", g, err)
		}
	}
}

func BenchmarkPick(b *testing.B) {
	for _, n := range []int{2, 10, 300} {
		b.Run(fmt.Sprint("shards=", n), func(b *testing.B) {
			for b.Loop() {
				Pick("orders:42", n)
			}
		})
	}
}
