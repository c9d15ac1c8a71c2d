package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport/fault"
)

// A wrong is one kind of misconfigured server, and the finding that Check must report.
type wrong struct {
	name     string
	args     []string // of the server
	do       func(t *testing.T, s *server)
	opts     []Option
	tls      bool // use a TLS URL
	check    CheckOptions
	durable  bool // listed in CheckOptions.Durable
	about    string
	severity Severity
	what     string // substring of What
	advice   string // substring of Do
	silent   bool   // no finding expected
}

func setting(pairs ...string) func(*testing.T, *server) {
	return func(_ *testing.T, s *server) {
		args := []any{"CONFIG", "SET"}
		for _, p := range pairs {
			args = append(args, p)
		}
		s.do(args...)
	}
}

// user creates a user with the rights that locks need, and then applies more rules.
func user(rules ...string) func(*testing.T, *server) {
	return func(_ *testing.T, s *server) {
		args := []any{"ACL", "SETUSER", "lock", "on", ">secret-word"}
		for _, word := range append(strings.Fields(scripts.Prefix("redlock").Rule()), rules...) {
			args = append(args, word)
		}
		s.do(args...)
	}
}

func asUser(password string) []Option { return []Option{WithCredentials("lock", password)} }

// failSnapshot makes the last snapshot fail, after which the server refuses writes.
func failSnapshot(t *testing.T, s *server) {
	if err := os.Mkdir(filepath.Join(s.dir, "dump.rdb"), 0o700); err != nil {
		t.Fatal(err)
	}
	s.do("CONFIG", "SET", "save", "3600 1")
	s.do("BGSAVE")
	eventually(t, "snapshot failed", func() bool {
		return strings.Contains(s.text("INFO", "persistence"), "rdb_last_bgsave_status:err")
	})
}

func attachReplica(t *testing.T, s *server) {
	replica := startServer(t)
	replica.do("REPLICAOF", "127.0.0.1", s.port)
	eventually(t, "replica attached", func() bool {
		return strings.Contains(s.text("INFO", "replication"), "connected_slaves:1")
	})
}

func wrongs() []wrong {
	always := []string{"--appendonly", "yes", "--appendfsync", "always"}
	return []wrong{
		{name: "nothing is wrong", silent: true},
		{name: "a user with the documented rights", do: user(), opts: asUser("secret-word"), silent: true},
		{name: "replica", do: func(t *testing.T, s *server) { s.do("REPLICAOF", "127.0.0.1", startServer(t).port) },
			about: "role", severity: Failure, what: `"slave"`, advice: "REPLICAOF NO ONE"},
		{name: "cluster", args: []string{"--cluster-enabled", "yes"}, about: "cluster", severity: Failure,
			what: "cluster node", advice: "cluster-enabled no"},
		{name: "eviction", do: setting("maxmemory", "100mb", "maxmemory-policy", "allkeys-lru"),
			about: "eviction", severity: Failure, what: "allkeys-lru", advice: "noeviction"},
		{name: "eviction that is allowed", do: setting("maxmemory", "100mb", "maxmemory-policy", "volatile-ttl"),
			opts:  []Option{AllowEviction()},
			about: "eviction", severity: Warning, what: "volatile-ttl", advice: "noeviction"},
		{name: "eviction without a limit", do: setting("maxmemory-policy", "allkeys-lfu"), about: "eviction",
			severity: Notice, what: "allkeys-lfu", advice: "noeviction"},
		{name: "full", do: setting("maxmemory", "1"), about: "writes", severity: Failure, what: "OOM",
			advice: "raise maxmemory"},
		{name: "full, by its own account", do: setting("maxmemory", "1"), about: "memory", severity: Failure,
			what: "of 1 bytes", advice: "raise maxmemory"},
		{name: "MISCONF", do: failSnapshot, about: "writes", severity: Failure, what: "MISCONF", advice: "disk"},
		{name: "a failed snapshot that stops no writes", args: []string{"--stop-writes-on-bgsave-error", "no"},
			do:    failSnapshot,
			about: "writes", severity: Warning, what: "rdb_last_bgsave_status", advice: "disk"},
		{name: "NOREPLICAS", do: setting("min-replicas-to-write", "1"), about: "writes", severity: Failure,
			what: "NOREPLICAS", advice: "min-replicas-to-write 0"},
		{name: "a replica is attached", do: attachReplica, about: "replicas", severity: Warning, what: "1 replicas",
			advice: "guard"},
		{name: "a replica is attached, and no guard is on", args: always, do: attachReplica,
			check: CheckOptions{Unguarded: true},
			about: "replicas", severity: Failure, what: "1 replicas", advice: "guard"},
		{name: "no password", do: setting("requirepass", "secret-word"), about: "rights", severity: Failure, what: "NOAUTH",
			advice: "WithCredentials"},
		{name: "another password", do: user(), opts: asUser("not-the-secret-word"), about: "rights", severity: Failure,
			what: "WRONGPASS", advice: "password"},
		{name: "INFO denied", do: user("-info"), opts: asUser("secret-word"), about: "rights", severity: Failure,
			what: "INFO", advice: "ACL SETUSER lock +info"},
		{name: "other keys", do: user("resetkeys", "~other:*"), opts: asUser("secret-word"), about: "rights",
			severity: Failure, what: "get, getrange, set, exists", advice: "~redlock:*"},
		{name: "other channels", do: user("resetchannels", "&other:*"), opts: asUser("secret-word"), about: "rights",
			severity: Warning, what: "publish, subscribe", advice: "&redlock:*"},
		{name: "another prefix", do: user(), opts: asUser("secret-word"), check: CheckOptions{Prefix: "mine"},
			about: "rights", severity: Failure, what: "mine:*", advice: "~mine:*"},
		{name: "a command renamed", args: []string{"--rename-command", "EVALSHA", ""}, about: "rights", severity: Failure,
			what: "evalsha (renamed", advice: "remove rename-command of evalsha"},
		{name: "EVAL renamed", args: []string{"--rename-command", "EVAL", ""}, about: "rights", severity: Warning,
			what: "eval (renamed", advice: "remove rename-command of eval"},
		{name: "SCRIPT renamed", args: []string{"--rename-command", "SCRIPT", ""}, about: "rights", severity: Warning,
			what: "script|load (renamed", advice: "remove rename-command of script|load"},
		{name: "EVAL and SCRIPT renamed", args: []string{"--rename-command", "EVAL", "", "--rename-command", "SCRIPT", ""},
			about: "rights", severity: Failure, what: "eval (renamed", advice: "remove rename-command of eval, script|load"},
		{name: "no more clients", do: takeTheLastConnection, about: "connection", severity: Failure,
			what: "max number of clients", advice: "raise maxclients"},
		{name: "TLS to a plain port", tls: true, opts: []Option{WithDialTimeout(300 * time.Millisecond),
			WithTLSConfig(&tls.Config{InsecureSkipVerify: true})}, about: "connection",
			severity: Failure, what: "TLS", advice: "redis:// instead of rediss://"},
		{name: "a proxy without INFO", args: []string{"--rename-command", "INFO", ""}, about: "connection",
			severity: Failure, what: "unknown command", advice: "name the master itself"},
		{name: "a busy script", do: runForever, about: "connection", severity: Failure, what: "BUSY", advice: "SCRIPT KILL"},
		{name: "two databases", do: recordElsewhere, about: "databases", severity: Warning, what: "[3]",
			advice: "the same database"},
		{name: "durable, no file", durable: true, about: "persistence", severity: Failure, what: "appendonly is no",
			advice: "appendfsync always"},
		{name: "durable, each second", args: []string{"--appendonly", "yes"}, durable: true, about: "persistence",
			severity: Failure, what: "appendfsync is everysec", advice: "always"},
		{name: "durable, not while the file is rewritten", args: append(always, "--no-appendfsync-on-rewrite", "yes"),
			durable: true,
			about:   "persistence", severity: Failure, what: "no-appendfsync-on-rewrite is yes",
			advice: "no-appendfsync-on-rewrite no"},
		{name: "durable", args: always, durable: true, silent: true},
		{name: "durable, and no client may look", args: always, do: user(), opts: asUser("secret-word"), durable: true,
			about: "persistence", severity: Warning, what: "NOPERM", advice: "+config|get"},
		{name: "no guard, and it forgets", check: CheckOptions{Unguarded: true}, about: "persistence", severity: Failure,
			what: "guard is off", advice: "appendfsync always"},
		{name: "no guard, and it remembers", args: always, check: CheckOptions{Unguarded: true}, silent: true},
		{name: "dead", do: func(_ *testing.T, s *server) { s.kill() }, about: "connection", severity: Failure,
			what: "refused", advice: "start it"},
		{name: "hung", do: func(_ *testing.T, s *server) { s.signal(stopSignal) },
			opts:  []Option{WithDialTimeout(300 * time.Millisecond)},
			about: "connection", severity: Failure, what: "timed out", advice: "hangs"},
	}
}

// recordElsewhere writes an admission record in another database (H116).
func recordElsewhere(t *testing.T, s *server) {
	c, err := redis.Dial("unix", s.socket(), redis.DialDatabase(3))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Do("SET", "redlock:admission", "v3 0123456789abcdef state=admitted"); err != nil {
		t.Fatal(err)
	}
}

func takeTheLastConnection(t *testing.T, s *server) {
	c, err := redis.Dial("unix", s.socket())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := c.Do("CONFIG", "SET", "maxclients", "1"); err != nil {
		t.Fatal(err)
	}
}

// runForever runs a script until the server ends.
func runForever(t *testing.T, s *server) {
	s.do("CONFIG", "SET", "busy-reply-threshold", "1")
	c, err := redis.Dial("unix", s.socket())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := errors.Join(c.Send("EVAL", "while true do end", "0"), c.Flush()); err != nil {
		t.Fatal(err)
	}
	if !poll(func() bool { _, err := pingOnce(s); return fault.IsCode(err, "BUSY") }) {
		t.Fatal("the server did not become busy")
	}
}

// pingOnce sends a PING on a separate connection.
func pingOnce(s *server) (any, error) {
	c, err := redis.Dial("unix", s.socket())
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.Do("PING")
}

// Check reports each misconfiguration of a real server, with its fix, and nothing about the other servers.
func TestCheckFindsWhatIsSetUpWrongly(t *testing.T) {
	good := []*server{startServer(t), startServer(t)}
	for _, w := range wrongs() {
		t.Run(w.name, func(t *testing.T) {
			bad := startServer(t, w.args...)
			if w.do != nil {
				w.do(t, bad)
			}
			url := bad.url()
			if w.tls {
				url = "rediss" + strings.TrimPrefix(url, "redis")
			}
			masters := []Master{URL(good[0].url()), URL(url, w.opts...), URL(good[1].url())}
			p, err := New(masters, WithDialTimeout(patience), WithTimeout(patience))
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			if w.durable {
				w.check.Durable = []string{bad.addr}
			}
			findings, err := p.Check(t.Context(), w.check)
			if err != nil {
				t.Fatal(err)
			}
			w.compare(t, bad.addr, findings)
		})
	}
}

func (w *wrong) compare(t *testing.T, addr string, findings []Finding) {
	t.Helper()
	found := false
	for _, f := range findings {
		if strings.Contains(fmt.Sprint(f), "secret-word") {
			t.Errorf("password in a finding: %v", f)
		}
		if f.What == "" || f.Endangers == "" || f.Do == "" || f.About == "" {
			t.Errorf("incomplete finding: %#v", f)
		}
		ofAll := f.About == "persistence" && w.check.Unguarded || w.check.Prefix != ""
		if f.Master != addr && !ofAll {
			t.Errorf("finding about another master: %v", f)
		}
		found = found || f.Master == addr && f.About == w.about && f.Severity == w.severity &&
			strings.Contains(f.What, w.what) && strings.Contains(f.Do, w.advice)
	}
	if w.silent {
		for _, f := range findings {
			if f.Master == addr {
				t.Errorf("finding about a healthy server: %v", f)
			}
		}
	} else if !found {
		t.Errorf("want %v about %s with %q and %q, got %v", w.severity, w.about, w.what, w.advice, findings)
	}
}

// H50: one server under two names.
func TestCheckFindsTheSameServerTwice(t *testing.T) {
	s := startServer(t)
	p := open(t, []string{s.url(), "unix://" + s.socket(), startServer(t).url()})
	findings, err := p.Check(t.Context(), CheckOptions{})
	if err != nil || len(findings) != 1 || findings[0].Master != s.socket() || findings[0].About != "identity" ||
		findings[0].Severity != Failure || !strings.Contains(findings[0].What, "same server as "+s.addr) {
		t.Errorf("%v, %v", findings, err)
	}
}

// Check leaves no key on a master, not even for a moment, and no connection (H72).
func TestCheckLeavesNothing(t *testing.T) {
	s := startServer(t)
	p := open(t, []string{s.url()})
	waitUp(t, p)
	before := strings.Count(s.text("CLIENT", "LIST"), "\n")
	if findings, err := p.Check(t.Context(), CheckOptions{}); err != nil || len(findings) != 0 {
		t.Errorf("%v, %v", findings, err)
	}
	if n := s.do("DBSIZE"); n != int64(0) {
		t.Errorf("%v keys left", n)
	}
	eventually(t, "connection closed", func() bool { return strings.Count(s.text("CLIENT", "LIST"), "\n") == before })
}

func TestCheckRefusesWhatCannotBeRight(t *testing.T) {
	p := open(t, []string{"redis://m1"}, WithDialer(newFake("a1").dial))
	for name, opts := range map[string]CheckOptions{
		"prefix": {Prefix: "{x}"}, "durable": {Durable: []string{"m2:6379"}},
	} {
		if findings, err := p.Check(t.Context(), opts); !errors.Is(err, ErrInvalid) || findings != nil {
			t.Errorf("%s: %v, %v", name, findings, err)
		}
	}
}

// States that a real server cannot be put into here are played by fakes: other clocks, versions and states.
func TestCheckOfClocksVersionsAndStates(t *testing.T) {
	const now = 1_700_000_000_000_000
	at := func(d time.Duration) string { return fmt.Sprintf("server_time_usec:%d\r\n", now+d.Microseconds()) }
	for _, c := range []struct {
		name     string
		extra    string // of the third of three masters
		about    string
		severity Severity
		what     string
	}{
		{"the same", at(0), "", 0, ""},
		{"a little off", at(7 * time.Second), "", 0, ""},
		{"more than half", at(8 * time.Second), "clock", Warning, "8s ahead of"},
		{"too far ahead", at(16 * time.Second), "clock", Failure, "16s ahead of"},
		{"too far behind", at(-16 * time.Second), "clock", Failure, "16s behind"},
		{"at the end of time", "server_time_usec:9223372036854775807\r\n", "clock", Failure, "ahead of"},
		{"old", "redis_version:6.0.16\r\n", "version", Failure, "Redis 6.0.16"},
		{"oldest that is supported", "redis_version:6.2.0\r\n", "", 0, ""},
		{"newer than known", "redis_version:9.0.0\r\n", "version", Notice, "newer"},
		{"no version", "redis_version:unknown\r\n", "version", Warning, `"unknown"`},
		{"old Valkey", "server_name:valkey\r\nvalkey_version:7.1.0\r\n", "version", Failure, "Valkey 7.1.0"},
		{"Valkey", "server_name:valkey\r\nvalkey_version:8.0.1\r\n", "", 0, ""},
		{"loading", "loading:1\r\n", "loading", Failure, "loading"},
		{"no identity", "run_id:\r\n", "identity", Failure, "run_id"},
		{"its file cannot be written", "aof_last_write_status:err\r\n", "persistence", Failure, "aof_last_write_status"},
		{"nearly full", "maxmemory:1000\r\nused_memory:950\r\n", "memory", Warning, "950 of 1000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { checkFakes(t, c.extra, c.about, c.severity, c.what) })
		})
	}
}

func checkFakes(t *testing.T, extra, about string, severity Severity, what string) {
	fakes := map[string]*fake{"a:6379": newFake("a"), "b:6379": newFake("b"), "c:6379": newFake("c")}
	fakes["c:6379"].extra = extra
	p := open(t, []string{"redis://a", "redis://b", "redis://c"}, WithDialer(func(ctx context.Context, network,
		addr string) (net.Conn, error) {
		return fakes[addr].dial(ctx, network, addr)
	}), WithClock(clock.New(func() clock.Instant { return clock.At(7, 9) }))) // one query at a time
	findings, err := p.Check(t.Context(), CheckOptions{})
	switch {
	case err != nil:
		t.Error(err)
	case about == "" && len(findings) == 0:
	case len(findings) != 1:
		t.Errorf("got %v, want one about %q", findings, about)
	default:
		if f := findings[0]; f.Master != "c:6379" || f.About != about || f.Severity != severity || !strings.Contains(f.What,
			what) {
			t.Errorf("%v, want %v about %s with %q", f, severity, about, what)
		}
	}
	_ = p.Close()
	synctest.Wait()
}

// H31: a check of masters that never answer ends with its context, or else within two dial timeouts.
func TestCheckEndsInItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := newFake("a")
		silent.unserved = true
		p := open(t, []string{"redis://m1"}, WithDialer(silent.dial), WithDialTimeout(time.Second))
		start := time.Now()
		findings, err := p.Check(t.Context(), CheckOptions{})
		if took := time.Since(start); err != nil || took != time.Second || len(findings) != 1 ||
			!strings.Contains(findings[0].What, "timed out") {
			t.Errorf("%v, %v after %v", findings, err, took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		start = time.Now()
		if findings, _ := p.Check(ctx, CheckOptions{}); time.Since(start) != 100*time.Millisecond || len(findings) != 1 {
			t.Errorf("%v after %v", findings, time.Since(start))
		}
		_ = p.Close()
		synctest.Wait()
	})
}

// H113: the advice grants the missing rights, and revokes none from a user that is shared with an application.
func TestCheckAdviceTakesNoRightsAway(t *testing.T) {
	for _, lacks := range [][]any{
		{"-time"}, {"-eval", "-evalsha"}, {"-script"}, {"-@write"}, {"resetkeys", "~orders:*"}, {"resetchannels", "&news"},
	} {
		t.Run(fmt.Sprint(lacks...), func(t *testing.T) {
			s := startServer(t)
			rules := []any{"ACL", "SETUSER", "app", "on", ">secret-word", "~orders:*", "~redlock:*", "&news", "&redlock:*",
				"+@all"}
			s.do(append(rules, lacks...)...)
			p, err := New([]Master{URL(s.url(), WithCredentials("app", "secret-word"))}, WithTimeout(patience))
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			advice := regexp.MustCompile(`ACL SETUSER [^.;]*`)
			for range 3 { // each error may reveal another missing right
				findings, err := p.Check(t.Context(), CheckOptions{})
				if err != nil {
					t.Fatal(err)
				}
				done := false
				for _, f := range findings {
					if f.About == "rights" && !done {
						words := strings.Fields(advice.FindString(f.Do))
						if len(words) < 4 || slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "-") }) {
							t.Fatalf("advice revokes rights: %v", f)
						}
						s.do(anys(words)...)
						done = true
					}
				}
				if !done {
					break
				}
			}
			findings, err := p.Check(t.Context(), CheckOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range findings {
				if f.About == "rights" {
					t.Errorf("after following the advice: %v", f)
				}
			}
			for _, own := range [][]string{{"GET", "orders:1"}, {"PUBLISH", "news", "hi"}, {"CONFIG", "GET", "port"}} {
				if reply := fmt.Sprintf("%s", s.do(append([]any{"ACL", "DRYRUN", "app"}, anys(own)...)...)); reply != "OK" {
					t.Errorf("%v: %s", own, reply)
				}
			}
		})
	}
}

func anys(words []string) (list []any) {
	for _, w := range words {
		list = append(list, w)
	}
	return list
}

// H112: a server without SCRIPT LOAD gets the text of the scripts, and on one without EVAL they are loaded.
func TestScriptsAreLoadedOrSent(t *testing.T) {
	for _, command := range []string{"SCRIPT", "EVAL"} {
		t.Run(command, func(t *testing.T) {
			p := open(t, []string{startServer(t, "--rename-command", command, "").url()})
			waitUp(t, p)
			for range 2 {
				if _, err := call(t, p, 0, encoder.Inspect(keysOf("x")), Stamp{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
