package clients

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlocktest"
)

// addresses are those of three masters in memory that listen.
func addresses(t *testing.T) (list []string) {
	t.Helper()
	masters := redlocktest.New(3)
	t.Cleanup(masters.Close)
	urls, err := masters.Listen()
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range urls {
		list = append(list, strings.TrimPrefix(u, "redis://"))
	}
	return list
}

// locks takes a lock over a pool, and closes it.
func locks(t *testing.T, p *pool.Pool, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	l, err := redlock.New(p)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close(context.Background())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := l.Do(ctx, "orders:42", context.Context.Err); err != nil {
		t.Error(err)
	}
}

func TestOptionsOfGoRedisMakeMasters(t *testing.T) {
	var dialled atomic.Int32
	var servers, dialers []*goredis.Options
	for _, addr := range addresses(t) {
		servers = append(servers, &goredis.Options{Addr: addr, ReadTimeout: time.Minute, DialTimeout: time.Minute})
		dialers = append(dialers, &goredis.Options{
			Addr: addr, ReadTimeout: time.Minute, TLSConfig: &tls.Config{},
			Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
				dialled.Add(1)
				return (&net.Dialer{}).DialContext(ctx, network, addr)
			},
		})
	}
	p, err := fromGoRedis(servers)
	locks(t, p, err)
	p, err = fromGoRedis(dialers)
	locks(t, p, err)
	if dialled.Load() < 2 {
		t.Errorf("dialled %d times", dialled.Load())
	}
	if p, err = fromGoRedis([]*goredis.Options{{Addr: "a:1", TLSConfig: &tls.Config{}}, {Network: "unix", Addr: "/s", DB: 1}}); err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if p.Addr(0) != "a:1" || p.Addr(1) != "/s" {
		t.Errorf("%s, %s", p.Addr(0), p.Addr(1))
	}
}

func TestOptionsOfAFailoverClientMakeAMaster(t *testing.T) {
	for _, secure := range []*tls.Config{nil, {}} {
		m := fromGoRedisFailover(&goredis.FailoverOptions{
			MasterName: "job", SentinelAddrs: []string{"a:1", "b:2"}, Username: "u", Password: "p", SentinelPassword: "s",
			TLSConfig: secure, DB: 2,
		})
		p, err := pool.New([]pool.Master{m})
		if err != nil {
			t.Fatal(err)
		}
		if p.Addr(0) != "job@a:1,b:2" || !p.FailsOver(0) {
			t.Errorf("%s, %v", p.Addr(0), p.FailsOver(0))
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestAClusterHasAPoolForEachBucket(t *testing.T) {
	groups, pools, err := dialCluster("redis+cluster://127.0.0.1:1?buckets=3")
	if err != nil {
		t.Fatal(err)
	}
	if len(pools) != 3 || len(groups.Lockers()) != 3 {
		t.Errorf("%d pools, %d Lockers", len(pools), len(groups.Lockers()))
	}
	if err := groups.Close(t.Context()); err != nil {
		t.Error(err)
	}
	for _, p := range pools {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, _, err := dialCluster("redis://127.0.0.1:1"); err == nil {
		t.Error("a plain master is taken for a cluster")
	}
}

func TestOptionsOfRueidisMakeMasters(t *testing.T) {
	var dialled atomic.Int32
	var servers, dialers []rueidis.ClientOption
	for _, addr := range addresses(t) {
		o := rueidis.ClientOption{InitAddress: []string{addr}, ConnWriteTimeout: time.Minute, Dialer: net.Dialer{Timeout: time.Minute}}
		servers = append(servers, o)
		o.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			dialled.Add(1)
			return d.DialContext(ctx, "tcp", addr)
		}
		dialers = append(dialers, o)
	}
	p, err := fromRueidis(servers)
	locks(t, p, err)
	p, err = fromRueidis(dialers)
	locks(t, p, err)
	if dialled.Load() < 2 {
		t.Errorf("dialled %d times", dialled.Load())
	}
	for _, o := range []rueidis.ClientOption{
		{InitAddress: []string{"a:1", "b:1"}}, {InitAddress: []string{"a:1"}, Sentinel: rueidis.SentinelOption{MasterSet: "m"}},
	} {
		if _, err := fromRueidis([]rueidis.ClientOption{o}); err == nil {
			t.Errorf("%q is taken for a master", o.InitAddress)
		}
	}
}

func TestPoolsOfRedigoMakeMasters(t *testing.T) {
	pools, asked := map[string]*redis.Pool{}, atomic.Int32{}
	var fresh []pool.Master
	for _, addr := range addresses(t) {
		pools[addr] = &redis.Pool{Dial: func() (redis.Conn, error) { return redis.Dial("tcp", addr) }}
		fresh = append(fresh, withFreshPassword(addr, func(context.Context) (string, error) {
			asked.Add(1)
			return "", errors.New("no password today")
		}))
	}
	p, err := fromRedigo(pools)
	locks(t, p, err)
	if p, err = pool.New(fresh); err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	down := make(chan error, 64)
	defer p.Watch(func(e pool.Event) { down <- e.Err })()
	if err := <-down; err == nil || !strings.Contains(err.Error(), "no password today") || asked.Load() == 0 {
		t.Errorf("asked %d times: %v", asked.Load(), err)
	}
}
