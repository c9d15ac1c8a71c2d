package redlockrueidis_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/pooltest"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlockrueidis"
)

// Locks can be acquired with a password, a function for credentials, TLS, a Unix socket, and a dial function.
func TestServers(t *testing.T) {
	servers := redistest.Test(t, 4, pooltest.User)
	_, secure, trust := redistest.Secure(t)
	var dialled, asked, controlled atomic.Int32
	at := func(i int) []string { return []string{servers[i].Addr()} }
	unix := must.Get(rueidis.ParseURL("unix://lock:secret@" + servers[3].Unix()))(t)
	p, err := redlockrueidis.New([]rueidis.ClientOption{
		{InitAddress: []string{secure}, TLSConfig: trust},
		{
			InitAddress: at(0), Username: "lock", Password: "secret", SelectDB: 3,
			Dialer: net.Dialer{Control: func(string, string, syscall.RawConn) error { controlled.Add(1); return nil }},
		},
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
			InitAddress: at(2), Username: "lock", Password: "secret",
			DialFn: func(addr string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
				dialled.Add(1)
				return d.Dial("tcp", addr)
			},
		},
		unix,
	}, pool.WithDialTimeout(10*time.Second))
	pooltest.Locks(t, p, err)
	if dialled.Load() == 0 || asked.Load() == 0 || controlled.Load() == 0 {
		t.Errorf("the dial function was called %d times, AuthCredentialsFn %d times, Dialer.Control %d times, want all",
			dialled.Load(), asked.Load(), controlled.Load())
	}
	pooltest.InDatabase(t, servers[0], 3)
}

// A lock can be acquired on a master behind a sentinel. Each of the two has its own login and TLS.
func TestSentinel(t *testing.T) {
	server, sentinel, ofMaster, ofSentinel := pooltest.Sentinel(t)
	p, err := redlockrueidis.New([]rueidis.ClientOption{{
		InitAddress: []string{sentinel}, Username: "lock", Password: "secret", SelectDB: 3, TLSConfig: ofMaster,
		Sentinel: rueidis.SentinelOption{
			MasterSet: "master", Username: "watch", Password: "seen", TLSConfig: ofSentinel,
		},
	}}, pool.AllowTwoHolders())
	if err == nil && p.Addr(0) != "master@"+sentinel {
		t.Error(p.Addr(0))
	}
	pooltest.Locks(t, p, err)
	pooltest.InDatabase(t, server, 3)
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
	addrs, trust := redistest.Cluster(t, pooltest.User, secure)
	o := rueidis.ClientOption{InitAddress: addrs[:2], Username: "lock", Password: "secret", TLSConfig: trust}
	pools := must.Get(redlockrueidis.Buckets(o, 5, pool.AllowTwoHolders()))(t)
	pooltest.Buckets(t, pools, func(key string) (int64, error) {
		o.DisableCache = true
		client, err := rueidis.NewClient(o)
		if err != nil {
			return 0, err
		}
		defer client.Close()
		return client.Do(t.Context(), client.B().Exists().Key(key).Build()).AsInt64()
	})
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
	for name, o := range map[string]rueidis.ClientOption{
		"nothing": {}, "a replica": {InitAddress: at, ReplicaOnly: true}, "a database": {InitAddress: at, SelectDB: 3},
	} {
		if _, err := redlockrueidis.Buckets(o, 3); !errors.Is(err, pool.ErrInvalid) {
			t.Errorf("Buckets with %s returned %v, want ErrInvalid", name, err)
		}
	}
}

// An address in a list means what it means alone: an IPv6 address may have a zone, and no address is a part of a URL.
func TestAddresses(t *testing.T) {
	o := rueidis.ClientOption{InitAddress: []string{"[fe80::1%eth0]:1"}}
	o.Sentinel.MasterSet = "m?"
	behind := must.Get(redlockrueidis.Master(o))(t)
	o.Sentinel.MasterSet = ""
	alone := must.Get(redlockrueidis.Master(o))(t)
	if alone.Name != "[fe80::1%eth0]:1" || behind.Name != "m?@"+alone.Name {
		t.Errorf("the masters are %s and %s", alone.Name, behind.Name)
	}
	buckets := must.Get(redlockrueidis.Buckets(o, 1))(t)
	must.Do(t, buckets[0].Close())
	for _, addr := range []string{"user@a:1", "a:1?allow=two-holders"} {
		o.InitAddress = []string{"b:1", addr}
		if _, err := redlockrueidis.Buckets(o, 1); !errors.Is(err, pool.ErrInvalid) {
			t.Errorf("Buckets at %s returned %v, want ErrInvalid", addr, err)
		}
	}
}
