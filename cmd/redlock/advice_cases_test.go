//go:build linux

package main

import (
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

func adviceCases() []adviceCase {
	return slices.Concat(
		connectionAdvice(), certificateAdvice(), tlsAdvice(), loginAdvice(), serverAdvice(),
		writeAdvice(), rightsAdvice(), persistenceAdvice(), recordAdvice(), changeAdvice(), sentinelAdvice(),
		stoppingAdvice(),
	)
}

// setting returns a function that changes settings of master 1. pairs contains names and values in turn.
func setting(pairs ...any) func(*adviceEnv) {
	return func(e *adviceEnv) {
		for i := 0; i < len(pairs); i += 2 {
			e.admin("CONFIG", "SET", pairs[i], pairs[i+1])
		}
	}
}

// asUser returns a function that makes check log in to master 1 as a user. The rules change the documented rights of
// this user.
func asUser(rules ...string) func(*adviceEnv) {
	return func(e *adviceEnv) {
		words := []any{"ACL", "SETUSER", "lock", "on", ">secret"}
		for _, word := range append(strings.Fields(scripts.Prefix("redlock").Rule()), rules...) {
			words = append(words, word)
		}
		e.admin(words...)
		e.urls[1] = "redis://lock:secret@" + e.master.Addr()
	}
}

// useURL returns a function that makes check use another URL for master 1.
func useURL(url func(e *adviceEnv) string) func(*adviceEnv, *printed) {
	return func(e *adviceEnv, _ *printed) { e.urls[1] = url(e) }
}

// plainURL makes check use the plain URL of master 1.
func plainURL(e *adviceEnv, _ *printed) { e.urls[1] = e.named(e.master.URL()) }

// runForever runs a script on master 1 until the script is killed.
func runForever(e *adviceEnv) { e.busy("EVAL", "while true do end", 0) }

// callForever calls a function on master 1 until the function is killed.
func callForever(e *adviceEnv) {
	e.admin("FUNCTION", "LOAD",
		"#!lua name=test\nredis.register_function('forever', function() while true do end end)")
	e.busy("FCALL", "forever", 0)
}

// busy sends a command that does not end to master 1.
func (e *adviceEnv) busy(command string, args ...any) {
	e.admin("CONFIG", "SET", "lua-time-limit", "1")
	c := redistest.Dial(e.t, e.master)
	if err := c.Send(command, args...); err != nil {
		e.t.Fatal(err)
	}
	if err := c.Flush(); err != nil {
		e.t.Fatal(err)
	}
}

// farAway starts a relay to master 1 that delays each part of a reply.
func farAway(e *adviceEnv) string { return "redis://" + slowRelay(e.t, e.master.Addr()) }

func connectionAdvice() []adviceCase {
	var busy, crowd []redis.Conn
	return []adviceCase{
		{name: "a long way", about: "latency", what: "longer than a tenth of the timeout, which is 500ms",
			spoil: func(e *adviceEnv) { e.urls[1] = e.named(farAway(e)) }, apply: plainURL},
		{name: "a name of two servers", args: []string{"--bind", "127.0.0.1"}, about: "identity",
			what: "127.0.0.1, 127.0.0.2",
			spoil: func(e *adviceEnv) {
				_, port, _ := strings.Cut(e.master.Addr(), ":")
				n, _ := strconv.Atoi(port)
				redistest.Test(e.t, 1, redisproc.Config{Port: n, Args: []string{"--bind", "127.0.0.2"}})
				e.urls[1] = e.named("redis://" + net.JoinHostPort(twoAddresses, port))
			}, apply: plainURL},
		{name: "down", about: "connection", what: "refused",
			spoil: func(e *adviceEnv) { _ = e.master.Kill() },
			apply: func(e *adviceEnv, _ *printed) {
				e.restart(1)
			}},
		{name: "no such socket", about: "connection", what: "no such file",
			spoil: func(e *adviceEnv) { e.urls[1] = e.named("unix:///nowhere/redis.sock") }, apply: plainURL},
		{name: "an address of no host", about: "connection", what: "255.255.255.255", // for which the system dials nobody
			spoil: func(e *adviceEnv) { e.urls[1] = e.named("redis://255.255.255.255:6379") }, apply: plainURL},
		{name: "too many clients", about: "connection", what: "max number of clients",
			spoil: func(e *adviceEnv) {
				for range 10 {
					busy = append(busy, redistest.Dial(e.t, e.master))
				}
				if _, err := busy[0].Do("CONFIG", "SET", "maxclients", 10); err != nil {
					e.t.Fatal(err)
				}
			},
			apply: func(*adviceEnv, *printed) {
				for _, c := range busy {
					_ = c.Close()
				}
			}},
		{name: "nearly too many clients", about: "clients", what: "clients that it allows",
			spoil: func(e *adviceEnv) {
				for range 300 {
					crowd = append(crowd, redistest.Dial(e.t, e.master))
				}
				e.admin("CONFIG", "SET", "maxclients", 330)
			},
			apply: func(*adviceEnv, *printed) {
				for _, c := range crowd {
					_ = c.Close()
				}
			}},
		{name: "protected", args: []string{"--bind", "0.0.0.0", "--protected-mode", "yes"}, about: "connection",
			what: "DENIED", spoil: func(e *adviceEnv) { e.urls[1] = e.named("redis://" + e.outside()) },
			apply: func(e *adviceEnv, _ *printed) {
				setting("requirepass", "secret")(e)
				e.urls[1] = e.named("redis://:secret@" + e.outside())
			}},
		{name: "busy", about: "connection", what: "SCRIPT KILL", spoil: runForever},
		{name: "busy with a function", about: "connection", what: "FUNCTION KILL", spoil: callForever},
		{name: "a proxy", about: "connection", what: "unknown command", apply: plainURL, spoil: func(e *adviceEnv) {
			s := redistest.Test(e.t, 1, redisproc.Config{Args: []string{"--rename-command", "INFO", ""}})[0]
			e.urls[1] = e.named(s.URL())
		}},
		{name: "TLS to a plain port", about: "connection", what: "TLS", apply: plainURL,
			spoil: func(e *adviceEnv) { e.urls[1] = e.named("rediss://" + e.master.Addr()) }},
		{name: "hung", about: "connection", what: "timed out",
			spoil: func(e *adviceEnv) {
				e.freeze(1)
			},
			apply: func(e *adviceEnv, _ *printed) {
				e.thaw(1)
			}},
		{name: "unknown authority", about: "connection", what: "certificate", spoil: func(e *adviceEnv) { secure(e, false) },
			apply: func(e *adviceEnv, _ *printed) { secure(e, true) }},
		{name: "another name", about: "connection", what: "certificate is not valid for", spoil: func(e *adviceEnv) {
			secure(e, true)
			e.urls[1] = strings.Replace(e.urls[1], "127.0.0.1", "localhost", 1)
		}, apply: func(e *adviceEnv, _ *printed) { e.urls[1] = strings.Replace(e.urls[1], "localhost", "127.0.0.1", 1) }},
		{name: "plain to a TLS port", about: "connection", what: "info: master is down: ",
			spoil: func(e *adviceEnv) {
				secure(e, false)
				e.urls[1] = strings.Replace(e.urls[1], "rediss", "redis", 1)
			},
			apply: func(e *adviceEnv, _ *printed) {
				e.urls[1] = strings.Replace(e.urls[1], "redis", "rediss", 1)
				secure(e, true)
			}},
	}
}

// outside returns the address of master 1 on a network interface other than loopback.
func (e *adviceEnv) outside() string {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		e.t.Fatal(err)
	}
	for _, a := range addrs {
		if ip, ok := a.(*net.IPNet); ok && !ip.IP.IsLoopback() && ip.IP.To4() != nil {
			_, port, _ := strings.Cut(e.master.Addr(), ":")
			return net.JoinHostPort(ip.IP.String(), port)
		}
	}
	e.t.Skip("needs a network interface other than loopback")
	return ""
}

// secure replaces master 1 with a server that uses TLS. If trust is set, check trusts the certificate of the server.
func secure(e *adviceEnv, trust bool) {
	e.t.Helper()
	if !strings.HasPrefix(e.urls[1], "rediss:") {
		_, addr, cfg := redistest.Secure(e.t)
		c, err := tls.Dial("tcp", addr, cfg)
		if err != nil {
			e.t.Fatal(err)
		}
		der := c.ConnectionState().PeerCertificates[0].Raw
		_ = c.Close()
		text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
		writeFile(e.t, filepath.Join(e.master.Dir(), "ca.pem"), string(text))
		e.urls[1] = e.named("rediss://" + addr)
	}
	if trust {
		e.flags = []string{"--ca", filepath.Join(e.master.Dir(), "ca.pem")}
	}
}

func loginAdvice() []adviceCase {
	withSecret := useURL(func(e *adviceEnv) string { return "redis://lock:secret@" + e.master.Addr() })
	return []adviceCase{
		{name: "no password", about: "rights", what: "NOAUTH", spoil: setting("requirepass", "secret"),
			apply: useURL(func(e *adviceEnv) string { return "redis://:secret@" + e.master.Addr() })},
		{name: "wrong password", about: "rights", what: "WRONGPASS", apply: withSecret, spoil: func(e *adviceEnv) {
			asUser()(e)
			e.urls[1] = "redis://lock:other@" + e.master.Addr()
		}},
		{name: "a disabled user", about: "rights", what: "user is disabled", spoil: func(e *adviceEnv) {
			asUser("off")(e)
		}, apply: func(e *adviceEnv, f *printed) {
			if !strings.Contains(f.fix, "or those of the server") {
				e.t.Error(f.fix)
			}
			e.admin("ACL", "SETUSER", "lock", "on")
		}},
		{name: "no file of the password", about: "rights", what: "no such file", spoil: func(e *adviceEnv) {
			for i := range e.servers {
				redistest.Do(e.t, e.servers[i], "ACL", "SETUSER", "lock", "on", ">secret", "~*", "&*", "+@all")
			}
			file := filepath.Join(e.master.Dir(), "locks.json")
			text := fmt.Sprintf(`{"masters": ["%s"], "user": "lock", "passwordFile": "password"}`,
				strings.Join(e.urls, `", "`))
			writeFile(e.t, file, text)
			e.flags, e.urls = []string{"--config", file}, nil
		}, apply: func(e *adviceEnv, _ *printed) {
			writeFile(e.t, filepath.Join(e.master.Dir(), "password"), "secret")
		}},
		{name: "no such database", about: "rights", what: "out of range", apply: plainURL,
			spoil: func(e *adviceEnv) { e.urls[1] += "/99" }},
		{name: "no right to select", about: "rights", what: "select", spoil: func(e *adviceEnv) {
			asUser()(e)
			e.urls[1] += "/2"
		}},
		{name: "no right to INFO", about: "rights", what: "may not run: info", spoil: asUser("-info")},
	}
}

func serverAdvice() []adviceCase {
	return []adviceCase{
		{name: "no identity", about: "identity", what: "INFO lacks", apply: plainURL,
			spoil: func(e *adviceEnv) { e.urls[1] = e.named("redis://" + e.rewriting("run_id:", "run_xx:")) }},
		{name: "loading", about: "loading", what: "loading", stays: true, spoil: loading,
			apply: func(e *adviceEnv, _ *printed) {},
			args:  []string{"--key-load-delay", "10000", "--loading-process-events-interval-bytes", "1024"}},
		{name: "became a replica", about: "role", what: "it is a replica", spoil: func(e *adviceEnv) {
			_, port, _ := strings.Cut(redistest.Test(e.t, 1, redisproc.Config{})[0].Addr(), ":")
			e.admin("REPLICAOF", "127.0.0.1", port)
		}},
		{name: "a replica of another master of the list", new: true, about: "role", what: "it is a replica",
			spoil: func(e *adviceEnv) {
				_, port, _ := strings.Cut(e.servers[2].Addr(), ":")
				e.admin("REPLICAOF", "127.0.0.1", port)
			}},
		{name: "a replica is named", new: true, about: "role", what: "it is a replica", spoil: func(e *adviceEnv) {
			s := redistest.Test(e.t, 1, redisproc.Config{})[0]
			host, port, _ := strings.Cut(e.master.Addr(), ":")
			redistest.Do(e.t, s, "REPLICAOF", host, port)
			e.urls[1] = s.URL()
		}, apply: func(e *adviceEnv, f *printed) {
			_, at, _ := strings.Cut(f.what, "a replica of ")
			e.urls[1] = "redis://" + at
		}},
		{name: "a node of a cluster", about: "cluster", what: "it is a cluster node", spoil: func(e *adviceEnv) {
			e.urls[1] = e.named(cluster(e.t).URL())
		}, apply: func(e *adviceEnv, _ *printed) {
			if _, text := e.check(); strings.Contains(text, "CROSSSLOT") { // the same cause
				e.t.Error(text)
			}
			u, _ := url.Parse(e.urls[1])
			e.urls[1] = "redis+cluster://" + u.Host + "?buckets=2"
		}},
		{name: "named as a cluster", about: "cluster", what: "it is not a cluster node", apply: plainURL,
			spoil: func(e *adviceEnv) { e.urls[1] = "redis+cluster://" + e.master.Addr() + "?buckets=2" }},
		{name: "eviction", about: "eviction", what: "volatile-lru",
			spoil: setting("maxmemory", "100mb", "maxmemory-policy", "volatile-lru")},
		{name: "eviction without a limit", about: "eviction", what: "maxmemory is not set now",
			spoil: setting("maxmemory-policy", "allkeys-lru")},
		{name: "eviction of a managed service", about: "eviction", what: "allkeys-lru",
			spoil: func(e *adviceEnv) {
				e.replace("--rename-command", "CONFIG", "", "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")
			},
			apply: func(e *adviceEnv, f *printed) {
				words := strings.Fields(f.fix) // the advice is "set NAME to VALUE in the parameters ..."
				e.replace("--rename-command", "CONFIG", "", "--maxmemory", "100mb", "--"+words[1], words[3])
			}},
		{name: "old", about: "version", what: "6.0", apply: plainURL,
			spoil: func(e *adviceEnv) {
				e.urls[1] = e.named("redis://" + e.rewriting(`_version:\d\.\d`, "_version:6.0"))
			}},
		{name: "newer", about: "version", what: "newer", stays: true, apply: plainURL,
			spoil: func(e *adviceEnv) {
				e.urls[1] = e.named("redis://" + e.rewriting(`_version:\d\.`, "_version:99"))
			}},
		{name: "the same server", about: "identity", what: "same server", apply: plainURL,
			spoil: func(e *adviceEnv) { e.urls[1] = e.named("unix://" + e.servers[0].Unix()) }},
		{name: "clock", about: "clock", what: "20s ahead of", apply: setClock,
			spoil: wrongClock(20 * time.Second)},
		{name: "clock without NTP", about: "clock", what: "3s ahead of", apply: correctClock,
			spoil: wrongClock(3 * time.Second)},
	}
}

// loading makes master 1 load its data, which takes five seconds.
func loading(e *adviceEnv) {
	e.admin("EVAL", "for k = 1, 500 do redis.call('SET', 'other:' .. k, string.rep('x', 100)) end", 0)
	e.admin("SAVE")
	e.t.Cleanup(func() { _ = e.master.Kill() })
	go func() { _ = e.master.Restart(e.t.Context()) }()
	redistest.Until(func() bool {
		_, text := e.check()
		return strings.Contains(text, "loading")
	})
}

func writeAdvice() []adviceCase {
	nearlyFull := func(e *adviceEnv) {
		e.admin("EVAL", "for k = 1, 100 do redis.call('SET', 'other:' .. k, string.rep('x', 100000)) end", 0)
		text, err := redis.String(e.admin("INFO", "memory"), nil)
		_, rest, _ := strings.Cut(text, "used_memory:")
		var used int
		if _, err2 := fmt.Sscan(rest, &used); err != nil || err2 != nil {
			e.t.Fatal(err, err2)
		}
		e.admin("CONFIG", "SET", "maxmemory", used*106/100)
	}
	return []adviceCase{
		{name: "nearly full", about: "memory", what: "of maxmemory", spoil: nearlyFull},
		{name: "nearly full, on a full machine", about: "memory", what: "of maxmemory", spoil: func(e *adviceEnv) {
			e.urls[1] = e.named("redis://" + e.rewriting(`total_system_memory:\d{6}`, "total_system_memory:000000"))
			nearlyFull(e)
		}, apply: func(e *adviceEnv, _ *printed) {
			e.admin("EVAL", "for k = 1, 100 do redis.call('DEL', 'other:' .. k) end", 0)
		}},
		{name: "full", about: "writes", what: "OOM", spoil: setting("maxmemory", "1")},
		{name: "failed snapshot", about: "writes", what: "MISCONF", spoil: failSnapshot, apply: makeRoom},
		{name: "failed snapshot that stops no writes", args: []string{"--stop-writes-on-bgsave-error", "no"},
			about: "writes", what: "rdb_last_bgsave_status", spoil: failSnapshot, apply: makeRoom},
		{name: "no replicas", about: "writes", what: "NOREPLICAS", spoil: setting("min-replicas-to-write", "1")},
		{name: "append-only file", about: "persistence", what: "append-only file",
			args: []string{"--appendonly", "yes", "--appendfsync", "everysec"}, spoil: fullDisk, apply: roomOnDisk},
		{name: "a message", about: "connection", what: "CLUSTERDOWN", stays: true, apply: func(*adviceEnv, *printed) {},
			spoil: func(e *adviceEnv) {
				s := cluster(e.t)
				redistest.Do(e.t, s, "CLUSTER", "DELSLOTS", 1)
				e.urls[1] = "redis+cluster://" + s.Addr() + "?buckets=2"
			}},
		{name: "a replica", about: "replicas", what: "it has 1 replica", spoil: func(e *adviceEnv) {
			host, port, _ := strings.Cut(e.master.Addr(), ":")
			s := redistest.Test(e.t, 1, redisproc.Config{})[0]
			redistest.Do(e.t, s, "REPLICAOF", host, port)
		}},
	}
}

// failSnapshot makes snapshots of master 1 fail: it creates a directory with the name of the snapshot file.
func failSnapshot(e *adviceEnv) {
	if err := os.Mkdir(filepath.Join(e.master.Dir(), "dump.rdb"), 0o700); err != nil {
		e.t.Fatal(err)
	}
	e.admin("CONFIG", "SET", "save", "3600 1")
	e.admin("BGSAVE")
}

func makeRoom(e *adviceEnv, f *printed) {
	if err := os.Remove(filepath.Join(e.master.Dir(), "dump.rdb")); err != nil {
		e.t.Fatal(err)
	}
	e.follow(f)
}

func rightsAdvice() []adviceCase {
	return []adviceCase{
		{name: "a right", about: "rights", what: "hset", spoil: asUser("-hset")},
		{name: "keys", about: "rights", what: "on keys redlock:*: getrange", spoil: asUser("resetkeys", "~other:*")},
		{name: "channels", about: "rights", what: "publish, subscribe", spoil: asUser("resetchannels", "&other:*")},
		{name: "renamed", about: "rights", what: "evalsha (renamed",
			spoil: func(e *adviceEnv) { e.replace("--rename-command", "EVALSHA", "") },
			apply: func(e *adviceEnv, _ *printed) { e.replace() }},
		{name: "refused scripts", about: "scripts", what: "undeclared key", spoil: func(e *adviceEnv) {
			e.urls[1] = e.named("redis://" + redistest.Refusing(e.t, e.master.Addr(), func(words []string) string {
				if words[0] == "EVALSHA" || words[0] == "EVAL" {
					return "ERR script tried accessing undeclared key"
				}
				return ""
			}))
		}, apply: plainURL},
		{name: "a TTL of the record", about: "record", what: "has a TTL", spoil: func(e *adviceEnv) { // H172
			e.admin("PEXPIRE", "redlock:admission", "3600000")
		}},
		{name: "flushed", about: "data", what: "FLUSHDB, SWAPDB", new: true, spoil: func(e *adviceEnv) { // H161
			e.admin("SWAPDB", 1, 2)
			e.admin("FLUSHDB")
		}},
		{name: "a lost record and two databases", about: "databases", what: "other databases also have",
			spoil: func(e *adviceEnv) {
				e.admin("COPY", "redlock:admission", "redlock:admission", "DB", 3) // of another deployment
				e.admin("DEL", "redlock:admission")
			}},
		{name: "two databases", about: "databases", what: "[3]", spoil: func(e *adviceEnv) { // H116
			c, err := redis.Dial("unix", e.master.Unix(), redis.DialDatabase(3))
			if err != nil {
				e.t.Fatal(err)
			}
			defer c.Close()
			if _, err := c.Do("SET", "redlock:admission", "v4 0123456789abcdef state=admitted"); err != nil {
				e.t.Fatal(err)
			}
		}},
	}
}

func persistenceAdvice() []adviceCase {
	durable := func(spoil func(*adviceEnv)) func(*adviceEnv) {
		return func(e *adviceEnv) {
			spoil(e)
			e.flags = []string{"--durable", e.master.Addr()}
		}
	}
	return []adviceCase{
		{name: "durable without a file", about: "persistence", what: "appendonly is no", spoil: durable(func(*adviceEnv) {})},
		{name: "durable each second", about: "persistence", what: "appendfsync is everysec",
			args: []string{"--appendonly", "yes"}, spoil: durable(func(*adviceEnv) {})},
		{name: "durable, and no right to look", about: "persistence", what: "cannot check whether", spoil: durable(asUser())},
		{name: "durable until now, and no right to look", about: "persistence", what: "its record calls it durable",
			args: []string{"--appendonly", "yes", "--appendfsync", "always"}, spoil: durable(func(e *adviceEnv) {
				e.declareDurable()
				e.admin("CONFIG", "SET", "appendonly", "no")
				asUser()(e)
			})},
		{name: "durable, of a managed service", about: "persistence", what: "cannot check whether", stays: true,
			spoil: durable(func(e *adviceEnv) { e.replace("--rename-command", "CONFIG", "") }),
			apply: func(*adviceEnv, *printed) {}},
	}
}

// declareDurable runs a client that declares master 1 durable, until the record of the master says so.
func (e *adviceEnv) declareDurable() {
	e.t.Helper()
	p, err := pool.Open(e.urls)
	if err != nil {
		e.t.Fatal(err)
	}
	defer p.Close()
	l, err := redlock.New(p, redlock.WithDurableMasters(e.master.Addr()))
	if err != nil {
		e.t.Fatal(err)
	}
	defer l.Close()
	if !redistest.Until(func() bool {
		record, _ := redis.String(e.admin("GET", "redlock:admission"), nil)
		return strings.Contains(record, " durable=")
	}) {
		e.t.Fatal("the record does not call master 1 durable")
	}
}

func recordAdvice() []adviceCase {
	edit := func(i int, change func(r *scripts.Record)) func(*adviceEnv) {
		return func(e *adviceEnv) { e.edit(i, change) }
	}
	return []adviceCase{
		{name: "quarantine", about: "quarantine", what: "in quarantine", spoil: func(e *adviceEnv) {
			e.admin("FLUSHALL")
		}, apply: func(e *adviceEnv, f *printed) {
			if !strings.HasPrefix(f.fix, "nothing: ") {
				e.t.Errorf("the advice does not say that nothing is needed: %s", f.fix)
			}
			if !redistest.Until(func() bool { return e.admin("EXISTS", "redlock:admission") == int64(1) }) {
				e.t.Fatal("the master has not started its quarantine")
			}
			e.edit(1, func(r *scripts.Record) { r.Since -= (29 * time.Second).Microseconds() })
		}},
		{name: "not known yet", brief: true, about: "quarantine", what: "not known yet", spoil: func(e *adviceEnv) {
			var first atomic.Bool // the next connection is the first of a command: that of its client
			e.before = func() { first.Store(true) }
			e.urls[1] = e.named("redis://" + redistest.Answer(e.t, "127.0.0.1", func(raw net.Conn) {
				if first.Swap(false) {
					_, _ = io.Copy(io.Discard, raw)
				} else {
					redistest.Relay(raw, e.master.Addr(), nil)
				}
			}))
			e.flags = []string{"--timeout", "900ms"}
		}, apply: func(e *adviceEnv, _ *printed) {
			e.flags, e.urls = nil, e.plain
		}},
		{name: "hung, and little time", brief: true, about: "connection", what: "timed out", spoil: func(e *adviceEnv) {
			e.flags = []string{"--timeout", "900ms"}
			e.freeze(1)
		}, apply: func(e *adviceEnv, f *printed) {
			list, text := e.check()
			if e.thaw(1); len(list) > 2 || len(f.masters) != 1 { // and one of the quorum
				e.t.Errorf("check has findings about masters that answer:\n%s", text)
			}
		}},
		{name: "paused writes", about: "connection", what: "timed out", spoil: func(e *adviceEnv) {
			e.admin("CLIENT", "PAUSE", "600000", "WRITE")
		}, apply: func(e *adviceEnv, f *printed) {
			if list, text := e.check(); len(list) > 2 || !strings.Contains(f.fix, "CLIENT PAUSE") {
				e.t.Errorf("want one finding about the pause in\n%s", text)
			}
			e.admin("CLIENT", "UNPAUSE")
		}},
		{name: "no right to the record", about: "quarantine", what: "cannot be admitted", spoil: asUser("-get", "-getrange"),
			apply: func(e *adviceEnv, _ *printed) {
				list, text := e.check()
				other := (&adviceCase{about: "rights", what: "getrange"}).finding(list)
				if other == nil {
					e.t.Fatal(text)
				}
				e.follow(other)
			}},
		{
			name:  "max TTLs",
			about: "max TTL",
			what:  "another master accepts TTLs up to",
			spoil: edit(0, func(r *scripts.Record) {
				r.MaxTTL, r.Quarantine = time.Minute, time.Minute
			}),
		},
		{name: "max TTL of this client", about: "max TTL", what: "the max TTL of this client is 1m0s",
			spoil: func(e *adviceEnv) { e.flags = []string{"--max-ttl", "60s"} }},
		{name: "a wrong list", about: "list", what: "the list of this client is probably wrong",
			spoil: func(e *adviceEnv) { e.urls = e.urls[:2] },
			apply: func(e *adviceEnv, f *printed) {
				e.urls = nil
				for addr := range strings.FieldsSeq(shownList.FindStringSubmatch(f.what)[1]) {
					e.urls = append(e.urls, "redis://"+addr)
				}
			}},
		{name: "a stray record", about: "quarantine", what: "this client has epoch", spoil: func(e *adviceEnv) {
			e.admin("FLUSHALL")
			call(e.t, exitDone, "1 of 1 masters vote", "admit", "--yes", e.urls[1])
		}},
		{name: "a record that cannot be read", about: "quarantine", what: "v1", spoil: func(e *adviceEnv) {
			e.admin("SET", "redlock:admission", "v1 of an older program")
		}},
		{name: "a record of another type", about: "record", what: "WRONGTYPE", spoil: func(e *adviceEnv) {
			e.admin("DEL", "redlock:admission")
			e.admin("HSET", "redlock:admission", "field", "value")
		}, apply: func(e *adviceEnv, f *printed) {
			if !strings.Contains(f.fix, "`DEL redlock:admission`") {
				e.t.Fatal(f.fix)
			}
			e.admin("DEL", "redlock:admission")
		}},
		{name: "another database", about: "databases", what: "only other databases have", apply: plainURL,
			spoil: func(e *adviceEnv) { e.urls[1] = e.named(e.urls[1] + "/3") }},
		{name: "the prefix", new: true, about: "quorum", what: "0 of 3", apply: func(e *adviceEnv, f *printed) {
			e.follow(f)
			e.flags = nil
		}, spoil: func(e *adviceEnv) { e.flags = []string{"--prefix", "redlokc"} }},
		{name: "the prefix, beside a lock", about: "quorum", what: "0 of 3", apply: func(e *adviceEnv, f *printed) {
			e.follow(f)
			e.call(exitDone, "3 of 3 masters vote", "admit", "--yes", "--prefix", "redlokc")
			e.flags = nil
		}, spoil: func(e *adviceEnv) { e.flags = []string{"--prefix", "redlokc"} }},
		{name: "no quorum", about: "quorum", what: "1 of 3", spoil: func(e *adviceEnv) {
			for _, s := range e.servers[:2] {
				redistest.Do(e.t, s, "CONFIG", "SET", "maxmemory", 1)
			}
		}, apply: func(e *adviceEnv, _ *printed) {
			list, text := e.check()
			f := (&adviceCase{about: "writes", what: "OOM"}).finding(list)
			if f == nil || len(f.masters) != 2 {
				e.t.Fatalf("want one finding about two masters; check printed\n%s", text)
			}
			e.follow(f)
		}},
		{name: "no quorum for a setting", about: "quorum", what: "1 of 3", spoil: func(e *adviceEnv) {
			for _, s := range e.servers[:2] {
				redistest.Do(e.t, s, "CONFIG", "SET", "maxmemory", "100mb")
				redistest.Do(e.t, s, "CONFIG", "SET", "maxmemory-policy", "volatile-lru")
			}
		}, apply: func(e *adviceEnv, f *printed) {
			list, text := e.check()
			below := (&adviceCase{about: "eviction"}).finding(list)
			if below == nil || !strings.HasPrefix(f.fix, "follow the advice") {
				e.t.Fatal(text)
			}
			e.follow(below)
		}},
		{name: "a majority is down", brief: true, about: "quorum", what: "1 of 3", spoil: func(e *adviceEnv) {
			for _, s := range e.servers[:2] {
				_ = s.Pause()
			}
		}, apply: func(e *adviceEnv, _ *printed) {
			for _, s := range e.servers[:2] {
				_ = s.Resume()
			}
		}},
		{name: "backlog", about: "quarantine", what: "repl-backlog-ttl", spoil: setting("repl-backlog-ttl", "10")},
	}
}

// cluster starts a server that is a cluster with one node.
func cluster(t testing.TB) *redisproc.Server {
	t.Helper()
	s := redistest.Test(t, 1, redisproc.Config{Args: []string{"--cluster-enabled", "yes"}})[0]
	words := []any{"CLUSTER", "ADDSLOTS"}
	for slot := range 16384 {
		words = append(words, slot)
	}
	redistest.Do(t, s, words...)
	if !redistest.Until(func() bool {
		return strings.Contains(string(redistest.Do(t, s, "CLUSTER", "INFO").([]byte)), "cluster_state:ok")
	}) {
		t.Fatal("the cluster is not ready")
	}
	return s
}
