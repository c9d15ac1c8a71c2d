package transport

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
)

// A counter is a Listener that ends a benchmark.
type counter struct {
	left atomic.Int64
	done chan struct{}
}

func (c *counter) Resubscribed(int) {}

func (c *counter) Message(int, string, string) {
	if c.left.Add(-1) == 0 {
		close(c.done)
	}
}

// BenchmarkMessage measures one message from the socket to the listener, with 1000 subscribed channels. The server only
// writes, over a real connection, so the time is that of the client and of the system calls.
func BenchmarkMessage(b *testing.B) {
	const channels = 1000
	var flood strings.Builder
	for i := range channels {
		fmt.Fprintf(&flood, "*3\r\n$7\r\nmessage\r\n%s%s", bulk(fmt.Sprint("redlock:{order:", i, "}:free")),
			bulk("6ba7b810-9dad-11d1:4711"))
	}
	srv := newFake("a1")
	begin := make(chan struct{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go serveFlood(c, srv, begin, flood.String())
		}
	}()
	p := open(b, []string{"redis://m1"}, WithTimeout(patience), WithHeartbeat(time.Hour), WithDialer(
		func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", l.Addr().String())
		}))
	c := &counter{done: make(chan struct{})}
	c.left.Store(int64(b.N))
	var subs []*Subscription
	for i := range channels {
		subs = append(subs, p.Subscribe(fmt.Sprint("redlock:{order:", i, "}:free"), c))
	}
	for _, s := range subs {
		eventually(b, "subscription is active", func() bool { return s.ConfirmedCount() == 1 })
	}
	b.ReportAllocs()
	b.ResetTimer()
	close(begin)
	<-c.done
	b.StopTimer()
	_ = p.Close()
}

func serveFlood(c net.Conn, srv *fake, begin chan struct{}, flood string) {
	defer c.Close()
	in := bufio.NewReader(c)
	left := 1000
	for left > 0 {
		cmd, err := readCommand(in)
		if err != nil {
			return
		}
		reply := ""
		if cmd[0] == "SUBSCRIBE" {
			reply = polite(cmd)
			left -= len(cmd) - 1
		} else {
			reply = srv.reply(cmd)
		}
		if _, err := c.Write([]byte(reply)); err != nil {
			return
		}
	}
	<-begin
	for {
		if _, err := c.Write([]byte(flood)); err != nil {
			return
		}
	}
}

// BenchmarkSubscribe measures the time and memory of 1000 concurrent subscriptions, each to its own channel on five
// masters, from Subscribe to the Close once all are active.
func BenchmarkSubscribe(b *testing.B) {
	const channels = 1000
	servers := make([]*server, 5)
	for i := range servers {
		servers[i] = startServer(b)
	}
	p := open(b, urls(servers))
	waitUp(b, p)
	names := make([]string, channels)
	for i := range names {
		names[i] = fmt.Sprint("redlock:{order:", i, "}:free")
	}
	subs := make([]*Subscription, channels)
	e := &tally{}
	var before, after runtime.MemStats
	most := 0.0
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		clear(subs)
		runtime.GC()
		runtime.ReadMemStats(&before)
		b.StartTimer()
		for i := range subs {
			subs[i] = p.Subscribe(names[i], e)
		}
		for _, s := range subs {
			eventually(b, "subscription is active", func() bool { return s.ConfirmedCount() == 5 })
		}
		b.StopTimer()
		runtime.GC()
		runtime.ReadMemStats(&after)
		most = max(most, float64(after.HeapAlloc)-float64(before.HeapAlloc)) // the first run includes the tables
		b.StartTimer()
		for _, s := range subs {
			s.Close()
		}
		eventually(b, "all are gone", func() bool {
			list, _ := redis.Strings(servers[0].do("PUBSUB", "CHANNELS"), nil)
			return len(list) == 0
		})
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/channels, "ns/channel")
	b.ReportMetric(most/channels, "B/channel")
}
