package pooltest

import (
	"context"
	"crypto/tls"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/admin"
)

// User configures servers with an ACL user "lock" that has the password "secret". Without a login no lock can be
// acquired.
var User = redisproc.Config{Args: []string{
	"--user", "lock", "on", ">secret", "~*", "&*", "+@all", "--user", "default", "on", "nopass", "~*", "&*", "+@all",
	"-@scripting",
}}

// Locks creates a Locker over p, calls holds, and closes p.
func Locks(t *testing.T, p *pool.Pool, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	l, err := redlock.New(p)
	holds(t, l, err)
}

// Sentinel starts a server with TLS, and a sentinel with TLS that monitors it as "master". The server has the user of
// User and needs a certificate of the client; the sentinel has a user "watch" with the password "seen". Sentinel
// returns the server, the address of the sentinel, and the TLS configuration for each of them.
func Sentinel(t *testing.T) (server *redisproc.Server, addr string, ofMaster, ofSentinel *tls.Config) {
	t.Helper()
	dir := redistest.Certificates(t)
	server, secure := redistest.SecureIn(t, dir, "yes")
	redistest.Do(t, server, "ACL", "SETUSER", "lock", "on", ">secret", "~*", "&*", "+@all")
	redistest.Do(t, server, "ACL", "SETUSER", "default", "-@scripting")
	port := strconv.Itoa(must.Get(redisproc.FreePort())(t))
	redistest.Sentinel(t, redisproc.Config{Args: append(redistest.TLSArgs(dir, "no"), "--tls-port", port)}, secure, 1,
		"tls-replication yes", "requirepass no", "user watch on >seen +@all")
	ofMaster = must.Get(redistest.ClientTLS(dir))(t)
	return server, "127.0.0.1:" + port, ofMaster, &tls.Config{RootCAs: ofMaster.RootCAs}
}

// InDatabase checks that the server has keys, and that they are in database n, which is not 0.
func InDatabase(t *testing.T, s *redisproc.Server, n int) {
	t.Helper()
	keyspace := string(redistest.Do(t, s, "INFO", "keyspace").([]byte))
	if !strings.Contains(keyspace, fmt.Sprintf("db%d:", n)) || strings.Contains(keyspace, "db0:") {
		t.Errorf("the keys are not in database %d: %q", n, keyspace)
	}
}

// Buckets creates a Locker over the pools of the buckets of a cluster, calls holds, and closes the pools. exists
// returns how many keys with a name the cluster has: there must be an admission record of bucket 1.
func Buckets(t *testing.T, pools []*pool.Pool, exists func(key string) (int64, error)) {
	t.Helper()
	l, err := redlock.NewSharded(pools)
	holds(t, l, err)
	for _, p := range pools {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	if n, err := exists("redlock{1}:admission"); n != 1 || err != nil {
		t.Errorf("%d admission records of bucket 1 exist, want 1: %v", n, err)
	}
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
