package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/transport/fault"
)

func TestURLs(t *testing.T) {
	for _, c := range []struct {
		url, network, addr string
		useTLS             bool
		user, password     string
		database           int
	}{
		{"redis://h", "tcp", "h:6379", false, "", "", 0},
		{"redis://H.:7000/3", "tcp", "h:7000", false, "", "", 3},
		{"redis://h/", "tcp", "h:6379", false, "", "", 0},
		{"redis://", "tcp", "localhost:6379", false, "", "", 0},
		{"valkey://[::1]:1", "tcp", "[::1]:1", false, "", "", 0},
		{"redis://[0:0::1]", "tcp", "[::1]:6379", false, "", "", 0},
		{"redis://[::ffff:127.0.0.1]:1", "tcp", "127.0.0.1:1", false, "", "", 0},
		{"rediss://u:p%40%2F@h:1", "tcp", "h:1", true, "u", "p@/", 0},
		{"valkeys://:p@h", "tcp", "h:6379", true, "", "p", 0},
		{"redis://p@h", "tcp", "h:6379", false, "", "p", 0},
		{"unix:///a/b.sock", "unix", "/a/b.sock", false, "", "", 0},
		{"unix://u:p@/a/../b.sock?db=4", "unix", "/b.sock", false, "u", "p", 4},
	} {
		m := URL(c.url)
		if m.err != nil {
			t.Errorf("the URL %s is rejected: %v", c.url, m.err)
			continue
		}
		cfg, err := m.settings(defaults())
		if err != nil {
			t.Errorf("the settings of %s are rejected: %v", c.url, err)
		}
		if m.network != c.network || m.addr != c.addr || m.useTLS != c.useTLS || cfg.User != c.user ||
			cfg.Password != c.password || cfg.Database != c.database {
			t.Errorf("%s is parsed as %+v, user %q, password %q, database %d", c.url, m, cfg.User, cfg.Password, cfg.Database)
		}
	}
}

// Invalid settings are rejected before any connection is dialled. The error matches fault.ErrInvalid, quotes the value,
// and does not contain a password.
func TestInvalidSettingsAreRejected(t *testing.T) {
	dial := func(context.Context, string, string) (net.Conn, error) {
		t.Error("a connection was dialled")
		return nil, errors.New("no")
	}
	shared := &redis.Pool{Dial: func() (redis.Conn, error) { return nil, errors.New("no") }}
	one := []Master{URL("redis://h")}
	for _, c := range []struct {
		masters []Master
		opts    []Option
		says    string
	}{
		{nil, nil, "empty"},
		{[]Master{{}}, nil, "zero Master"},
		{[]Master{URL("h:6379")}, nil, `"h:6379"`},
		{[]Master{URL("localhost:6379")}, nil, "write redis://localhost:6379"},
		{[]Master{URL("127.0.0.1:6379")}, nil, "write redis://127.0.0.1:6379"},
		{[]Master{URL("10.0.0.1")}, nil, "write redis://10.0.0.1"},
		{[]Master{URL("//h:6379")}, nil, "no scheme"},
		{[]Master{URL("http://h")}, nil, `"http"`},
		{[]Master{URL("redis:h")}, nil, "form"},
		{[]Master{URL("redis://h:6379 ")}, nil, "a space or a line break"},
		{[]Master{URL("redis://h:6379\n")}, nil, "one URL per master"},
		{[]Master{URL("redis://a:6379 redis://b:6379")}, nil, "one URL per master"},
		{[]Master{URL("redis://::1:6379")}, nil, "redis://[::1]:6379"},
		{[]Master{URL("redis://::1")}, nil, "redis://[::1]:6379"},
		{[]Master{URL("redis://fe80::1:2:6379")}, nil, "redis://[::1]:6379"},
		{[]Master{URL("redis://h:0")}, nil, "1..65535"},
		{[]Master{URL("redis://h:65536")}, nil, "redis://h:65536"},
		{[]Master{URL("redis://h/x")}, nil, "redis://h/x"},
		{[]Master{URL("redis://h/-1")}, nil, "0..2147483647"},
		{[]Master{URL("redis://h/99999999999")}, nil, "0..2147483647"},
		{[]Master{URL("redis://h?db=1")}, nil, `"db"`},
		{[]Master{URL("unix://a/b?db=1")}, nil, "absolute path"},
		{[]Master{URL("unix:///b?password=secret")}, nil, `"password"`},
		{[]Master{URL("redis://user:se@cret/x@h")}, nil, "xxxxx@h"},
		{[]Master{URL("redis://user:secret@h:port")}, nil, "xxxxx@h"},
		{[]Master{URL("redis://user:secret%zz@h")}, nil, "percent-encoded"},
		{[]Master{URL("redis://user:secret\x7f@h")}, nil, "xxxxx@h"},
		{[]Master{URL("redis://:secret")}, nil, "xxxxx"},
		{[]Master{URL("user:secret@h")}, nil, "xxxxx@h"},
		{[]Master{URL("redis://user@:@h"), URL("redis://h")}, nil, "without a password"},
		{[]Master{URL("redis://H:6379"), URL("redis://:secret@h/3")}, nil, "two databases"},
		{[]Master{URL("unix:///a/../b"), URL("unix:///b")}, nil, "/b"},
		{[]Master{FromRedisPool("", shared)}, nil, "its name is empty"},
		{[]Master{FromRedisPool("redis://:secret@a:1", shared)}, nil, "its name is a URL"},
		{[]Master{FromRedisPool("a,b", shared)}, nil, "a comma"},
		{[]Master{FromRedisPool("a", nil)}, nil, "nil"},
		{[]Master{FromRedisPool("a", &redis.Pool{})}, nil, "neither"},
		{[]Master{FromRedisPool("a", shared), FromRedisPool("b", shared)}, nil, "same *redis.Pool"},
		{[]Master{FromRedisPool("a", shared, WithDatabase(1))}, nil, "those of its *redis.Pool"},
		{[]Master{URL("redis+sentinel://s1:26379")}, nil, "must be the name of the master"},
		{[]Master{URL("redis+sentinel://s1:26379/a/b")}, nil, "must be the name of the master"},
		{[]Master{URL("redis+sentinel:///job")}, nil, "one of its hosts"},
		{[]Master{URL("redis+sentinel://s1,,s2/job")}, nil, "one of its hosts"},
		{[]Master{URL("redis+sentinel://s1,s2:x/job")}, nil, "one of its hosts"},
		{[]Master{URL("redis+sentinel://s1,s2,S1:26379/job")}, nil, "one of its hosts is given twice"},
		{[]Master{URL("redis+sentinel://s1:1/job?allow=one")}, nil, "allow must be two-holders"},
		{[]Master{URL("redis+sentinel://s1:1/job?db=x")}, nil, "database is not a number"},
		{[]Master{URL("redis+sentinel://s1:1/job?secret@x=1")}, nil, "xxxxx"},
		{[]Master{URL("redis+sentinel://u:12/word@s1:1")}, nil, "must be the name of the master"},
		{[]Master{URL("redis+sentinel://s1:1/job?name=a%2Cb")}, nil, "a comma"},
		{[]Master{URL("unix+sentinel://s1:1/job")}, nil, "redis+sentinel"},
		{[]Master{URL("redis://s1:1,s2:2")}, nil, "one URL per master"},
		{[]Master{URL("redis+sentinel://user:secret@s1:1,s2:2/job/again")}, nil, "xxxxx@s1:1,s2:2"},
		{[]Master{URL("redis+cluster://n1")}, nil, "number of buckets"},
		{[]Master{URL("redis+cluster://n1?buckets=0")}, nil, "number of buckets"},
		{[]Master{URL("redis+cluster://n1?buckets=301")}, nil, "from 1 to 300"},
		{[]Master{URL("redis+cluster://n1/3?buckets=2")}, nil, "number of buckets"},
		{[]Master{URL("redis+cluster://n1?buckets=2&db=1")}, nil, `"db"`},
		{[]Master{URL("redis+cluster://?buckets=2")}, nil, "one of its hosts"},
		{[]Master{URL("redis+cluster://u:secret@n1?buckets=2&allow=all")}, nil, "allow must be two-holders"},
		{[]Master{URL("redis+clusters://n1")}, nil, "redis+cluster"},
		{[]Master{URL("redis+cluster://n1?buckets=2")}, nil, "OpenBuckets"},
		{one, []Option{nil}, "nil"},
		{one, []Option{WithTLSConfig(&tls.Config{})}, "rediss://"},
		{[]Master{URL("redis://h", WithTLSConfig(&tls.Config{}))}, nil, "rediss://"},
		{one, []Option{WithCredentials("user", "")}, "without a password"},
		{one, []Option{WithSentinelCredentials("", "secret")}, "redis+sentinel://"},
		{[]Master{URL("redis://h", WithCredentials("user", ""))}, nil, `"h:6379"`},
		{[]Master{URL("redis+sentinel://h/job")}, []Option{WithTimeout(longestTimeout + 1)}, "above 9s"},
	} {
		p, err := New(c.masters, append([]Option{WithDialer(dial)}, c.opts...)...)
		if err == nil {
			_ = p.Close()
			t.Errorf("these settings were accepted: %+v", c)
			continue
		}
		if !errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), c.says) || !strings.HasPrefix(err.Error(),
			"pool: ") {
			t.Errorf("the text %q is not in the error %q", c.says, err)
		}
		text := strings.ReplaceAll(err.Error(), "[user:password@]", "") // in the form of a URL
		if strings.Contains(text, "cret") || strings.Contains(text, "user:") {
			t.Errorf("the error contains a password: %q", err)
		}
	}
}

func TestParseInfo(t *testing.T) {
	valkey := infoOf(InfoFields("# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.0.1\r\n" +
		"run_id:abc\r\n" +
		"server_time_usec:17\r\n\r\n# Memory\r\nmaxmemory:104857600\r\nmaxmemory_policy:allkeys-lru\r\n# Persistence\r\n" +
		"loading:0\r\nasync_loading:1\r\n# Replication\r\nrole:slave\r\nconnected_slaves:2\r\n" +
		"master_replid:def\r\nmaster_replid2:ghi\r\nsecond_repl_offset:77\r\n" +
		"# Cluster\r\ncluster_enabled:1\r\nredis_version:9"))
	want := Info{RunID: "abc", ReplID2: "ghi", SecondOffset: 77, Role: "slave", Version: "8.0.1", Valkey: true,
		Cluster: true, Loading: true,
		Policy: "allkeys-lru", MaxMemory: 104857600, Replicas: 2, Reading: Reading{Time: 17}}
	if valkey != want {
		t.Errorf("the INFO of Valkey is parsed as %+v", valkey)
	}
	if got := infoOf(InfoFields("maxmemory:x\nrun_id")); got != (Info{}) {
		t.Errorf("an invalid INFO is parsed as %+v", got)
	}
	if id := want.Identity(); id != "abc/ghi/77" {
		t.Errorf("the identity is %q", id)
	}
}

func TestVerdict(t *testing.T) {
	good := Info{RunID: "a", ReplID2: "b", Role: "master", Policy: "allkeys-lru", Reading: Reading{Time: 1}}
	if err := good.verdict(&Config{}); err != nil {
		t.Errorf("a server with an eviction policy, but without a memory limit, is refused: %v", err)
	}
	for name, spoil := range map[string]func(*Info){
		"run_id":           func(info *Info) { info.RunID = "" },
		"master_replid2":   func(info *Info) { info.ReplID2 = "" },
		"server_time_usec": func(info *Info) { info.Time = 0 },
		"loading":          func(info *Info) { info.Loading = true },
		"not master":       func(info *Info) { info.Role = "sentinel" },
		"cluster-enabled":  func(info *Info) { info.Cluster = true },
		"maxmemory 5":      func(info *Info) { info.MaxMemory = 5 },
	} {
		bad := good
		spoil(&bad)
		if err := bad.verdict(&Config{}); !errors.Is(err, fault.ErrRefused) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: the verdict is %v", name, err)
		}
	}
	good.MaxMemory = 5
	if err := good.verdict(&Config{AllowEviction: true}); err != nil {
		t.Errorf("a server that may evict is refused although that is allowed: %v", err)
	}
}

// Warnings lists the settings of a *redis.Pool that have no effect, and no other settings.
func TestWarningsListIgnoredPoolSettings(t *testing.T) {
	dial := func() (redis.Conn, error) { return nil, errors.New("nobody") }
	p, err := New([]Master{
		URL("redis://127.0.0.1:1"), FromRedisPool("plain", &redis.Pool{Dial: dial}),
		FromRedisPool("full", &redis.Pool{
			Dial: dial, TestOnBorrow: func(redis.Conn, time.Time) error { return nil },
			TestOnBorrowContext: func(context.Context, redis.Conn, time.Time) error { return nil },
			MaxIdle:             1, MaxActive: 1, IdleTimeout: 1, Wait: true, MaxConnLifetime: 1,
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	list := p.Warnings()
	if len(list) != 1 || !strings.Contains(list[0], `"full"`) || !strings.Contains(list[0],
		": TestOnBorrow, TestOnBorrowContext, MaxIdle, MaxActive, IdleTimeout, Wait, MaxConnLifetime;") {
		t.Errorf("the warnings are %q", list)
	}
}
