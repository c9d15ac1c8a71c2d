package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/internal/transport/fault"
	"github.com/redlock-go/redlock/internal/transport/sentinel"
)

// H132: the URL of a master behind Sentinel has the credentials of the master, and none of the sentinels.
func TestURLsOfMastersBehindSentinel(t *testing.T) {
	for _, c := range []struct {
		url, name, user, password string
		sentinels                 []string
		database                  int
		useTLS, twoHolders        bool
	}{
		{url: "redis+sentinel://s1:1,S2,[::1]:3/job", name: "job@[::1]:3,s1:1,s2:26379",
			sentinels: []string{"s1:1", "s2:26379", "[::1]:3"}},
		{url: "valkey+sentinel://u:p%40@s1/job?db=3", name: "job@s1:26379", user: "u", password: "p@",
			sentinels: []string{"s1:26379"}, database: 3},
		{url: "rediss+sentinel://:p@s1:1,s2:2/job?allow=two-holders&db=0", name: "job@s1:1,s2:2", password: "p",
			sentinels: []string{"s1:1", "s2:2"}, useTLS: true, twoHolders: true},
	} {
		m := URL(c.url)
		cfg, err := m.settings(defaults())
		if err != nil {
			t.Errorf("the URL %s is rejected: %v", c.url, err)
			continue
		}
		if m.Name != c.name || cfg.User != c.user || cfg.Password != c.password || cfg.Database != c.database ||
			m.useTLS != c.useTLS || cfg.failover.twoHold != c.twoHolders || !slices.Equal(m.nodes, c.sentinels) {
			t.Errorf("%s is parsed as %+v, user %q, password %q, database %d", c.url, m, cfg.User, cfg.Password, cfg.Database)
		}
		for _, s := range cfg.Authority().(*sentinel.Finder).Sentinels {
			if s.User != "" || s.Password != "" || (s.TLS != nil) != c.useTLS {
				t.Errorf("%s: the target of a sentinel is %+v", c.url, s)
			}
		}
	}
}

// H127: dangerous settings of the replicas are reported.
func TestDangerousReplicaSettings(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		stop      Stopping
		rule      Promotion
		connected int
		says      string
	}{
		{Stopping{replicas: 2, lag: 3 * s}, Promotion{2, 5 * s}, 2, ""},
		{Stopping{replicas: 3, lag: 3 * s}, Promotion{2, 5 * s}, 2, ""},
		{Stopping{replicas: 1, lag: 3 * s}, Promotion{0, 5 * s}, 0, ""},
		{Stopping{replicas: 1, lag: 3 * s}, Promotion{2, 5 * s}, 2, "that may be promoted"},
		{Stopping{replicas: 1, lag: 3 * s}, Promotion{1, 5 * s}, 2, "that may be promoted"},
		{Stopping{replicas: 0, lag: 3 * s}, Promotion{0, 5 * s}, 0, "it has no replica"},
		{Stopping{replicas: 2, lag: 4 * s}, Promotion{2, 5 * s}, 2, "min-replicas-max-lag is 4s"},
		{Stopping{replicas: 2, lag: 0}, Promotion{2, 5 * s}, 2, "min-replicas-max-lag is 0s"},
		{Stopping{replicas: 2, lag: 10 * s}, Promotion{2, 12 * s}, 2, ""},
		{Stopping{replicas: 2, lag: 10 * s}, Promotion{2, 11500 * time.Millisecond}, 2, "from 1s to 9s"},
		{Stopping{replicas: 2, lag: 11 * s}, Promotion{2, 60 * s}, 2, "from 1s to 10s"},
		{Stopping{replicas: 2, lag: 1 * s}, Promotion{2, 2 * s}, 2, "a replica is promoted after 2s"},
		{Stopping{err: errors.New("NOPERM")}, Promotion{2, 5 * s}, 2, "cannot be read (NOPERM)"},
	} {
		if what, do := c.stop.Danger(c.rule, &Info{Version: "7.0.15", Replicas: c.connected}, "lock"); c.says == "" &&
			what != "" ||
			!strings.Contains(what, c.says) || (what == "") != (do == "") {
			t.Errorf("for %+v and %+v the danger is %q, and the advice is %q", c.stop, c.rule, what, do)
		}
	}
}

// H134: before Redis 6.2.7, min-replicas-to-write did not stop writes by scripts, and only scripts write locks.
func TestDangerousRedisVersions(t *testing.T) {
	stop, rule := Stopping{replicas: 1, lag: 3 * time.Second}, Promotion{1, 5 * time.Second}
	for _, c := range []struct {
		version string
		valkey  bool
		safe    bool
	}{
		{"6.2.0", false, false}, {"6.2.6", false, false}, {"6.2.7", false, true}, {"6.2.14", false, true},
		{"6.9.240", false, false}, {"7.0.0", false, true}, {"8.0.1", false, true}, {"", false, false}, {"x", false, false},
		{"7.2.4", true, true}, {"255.255.255", true, true},
	} {
		info := &Info{Version: c.version, Valkey: c.valkey, Replicas: 1}
		if what, do := stop.Danger(rule, info, "lock"); (what == "") != c.safe || !c.safe && !strings.Contains(do, "6.2.7") {
			t.Errorf("for version %q the danger is %q, and the advice is %q", c.version, what, do)
		}
	}
}

// H136: a promoted server knows neither the min-replicas-max-lag of its predecessor nor the silence after which the
// server was promoted, and its own settings may be shorter. So the quarantine is as long as the longest allowed values
// require, also for a client that allows two holders: others may not.
func TestPromotedServerWaitsLongest(t *testing.T) {
	fields := InfoFields("connected_slaves:1\r\nslave0:ip=b,port=1,state=online,offset=1,lag=0")
	for _, c := range []struct {
		twoHold bool
		stop    Stopping
	}{{false, Stopping{replicas: 1, lag: time.Second}}, {true, Stopping{}}} {
		f := failoverAfter(1, 15*time.Second)
		f.twoHold = c.twoHold
		info := &Info{Version: "7.0.15", Replicas: 1}
		if err := f.verdict(&c.stop, info, fields); err != nil || info.Late != 12*time.Second {
			t.Errorf("two holders %v: the wait is %v, and the error is %v", c.twoHold, info.Late, err)
		}
	}
}

// H135: one sentinel knows of a promotion before the other two, which direct the next session to the old master again.
// This session must end when the other two know of the promotion, too. So the client must compare their answer with
// the address of the session, and not with their previous answer.
func TestSessionWithOldMasterEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("a")
		f.extra = "connected_slaves:1\r\nslave0:ip=b,port=1,state=online,offset=1,lag=0\r\n"
		// All three are guarded by f.mu. told: s1 has reported the promotion. spread: all sentinels know of the promotion.
		var promoted, told, spread bool
		where := func(sentinel string) (addr string, up bool) {
			switch {
			case spread || promoted && sentinel == "s1:1":
				return "new", spread || !told
			case promoted && !told && sentinel == "s3:1":
				return "", false
			}
			return "old", true
		}
		dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
			f.mu.Lock()
			_, up := where(addr)
			f.mu.Unlock()
			if !strings.HasPrefix(addr, "s") {
				return f.dial(ctx, network, addr)
			} else if !up {
				return nil, io.ErrUnexpectedEOF
			}
			return sentinelOf(func() string {
				f.mu.Lock()
				defer f.mu.Unlock()
				at, _ := where(addr)
				told = told || at == "new"
				return sentinelSays("ip", at, "port", "1", "config-epoch", strconv.Itoa(strings.Count(at, "new")),
					"num-slaves", "1", "down-after-milliseconds", "5000", "num-other-sentinels", "2", "quorum", "2")
			}).dial(ctx, network, addr)
		}
		p := open(t, []string{"redis+sentinel://s1:1,s2:1,s3:1/job"}, WithDialer(dial))
		waitUp(t, p)
		at := func() (addr string, id uint64) {
			waitUp(t, p)
			s := p.master(0).state.Load().sess
			return s.addr, s.id
		}
		time.Sleep(25 * time.Second)
		if addr, id := at(); addr != "old:1" || id != 1 {
			t.Fatalf("the master has not changed, but session %d is with %s", id, addr)
		}
		f.set(func() { promoted = true })
		time.Sleep(8 * time.Second)
		if addr, id := at(); addr != "old:1" || id < 2 {
			t.Fatalf("session %d is with %s, want a second session with the old master", id, addr)
		}
		f.set(func() { spread = true })
		time.Sleep(11 * time.Second)
		if addr, id := at(); addr != "new:1" {
			t.Errorf("session %d is still with %s", id, addr)
		}
		_ = p.Close()
	})
}

// H129: a master without recent replies of its replicas is refused, regardless of how many replicas it reports.
func TestMasterWithoutRecentReplicasIsRefused(t *testing.T) {
	stop := Stopping{replicas: 2, lag: 3 * time.Second}
	fields := func(lines ...string) map[string]string {
		return InfoFields(strings.Join(lines, "\r\n"))
	}
	const near = "slave0:ip=a,port=1,state=online,offset=1,lag=0"
	two := fields("connected_slaves:2", near, "slave1:ip=b,port=1,state=online,offset=1,lag=3")
	if err := stop.alone(two); err != nil {
		t.Error(err)
	}
	for _, third := range []string{"io-thread=0", "type=replica"} { // as Redis 8 and Valkey 8 report them
		if err := stop.alone(fields("connected_slaves:2", near+","+third, "slave1:state=online,lag=3,"+third)); err != nil {
			t.Errorf("with the field %s the master is refused: %v", third, err)
		}
	}
	for _, other := range []string{
		"slave1:ip=b,port=1,state=online,offset=1,lag=", "slave1:ip=b,port=1,state=online,offset=1",
		"slave1:ip=b,port=1,state=online,offset=1,lag=4", "slave1:ip=b,port=1,state=send_bulk,offset=1,lag=0", "",
	} {
		if err := stop.alone(fields("connected_slaves:2", near, other)); !errors.Is(err, fault.ErrRefused) {
			t.Errorf("with the replica %q the master is not refused: %v", other, err)
		}
	}
}

// A server that claims more replicas than it lists does not keep the client busy.
func TestClaimedReplicasAreBounded(t *testing.T) {
	fields := InfoFields("connected_slaves:9223372036854775807")
	stop := Stopping{replicas: 2, lag: 3 * time.Second}
	if err := stop.alone(fields); !errors.Is(err, fault.ErrRefused) {
		t.Errorf("without a replica the master is not refused: %v", err)
	}
	if n := infoOf(fields).Replicas; n > 10_000 {
		t.Errorf("the master has %d replicas", n)
	}
}

// sentinelSays returns a reply to SENTINEL MASTER that contains the given texts.
func sentinelSays(texts ...string) string {
	out := "*" + strconv.Itoa(len(texts)) + "\r\n"
	for _, s := range texts {
		out += bulk(s)
	}
	return out
}

// sentinelOf returns a fake sentinel that answers SENTINEL MASTER with the result of reply.
func sentinelOf(reply func() string) *fake {
	f := newFake("s")
	f.on = func(w io.Writer, cmd []string) (bool, error) {
		if cmd[0] != "SENTINEL" {
			return false, nil
		}
		_, err := io.WriteString(w, reply())
		return true, err
	}
	return f
}

// H132: the credentials of a master are not sent to its sentinels, and those of the sentinels are not sent to the
// master.
func TestMasterAndSentinelSecretsStaySeparate(t *testing.T) {
	s, m := sentinelOf(func() string {
		return sentinelSays("ip", "m", "port", "1", "config-epoch", "0", "num-slaves", "1",
			"down-after-milliseconds", "5000", "num-other-sentinels", "0", "quorum", "1")
	}), newFake("a")
	sent := map[*fake]string{} // guarded by s.mu
	for _, f := range []*fake{s, m} {
		reply := f.on
		f.on = func(w io.Writer, cmd []string) (bool, error) {
			s.set(func() { sent[f] += strings.Join(cmd, " ") + "\n" })
			if reply == nil {
				return false, nil
			}
			return reply(w, cmd)
		}
	}
	p := open(t, []string{"redis+sentinel://:master-word@s:1/job"}, WithDialTimeout(time.Second),
		WithSentinelCredentials("", "sentinel-word"),
		WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			return map[string]*fake{"s:1": s, "m:1": m}[addr].dial(ctx, network, addr)
		}))
	redistest.Eventually(t, "both are connected", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return strings.Contains(sent[s], "job") && strings.Contains(sent[m], "master-word")
	})
	_ = p.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.Contains(sent[s], "master-word") || strings.Contains(sent[m], "sentinel-word") {
		t.Errorf("the sentinel received %q, and the master received %q", sent[s], sent[m])
	}
	cfg, err := URL("rediss+sentinel://s:1/job").settings(Config{Sentinels: defaults().Target})
	if err != nil || cfg.Authority().(*sentinel.Finder).Sentinels[0].TLS == cfg.TLS {
		t.Error("the sentinels use the TLS configuration of the master", err)
	}
	cfg, err = URL("rediss+sentinel://s:1/job", WithTLSConfig(&tls.Config{ServerName: "m"})).settings(defaults())
	if err != nil || cfg.Authority().(*sentinel.Finder).Sentinels[0].TLS.ServerName != "" {
		t.Error("the sentinels use the TLS configuration of the master", err)
	}
}

// reported is an authority that has reported this rule.
type reported struct {
	*sentinel.Finder
	rule Promotion
}

func (r reported) Reported() (replicas int, after time.Duration, ok bool) {
	return r.rule.Replicas, r.rule.After, true
}

// failoverAfter returns the failover of a master whose sentinels have reported this number of replicas and this time
// of silence.
func failoverAfter(replicas int, silence time.Duration) *failover {
	return &failover{Authority: reported{new(sentinel.Finder), Promotion{replicas, silence}}}
}

// replaceable configures a master with one replica that is promoted after five seconds of silence.
func replaceable(cfg *Config) { cfg.failover = failoverAfter(1, 5*time.Second) }

// H136: a client with a long heartbeat still notices in time that a master is partitioned away from its replicas.
func TestLongHeartbeatNoticesPartition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("a")
		f.extra = "connected_slaves:1\r\nslave0:ip=b,port=1,state=online,offset=1,lag=0\r\n"
		p := open(t, []string{"redis://h"}, WithDialer(f.dial), WithHeartbeat(time.Minute), set(replaceable))
		waitUp(t, p)
		must.Get(call(t, p, 0, inspect("x"), Condition{}))(t)
		f.set(func() { f.extra = strings.Replace(f.extra, "lag=0", "lag=9", 1) })
		time.Sleep(DefaultHeartbeat + time.Second)
		if _, err := call(t, p, 0, inspect("x"), Condition{}); !errors.Is(err, fault.ErrRefused) {
			t.Errorf("a call to a master without its replica returned %v", err)
		}
		_ = p.Close()
	})
}

// H129: a master that was silent for longer than a heartbeat takes, here because the master and this process were
// frozen, may have been replaced. The master gets no call until it has reported that its replicas are still connected.
func TestPossiblyReplacedMasterGetsNoCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("a")
		f.extra = "connected_slaves:1\r\nslave0:ip=b,port=1,state=online,offset=1,lag=0\r\n"
		var frozen atomic.Int64
		clk := clock.New(func() clock.Instant { return clock.Runtime().Now().Add(time.Duration(frozen.Load())) })
		for _, fails := range []bool{true, false} {
			p := open(t, []string{"redis://h"}, WithDialer(f.dial), WithClock(clk), set(func(cfg *Config) {
				if fails {
					replaceable(cfg)
				}
			}))
			waitUp(t, p)
			must.Get(call(t, p, 0, inspect("x"), Condition{}))(t)
			frozen.Add(int64(time.Hour))
			if _, err := call(t, p, 0, inspect("x"), Condition{}); fails != errors.Is(err, fault.ErrTimeout) {
				t.Errorf("a call after the freeze returned %v", err)
			}
			time.Sleep(DefaultHeartbeat + time.Second)
			waitUp(t, p)
			if _, err := call(t, p, 0, inspect("x"), Condition{}); err != nil {
				t.Errorf("a call after a heartbeat failed: %v", err)
			}
			f.set(func() { f.extra = strings.Replace(f.extra, "lag=0", "lag=9", 1) })
			time.Sleep(DefaultHeartbeat + time.Second)
			if _, err := call(t, p, 0, inspect("x"), Condition{}); fails != errors.Is(err, fault.ErrRefused) {
				t.Errorf("a call to a master without its replica returned %v", err)
			}
			f.set(func() { f.extra = strings.Replace(f.extra, "lag=9", "lag=0", 1) })
			_ = p.Close()
		}
	})
}
