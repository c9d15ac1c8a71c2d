package redlockgoredis

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"

	"github.com/redlock-go/redlock/internal/clientoptions"
	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/pooltest"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/pool"
)

// all maps o as each function of the package does, from the options that go-redis makes of o.
func all(o *redis.UniversalOptions) map[string]*clientoptions.Options {
	return map[string]*clientoptions.Options{
		"New": from(o), "Failover": ofFailover(o.Failover()),
		"Master": ofClient(o.Simple()), "Buckets": ofCluster(o.Cluster()),
	}
}

// Each function uses each field of the options that go-redis has for it.
func TestFields(t *testing.T) {
	secure, dialled := &tls.Config{ServerName: "a"}, errors.New("dialled")
	for name, got := range all(&redis.UniversalOptions{
		Addrs: []string{"a:1"}, MasterName: "m", ReadOnly: true, IsClusterMode: true, TLSConfig: secure, DB: 3,
		Username: "user", Password: "password", SentinelUsername: "watch", SentinelPassword: "seen",
		Dialer: func(context.Context, string, string) (net.Conn, error) { return nil, dialled },
	}) {
		want := &clientoptions.Options{
			Package: "redlockgoredis", Addrs: []string{"a:1"}, MasterSet: "m", ReplicaOnly: true, Cluster: name == "New",
			TLS: secure, SentinelTLS: secure, Database: 3, User: "user", Password: "password",
			SentinelUser: "watch", SentinelPassword: "seen",
		}
		if name == "Master" || name == "Buckets" {
			want.MasterSet, want.ReplicaOnly, want.SentinelUser, want.SentinelPassword = "", false, "", ""
		}
		if name == "Buckets" {
			want.Database = 0
		}
		if _, err := got.Dial(t.Context(), "tcp", "a:1"); !errors.Is(err, dialled) {
			t.Errorf("%s: the dialer was not called: %v", name, err)
		}
		if got.Dial = nil; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: the options are %+v, want %+v", name, got, want)
		}
	}
	if from(&redis.UniversalOptions{ReadOnly: true}).ReplicaOnly || !ofClient(&redis.Options{Network: "unix"}).Unix {
		t.Error("ReadOnly is used without sentinels, or the network is not used")
	}
}

// A stream provides credentials, and counts the ended subscriptions.
type stream int

func (s *stream) Subscribe(auth.CredentialsListener) (auth.Credentials, auth.UnsubscribeFunc, error) {
	return auth.NewBasicCredentials("lock", "secret"), func() error { *s++; return nil }, nil
}

// Each function uses each kind of provider. A stream takes precedence, and then the provider with a context.
func TestProviders(t *testing.T) {
	var s stream
	plain := func() (string, string) { return "lock", "secret" }
	withContext := func(context.Context) (string, string, error) { return "lock", "secret", nil }
	no := func(context.Context) (string, string, error) { return "no", "no", nil }
	for i, o := range []*redis.UniversalOptions{
		{CredentialsProvider: plain},
		{CredentialsProviderContext: withContext, CredentialsProvider: func() (string, string) { return "no", "no" }},
		{StreamingCredentialsProvider: &s, CredentialsProviderContext: no},
	} {
		for name, got := range all(o) {
			if user, password, err := got.Credentials(t.Context()); user != "lock" || password != "secret" || err != nil {
				t.Errorf("%s with provider %d: %s, %s, %v", name, i, user, password, err)
			}
		}
	}
	if s != 4 {
		t.Errorf("%d subscriptions ended, want 4", s)
	}
}

// Locks can be acquired on a server, on a Unix socket, and with TLS, also if the options come from an existing client,
// whose dialer does the TLS handshake.
func TestServers(t *testing.T) {
	servers := redistest.Test(t, 2, pooltest.User)
	_, secure, trust := redistest.Secure(t)
	for _, exists := range []bool{false, true} {
		var masters []pool.Master
		for _, o := range []*redis.Options{
			{Addr: secure, TLSConfig: trust},
			{Addr: servers[0].Addr(), Username: "lock", Password: "secret"},
			{Network: "unix", Addr: servers[1].Unix(), Username: "lock", Password: "secret"},
		} {
			if exists {
				client := redis.NewClient(o)
				defer client.Close()
				o = client.Options()
			}
			masters = append(masters, must.Get(Master(o))(t))
		}
		p, err := pool.New(masters)
		pooltest.Locks(t, p, err)
	}
}

// Errors name the package, and options of package pool apply.
func TestRefused(t *testing.T) {
	at, bad := []string{"a:1"}, pool.WithDatabase(-1)
	_, none := New([]*redis.UniversalOptions{nil})
	_, nowhere := New([]*redis.UniversalOptions{{}})
	_, master := Master(nil)
	_, failover := Failover(nil)
	_, sentinels := Failover(&redis.FailoverOptions{MasterName: "m"})
	_, unnamed := Failover(&redis.FailoverOptions{SentinelAddrs: at})
	_, cluster := Buckets(nil, 3)
	client := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "m", SentinelAddrs: at})
	defer client.Close()
	_, behind := Master(client.Options())
	for i, err := range []error{none, nowhere, master, failover, sentinels, unnamed, cluster, behind} {
		if !errors.Is(err, pool.ErrInvalid) || !strings.Contains(err.Error(), ": redlockgoredis: ") {
			t.Errorf("call %d with invalid options: %v, want ErrInvalid", i, err)
		}
	}
	_, ofNew := New([]*redis.UniversalOptions{{Addrs: at}}, bad)
	_, ofMaster := pool.New([]pool.Master{must.Get(Master(&redis.Options{Addr: "a:1"}, bad))(t)})
	m := must.Get(Failover(&redis.FailoverOptions{MasterName: "m", SentinelAddrs: at}, bad))(t)
	_, ofFailover := pool.New([]pool.Master{m})
	_, ofBuckets := Buckets(&redis.ClusterOptions{Addrs: at}, 3, bad)
	for i, err := range []error{ofNew, ofMaster, ofFailover, ofBuckets} {
		if err == nil || !strings.Contains(err.Error(), "database -1") {
			t.Errorf("call %d with a wrong option of package pool: %v", i, err)
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
