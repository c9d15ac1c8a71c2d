package scripts_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/internal/scripts"
)

// BenchmarkServerCost measures the server time of each script, as the server reports it (INFO commandstats), with the
// guard on and 64 calls pipelined:
//
//	go test -run '^$' -bench ServerCost -benchtime 100000x ./internal/scripts
//
// Microseconds of the master's single thread per call, Redis 7.0.15 on a shared virtual machine with two cores. They
// vary by a third with the load of the machine, so compare only their ratios:
//
//	acquire of a free name                 10
//	release                                 4
//	acquire of a name held by another      11
//	the same with a ticket                 17
//	release of a missing lock               7
//	extend                                  4.2
//	inspect                                 9
//
// An acquire of a free name runs eight commands: TIME, GET of the record, GET of the fence, EXISTS of the queue, PTTL,
// HSET, PEXPIRE and SET. A script of these alone takes 8.5, and one of the release's three 3.2.
func BenchmarkServerCost(b *testing.B) {
	s := redistest.Test(b, 1, redisproc.Config{})[0]
	c := clientOf(b, s)
	record := c.admittedRecord()
	const chunk = 64 // number of names, each of which is acquired again and again, as in most programs
	base := int64(0) // base of the ballots, renewed for each chunk because they must stay near the server's time
	ks := make([]scripts.Keys, chunk)
	for i := range ks {
		ks[i] = prefix.Keys(fmt.Sprint("orders:", i))
	}
	ask := func(owner string) func(i int) *scripts.Call {
		return func(i int) *scripts.Call {
			return enc.Acquire(&ks[i%chunk], grant(owner, uint64(i)), ttl, base+int64(i), base+int64(i)+31, nil)
		}
	}
	wait := func(i int) *scripts.Call {
		ballot := base + int64(i)
		t := scripts.NewTicket(scripts.Plain, other, uint64(i%3), "label", int64(i%3), 0)
		return enc.Acquire(&ks[i%chunk], grant(other, uint64(i)), ttl, ballot, ballot, t)
	}
	release := func(i int) *scripts.Call {
		return enc.Release(&ks[i%chunk], scripts.Ending{Grants: []string{grant(me, uint64(i))}})
	}
	absent := func(i int) *scripts.Call {
		return enc.Release(&ks[i%chunk], scripts.Ending{Grants: []string{grant(other, uint64(i))}, Ballot: base + int64(i)})
	}
	extend := func(i int) *scripts.Call { return enc.Extend(&ks[i%chunk], grant(me, uint64(i)), ttl, 1, "") }
	inspect := func(i int) *scripts.Call { return enc.Inspect(&ks[i%chunk]) }
	for _, bench := range []struct {
		name                string
		before, call, after func(i int) *scripts.Call // before and after surround each measured call
	}{
		{"acquire of a free name", nil, ask(me), release},
		{"acquire of a held name", ask(me), ask(other), release},
		{"acquire of a held name with a ticket", ask(me), wait, release},
		{"release", ask(me), release, nil},
		{"release of what is not there", nil, absent, nil},
		{"extend", ask(me), extend, release},
		{"inspect", ask(me), inspect, release},
	} {
		b.Run(bench.name, func(b *testing.B) {
			for i := range ks {
				name := fmt.Sprint("orders:", i)
				c.must("DEL", prefix.Lock(name), prefix.Fence(name), prefix.Queue(name), prefix.Waiters(name))
			}
			var each []float64 // time of one call per chunk; the median ignores other load on the machine
			for from := 0; from < b.N; from += chunk {
				base = c.now()
				to := min(from+chunk, b.N)
				c.cost(bench.before, from, to, record)
				each = append(each, c.cost(bench.call, from, to, record)/float64(to-from))
				c.cost(bench.after, from, to, record)
			}
			b.ReportMetric(0, "ns/op") // the waiting time of the client is meaningless here
			slices.Sort(each)
			b.ReportMetric(each[len(each)/2], "server-us/call")
		})
	}
	b.Logf("server %s", s.Version())
}

// cost sends the calls [from, to) at once and returns the time that they took on the server, in us.
func (c *client) cost(call func(i int) *scripts.Call, from, to int, record string) float64 {
	c.t.Helper()
	if call == nil {
		return 0
	}
	c.must("CONFIG", "RESETSTAT")
	for i := from; i < to; i++ {
		one := call(i)
		command, args := one.Args(record, false)
		if err := c.Send(command, args...); err != nil {
			c.t.Fatal(err)
		}
	}
	if err := c.Flush(); err != nil {
		c.t.Fatal(err)
	}
	for range to - from {
		if _, err := c.Receive(); err != nil {
			c.t.Fatal(err)
		}
	}
	return c.spent("evalsha")
}

// admittedRecord admits the server, and returns the stamp of its record.
func (c *client) admittedRecord() string {
	c.t.Helper()
	c.admit(c.request(scripts.AdmitStart))
	return scripts.StampOf(c.admit(c.request(scripts.AdmitNow)).Record)
}
