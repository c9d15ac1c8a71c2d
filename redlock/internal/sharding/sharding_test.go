package sharding

import (
	"fmt"
	"math"
	"sync"
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

// members returns n members, and how often each of them was notified.
func members(n int) (list []*Member, again []int) {
	again = make([]int, n)
	for i := range n {
		list = append(list, &Member{Shard: scripts.Shard{Number: i + 1, Of: n}, AgainFunc: func() { again[i]++ }})
	}
	return list, again
}

func agreed(m *Member) bool {
	agreed, _ := m.Agreed()
	return agreed
}

// If a master has a record of another shard, all members are notified, and notified once more when the record is
// corrected. When the shards have begun to vote, such a record is ignored.
func TestStrangerIsReported(t *testing.T) {
	all, again := members(2)
	if err := Join(all); err != nil {
		t.Fatal(err)
	}
	all[0].Record(false, false, true)
	if agreed, stranger := all[1].Agreed(); agreed || !stranger || again[1] != 2 {
		t.Errorf("with a stranger: agreed %v, stranger %v; the members were notified %v times", agreed, stranger, again)
	}
	all[0].Record(false, false, false)
	if _, stranger := all[1].Agreed(); stranger || again[1] != 3 {
		t.Errorf("after the correction: stranger %v; the members were notified %v times", stranger, again)
	}
	all[0].Record(false, false, true)
	all[1].Record(false, true, false)
	if agreed, stranger := all[0].Agreed(); !agreed || stranger {
		t.Errorf("after a shard has begun: agreed %v, stranger %v", agreed, stranger)
	}
}

// After Join, the shards agree as soon as all masters of each shard have named their shard, or as soon as one shard
// has begun to vote.
func TestShardsAgree(t *testing.T) {
	all, again := members(3)
	for _, m := range all {
		m.Record(true, true, false)
		if agreed(m) {
			t.Error("the members agreed before Join")
		}
	}
	if err := Join(all); err != nil || !agreed(all[2]) || again[0] == 0 {
		t.Errorf("Join returned %v; agreed %v; the members were notified %v times", err, agreed(all[2]), again)
	}

	all, again = members(3)
	if err := Join(all); err != nil {
		t.Fatal(err)
	}
	all[0].Record(true, false, false)
	all[2].Record(true, false, false)
	all[2].Record(false, false, false) // a shard that was named stays named
	if agreed(all[0]) {
		t.Error("the members agreed although one shard was not named")
	}
	before := again[2]
	all[1].Record(true, false, false)
	if !agreed(all[0]) || !agreed(all[1]) || again[2] == before {
		t.Errorf("all shards are named, but not agreed; the members were notified %v times", again)
	}

	all, again = members(3)
	if err := Join(all); err != nil {
		t.Fatal(err)
	}
	before = again[2]
	all[1].Record(false, true, false)
	if !agreed(all[0]) || again[2] == before {
		t.Errorf("one shard has begun, but not agreed; the members were notified %v times", again)
	}
}

func TestMemberJoinsOnce(t *testing.T) {
	all, _ := members(2)
	others, _ := members(2)
	if err := Join([]*Member{others[0], all[1]}); err != nil {
		t.Fatal(err)
	}
	if err := Join(all); err == nil {
		t.Error("a member joined twice")
	}
	if err := Join([]*Member{all[0], others[1]}); err != nil { // the failed Join has changed nothing
		t.Error(err)
	}
}

// If all members record at the same time, all of them are notified after the last record.
func TestMembersAreNotifiedInAnyOrder(t *testing.T) {
	for range 200 {
		var notified sync.WaitGroup
		all := make([]*Member, 4)
		for i := range all {
			notified.Add(1)
			all[i] = &Member{Shard: scripts.Shard{Number: i + 1, Of: 4}, AgainFunc: sync.OnceFunc(notified.Done)}
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := Join(all); err != nil {
				t.Error(err)
			}
		})
		for _, m := range all {
			wg.Go(func() { m.Record(true, false, false) })
		}
		wg.Wait()
		notified.Wait() // hangs if a member was not notified
	}
}

// BenchmarkOverheadOfAPair measures what shards add to a pair of Lock and Unlock: finding the shard of the name, and
// the check of the name by the Locker of the shard.
func BenchmarkOverheadOfAPair(b *testing.B) {
	for _, n := range []int{2, 10, 100, Most} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				Pick("orders:4711:invoice", n)
				Pick("orders:4711:invoice", n)
			}
		})
	}
}
