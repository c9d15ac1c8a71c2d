package scripts_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/internal/scripts"
)

// BenchmarkServerCost measures what each script costs a real server, by the server's own account (INFO commandstats),
// with the guard on and the calls pipelined. The figures of doc.go come from it:
//
//	go test -run '^$' -bench ServerCost -benchtime 100000x ./internal/scripts
func BenchmarkServerCost(b *testing.B) {
	s, c, do, marker := admitted(b)
	const size, chunk = 16, 100
	const names = size * chunk // what is sent at once takes each name once; then each is taken again, as in most programs
	base := int64(0)           // of the ballots, set anew for each chunk: they must stay near the server's time
	h := func(i int) scripts.Hold {
		return hold(fmt.Sprint("orders:", i%names), fmt.Sprintf("0d8c8be0-7f9a-4a3b-9a51-3f6f2f3c8a11:%d", i/names))
	}
	ask := func(hold scripts.Hold, i int) *scripts.Call {
		call := acquire(hold, base+int64(i))
		call.Args[call.Stamp] = marker
		return call
	}
	extend := func(i, depth int) *scripts.Call {
		call := fleet.ExtendCall(h(i), ttl, depth)
		call.Args[call.Stamp] = marker
		return call
	}
	release := func(i int) *scripts.Call { return fleet.ReleaseCall(h(i), base+int64(i), false, scripts.Advance) }
	together := func(make func(i int) *scripts.Call) func(i int) *scripts.Call {
		return func(i int) *scripts.Call {
			var g scripts.Group
			for k := range size {
				g.Add(make(i*size + k))
			}
			return &scripts.Call{Args: g.AppendArgs(nil, marker)}
		}
	}
	acquires, releases := together(func(i int) *scripts.Call { return ask(h(i), i) }), together(release)
	other := hold("x", "other:1")
	for _, bench := range []struct {
		name string
		// before and after are sent around each measured call; nil is none
		before, call, after func(i int) *scripts.Call
		first               int64 // the reply, or the first number of it; -1 where it has none
	}{
		{"acquire of a free name", nil,
			func(i int) *scripts.Call { return ask(h(i), i) },
			func(i int) *scripts.Call { return fleet.ReleaseCall(h(i), base+int64(i), false, scripts.Reserve) }, 1},
		{"acquire of a held name",
			func(i int) *scripts.Call { return ask(hold(fmt.Sprint("orders:", i%names), "me:1"), i) },
			func(i int) *scripts.Call { return ask(hold(fmt.Sprint("orders:", i%names), other.ID), i) }, nil, 2},
		{"release",
			func(i int) *scripts.Call { return ask(h(i), i) },
			func(i int) *scripts.Call { return fleet.ReleaseCall(h(i), base+int64(i), false, scripts.Reserve) }, nil, 1},
		{"release of what is not there", nil,
			func(i int) *scripts.Call { return fleet.ReleaseCall(h(i), base+int64(i), false, scripts.Reserve) }, nil, 0},
		{"extend",
			func(i int) *scripts.Call { return ask(h(i%names), i) },
			func(i int) *scripts.Call { return extend(i%names, 1) }, nil, 1},
		{fmt.Sprint(size, " acquires together"), nil, acquires, releases, 1},
		{fmt.Sprint(size, " releases together"), acquires, releases, nil, 1},
		{"inspect", nil, func(i int) *scripts.Call { return fleet.InspectCall(h(i).Keys) }, nil, -1},
	} {
		b.Run(bench.name, func(b *testing.B) {
			for _, key := range do("KEYS", "*:lock").([]any) {
				do("DEL", key)
			}
			for _, key := range do("KEYS", "*:bar").([]any) {
				do("DEL", key)
			}
			var micros float64
			var calls int
			step := func(make func(i int) *scripts.Call, from, to int, first int64) (float64, int) {
				if make == nil {
					return 0, 0
				}
				do("CONFIG", "RESETSTAT")
				for i := from; i < to; i++ {
					if err := c.Send("EVALSHA", make(i).Args...); err != nil {
						b.Fatal(err)
					}
				}
				if err := c.Flush(); err != nil {
					b.Fatal(err)
				}
				for i := from; i < to; i++ {
					reply, err := c.Receive()
					if err != nil {
						b.Fatal(err)
					}
					if list, ok := reply.([]any); ok {
						reply = list[0]
					}
					if first >= 0 && reply != first {
						b.Fatalf("%s %v is answered by %v", bench.name, make(i).Args, reply)
					}
				}
				return evalshaCost(b, do)
			}
			for from := 0; from < b.N; from += chunk {
				base = time.Now().UnixMicro()
				to := min(from+chunk, b.N)
				step(bench.before, from, to, -1)
				us, n := step(bench.call, from, to, bench.first)
				micros, calls = micros+us, calls+n
				step(bench.after, from, to, -1)
			}
			b.ReportMetric(0, "ns/op") // what the client waits says nothing here
			b.ReportMetric(micros/float64(calls), "server-us/call")
		})
	}
	b.Logf("server %s", s.Version())
}

// BenchmarkHandOffCost measures what waiting costs a server: a waiter asks for a name that is held, joins a queue of two,
// and is given the name by a release. The figure is that of both calls.
func BenchmarkHandOffCost(b *testing.B) {
	s, c, do, marker := admitted(b)
	const locker = "0d8c8be0-7f9a-4a3b-9a51-3f6f2f3c8a11"
	ear := dialBench(b, s.Unix())
	if _, err := ear.Do("SUBSCRIBE", prefix.Inbox(locker)); err != nil {
		b.Fatal(err)
	}
	given := make(chan int)
	go func() {
		n := 0
		for ; n < b.N; n++ {
			if _, err := ear.Receive(); err != nil {
				break
			}
		}
		given <- n
	}()
	// The ballots stay near the server's time, however long it takes; a hold is released by the one that it asked with.
	const chunk = 100
	var asked [chunk + 3]int64
	base := time.Now().UnixMicro()
	h := func(i int) scripts.Hold { return hold("orders:1", fmt.Sprint(locker, ":", i)) }
	ballot := func(i int) int64 { return asked[i%len(asked)] }
	send := func(call *scripts.Call) {
		call.Args[call.Stamp] = marker
		if err := c.Send("EVALSHA", call.Args...); err != nil {
			b.Fatal(err)
		}
	}
	ask := func(i int) {
		asked[i%len(asked)] = base + int64(i)
		t := scripts.NewTicket(locker, uint64(i), ballot(i), 0)
		send(fleet.QueueCall(h(i), t, false, ttl, time.Minute, ballot(i), ballot(i)))
	}
	receive := func(calls int) {
		if err := c.Flush(); err != nil {
			b.Fatal(err)
		}
		for range calls {
			if reply, err := c.Receive(); err != nil {
				b.Fatal(reply, err)
			}
		}
	}
	for i := range 3 { // the holder, and two who wait
		ask(i)
	}
	receive(3)
	do("CONFIG", "RESETSTAT")
	for from := 0; from < b.N; from += chunk {
		base = time.Now().UnixMicro()
		to := min(from+chunk, b.N)
		for i := from; i < to; i++ {
			ask(i + 3)
			send(fleet.ReleaseCall(h(i), ballot(i), false, scripts.Advance))
		}
		receive(2 * (to - from))
	}
	micros, calls := evalshaCost(b, do)
	if n := <-given; n != b.N {
		b.Fatalf("%d of %d were given the name", n, b.N)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(2*micros/float64(calls), "server-us/hand-off")
}

// admitted starts a server that votes, with all scripts loaded.
func admitted(b *testing.B) (s *redisproc.Server, c redis.Conn, do func(string, ...any) any, marker string) {
	b.Helper()
	s = redistest.Test(b, 1, redisproc.Config{})[0]
	c = dialBench(b, s.Unix())
	do = func(command string, args ...any) any {
		reply, err := c.Do(command, args...)
		if err != nil {
			b.Fatal(err)
		}
		return reply
	}
	for _, s := range scripts.All {
		do("SCRIPT", "LOAD", s.Text)
	}
	identity, err := scripts.DecodeAdmission(do("EVALSHA", fleet.AdmitCall(scripts.AdmitRequest{Step: scripts.AdmitRead}).Args...))
	if err != nil {
		b.Fatal(err)
	}
	marker = scripts.Marker{Identity: identity.Identity, Guard: guard}.String()
	do("SET", prefix.Marker(), marker)
	return s, c, do, marker
}

func dialBench(b *testing.B, path string) redis.Conn {
	b.Helper()
	c, err := redis.Dial("unix", path)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Close() })
	return c
}

// evalshaCost returns the microseconds that the server spent in EVALSHA since its statistics were reset, and the calls.
func evalshaCost(b *testing.B, do func(string, ...any) any) (micros float64, calls int) {
	text, err := redis.String(do("INFO", "commandstats"), nil)
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.SplitSeq(text, "\r\n") {
		if rest, ok := strings.CutPrefix(line, "cmdstat_evalsha:"); ok {
			if _, err := fmt.Sscanf(rest, "calls=%d,usec=%f,", &calls, &micros); err != nil {
				b.Fatal(err)
			}
		}
	}
	return micros, calls
}
