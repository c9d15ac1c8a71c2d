package main

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/redlock-go/redlock/examples/internal/testmasters"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// addresses returns the addresses of three listening masters in memory.
func addresses(t *testing.T) (list []string) {
	t.Helper()
	for _, u := range testmasters.Listen(t, 3) {
		list = append(list, strings.TrimPrefix(u, "redis://"))
	}
	return list
}

// locks acquires a lock over a pool, and closes the pool.
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

func TestTheProgramLocksByEachClient(t *testing.T) {
	urls := testmasters.Listen(t, 3)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, client := range []string{"go-redis", "rueidis", "redigo"} {
		var out strings.Builder
		if err := run(ctx, client, urls, &out); err != nil || !strings.HasPrefix(out.String(), "locked, token ") {
			t.Errorf("%s: %q, %v", client, out.String(), err)
		}
		if client == "redigo" {
			continue // it reads a URL when it dials
		}
		if err := run(ctx, client, []string{"http://127.0.0.1:1"}, &out); err == nil {
			t.Errorf("%s accepts an invalid master", client)
		}
	}
	if err := run(ctx, "another", urls, io.Discard); err == nil {
		t.Error("an unknown client is accepted")
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
	if p, err = fromGoRedis([]*goredis.Options{{Addr: "a:1", TLSConfig: &tls.Config{}},
		{Network: "unix", Addr: "/s", DB: 1}}); err != nil {
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
		if p.Addr(0) != "job@a:1,b:2" {
			t.Error(p.Addr(0))
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestAClusterHasAPoolForEachBucket(t *testing.T) {
	locker, pools, err := dialCluster("redis+cluster://127.0.0.1:1?buckets=3")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(locker.Admin().Masters()); len(pools) != 3 || n != 3 {
		t.Errorf("%d pools, %d masters", len(pools), n)
	}
	if err := locker.Close(t.Context()); err != nil {
		t.Error(err)
	}
	for _, p := range pools {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, _, err := dialCluster("redis://127.0.0.1:1"); err == nil {
		t.Error("a plain master is accepted as a cluster")
	}
}

func TestOptionsOfRueidisMakeMasters(t *testing.T) {
	var dialled atomic.Int32
	var servers, dialers []rueidis.ClientOption
	for _, addr := range addresses(t) {
		o := rueidis.ClientOption{InitAddress: []string{addr}, ConnWriteTimeout: time.Minute,
			Dialer: net.Dialer{Timeout: time.Minute}}
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
		{InitAddress: []string{"a:1", "b:1"}},
		{InitAddress: []string{"a:1"}, Sentinel: rueidis.SentinelOption{MasterSet: "m"}},
	} {
		if _, err := fromRueidis([]rueidis.ClientOption{o}); err == nil {
			t.Errorf("%q is accepted as a master", o.InitAddress)
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
	l, err := redlock.New(p)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close(context.Background())
	_, err = l.TryLock(t.Context(), "job")
	if err == nil || !strings.Contains(err.Error(), "no password today") || asked.Load() == 0 {
		t.Errorf("asked %d times: %v", asked.Load(), err)
	}
}
