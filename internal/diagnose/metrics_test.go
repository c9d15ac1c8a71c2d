package diagnose_test

import (
	"slices"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/diagnose"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// A master that is in several shards is one server, and has one record in each shard.
func TestServers(t *testing.T) {
	all := []redlockinfo.Master{
		{Addr: "c{1}", Shard: 1, State: redlockinfo.StateVoting},
		{Addr: "a", Shard: 1, State: redlockinfo.StateVoting, Pending: 1, List: "x"},
		{Addr: "b", Shard: 1, State: redlockinfo.StateDown},
		{Addr: "c{2}", Shard: 2, State: redlockinfo.StateVoting},
		{Addr: "a", Shard: 2, State: redlockinfo.StateQuarantine, Left: time.Second, Pending: 2, List: "y"},
		{Addr: "b", Shard: 2, State: redlockinfo.StateVoting, Left: time.Minute},
	}
	a, b := all[4], all[2]
	a.Pending, b.Left = 3, time.Minute
	if got, want := diagnose.Servers(all), []redlockinfo.Master{all[0], a, b, all[3]}; !slices.Equal(got, want) {
		t.Errorf("the servers are %v, want %v", got, want)
	}
	if got, want := diagnose.Records(all), all[:5]; !slices.Equal(got, want) {
		t.Errorf("the records are %v, want %v", got, want)
	}
}
