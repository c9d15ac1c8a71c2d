package redlockrueidis_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/admin"
	"github.com/redlock-go/redlock/redlockrueidis"
)

// user configures servers with an ACL user "lock" that has the password "secret".
var user = redisproc.Config{Args: []string{"--user", "lock", "on", ">secret", "~*", "&*", "+@all"}}

// locks creates a Locker over p, calls holds, and closes p.
func locks(t *testing.T, p *pool.Pool, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	l, err := redlock.New(p)
	holds(t, l, err)
}

// holds admits the masters of l, acquires some locks, checks that all masters vote, and closes l.
func holds(t *testing.T, l *redlock.Locker, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := admin.Of(l).Admit(ctx); err != nil {
		t.Fatal(err)
	}
	if err := l.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		err := l.Do(ctx, fmt.Sprint("orders:", i), func(context.Context, *redlock.Lock) error { return nil })
		if err != nil {
			t.Error(err)
		}
	}
	for _, m := range admin.Of(l).Masters() {
		if m.State != "voting" {
			t.Errorf("master %s is %s, want voting: %v", m.Addr, m.State, m.Err)
		}
	}
}

// Locks can be acquired with a password, a function for credentials, TLS, a Unix socket, and a dial function.
func TestServers(t *testing.T) {
	servers := redistest.Test(t, 4, user)
	_, secure, trust := redistest.Secure(t)
	var dialled, asked atomic.Int32
	at := func(i int) []string { return []string{servers[i].Addr()} }
	unix, err := rueidis.ParseURL("unix://" + servers[3].Unix())
	if err != nil {
		t.Fatal(err)
	}
	p, err := redlockrueidis.New([]rueidis.ClientOption{
		{InitAddress: []string{secure}, TLSConfig: trust},
		{InitAddress: at(0), Username: "lock", Password: "secret", SelectDB: 3},
		{
			InitAddress: at(1), Username: "no", Password: "no",
			AuthCredentialsFn: func(c rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
				asked.Add(1)
				if got := c.Address.Network() + " " + c.Address.String(); got != "tcp "+servers[1].Addr() {
					t.Errorf("the credentials are requested for %s", got)
				}
				return rueidis.AuthCredentials{Username: "lock", Password: "secret"}, nil
			},
		},
		{
			InitAddress: at(2),
			DialFn: func(addr string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
				dialled.Add(1)
				return d.Dial("tcp", addr)
			},
		},
		unix,
	}, pool.WithDialTimeout(10*time.Second))
	locks(t, p, err)
	if dialled.Load() == 0 || asked.Load() == 0 {
		t.Errorf("the dial function was called %d times, AuthCredentialsFn %d times, want both", dialled.Load(), asked.Load())
	}
}

// A lock can be acquired on a master behind a sentinel that requires a password.
func TestSentinel(t *testing.T) {
	server := redistest.Test(t, 1, user)[0]
	sentinel := redistest.Sentinel(t, redisproc.Config{}, server.Addr(), 1, "requirepass watch").Addr()
	p, err := redlockrueidis.New([]rueidis.ClientOption{{
		InitAddress: []string{sentinel}, Username: "lock", Password: "secret",
		Sentinel: rueidis.SentinelOption{MasterSet: "master", Password: "watch"},
	}}, pool.AllowTwoHolders())
	if err == nil && p.Addr(0) != "master@"+sentinel {
		t.Error(p.Addr(0))
	}
	locks(t, p, err)
}

// A Locker acquires locks on a Redis Cluster whose hash slots are divided into buckets, one for each independent set of
// keys.
func TestBuckets(t *testing.T) {
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprint("TLS ", secure), func(t *testing.T) { onCluster(t, secure) })
	}
}

func onCluster(t *testing.T, secure bool) {
	t.Helper()
	addrs, trust := redistest.Cluster(t, user, secure)
	o := rueidis.ClientOption{InitAddress: addrs[:2], Username: "lock", Password: "secret", TLSConfig: trust}
	pools, err := redlockrueidis.Buckets(o, 5, pool.AllowTwoHolders())
	if err != nil {
		t.Fatal(err)
	}
	l, err := redlock.NewSharded(pools)
	holds(t, l, err)
	for _, p := range pools {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	o.DisableCache = true
	client, err := rueidis.NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	keys, err := client.Do(t.Context(), client.B().Exists().Key("redlock{1}:admission").Build()).AsInt64()
	if keys != 1 || err != nil {
		t.Errorf("%d admission records of bucket 1 exist, want 1: %v", keys, err)
	}
}

// Options that do not describe exactly one master are refused before anything is dialled.
func TestRefused(t *testing.T) {
	at := []string{"a:1"}
	for name, o := range map[string]rueidis.ClientOption{
		"nothing": {}, "a cluster": {InitAddress: []string{"a:1", "b:1"}}, "a replica": {InitAddress: at, ReplicaOnly: true},
		"TLS to the master alone": {
			InitAddress: at, TLSConfig: &tls.Config{}, Sentinel: rueidis.SentinelOption{MasterSet: "m"},
		},
		"TLS over a socket": {InitAddress: []string{"/s"}, TLSConfig: &tls.Config{}},
	} {
		if _, err := redlockrueidis.New([]rueidis.ClientOption{o}); !errors.Is(err, pool.ErrInvalid) {
			t.Errorf("New with %s returned %v, want ErrInvalid", name, err)
		}
	}
	if _, err := redlockrueidis.Buckets(rueidis.ClientOption{}, 3); !errors.Is(err, pool.ErrInvalid) {
		t.Error(err)
	}
}
