//go:build linux

package main

import (
	"fmt"
	"net"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
)

// changeAdvice returns the cases of clients with the wrong epoch or the wrong shards.
func changeAdvice() []adviceCase {
	return []adviceCase{
		{name: "an old epoch", new: true, about: "list", what: "out of date", spoil: func(e *adviceEnv) {
			files, old := e.reconfigure(true), e.urls
			call(e.t, exitDone, "", "set", "--yes", "--raise", files[1])
			e.urls = old
		}, apply: func(e *adviceEnv, f *printed) {
			var epoch int
			if _, err := fmt.Sscanf(f.fix, "use the file of epoch %d,", &epoch); err != nil {
				e.t.Fatal(err)
			}
			_, list, _ := strings.Cut(f.fix, "masters [")
			list, _, _ = strings.Cut(list, "]")
			var urls []string
			for addr := range strings.FieldsSeq(list) {
				urls = append(urls, "redis://"+addr)
			}
			file := e.file(fmt.Sprintf(`{"epoch": %d, "masters": ["%s"]}`, epoch, strings.Join(urls, `", "`)))
			e.flags, e.urls = []string{"--config", file}, nil
			if code, said := command("set", file); code != exitDone || !strings.Contains(said, "next") {
				e.t.Errorf("set ended with code %d, want 0 and a next step; it printed\n%s", code, said)
			}
		}},
		{name: "an epoch too early", new: true, about: "quarantine", what: "not complete", spoil: func(e *adviceEnv) {
			files := e.reconfigure(false)
			e.flags, e.urls = []string{"--config", files[1]}, nil
		}, apply: func(e *adviceEnv, f *printed) {
			if !strings.Contains(f.fix, "with the file of this client:") {
				e.t.Errorf("the advice does not name the file of this client: %s", f.fix)
			}
			const next = "next  redlock set --finish with the file of epoch 1: 0 of 3"
			if code, said := command("set", e.flags[1]); code != exitDone || !strings.Contains(said, next) {
				e.t.Errorf("set ended with code %d, want 0 and %q; it printed\n%s", code, next, said)
			}
			file := filepath.Join(e.master.Dir(), "epoch1.json")
			e.age(time.Minute, nil)
			call(e.t, exitDone, "", "set", "--yes", "--finish", file)
		}},
		{name: "a file that cancels a change", new: true, about: "quarantine", what: "still has epoch 1",
			spoil: func(e *adviceEnv) {
				old := strings.Join(e.urls, `", "`)
				e.reconfigure(false)
				file := e.file(fmt.Sprintf(`{"epoch": 2, "masters": ["%s"]}`, old))
				e.flags, e.urls = []string{"--config", file}, nil
			}, apply: func(e *adviceEnv, _ *printed) {
				call(e.t, exitDone, "", "set", "--yes", "--abort", filepath.Join(e.master.Dir(), "epoch1.json"))
			}},
		{name: "other shards", new: true, about: "shards", what: "shard layout", spoil: func(e *adviceEnv) {
			more := redistest.Test(e.t, 3, redisproc.Config{})
			shard := append([]string(nil), e.urls...)
			other := []string{more[0].URL(), more[1].URL(), more[2].URL()}
			e.urls = append(append(append([]string(nil), shard...), "/"), other...)
			e.call(exitDone, "3 of 3 masters vote", "admit")
			e.urls = append(append(append([]string(nil), other...), "/"), shard...)
		}, apply: func(e *adviceEnv, _ *printed) {
			e.urls = append(append(append([]string(nil), e.urls[4:]...), "/"), e.urls[:3]...)
		}},
	}
}

func (e *adviceEnv) file(text string) string {
	e.t.Helper()
	name := filepath.Join(e.master.Dir(), fmt.Sprint("masters", len(text), ".json"))
	writeFile(e.t, name, text)
	return name
}

// reconfigure replaces the third master with a new server. If finish is set, reconfigure completes the change;
// otherwise it only raises the epoch. It returns the names of the configuration files of epochs 1 and 2.
func (e *adviceEnv) reconfigure(finish bool) (files [2]string) {
	e.t.Helper()
	e.call(exitDone, "3 of 3 masters vote", "admit")
	more := redistest.Test(e.t, 1, redisproc.Config{})[0]
	e.servers = append(e.servers, more)
	next := []string{e.urls[0], e.urls[1], more.URL()}
	files = [2]string{filepath.Join(e.master.Dir(), "epoch1.json"), filepath.Join(e.master.Dir(), "epoch2.json")}
	for i, text := range []string{
		fmt.Sprintf(`{"epoch": 1, "masters": ["%s"], "next": ["%s"]}`, strings.Join(e.urls, `", "`),
			strings.Join(next, `", "`)),
		fmt.Sprintf(`{"epoch": 2, "masters": ["%s"]}`, strings.Join(next, `", "`)),
	} {
		writeFile(e.t, files[i], text)
	}
	call(e.t, exitDone, "", "admit", "--force", "--yes", "--config", files[0])
	call(e.t, exitDone, "", "set", "--yes", "--raise", files[0])
	if finish {
		e.age(time.Minute, nil)
		call(e.t, exitDone, "", "set", "--yes", "--finish", files[0])
	}
	return files
}

// sentinelAdvice returns the cases of masters behind sentinels.
func sentinelAdvice() []adviceCase {
	var port int
	var down [2]int
	return []adviceCase{
		{name: "all sentinels are down", about: "connection", what: "0 of 2 sentinels returned", spoil: func(e *adviceEnv) {
			for i := range down {
				var err error
				if down[i], err = redisproc.FreePort(); err != nil {
					e.t.Fatal(err)
				}
			}
			e.behind(fmt.Sprint("127.0.0.1:", down[0]), fmt.Sprint("127.0.0.1:", down[1]))
		}, apply: func(e *adviceEnv, _ *printed) {
			for _, port := range down {
				e.sentinel(e.master.Addr(), 2, port)
			}
		}},
		{name: "a sentinel is down", about: "sentinels", what: "its address: dial tcp", spoil: func(e *adviceEnv) {
			first := e.sentinel(e.master.Addr(), 2, 0)
			var err error
			if port, err = redisproc.FreePort(); err != nil {
				e.t.Fatal(err)
			}
			e.behind(first, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		}, apply: func(e *adviceEnv, _ *printed) { e.sentinel(e.master.Addr(), 2, port) }},
		{name: "a sentinel forgot it", about: "sentinels", what: "its address: ERR No such", spoil: func(e *adviceEnv) {
			first, second := e.sentinel(e.master.Addr(), 2, 0), e.sentinel(e.master.Addr(), 2, 0)
			e.behind(first, second)
			e.on([]string{second}, "SENTINEL", "REMOVE", "master")
			e.second = second
		}, apply: func(e *adviceEnv, _ *printed) {
			host, at, _ := strings.Cut(e.master.Addr(), ":")
			e.on([]string{e.second}, "SENTINEL", "MONITOR", "master", host, at, "2")
		}},
		{name: "sentinels disagree", about: "sentinels", what: "disagree", spoil: func(e *adviceEnv) {
			e.behind(e.sentinel(e.master.Addr(), 2, 0), e.sentinel(e.servers[0].Addr(), 2, 0))
		}, apply: func(e *adviceEnv, _ *printed) {
			host, at, _ := strings.Cut(e.master.Addr(), ":")
			_, list, _ := strings.Cut(e.urls[1], ",")
			second, _, _ := strings.Cut(list, "/")
			e.on([]string{second}, "SENTINEL", "REMOVE", "master")
			e.on([]string{second}, "SENTINEL", "MONITOR", "master", host, at, "2")
		}},
		{name: "a sentinel is not named", about: "sentinels", what: "it has 2 sentinels, but the URL lists 1",
			spoil: func(e *adviceEnv) {
				first, second := e.sentinel(e.master.Addr(), 2, 0), e.sentinel(e.master.Addr(), 2, 0)
				e.behind(first)
				e.flags = []string{"--timeout", "10s"}
				e.second = second
			},
			apply: func(e *adviceEnv, _ *printed) {
				first, _, _ := strings.Cut(strings.TrimPrefix(e.urls[1], "redis+sentinel://"), "/")
				e.behind(first, e.second)
			}},
		{name: "too small a quorum", about: "sentinels", what: "1 of 2 sentinels can start a failover",
			spoil: func(e *adviceEnv) {
				e.behind(e.sentinel(e.master.Addr(), 1, 0), e.sentinel(e.master.Addr(), 1, 0))
			},
			apply: func(e *adviceEnv, f *printed) {
				both, _, _ := strings.Cut(strings.TrimPrefix(e.urls[1], "redis+sentinel://"), "/")
				e.on(strings.Split(both, ","), strings.Fields(inBackquotes.FindStringSubmatch(f.fix)[1])...)
			}},
	}
}

// stoppingAdvice returns the cases of a master that a replica may replace.
func stoppingAdvice() []adviceCase {
	// watched returns a function that gives master 1 one replica, the required settings, and a sentinel that starts no
	// failover.
	watched := func(more ...any) func(*adviceEnv) {
		return func(e *adviceEnv) {
			e.attach()
			setting("min-replicas-to-write", "1", "min-replicas-max-lag", "3")(e)
			e.behind(e.sentinel(e.master.Addr(), 2, 0))
			setting(more...)(e)
		}
	}
	return []adviceCase{
		{name: "a failover", about: "failover", what: "a replica replaces it", stays: true, spoil: watched(),
			apply: func(*adviceEnv, *printed) {}},
		{name: "too few replicas to write", about: "failover", what: "min-replicas-to-write is 0",
			spoil: watched("min-replicas-to-write", "0")},
		{name: "too long a lag", about: "failover", what: "min-replicas-max-lag is 10s",
			spoil: watched("min-replicas-max-lag", "10")},
		{name: "no right to the settings", about: "failover", what: "cannot be read", spoil: func(e *adviceEnv) {
			watched()(e)
			behind := e.urls[1]
			asUser()(e)
			e.urls[1] = strings.Replace(behind, "://", "://lock:secret@", 1)
		}},
		{name: "no CONFIG to read the settings", args: []string{"--rename-command", "CONFIG", ""}, about: "failover",
			what: "cannot be read", spoil: func(e *adviceEnv) {
				e.attach()
				e.behind(e.sentinel(e.master.Addr(), 2, 0))
			}, apply: plainURL},
		{name: "too quick a failover", about: "failover", what: "after 2.5s of silence", spoil: func(e *adviceEnv) {
			watched()(e)
			e.on([]string{e.watcher()}, "SENTINEL", "SET", "master", "down-after-milliseconds", "2500")
		}, apply: func(e *adviceEnv, _ *printed) {
			e.on([]string{e.watcher()}, "SENTINEL", "SET", "master", "down-after-milliseconds", "5000")
		}},
		{name: "scripts that do not stop", about: "failover", what: "it is Redis 6.2.0", spoil: func(e *adviceEnv) {
			if strings.Contains(string(e.admin("INFO", "server").([]byte)), "valkey") {
				e.t.Skip("needs Redis: all versions of Valkey stop scripts")
			}
			watched()(e)
			e.behind(e.sentinel(e.rewriting(`redis_version:\d\.\d\.\d`, "redis_version:6.2.0"), 2, 0))
		}, apply: func(e *adviceEnv, _ *printed) { e.honest.Store(true) }},
		{name: "its replica is away", about: "writes", what: "NOREPLICAS", spoil: func(e *adviceEnv) {
			watched()(e)
			_ = e.replica.Kill()
		}, apply: func(e *adviceEnv, _ *printed) {
			if err := e.replica.Restart(e.t.Context()); err != nil {
				e.t.Fatal(err)
			}
		}},
		{name: "its replica is silent", about: "replicas", what: "was last seen", spoil: func(e *adviceEnv) {
			watched("min-replicas-max-lag", "3")(e)
			_ = e.replica.Pause()
		}, apply: func(e *adviceEnv, _ *printed) { _ = e.replica.Resume() }},
		{name: "its replica is not in step", about: "replicas", what: "has not synchronized yet", spoil: func(e *adviceEnv) {
			setting("repl-diskless-sync", "yes", "repl-diskless-sync-delay", "600")(e)
			watched()(e)
		}, apply: func(e *adviceEnv, _ *printed) { setting("repl-diskless-sync-delay", "0")(e) }},
	}
}

// attach starts a replica of master 1.
func (e *adviceEnv) attach() {
	e.t.Helper()
	host, at, _ := strings.Cut(e.master.Addr(), ":")
	e.replica = redistest.Test(e.t, 1, redisproc.Config{Args: []string{"--replicaof", host, at}})[0]
}

// behind makes check use a URL with these sentinels for master 1.
func (e *adviceEnv) behind(sentinels ...string) {
	e.urls[1] = e.named("redis+sentinel://" + strings.Join(sentinels, ",") + "/master")
}

// watcher returns the address of the sentinel in the URL of master 1, which must contain only one.
func (e *adviceEnv) watcher() string {
	s, _, _ := strings.Cut(strings.TrimPrefix(e.urls[1], "redis+sentinel://"), "/")
	return s
}

// sentinel starts a sentinel that watches the server at addr, and returns its address. If port is 0, the sentinel uses
// a free port.
func (e *adviceEnv) sentinel(addr string, quorum, port int) string {
	e.t.Helper()
	return redistest.Sentinel(e.t, redisproc.Config{Port: port}, addr, quorum,
		"sentinel down-after-milliseconds master 5000").Addr()
}

// rewriting starts a proxy in front of master 1 and returns its address. In replies of the master, the proxy
// replaces text with other text of the same length, until e.honest is set.
func (e *adviceEnv) rewriting(pattern, by string) string {
	e.t.Helper()
	old, to := regexp.MustCompile(pattern), e.master.Addr()
	return redistest.Answer(e.t, "127.0.0.1", func(in net.Conn) {
		redistest.Relay(in, to, func(data []byte) []byte {
			if e.honest.Load() {
				return data
			}
			return old.ReplaceAll(data, []byte(by))
		})
	})
}

// wrongClock returns a function that replaces master 1 with a server whose clock is ahead.
func wrongClock(ahead time.Duration) func(e *adviceEnv) {
	return func(e *adviceEnv) {
		e.t.Helper()
		e.clock = redistest.Shifted(e.t, 1, redisproc.Config{})[0]
		e.clock.Shift(ahead)
		e.urls[1] = e.named(e.clock.URL())
	}
}

// setClock corrects the clock while the server is stopped, and starts the server again after the max TTL.
func setClock(e *adviceEnv, _ *printed) {
	// Only the clock and the quorum: the quarantine of the server does not end before the clock is corrected.
	if list, text := e.check(); len(list) != 2 {
		e.t.Error(text)
	}
	_ = e.clock.Kill() // it returns nil
	e.clock.Shift(0)
	time.Sleep(30 * time.Second) // the claim is about a real server that was away for that long
	if err := e.clock.Restart(e.t.Context()); err != nil {
		e.t.Fatal(err)
	}
}

// correctClock corrects the clock in small steps.
func correctClock(e *adviceEnv, _ *printed) {
	for s := 2 * time.Second; s >= 0; s -= time.Second {
		e.clock.Shift(s)
		time.Sleep(10 * time.Millisecond)
	}
}

// fullDisk makes each write of master 1 to its files fail.
func fullDisk(e *adviceEnv) {
	limit(e, 1)
	_, _ = redistest.Dial(e.t, e.master).Do("SET", "other", "1") // fails if the lock was extended meanwhile
}

func roomOnDisk(e *adviceEnv, _ *printed) { limit(e, unix.RLIM_INFINITY) }

func limit(e *adviceEnv, size uint64) {
	e.t.Helper()
	if err := unix.Prlimit(e.master.PID(), unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: size, Max: unix.RLIM_INFINITY},
		nil); err != nil {
		e.t.Fatal(err)
	}
}
