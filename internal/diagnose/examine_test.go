package diagnose

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/internal/transport/fault"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// H72: Check leaves no key on a master, not even for a moment, and no connection.
func TestCheckLeavesNothing(t *testing.T) {
	s := startServer(t)
	p := open(t, []string{s.URL()}, patient()...)
	up := make(chan struct{})
	var once sync.Once
	defer p.Watch(func(e transport.Event) {
		if e.Err == nil {
			once.Do(func() { close(up) })
		}
	})()
	<-up
	before := strings.Count(fmt.Sprintf("%s", redistest.Do(t, s, "CLIENT", "LIST")), "\n")
	if findings, err := Masters(t.Context(), p, options()); err != nil || len(findings) != 0 {
		t.Errorf("Check returned %v, %v", findings, err)
	}
	if n := redistest.Do(t, s, "DBSIZE"); n != int64(0) {
		t.Errorf("%v keys are left", n)
	}
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		if strings.Count(fmt.Sprintf("%s", redistest.Do(t, s, "CLIENT", "LIST")), "\n") == before {
			break
		} else if time.Now().After(end) {
			t.Fatal("a connection is left")
		}
	}
}

func TestCheckRejectsUnknownDurableMaster(t *testing.T) {
	p := open(t, []string{"redis://m1"}, pool.WithDialer(newFakes(2).dial))
	opts := Options{Durable: []string{"m2:6379"}}
	if findings, err := Masters(t.Context(), p, opts); !errors.Is(err, fault.ErrInvalid) || findings != nil {
		t.Errorf("Check returned %v, %v", findings, err)
	}
}

// Check reports problems of clocks, versions and states. Fakes simulate problems that real servers cannot have here.
func TestCheckOfClocksVersionsAndStates(t *testing.T) {
	const now = 946_684_800_000_000 // when a bubble begins
	at := func(d time.Duration) string { return fmt.Sprintf("server_time_usec:%d\r\n", now+d.Microseconds()) }
	for _, c := range []struct {
		name     string
		extra    string // additional lines in the INFO of the third of three masters
		about    string
		severity redlockinfo.Severity
		what     string
	}{
		{"the same", at(0), "", 0, ""},
		{"a little off", at(900 * time.Millisecond), "", 0, ""},
		{"not corrected by NTP", at(3 * time.Second), "clock", warning, "its clock is 3s ahead of the median of the masters"},
		{"not corrected, behind", at(-1500 * time.Millisecond), "clock", warning, "1.5s behind"},
		{"too far ahead", at(16 * time.Second), "clock", failure, "16s ahead of"},
		{"too far behind", at(-16 * time.Second), "clock", failure, "16s behind"},
		{"at the end of time", "server_time_usec:9223372036854775807\r\n", "clock", failure, "ahead of"},
		{"old", "redis_version:6.0.16\r\n", "version", failure, "Redis 6.0.16"},
		{"oldest that is supported", "redis_version:6.2.0\r\n", "", 0, ""},
		{"newer than known", "redis_version:9.0.0\r\n", "version", notice, "newer"},
		{"no version", "redis_version:unknown\r\n", "version", warning, `"unknown"`},
		{"old Valkey", "server_name:valkey\r\nvalkey_version:7.1.0\r\n", "version", failure, "Valkey 7.1.0"},
		{"Valkey", "server_name:valkey\r\nvalkey_version:8.0.1\r\n", "", 0, ""},
		{"KeyDB", "executable:/usr/bin/keydb-server\r\n", "version", warning, "it is KeyDB 7.0.15, not Redis or Valkey"},
		{"KeyDB, by a field", "mvcc_depth:0\r\n", "version", warning, "KeyDB"},
		{"Garnet", "garnet_version:1.0.80\r\n", "version", warning, "it is Garnet 1.0.80"},
		{"Dragonfly", "dragonfly_version:df-v1.34.0\r\n", "version", warning, "it is Dragonfly df-v1.34.0"},
		{"Kvrocks", "kvrocks_version:2.10.1\r\n", "version", warning, "it is Kvrocks 2.10.1"},
		{"another server", "server_name:other\r\nother_version:1.2\r\n", "version", warning, "it is other 1.2"},
		{"a sentinel", "redis_mode:sentinel\r\nrole:\r\nmaster_replid2:\r\n", "role", failure, "it is a sentinel"},
		{"no role", "role:\r\n", "role", failure, "its INFO has no role"},
		{"a replica of an unknown master", "role:slave\r\n", "role", failure, "it is a replica"},
		{"another role", "role:observer\r\n", "role", failure, `its role is "observer", not master`},
		{"loading", "loading:1\r\n", "loading", failure, "loading"},
		{"no identity", "run_id:\r\n", "identity", failure, "run_id"},
		{"no clock", "server_time_usec:\r\n", "identity", failure, "server_time_usec"},
		{"its file cannot be written", "aof_last_write_status:err\r\n", "persistence", failure, "aof_last_write_status"},
		{"nearly full", "maxmemory:1000\r\nused_memory:950\r\n", "memory", warning, "950 of 1000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { checkFakes(t, c.extra, c.about, c.severity, c.what) })
		})
	}
}

func checkFakes(t *testing.T, extra, about string, severity redlockinfo.Severity, what string) {
	ms := newFakes(3)
	ms[2].extra = extra
	// This client's clock stands still, so only the masters' clocks differ.
	still := clock.New(func() clock.Instant { return clock.At(7, 9) })
	p := open(t, ms.urls(), pool.WithDialer(ms.dial), transport.WithClock(still))
	findings, err := Masters(t.Context(), p, options())
	switch {
	case err != nil:
		t.Error(err)
	case about == "" && len(findings) == 0:
	case len(findings) != 1:
		t.Errorf("Check found %v, want one finding about %q", findings, about)
	default:
		if f := findings[0]; f.Master != "m2:6379" || f.About != about || f.Severity != severity || !strings.Contains(f.What,
			what) {
			t.Errorf("the finding is %v, want a finding of severity %v about %s that contains %q", f, severity, about, what)
		}
	}
	_ = p.Close()
	synctest.Wait()
}

// H31: a check of masters that never answer ends with its context, or within two dial timeouts.
func TestCheckIsBoundedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := newFakes(2)
		silent[1].silent = true
		p := open(t, []string{"redis://m1"}, pool.WithDialer(silent.dial), pool.WithDialTimeout(time.Second))
		start := time.Now()
		findings, err := Masters(t.Context(), p, options())
		if took := time.Since(start); err != nil || took != time.Second || len(findings) != 1 ||
			!strings.Contains(findings[0].What, "timed out") {
			t.Errorf("Check returned %v, %v after %v", findings, err, took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		start = time.Now()
		if findings, _ := Masters(ctx, p, options()); time.Since(start) != 100*time.Millisecond || len(findings) != 1 {
			t.Errorf("Check with a deadline found %v after %v", findings, time.Since(start))
		}
		_ = p.Close()
		synctest.Wait()
	})
}

// H171: Check reports a server that refuses to load scripts, and what to do if the reason is known.
func TestCheckReportsRefusedScripts(t *testing.T) {
	const full = "OOM command not allowed when used memory > 'maxmemory'."
	for _, c := range []struct{ refusal, extra, fix string }{
		{full, "maxmemory:1000\r\nused_memory:900\r\n", "`CONFIG SET maxmemory "},
		{full, "", transport.StepMessage}, // there is no maxmemory that could be raised
		{"ERR no such scripting engine", "", transport.StepMessage},
		{"ERR unknown subcommand 'LOAD'. Try SCRIPT HELP.", "", transport.StepMessage},
	} {
		synctest.Test(t, func(t *testing.T) {
			ms := newFakes(1)
			ms[0].extra = c.extra
			ms[0].refuseFunc = func(cmd []string) string {
				if cmd[0] == "SCRIPT" {
					return c.refusal
				}
				return ""
			}
			p := open(t, ms.urls(), pool.WithDialer(ms.dial))
			said := finding(t, p, "scripts")
			if len(said) != 1 || said[0].Severity != warning || !strings.Contains(said[0].What, c.refusal) ||
				!strings.Contains(said[0].Fix, c.fix) {
				t.Errorf("with the refusal %q the findings are %v", c.refusal, said)
			}
			_ = p.Close()
			synctest.Wait()
		})
	}
}

// H112: a master without SCRIPT LOAD, or without EVAL, can vote.
func TestScriptsAreLoadedOrSent(t *testing.T) {
	for _, command := range []string{"SCRIPT", "EVAL"} {
		p := open(t, []string{startServer(t, "--rename-command", command, "").URL()}, patient()...)
		step := "remove rename-command of " + strings.ToLower(command) + " from the server's configuration, and restart it"
		if said := finding(t, p, "rights"); len(said) != 1 || said[0].Severity != warning ||
			!strings.HasPrefix(said[0].Fix, step) {
			t.Errorf("without %s the findings are %v, want one warning, with the step %q", command, said, step)
		}
	}
}

// A check of a distant master takes a few round trips, not one for each query.
func TestCheckOfFarMasterEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := newFakes(1)
		p := open(t, far.urls(), pool.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := far.dial(ctx, network, addr)
			return &distant{Conn: c}, err
		}))
		if list := found(t, p); len(list) != 1 || !strings.Contains(list[0].What, "it answers after 240ms, longer than") {
			t.Errorf("the findings are %v", list)
		}
		_ = p.Close()
		synctest.Wait()
	})
}

// A distant is a connection whose round trip takes 240 ms: each write that follows a read waits.
type distant struct {
	net.Conn
	read atomic.Bool
}

func (d *distant) Read(b []byte) (int, error) {
	d.read.Store(true)
	return d.Conn.Read(b)
}

func (d *distant) Write(b []byte) (int, error) {
	if d.read.Swap(false) {
		time.Sleep(240 * time.Millisecond)
	}
	return d.Conn.Write(b)
}
