package integration

import (
	"crypto/tls"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/redlock/admin"
)

// documentedRights returns the minimum rights of a user according to docs/run.md, as arguments of ACL
// SETUSER.
func documentedRights(t testing.TB) []string {
	t.Helper()
	text := must.Get(os.ReadFile("../docs/run.md"))(t)
	_, rest, found := strings.Cut(string(text), "\nACL SETUSER lock on >password ")
	line, _, ended := strings.Cut(rest, "\n")
	if !found || !ended {
		t.Fatal("docs/run.md does not list the rights of a user")
	}
	return strings.Fields(line)
}

// withoutChannel creates a user that has the documented rights, except the rights to channels.
func withoutChannel(x *deployment) {
	x.Helper()
	for _, m := range x.list {
		all := []any{"SETUSER", "lock", "on", ">password"}
		for _, right := range documentedRights(x) {
			if !strings.HasPrefix(right, "&") && right != "resetchannels" {
				all = append(all, right)
			}
		}
		command(x, m, "ACL", append(all, "resetchannels")...)
	}
}

// Faults of the users' rights and of authentication.
var rightsScenarios = []scenario{
	{name: "an ACL user without the channel", short: true, minority: true, aside: withoutChannel,
		reach: as("lock:password"), fault: func(x *deployment) { x.wait(2 * time.Second) }},
	{name: "a wrong password on one master", minority: true, aside: func(x *deployment) {
		// The test logs in as another user, so that the default user can get a password.
		command(x, x.list[0], "ACL", "SETUSER", "harness", "on", ">harness", "~*", "+@all")
		x.list[0] = login{x.list[0], "harness:harness"}
		command(x, x.list[0], "ACL", "SETUSER", "default", ">right")
	}, reach: func(x *deployment) []string {
		all := urls(x.list)
		all[0] = strings.Replace(all[0], "harness:harness", ":wrong", 1)
		return all
	}, fault: func(x *deployment) {
		x.wait(2 * time.Second)
		if m := admin.Of(x.locker).Masters()[0]; m.Err == nil || !strings.Contains(m.Err.Error(), "WRONGPASS") {
			x.Errorf("the master with another password is %s: %v", m.State, m.Err)
		}
		command(x, x.list[0], "ACL", "SETUSER", "default", ">wrong")
		x.voting()
	}},
	{name: "TLS with a private CA and client certificates", setup: speaksTLS, minority: true, fault: func(x *deployment) {
		c, err := redis.DialURL(x.list[0].URL(), redis.DialTLSConfig(withoutCertificate(x)))
		if err == nil {
			_, err = c.Do("PING")
			c.Close()
		}
		if err == nil {
			x.Errorf("a client without a certificate was accepted")
		}
		each(x, Master.Kill, x.list[4])
		x.wait(time.Second)
		each(x, Master.Start, x.list[4])
		x.voting()
	}},
}

// as returns a function that makes the workload log in to each master with these credentials.
func as(credentials string) func(x *deployment) []string {
	return func(x *deployment) []string {
		all := urls(x.list)
		for i := range all {
			all[i] = strings.Replace(all[i], "://", "://"+credentials+"@", 1)
		}
		return all
	}
}

// A login is a master to which the test logs in with credentials.
type login struct {
	Master
	credentials string
}

func (m login) URL() string {
	return strings.Replace(m.Master.URL(), "://", "://"+m.credentials+"@", 1)
}

// speaksTLS configures masters that accept only TLS, and only from clients whose certificate was issued by the
// private CA of the masters.
func speaksTLS(t *testing.T) setup {
	dir := redistest.Certificates(t)
	cfg := must.Get(redistest.ClientTLS(dir))(t)
	return setup{tls: true, dir: dir, dial: []redis.DialOption{redis.DialTLSConfig(cfg)},
		args: redistest.TLSArgs(dir, "yes")}
}

func withoutCertificate(x *deployment) *tls.Config {
	cfg := must.Get(redistest.ClientTLS(x.args.TLSDir))(x)
	cfg.Certificates = nil
	return cfg
}
