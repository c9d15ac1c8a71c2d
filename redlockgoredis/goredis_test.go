package redlockgoredis_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"

	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/pooltest"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlockgoredis"
)

// counted provides credentials, and counts the calls and the ended subscriptions.
type counted struct{ asked, cancelled atomic.Int32 }

func (c *counted) plain() (string, string) {
	c.asked.Add(1)
	return "lock", "secret"
}

func (c *counted) context(context.Context) (string, string, error) {
	c.asked.Add(1)
	return "lock", "secret", nil
}

func (c *counted) Subscribe(auth.CredentialsListener) (auth.Credentials, auth.UnsubscribeFunc, error) {
	c.asked.Add(1)
	return auth.NewBasicCredentials("lock", "secret"), func() error { c.cancelled.Add(1); return nil }, nil
}

// Connections log in with each kind of credentials of go-redis, and no error contains a wrong password.
func TestCredentials(t *testing.T) {
	servers := redistest.Test(t, 4, pooltest.User)
	var c counted
	options := []*redis.UniversalOptions{
		{Username: "lock", Password: "secret"},
		{CredentialsProvider: c.plain, Username: "no", Password: "no"},
		{CredentialsProviderContext: c.context, CredentialsProvider: func() (string, string) { return "no", "no" }},
		{StreamingCredentialsProvider: &c, CredentialsProviderContext: (&counted{}).context},
	}
	for i, o := range options {
		o.Addrs, o.DB = []string{servers[i].Addr()}, 3
	}
	p, err := redlockgoredis.New(options)
	pooltest.Locks(t, p, err)
	if c.asked.Load() < 3 || c.cancelled.Load() < 1 {
		t.Errorf("the providers were called %d times, and %d subscriptions ended, want at least 3 and 1",
			c.asked.Load(), c.cancelled.Load())
	}
	pooltest.InDatabase(t, servers[0], 3)
	options[0].Password = "wrong"
	if p, err = redlockgoredis.New(options[:1]); err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	l := must.Get(redlock.New(p))(t)
	defer l.Close()
	if _, err := l.TryLock(t.Context(), "a"); err == nil || strings.Contains(err.Error(), "wrong") {
		t.Errorf("a lock was acquired with a wrong password, or the error contains the password: %v", err)
	}
}

// Locks can be acquired with TLS, a Unix socket and a dial function, also if the options come from an existing
// client.
func TestConnections(t *testing.T) {
	servers := redistest.Test(t, 2, pooltest.User)
	_, secure, trust := redistest.Secure(t)
	var dialled atomic.Int32
	options := []*redis.Options{
		{Addr: secure, TLSConfig: trust},
		{Network: "unix", Addr: servers[0].Unix(), Username: "lock", Password: "secret"},
		{
			Addr: servers[1].Addr(), Username: "lock", Password: "secret",
			Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
				dialled.Add(1)
				return new(net.Dialer).DialContext(ctx, network, addr)
			},
		},
	}
	for _, exists := range []bool{false, true} {
		var masters []pool.Master
		for _, o := range options {
			if exists {
				client := redis.NewClient(o)
				defer client.Close()
				o = client.Options()
			}
			m := must.Get(redlockgoredis.Master(o, pool.WithDialTimeout(10*time.Second)))(t)
			masters = append(masters, m)
		}
		p, err := pool.New(masters)
		pooltest.Locks(t, p, err)
	}
	if dialled.Load() < 2 {
		t.Errorf("the dial function was called %d times, want at least 2", dialled.Load())
	}
}

// A lock can be acquired on a master behind a sentinel with TLS. Each of the two has its own login.
func TestSentinel(t *testing.T) {
	server, sentinel, trust, _ := pooltest.Sentinel(t)
	o := &redis.UniversalOptions{
		MasterName: "master", Addrs: []string{sentinel}, SentinelUsername: "watch", SentinelPassword: "seen",
		TLSConfig: trust, Username: "lock", Password: "secret", DB: 3,
	}
	p, err := redlockgoredis.New([]*redis.UniversalOptions{o}, pool.AllowTwoHolders())
	if err == nil && p.Addr(0) != "master@"+sentinel {
		t.Error(p.Addr(0))
	}
	pooltest.Locks(t, p, err)
	pooltest.InDatabase(t, server, 3)
}

// Locks can be acquired on the buckets of a cluster, also if the options come from an existing client.
func TestBuckets(t *testing.T) {
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprint("TLS ", secure), func(t *testing.T) { onCluster(t, secure) })
	}
}

func onCluster(t *testing.T, secure bool) {
	t.Helper()
	addrs, trust := redistest.Cluster(t, pooltest.User, secure)
	o := &redis.ClusterOptions{Addrs: addrs[:2], Username: "lock", Password: "secret", TLSConfig: trust}
	client := redis.NewClusterClient(o)
	defer client.Close()
	for _, o := range []*redis.ClusterOptions{o, client.Options()} {
		pools := must.Get(redlockgoredis.Buckets(o, 5, pool.AllowTwoHolders()))(t)
		pooltest.Buckets(t, pools, func(key string) (int64, error) { return client.Exists(t.Context(), key).Result() })
	}
}

// Options that do not describe exactly one master are refused before anything is dialled.
func TestRefused(t *testing.T) {
	for name, o := range map[string]*redis.UniversalOptions{
		"nil": nil, "a cluster": {Addrs: []string{"a:1", "b:1"}}, "one node": {Addrs: []string{"a:1"}, IsClusterMode: true},
		"a wrong address": {Addrs: []string{"a:b:c"}}, "no address": {}, "no sentinel": {MasterName: "m"},
	} {
		if _, err := redlockgoredis.New([]*redis.UniversalOptions{o}); !errors.Is(err, pool.ErrInvalid) {
			t.Errorf("New with %s returned %v, want ErrInvalid", name, err)
		}
	}
	_, none := redlockgoredis.Master(nil)
	_, socket := redlockgoredis.Master(&redis.Options{Network: "unix", Addr: "/s", TLSConfig: &tls.Config{}})
	_, replica := redlockgoredis.Failover(&redis.FailoverOptions{
		MasterName: "m", SentinelAddrs: []string{"a:1"}, ReplicaOnly: true,
	})
	_, sentinels := redlockgoredis.Failover(&redis.FailoverOptions{MasterName: "m"})
	_, empty := redlockgoredis.Buckets(&redis.ClusterOptions{}, 3)
	_, zero := redlockgoredis.Buckets(&redis.ClusterOptions{Addrs: []string{"a:1"}}, 0)
	client := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{"a:1"}})
	defer client.Close()
	_, behind := redlockgoredis.Master(client.Options())
	for i, err := range []error{none, socket, replica, sentinels, empty, zero, behind} {
		if !errors.Is(err, pool.ErrInvalid) {
			t.Errorf("call %d with invalid options returned %v, want ErrInvalid", i, err)
		}
	}
}

// An address in a list means what it means alone: an IPv6 address may have a zone, and no address is a part of a URL.
func TestAddresses(t *testing.T) {
	at := []string{"[fe80::1%eth0]:1"}
	alone := must.Get(redlockgoredis.Master(&redis.Options{Addr: at[0]}))(t)
	behind := must.Get(redlockgoredis.Failover(&redis.FailoverOptions{MasterName: "m?", SentinelAddrs: at}))(t)
	if alone.Name != at[0] || behind.Name != "m?@"+at[0] {
		t.Errorf("the masters are %s and %s", alone.Name, behind.Name)
	}
	buckets := must.Get(redlockgoredis.Buckets(&redis.ClusterOptions{Addrs: at}, 1))(t)
	must.Do(t, buckets[0].Close())
	for _, addr := range []string{"user@a:1", "a:1?allow=two-holders"} {
		o := &redis.ClusterOptions{Addrs: []string{"b:1", addr}}
		if _, err := redlockgoredis.Buckets(o, 1); !errors.Is(err, pool.ErrInvalid) {
			t.Errorf("Buckets at %s returned %v, want ErrInvalid", addr, err)
		}
	}
}

// The table of options in the guide has the default timeouts of this version of go-redis.
func TestGuideHasDefaultTimeouts(t *testing.T) {
	page := must.Get(os.ReadFile("../docs/guide.md"))(t)
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer client.Close()
	o := client.Options()
	for _, want := range []string{
		fmt.Sprintf("| `DialTimeout` (%.0f s) |", o.DialTimeout.Seconds()),
		fmt.Sprintf("| `ReadTimeout`, `WriteTimeout` (%.0f s) |", max(o.ReadTimeout, o.WriteTimeout).Seconds()),
	} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the guide has no %q", want)
		}
	}
}
