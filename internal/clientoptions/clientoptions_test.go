package clientoptions_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/clientoptions"
	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/pooltest"
	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/pool"
)

// Locks can be acquired with a login in a database, credentials of a function, a dial function, a dialer, TLS, and a
// socket.
func TestServers(t *testing.T) {
	servers := redistest.Test(t, 5, pooltest.User)
	_, secure, trust := redistest.Secure(t)
	var asked, dialled, controlled atomic.Int32
	dialer := net.Dialer{Control: func(string, string, syscall.RawConn) error { controlled.Add(1); return nil }}
	options := []clientoptions.Options{
		{Addrs: []string{servers[0].Addr()}, Database: 3},
		{
			Addrs: []string{servers[1].Addr()}, User: "no", Password: "no",
			Credentials: func(context.Context) (user, password string, err error) {
				asked.Add(1)
				return "lock", "secret", nil
			},
		},
		{
			Addrs: []string{servers[2].Addr()},
			Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
				dialled.Add(1)
				return new(net.Dialer).DialContext(ctx, network, addr)
			},
		},
		{Addrs: []string{servers[3].Unix()}, Unix: true},
		{Addrs: []string{servers[4].Addr()}, Dialer: &dialer},
		{Addrs: []string{secure}, TLS: trust},
	}
	masters := make([]pool.Master, len(options))
	for i, o := range options {
		if o.User == "" && o.TLS == nil {
			o.User, o.Password = "lock", "secret"
		}
		masters[i] = must.Get(o.Master([]pool.Option{pool.WithDialTimeout(10 * time.Second)}))(t)
	}
	p, err := pool.New(masters)
	pooltest.Locks(t, p, err)
	if asked.Load() == 0 || dialled.Load() == 0 || controlled.Load() == 0 {
		t.Errorf("the credentials were requested %d times, the dial function called %d times, the dialer %d times, want all",
			asked.Load(), dialled.Load(), controlled.Load())
	}
	inDatabase3(t, servers[0])
}

// inDatabase3 checks that the server has no keys in database 0.
func inDatabase3(t *testing.T, s *redisproc.Server) {
	t.Helper()
	if n := redistest.Do(t, s, "DBSIZE"); n != int64(0) {
		t.Errorf("database 0 has %v keys, want all in database 3", n)
	}
}

// A lock can be acquired on a master behind a sentinel. Each of the two has its own login, and only the master needs a
// certificate of the client.
func TestSentinel(t *testing.T) {
	dir := redistest.Certificates(t)
	server, addr := redistest.SecureIn(t, dir, "yes")
	redistest.Do(t, server, "ACL", "SETUSER", "lock", "on", ">secret", "~*", "&*", "+@all")
	redistest.Do(t, server, "ACL", "SETUSER", "default", "-@scripting")
	own := fmt.Sprint("127.0.0.1:", must.Get(redisproc.FreePort())(t))
	redistest.Sentinel(t, redisproc.Config{Args: append(redistest.TLSArgs(dir, "no"), "--tls-port", own[10:])}, addr, 1,
		"tls-replication yes", "requirepass no", "user watch on >seen +@all")
	trust := must.Get(redistest.ClientTLS(dir))(t)
	o := clientoptions.Options{
		Addrs: []string{own}, MasterSet: "master", TLS: trust, User: "lock", Password: "secret", Database: 3,
		SentinelTLS: &tls.Config{RootCAs: trust.RootCAs}, SentinelUser: "watch", SentinelPassword: "seen",
	}
	p, err := pool.New([]pool.Master{must.Get(o.Master(nil))(t)}, pool.AllowTwoHolders())
	pooltest.Locks(t, p, err)
	inDatabase3(t, server)
}

// Locks can be acquired in the buckets of a cluster, with TLS and without.
func TestCluster(t *testing.T) {
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprint("TLS ", secure), func(t *testing.T) {
			addrs, trust := redistest.Cluster(t, pooltest.User, secure)
			o := clientoptions.Options{Addrs: addrs[:2], User: "lock", Password: "secret", TLS: trust}
			pooltest.Buckets(t, must.Get(o.Buckets(5, []pool.Option{pool.AllowTwoHolders()}))(t))
		})
	}
}

// Options that do not describe exactly one master, or one cluster, are refused. Others give a master with the name of
// its address, its socket or its sentinels.
func TestOptions(t *testing.T) {
	type options = clientoptions.Options
	secure, one, two := &tls.Config{}, []string{"a:1"}, []string{"b:1", "[fe80::1%eth0]:2"}
	for _, c := range []struct {
		o       options
		buckets int    // 0 for a master
		want    string // the name of the first master, or part of the error
	}{
		{options{Addrs: []string{"A.example:1"}}, 0, "a.example:1"},
		{options{Addrs: []string{"[fe80::1%eth0]:2"}}, 0, "[fe80::1%eth0]:2"},
		{options{Addrs: []string{"/run/a b?.sock"}}, 0, "/run/a b?.sock"},
		{options{Addrs: two, MasterSet: "m?"}, 0, "m?@[fe80::1%eth0]:2,b:1"},
		{options{Addrs: two}, 2, "cluster@[fe80::1%eth0]:2,b:1{1}"},
		{options{}, 0, "address"},
		{options{}, 3, "address"},
		{options{MasterSet: "m"}, 0, "address"},
		{options{Addrs: []string{""}}, 0, "address"},
		{options{Addrs: one, ReplicaOnly: true}, 3, "ReplicaOnly"},
		{options{Addrs: one, Database: 3}, 3, "database 0"},
		{options{Addrs: []string{"user@a:1"}}, 3, "URL"},
		{options{Addrs: []string{"a:1", "b:1?allow=two-holders"}}, 3, "hosts is invalid"},
		{options{Addrs: one}, -1, "buckets"},
		{options{Addrs: one, Cluster: true}, 0, "use Buckets"},
		{options{Addrs: two}, 0, "use Buckets"},
		{options{Addrs: one, MasterSet: "m"}, 3, "sentinels"},
		{options{Addrs: []string{"::1"}}, 0, "brackets"},
		{options{Addrs: []string{"s"}, Unix: true}, 0, "absolute path"},
		{options{Addrs: []string{"/s"}, TLS: secure}, 0, "Unix socket"},
		{options{Addrs: one, MasterSet: "m", TLS: secure}, 0, "use TLS"},
		{options{Addrs: one, MasterSet: "m", SentinelTLS: secure}, 0, "use TLS"},
		{options{Addrs: one, ReplicaOnly: true}, 0, "ReplicaOnly"},
	} {
		if got := open(t, c.o, c.buckets); !strings.Contains(got, c.want) {
			t.Errorf("%+v, %d buckets: %s, want %s", c.o, c.buckets, got, c.want)
		}
	}
}

// open returns the name of the only master, or of the first bucket, or the text of the error, which matches ErrInvalid.
func open(t *testing.T, o clientoptions.Options, n int) string {
	pools, err := []*pool.Pool{nil}, error(nil)
	if n == 0 {
		pools[0], err = clientoptions.New(1, func(int) (pool.Master, error) { return o.Master(nil) })
	} else {
		pools, err = o.Buckets(n, nil)
	}
	if errors.Is(err, pool.ErrInvalid) {
		return err.Error()
	}
	must.Do(t, err)
	for _, p := range pools {
		defer p.Close()
	}
	return pools[0].Addr(0)
}
