package redlockrueidis

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"reflect"
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"github.com/redlock-go/redlock/internal/clientoptions"
	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/pooltest"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/pool"
)

// Each field of the options is used.
func TestFields(t *testing.T) {
	at, secure, ofSentinels := []string{"a:1"}, &tls.Config{ServerName: "a"}, &tls.Config{ServerName: "s"}
	o := rueidis.ClientOption{
		InitAddress: at, Username: "user", Password: "password", SelectDB: 3, ReplicaOnly: true,
		Dialer: net.Dialer{FallbackDelay: 1}, TLSConfig: secure, Sentinel: rueidis.SentinelOption{
			MasterSet: "m", TLSConfig: ofSentinels, Username: "watch", Password: "seen",
		},
		AuthCredentialsFn: func(c rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
			return rueidis.AuthCredentials{Username: c.Address.Network(), Password: c.Address.String()}, nil
		},
	}
	got := from(&o)
	if user, password, err := got.Credentials(t.Context()); user != "tcp" || password != "a:1" || err != nil {
		t.Errorf("the credentials were requested for %s %s: %v", user, password, err)
	}
	got.Credentials = nil
	want := &clientoptions.Options{
		Package: "redlockrueidis", Addrs: at, MasterSet: "m", Dialer: &o.Dialer, TLS: secure, SentinelTLS: ofSentinels,
		User: "user", Password: "password", SentinelUser: "watch", SentinelPassword: "seen", Database: 3, ReplicaOnly: true,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the options are %+v, want %+v", got, want)
	}
	dialled := errors.New("dialled")
	o.DialFn = func(addr string, d *net.Dialer, with *tls.Config) (net.Conn, error) {
		if addr != "a:1" || d.FallbackDelay != 1 || with != secure {
			t.Errorf("the dial function was called with %s, %v, %v", addr, d, with)
		}
		return nil, dialled
	}
	_, err := from(&o).Dial(t.Context(), "tcp", "a:1")
	plain := o.DialFn
	o.DialCtxFn = func(_ context.Context, addr string, d *net.Dialer, with *tls.Config) (net.Conn, error) {
		return plain(addr, d, with)
	}
	o.DialFn = nil
	_, err2 := from(&o).Dial(t.Context(), "tcp", "a:1")
	if !errors.Is(err, dialled) || !errors.Is(err2, dialled) {
		t.Errorf("a dial function was not called: %v, %v", err, err2)
	}
}

// Locks can be acquired on a server and on a Unix socket.
func TestServers(t *testing.T) {
	servers := redistest.Test(t, 2, pooltest.User)
	unix := must.Get(rueidis.ParseURL("unix://lock:secret@" + servers[1].Unix()))(t)
	p, err := New([]rueidis.ClientOption{
		{InitAddress: []string{servers[0].Addr()}, Username: "lock", Password: "secret"}, unix,
	})
	pooltest.Locks(t, p, err)
}

// Errors name the package, and options of package pool apply.
func TestRefused(t *testing.T) {
	o := rueidis.ClientOption{InitAddress: []string{"a:1"}}
	_, none := New([]rueidis.ClientOption{{}})
	_, option := New([]rueidis.ClientOption{o}, pool.WithDatabase(-1))
	_, buckets := Buckets(o, 0)
	_, bucketsOption := Buckets(o, 3, pool.WithDatabase(-2))
	text := errors.Join(none, option, buckets, bucketsOption).Error()
	for _, want := range []string{": redlockrueidis: ", "database -1", "number of buckets", "database -2"} {
		if !strings.Contains(text, want) {
			t.Errorf("no error has %q: %s", want, text)
		}
	}
}
