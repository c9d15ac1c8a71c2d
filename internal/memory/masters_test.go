package memory_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"go.uber.org/goleak"

	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const prefix = scripts.Prefix("redlock")

// deployment encodes calls like a Locker with default options.
var deployment = scripts.NewEncoder(prefix, 0)

func newMasters(t *testing.T, n int, opts ...memory.Option) *memory.Masters {
	t.Helper()
	m := memory.New(n, opts...)
	t.Cleanup(m.Close)
	return m
}

// dial connects to a master as the pool does.
func dial(t *testing.T, m *memory.Masters, i int) redis.Conn {
	t.Helper()
	nc := must.Get(m.Dial(t.Context(), "tcp", m.Master(i).Addr()))(t)
	c := redis.NewConn(nc, 0, 0)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func load(t *testing.T, c redis.Conn) {
	t.Helper()
	for _, s := range scripts.All {
		if sha, err := redis.String(c.Do("SCRIPT", "LOAD", s.Text)); err != nil || sha != s.SHA {
			t.Fatalf("SCRIPT LOAD of %s returned %q, %v", s.Name, sha, err)
		}
	}
}

func record(m *memory.Master) string {
	text, _ := m.Get(prefix.Admission())
	return text
}

// term returns a term of this length that begins at a ballot.
func term(d time.Duration, ballot int64) scripts.Term {
	return scripts.Term{TTL: d, Until: ballot + d.Microseconds()}
}

// acquire acquires a name with a ballot that is valid for the master's clock.
func acquire(c redis.Conn, m *memory.Master, name, id string) (scripts.Vote, error) {
	ballot := m.Time().UnixMicro()
	keys := prefix.Keys(name)
	call := deployment.Acquire(&keys, id, term(10*time.Second, ballot), ballot, ballot, 1, nil)
	command, args := call.Args(record(m), false)
	reply, err := c.Do(command, args...)
	if err != nil {
		return scripts.Vote{}, err
	}
	return scripts.DecodeVote(reply)
}

func mustGrant(t *testing.T, c redis.Conn, m *memory.Master, name, id string) {
	t.Helper()
	if v, err := acquire(c, m, name, id); err != nil || v.Outcome != quorum.Granted {
		t.Fatalf("the acquire of %s for %s returned %+v, %v, want a grant", name, id, v, err)
	}
}

func identity(info map[string]string) string {
	return info["run_id"] + "/" + info["master_replid2"] + "/" + info["second_repl_offset"]
}

func info(t *testing.T, c redis.Conn, sections ...any) map[string]string {
	t.Helper()
	text := must.Get(redis.String(c.Do("INFO", sections...)))(t)
	found := map[string]string{}
	for line := range strings.SplitSeq(text, "\r\n") {
		if key, value, ok := strings.Cut(line, ":"); ok {
			found[key] = value
		}
	}
	return found
}

func TestInfoHasCheckedFields(t *testing.T) {
	m := newMasters(t, 1)
	c := dial(t, m, 0)
	all := info(t, c)
	for key, want := range map[string]string{
		"master_replid2": strings.Repeat("0", 40), "second_repl_offset": "-1",
		"role": "master", "cluster_enabled": "0", "loading": "0", "maxmemory": "0", "maxmemory_policy": "noeviction",
		"connected_slaves": "0", "aof_enabled": "1", "redis_version": "7.0.15", "connected_clients": "1",
	} {
		if all[key] != want {
			t.Errorf("%s is %q, want %q", key, all[key], want)
		}
	}
	if len(all["run_id"]) != 40 || len(all["master_replid"]) != 40 || all["server_time_usec"] == "" {
		t.Errorf("identity or time is missing: %q", all)
	}
	if some := info(t, c, "replication"); some["role"] != "master" || some["run_id"] != "" {
		t.Errorf("INFO replication returned %q", some)
	}
	m.Master(0).SetRole("slave")
	replica := info(t, c)
	if replica["role"] != "slave" || replica["master_replid"] == all["master_replid"] ||
		identity(replica) != identity(all) {
		t.Errorf("the INFO of a replica is %q", replica)
	}
	m.Master(0).SetRole("master")
	promoted := info(t, c)
	if promoted["run_id"] != all["run_id"] || promoted["master_replid2"] != replica["master_replid"] ||
		promoted["second_repl_offset"] == "-1" {
		t.Errorf("the INFO after the promotion is %q", promoted)
	}
}

func TestListenGivesRealConnections(t *testing.T) {
	m := newMasters(t, 2)
	urls := must.Get(m.Listen())(t)
	c := must.Get(redis.DialURL(urls[1]))(t)
	defer c.Close()
	load(t, c)
	mustGrant(t, c, m.Master(1), "a", "me:1")
	if _, on := m.Holder("a"); on != 1 {
		t.Errorf("the lock is held on %d masters, want 1", on)
	}
	m.Close()
	if _, err := m.Listen(); err == nil {
		t.Error("Listen succeeded on closed masters")
	}
	if nc, err := net.Dial("tcp", strings.TrimPrefix(urls[0], "redis://")); err == nil {
		_ = nc.Close()
		t.Error("the port is still open")
	}
}

func TestCloseEndsHangingAndDelayedConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memory.New(2)
		m.Master(0).Hang()
		m.Master(1).Delay(time.Hour)
		for i := range 2 {
			c := dial(t, m, i)
			must.Do(t, c.Send("PING"))
			must.Do(t, c.Flush())
		}
		synctest.Wait()
		m.Close()
		m.Close()
		if _, err := m.Dial(context.Background(), "tcp", m.Master(0).Addr()); err == nil {
			t.Error("Dial succeeded on closed masters")
		}
	})
}
