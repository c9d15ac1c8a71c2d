package transport

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/internal/transport/fault"
)

// A countingConn counts the bytes of a connection in both directions.
type countingConn struct {
	net.Conn
	bytes *atomic.Int64
}

func (c countingConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.bytes.Add(int64(n))
	return n, err
}

func (c countingConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.bytes.Add(int64(n))
	return n, err
}

// counting returns an option that counts in bytes the traffic of all connections to the address server.
func counting(bytes *atomic.Int64, server string) Option {
	return WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err != nil || addr != server {
			return c, err
		}
		return countingConn{c, bytes}, nil
	})
}

// An idle connection causes less than 1 kB of traffic in 10 s.
func TestIdleConnectionIsCheap(t *testing.T) {
	s := newServer(t)
	cheap(t, s, s.URL())
}

// An idle connection to a master behind sentinels, with two replicas, causes less than 1 kB of traffic in 10 s.
func TestIdleConnectionBehindSentinelsIsCheap(t *testing.T) {
	s := newServer(t, "--min-replicas-to-write", "2")
	for range 2 {
		newServer(t, "--replicaof", "127.0.0.1", s.Port())
	}
	sentinel := redistest.Sentinel(t, redisproc.Config{}, s.Addr(), 1, "requirepass secret").Addr()
	cheap(t, s, "redis+sentinel://"+sentinel+"/master", WithSentinelCredentials("", "secret"))
}

// cheap fails the test if an idle client of s causes 1 kB or more of traffic in 10 s.
func cheap(t *testing.T, s *redistest.Server, url string, opts ...Option) {
	t.Helper()
	var bytes atomic.Int64
	p := open(t, []string{url}, append(opts, counting(&bytes, s.Addr()), WithHeartbeat(20*time.Millisecond))...)
	cheapIn(t, p, &bytes)
}

// cheapIn counts the bytes of 40 heartbeats of p's first master, and fails the test if they amount to 1 kB or more in
// 10 s at the default interval.
func cheapIn(t *testing.T, p *Transport, bytes *atomic.Int64) {
	t.Helper()
	const beats = 40
	at := make(chan int64, 1+beats)
	stop := p.Watch(func(event Event) {
		if event.Err != nil { // the replicas have not connected yet
			return
		}
		select {
		case at <- bytes.Load():
		default:
		}
	})
	redistest.Eventually(t, "heartbeats", func() bool { return len(at) == cap(at) })
	stop()
	first, last := <-at, int64(0)
	for range beats {
		last = <-at
	}
	in10s := float64(last-first) / beats * (10 * time.Second).Seconds() / DefaultHeartbeat.Seconds()
	t.Logf("there are %d bytes for each heartbeat, %.0f in 10 s", (last-first)/beats, in10s)
	if in10s >= 1000 {
		t.Errorf("an idle client causes %.0f bytes in 10 s", in10s)
	}
}

// A client of a cluster has a connection for each bucket. While all of them are idle, the connections to each node
// together cause less than 1 kB of traffic in 10 s.
func TestIdleClientOfAClusterIsCheap(t *testing.T) {
	addrs, _ := redistest.Cluster(t, redisproc.Config{}, false)
	bytes := make(map[string]*atomic.Int64)
	for _, addr := range addrs {
		bytes[addr] = new(atomic.Int64)
	}
	dial := WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return countingConn{c, bytes[addr]}, nil
	})
	of := openCluster(t, addrs, 24, dial, WithHeartbeat(20*time.Millisecond))
	redistest.Eventually(t, "one connection to each node sends the heartbeats", func() bool {
		return senders(of) == len(addrs)
	})
	for _, addr := range addrs {
		i := slices.IndexFunc(of, func(p *Transport) bool { return p.master(0).state.Load().sess.addr == addr })
		cheapIn(t, of[i], bytes[addr])
	}
}

// openCluster opens all buckets of a cluster, with timeouts that are long enough for a busy machine.
func openCluster(t *testing.T, addrs []string, buckets int, opts ...Option) []*Transport {
	t.Helper()
	opts = append(opts, WithTimeout(longestTimeout), WithDialTimeout(time.Minute))
	return openBuckets(t, strings.Join(addrs, ","), buckets, opts...)
}

// openBuckets opens all buckets of the cluster at these addresses.
func openBuckets(t *testing.T, addrs string, buckets int, opts ...Option) []*Transport {
	t.Helper()
	url := fmt.Sprintf("redis+cluster://%s?buckets=%d&allow=two-holders", addrs, buckets)
	of := must.Get(OpenBuckets([]string{url}, opts...))(t)
	t.Cleanup(func() {
		for _, p := range of {
			_ = p.Close()
		}
	})
	return of
}

// senders returns the number of sessions that send heartbeats, or 0 if there is a session for which no heartbeat is
// sent yet.
func senders(of []*Transport) (n int) {
	for _, p := range of {
		b, s := p.master(0).beats, p.master(0).state.Load().sess
		if s == nil {
			return 0
		}
		b.mu.Lock()
		beaten, byOther := s.digest != "", s.byOther
		b.mu.Unlock()
		if !beaten {
			return 0
		}
		if !byOther {
			n++
		}
	}
	return n
}

// The script of a heartbeat reads the same values as INFO. If the user may not run the script, heartbeats use INFO.
func TestHeartbeatEqualsInfo(t *testing.T) {
	for _, right := range []string{"+evalsha", "-evalsha"} {
		t.Run(right, func(t *testing.T) {
			s := newServer(t, "--maxmemory", "100mb")
			p := open(t, []string{s.URL()}, WithHeartbeat(20*time.Millisecond), WithClock(clock.Runtime()))
			waitUp(t, p)
			s.Do("ACL", "SETUSER", "default", right)
			first, again := state(p, 0).Info, beatAgain(t, p).Info
			if off := time.Since(time.UnixMicro(first.Time)); off.Abs() > time.Minute || len(first.RunID) != 40 ||
				first.ReplID2 != noID || first.Version == "" || first.BacklogTTL != time.Hour {
				t.Errorf("the server is %v behind, or its values are not plausible: %+v", off, first)
			}
			if again.Time <= first.Time || again.RTT <= 0 || first.MaxMemory != 100<<20 {
				t.Errorf("the first heartbeat read %+v, and the next %+v", first, again)
			}
			if again.Refused != (right == "-evalsha") {
				t.Errorf("with %s the script of the heartbeat was refused: %v", right, again.Refused)
			}
			first.Time, first.Read, first.RTT, first.Refused = again.Time, again.Read, again.RTT, again.Refused
			if first != again {
				t.Errorf("the values differ: first %+v\nthen  %+v", first, again)
			}
			s.Do("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
			_ = waitDown(t, p, 0, fault.ErrRefused)
		})
	}
}
