package transport

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/internal/transport/fault"
)

// field returns one field of the server's INFO.
func field(s *redistest.Server, name string) string { return InfoFields(s.Text("INFO"))[name] }

// beatAgain waits for two heartbeats, the second of which was sent after the call of beatAgain, and returns the last
// event.
func beatAgain(t *testing.T, p *Transport) (last Event) {
	t.Helper()
	var mu sync.Mutex
	n := 0
	defer p.Watch(func(event Event) {
		mu.Lock()
		defer mu.Unlock()
		last, n = event, n+1
	})()
	redistest.Eventually(t, "heartbeats", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return n > 2 // the first event only reports the present state
	})
	return last
}

// attach requests a full copy of the data, as a backup does (redis-cli --rdb). It returns when the first data has
// arrived.
func attach(t *testing.T, s *redistest.Server) net.Conn {
	t.Helper()
	c := must.Get(net.Dial("unix", s.Unix()))(t)
	must.Get(c.Write([]byte("SYNC\r\n")))(t)
	must.Get(c.Read(make([]byte, 64)))(t)
	return c
}

func follow(t *testing.T, s, master *redistest.Server) {
	t.Helper()
	s.Do("REPLICAOF", "127.0.0.1", master.Port())
	redistest.Eventually(t, "replica link is up", func() bool { return field(s, "master_link_status") == "up" })
}

// H69: a backup, a snapshot, a first replica, and the later release of the backlog change master_replid, but do not
// end the session.
func TestIdentityWithBackupsAndReplicas(t *testing.T) {
	srv := startServer(t, "--repl-backlog-ttl", "1", "--repl-diskless-sync-delay", "0")
	p := open(t, []string{srv.URL()}, WithHeartbeat(20*time.Millisecond))
	waitUp(t, p)
	first := state(p, 0)
	if info := first.Info; info.BacklogTTL != time.Second {
		t.Errorf("the INFO of the master is %+v", info)
	}
	ids := map[string]bool{}
	same := func(after string) {
		t.Helper()
		ids[field(srv, "master_replid")] = true
		event := beatAgain(t, p)
		if event.Session != first.Session || event.Info.Identity() != first.Info.Identity() ||
			event.Info.BacklogTTL != time.Second {
			t.Errorf("the event after %s is %+v", after, event)
		}
	}
	freed := func() {
		t.Helper()
		redistest.Eventually(t, "backlog is freed", func() bool { return field(srv, "repl_backlog_active") == "0" })
	}
	same("the start")
	backup := attach(t, srv)
	same("a backup has begun")
	_ = backup.Close()
	freed()
	same("a backup has ended")
	srv.Do("BGSAVE")
	redistest.Eventually(t, "snapshot is done", func() bool { return field(srv, "rdb_bgsave_in_progress") == "0" })
	same("a snapshot")
	replica := startServer(t)
	follow(t, replica, srv)
	same("a first replica has come")
	replica.Do("REPLICAOF", "NO", "ONE")
	freed()
	same("it has gone")
	if len(ids) < 4 {
		t.Errorf("master_replid had %d different values, want at least 4", len(ids))
	}
}

// H52: a server that was refused because of its eviction policy may have lost locks, if it has evicted keys. That is so
// for a client that was connected before, and for one that began only then.
func TestEvictedKeysCountAsMove(t *testing.T) {
	srv := startServer(t)
	before := open(t, []string{srv.URL()}, WithHeartbeat(20*time.Millisecond))
	waitUp(t, before)
	for _, c := range []struct {
		limit          string
		moved, evicted bool // since the last time, and since the server started
	}{{"100mb", false, false}, {"1", true, true}, {"100mb", false, true}} {
		last := state(before, 0).Info.Moves
		srv.Do("SET", "lock", "1", "PX", "60000")
		srv.Do("CONFIG", "SET", "maxmemory-policy", "volatile-lru")
		srv.Do("CONFIG", "SET", "maxmemory", c.limit)
		_ = waitDown(t, before, 0, fault.ErrRefused)
		later := open(t, []string{srv.URL()})
		_ = waitDown(t, later, 0, fault.ErrRefused)
		srv.Do("CONFIG", "SET", "maxmemory", "0")
		waitUp(t, before)
		waitUp(t, later)
		moves, ofLater := state(before, 0).Info.Moves, state(later, 0).Info.Moves
		if (moves > last) != c.moved || before.Quarantined(0, moves, "p") != (moves == 0) || (ofLater > 0) != c.evicted {
			t.Errorf("with maxmemory %s, Moves was %d, and is %d; of a later client it is %d", c.limit, last, moves, ofLater)
		}
		srv.Do("CONFIG", "SET", "maxmemory-policy", "noeviction")
	}
	after := open(t, []string{srv.URL()})
	waitUp(t, after)
	if moves := state(after, 0).Info.Moves; moves > 0 {
		t.Errorf("Moves is %d for a client that has never seen the policy", moves)
	}
}

// H57: a master that was a replica in the meantime has another identity, regardless of how much it copied from its
// master.
func TestIdentityOfPromotedReplica(t *testing.T) {
	for name, while := range map[string]func(t *testing.T, srv, other *redistest.Server){
		"full sync": follow,
		"partial sync": func(t *testing.T, srv, other *redistest.Server) {
			follow(t, other, srv)
			other.Do("REPLICAOF", "NO", "ONE")
			follow(t, srv, other)
			if n := field(other, "sync_partial_ok"); n != "1" {
				t.Errorf("there were %s partial syncs, want 1", n)
			}
		},
		"before the sync": func(t *testing.T, srv, other *redistest.Server) {
			other.Do("CONFIG", "SET", "repl-diskless-sync-delay", "3600")
			srv.Do("REPLICAOF", "127.0.0.1", other.Port())
			redistest.Eventually(t, "other master has a replica", func() bool { return field(other, "connected_slaves") == "1" })
		},
		"a sync that is cut in the middle": func(t *testing.T, srv, other *redistest.Server) {
			other.Do("DEBUG", "POPULATE", "20000", "key", "200")
			srv.Do("CONFIG", "SET", "key-load-delay", "1000", "repl-diskless-load", "on-empty-db",
				"loading-process-events-interval-bytes", "1024")
			srv.Do("REPLICAOF", "127.0.0.1", other.Port())
			redistest.Eventually(t, "replica is loading", func() bool { return field(srv, "loading") == "1" })
			other.Kill()
			redistest.Eventually(t, "replica has stopped loading", func() bool { return field(srv, "loading") == "0" })
		},
	} {
		t.Run(name, func(t *testing.T) {
			args := []string{"--repl-diskless-sync-delay", "0"}
			srv, other := startServer(t, args...), startServer(t, args...)
			p := open(t, []string{srv.URL()}, WithHeartbeat(20*time.Millisecond))
			waitUp(t, p)
			before := state(p, 0)
			while(t, srv, other)
			srv.Do("REPLICAOF", "NO", "ONE")
			now := infoOf(InfoFields(srv.Text("INFO")))
			if now.RunID != before.Info.RunID || now.Identity() == before.Info.Identity() || now.freedFrom(before.Info) {
				t.Errorf("the identity was %s and is %s", before.Info.Identity(), now.Identity())
			}
			redistest.Eventually(t, "new session", func() bool {
				event := state(p, 0)
				return event.Session > before.Session && event.Info.Identity() == now.Identity()
			})
		})
	}
}

// H69: a promotion changes the identity, and the change disappears when the server frees its backlog. An event reports
// the freed backlog, and the session continues.
func TestIdentityAfterFreedBacklog(t *testing.T) {
	srv, other := startServer(t, "--repl-backlog-ttl", "1"), startServer(t, "--repl-diskless-sync-delay", "0")
	follow(t, srv, other)
	srv.Do("REPLICAOF", "NO", "ONE")
	p := open(t, []string{srv.URL()}, WithHeartbeat(20*time.Millisecond))
	waitUp(t, p)
	before := state(p, 0)
	if id := before.Info.ReplID2; id == noID || len(id) != 40 {
		t.Fatalf("master_replid2 is %q after a promotion", id)
	}
	var mu sync.Mutex
	var told []Event
	defer p.Watch(func(event Event) {
		mu.Lock()
		defer mu.Unlock()
		if event.Info.Identity() != before.Info.Identity() && len(told) == 0 {
			told = append(told, event)
		}
	})()
	redistest.Eventually(t, "an event reports the freed backlog", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(told) == 1
	})
	mu.Lock()
	defer mu.Unlock()
	if event := told[0]; event.Session != before.Session || event.Info.Identity() != event.Info.RunID+"/"+noID+"/-1" ||
		!event.Info.freedFrom(before.Info) {
		t.Errorf("the event after the release of the backlog is %+v", event)
	}
}

func TestFreedFrom(t *testing.T) {
	promoted := Info{RunID: "a", ReplID2: "x", SecondOffset: 7}
	for _, c := range []struct {
		what          string
		before, after Info
		want          bool
	}{
		{"freed", promoted, Info{RunID: "a", ReplID2: noID, SecondOffset: -1}, true},
		{"restarted", promoted, Info{RunID: "b", ReplID2: noID, SecondOffset: -1}, false},
		{"promoted again", promoted, Info{RunID: "a", ReplID2: "y", SecondOffset: 7}, false},
		{"promoted again at another offset", promoted, Info{RunID: "a", ReplID2: "x", SecondOffset: 8}, false},
		{"promoted", Info{RunID: "a", ReplID2: noID, SecondOffset: -1}, promoted, false},
		{"the same", promoted, promoted, false},
		{"half of it", promoted, Info{RunID: "a", ReplID2: noID, SecondOffset: 7}, false},
	} {
		if got := c.after.freedFrom(c.before); got != c.want {
			t.Errorf("%s: freedFrom returned %v", c.what, got)
		}
	}
}

// H66: if the wall clock is set back by an hour, heartbeats, redials and the watchdog are not delayed.
func TestWallClockSetBackDelaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var back atomic.Int64
		origin := time.Now()
		clk := clock.New(func() clock.Instant {
			steady := int64(time.Since(origin))
			return clock.At(steady+1, origin.UnixNano()+steady-back.Load())
		})
		srv := newFake("a1")
		p := open(t, []string{"redis://m1"}, WithDialer(srv.dial), WithClock(clk))
		synctest.Wait()
		beats := 0
		defer p.Watch(func(event Event) {
			if event.Session != 0 {
				beats++
			}
		})()
		settle(10 * time.Second)
		if beats != 4 {
			t.Fatalf("there were %d events in 10 s, want 4", beats)
		}
		before := state(p, 0).Info
		back.Store(int64(time.Hour))
		settle(9 * time.Second)
		if info := state(p, 0).Info; beats != 7 || info.RTT != 0 || info.Read.Sub(before.Read) != 9*time.Second {
			t.Errorf("there were %d events in 19 s; the last INFO was read %v after the first", beats,
				info.Read.Sub(before.Read))
		}
		srv.cut()
		settle(time.Second)
		if event := state(p, 0); event.Session != 2 {
			t.Errorf("a second after the cut the state is %+v", event)
		}
		srv.hang()
		if _, err := call(t, p, 0, inspect("x"), Condition{}); !errors.Is(err, fault.ErrTimeout) {
			t.Errorf("a call to a hung master returned %v", err)
		}
		srv.resume()
		settle(2 * time.Second)
		if event := state(p, 0); event.Session != 3 {
			t.Errorf("the state after the hang is %+v", event)
		}
		_ = p.Close()
		synctest.Wait()
	})
}
