package pool

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/scripts"
)

const secret = "s3cr3t-pass"

func mustNotShow(t *testing.T, err error) {
	t.Helper()
	if strings.Contains(err.Error(), secret) {
		t.Errorf("a password is shown: %q", err)
	}
}

// H56: a wrong password, none, and one that is not wanted are told as what the server said; none is shown.
func TestWrongPasswordIsTold(t *testing.T) {
	guarded, open1 := startServer(t, "--requirepass", "right"), startServer(t)
	for _, c := range []struct{ name, url, says string }{
		{"wrong", "redis://:" + secret + "@" + guarded.addr, "WRONGPASS"},
		{"unknown user", "redis://nobody:" + secret + "@" + guarded.addr, "WRONGPASS"},
		{"none", guarded.url(), "no password is configured"},
		{"not wanted", "redis://:" + secret + "@" + open1.addr, "without any password"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := open(t, []string{c.url})
			err := waitDown(t, p, 0, ErrDown)
			if !strings.Contains(err.Error(), c.says) {
				t.Errorf("%q is not in %q", c.says, err)
			}
			mustNotShow(t, err)
			if err := p.Send(0, inspect("x"), Stamp{}, newMailbox()); err == nil {
				t.Error("sent")
			} else {
				mustNotShow(t, err)
			}
		})
	}
	p := open(t, []string{guarded.url()}, WithCredentials("", "right"))
	waitUp(t, p)
}

// minimum is what doc.go says a user needs, for the prefix of the tests.
var minimum = []any{"ACL", "SETUSER", "lock", "reset", "on", ">" + secret, "~pooltest:*", "resetchannels", "&pooltest:*", "-@all", "+info",
	"+script|load", "+evalsha", "+eval", "+get", "+set", "+setrange", "+exists", "+hget", "+hset", "+hdel", "+hscan", "+zadd", "+zrem", "+zrange", "+zrank", "+pttl", "+pexpire",
	"+time", "+publish"}

func lockUser(s *server) string { return "redis://lock:" + secret + "@" + s.addr }

// everyScript runs each script in a way that reaches each of its commands.
func everyScript(t *testing.T, p *Pool, name string) {
	t.Helper()
	prefix := scripts.Prefix("pooltest")
	up := state(p, 0)
	identity := up.Info.Identity()
	admit := func(step scripts.AdmitStep, seen string) scripts.Admission {
		v, err := call(t, p, 0, testFleet.AdmitCall(scripts.AdmitRequest{Step: step, Identity: identity, Seen: seen,
			Median: up.Info.Time, Tolerance: 15 * time.Second, Guard: 30 * time.Second, Epoch: 1}), Stamp{})
		if err != nil {
			t.Fatalf("admit %s: %v", step, err)
		}
		a, err := scripts.DecodeAdmission(v)
		if err != nil {
			t.Fatalf("admit %s: %v", step, err)
		}
		return a
	}
	marker := admit(scripts.AdmitNow, admit(scripts.AdmitRead, "").Marker).Marker
	hold := scripts.NewHold(prefix.Keys(name), "id1", "")
	next := scripts.NewHold(prefix.Keys(name), "id2", "id1")
	ballot := up.Info.Time + 1
	st := Stamp{Session: up.Session, Text: marker}
	for _, c := range []*scripts.Call{
		testFleet.AcquireCall(hold, scripts.ModeAcquire, 10*time.Second, ballot, ballot, 1),
		testFleet.AcquireCall(hold, scripts.ModeAcquire, 10*time.Second, ballot+1, ballot+1, 1),
		testFleet.ExtendCall(hold, 20*time.Second, 2),
		testFleet.InspectCall(hold.Keys),
		testFleet.AcquireCall(next, scripts.ModeImport, 10*time.Second, ballot+2, ballot+2, 1),
		testFleet.AcquireCall(hold, scripts.ModeAcquire, 10*time.Second, ballot+3, ballot+3, 1), // held
		testFleet.ExtendCall(hold, 10*time.Second, 1),                                           // missing
		testFleet.QueueCall(hold, scripts.NewTicket("id1", 1, 1, 0), true, 10*time.Second, time.Second, ballot+4, ballot+4),
		testFleet.QueueCall(hold, scripts.NewTicket("id1", 1, 1, 0), true, 10*time.Second, time.Second, ballot+4, ballot+4), // again
		testFleet.ReleaseCall(next, ballot+2, true, scripts.Reserve),
		testFleet.DebtCall(hold.Keys, []string{"id1", "id3"}, ballot+9),
	} {
		if _, err := call(t, p, 0, c, st); err != nil {
			t.Errorf("%s: %v", c.Script.Name, err)
		}
	}
}

// The least rights of a user, as documented, are enough for all scripts; without those to load scripts or to publish
// everything still works (H06), without INFO nothing does, and the text says what to grant (H60).
func TestLeastRightsSuffice(t *testing.T) {
	srv := startServer(t)
	without := func(words ...any) { srv.do(append(minimum[:len(minimum):len(minimum)], words...)...) }
	without()
	p := open(t, []string{lockUser(srv)})
	waitUp(t, p)
	everyScript(t, p, "n")
	_ = p.Close()

	srv.do("SCRIPT", "FLUSH")
	without("-script|load", "-publish", "resetchannels")
	p = open(t, []string{lockUser(srv)})
	waitUp(t, p)
	everyScript(t, p, "m")
	_ = p.Close()

	without("-info")
	p = open(t, []string{lockUser(srv)})
	err := waitDown(t, p, 0, ErrRefused)
	for _, s := range []string{"NOPERM", "ACL SETUSER lock +info", "@dangerous"} {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("%q is not in %q", s, err)
		}
	}
	mustNotShow(t, err)
	without()
	waitUp(t, p)
	_ = p.Close()

	p = open(t, []string{lockUser(srv) + "/3"})
	if err := waitDown(t, p, 0, ErrDown); !strings.Contains(err.Error(), "select: master is down: NOPERM") {
		t.Errorf("without +select: %v", err)
	}
	without("+select")
	waitUp(t, p)
}

// Each of the rights is needed: none of the list is there for nothing.
func TestLeastRightsAreLeast(t *testing.T) {
	srv := startServer(t)
	for _, word := range minimum[12:] {
		right := strings.TrimPrefix(word.(string), "+")
		if right == "script|load" || right == "publish" || right == "eval" || right == "evalsha" {
			continue // the first two can be missed; of the others nothing works without
		}
		srv.do("FLUSHALL")
		srv.do(append(minimum[:len(minimum):len(minimum)], "-"+right)...)
		p := open(t, []string{lockUser(srv)})
		waitUp(t, p)
		if !deniesSomething(t, p) {
			t.Errorf("nothing needs %s", right)
		}
		_ = p.Close()
	}
}

// deniesSomething reports whether a round of all scripts meets NOPERM.
func deniesSomething(t *testing.T, p *Pool) bool {
	prefix := scripts.Prefix("pooltest")
	hold := scripts.NewHold(prefix.Keys("n"), "id1", "")
	up := state(p, 0)
	denied := false
	for _, c := range []*scripts.Call{
		testFleet.AdmitCall(scripts.AdmitRequest{Step: scripts.AdmitNow, Identity: up.Info.Identity(), Epoch: 1}),
		testFleet.AcquireCall(hold, scripts.ModeHeal, time.Second, up.Info.Time, up.Info.Time, 1),
		testFleet.AcquireCall(hold, scripts.ModeAcquire, time.Second, up.Info.Time+2, up.Info.Time+2, 1),
		testFleet.AcquireCall(hold, scripts.ModeAcquire, time.Second, up.Info.Time+3, up.Info.Time+3, 1), // its bar is written in place
		testFleet.ExtendCall(hold, 2*time.Second, 2),
		testFleet.InspectCall(hold.Keys),
		testFleet.QueueCall(scripts.NewHold(hold.Keys, "id2", ""), scripts.NewTicket("id2", 1, 1, 0), true, time.Second, time.Second, up.Info.Time+1, up.Info.Time+1),
		testFleet.QueueCall(scripts.NewHold(hold.Keys, "id2", ""), scripts.NewTicket("id2", 1, 1, 0), true, time.Second, time.Second, up.Info.Time+1, up.Info.Time+1), // it asks again, and looks at its neighbours
		testFleet.LeaveCall(hold.Keys, scripts.NewTicket("id2", 1, 1, 0).String()),
		testFleet.ReleaseCall(hold, up.Info.Time, true, scripts.Reserve),
	} {
		_, err := call(t, p, 0, c, Stamp{})
		// Inside a script the text is another than NOPERM.
		denied = denied || err != nil && (strings.Contains(err.Error(), "NOPERM") || strings.Contains(err.Error(), "can't run this command"))
	}
	return denied
}

func TestUnixSocketAndDatabase(t *testing.T) {
	srv := startServer(t)
	p := open(t, []string{"unix://" + srv.socket() + "?db=5"})
	waitUp(t, p)
	if _, err := call(t, p, 0, lua("set", "return redis.call('SET', 'where', 'here')"), Stamp{}); err != nil {
		t.Fatal(err)
	}
	if got := srv.text("INFO", "keyspace"); !strings.Contains(got, "db5:keys=1") || strings.Contains(got, "db0") {
		t.Errorf("keyspace: %s", got)
	}
	bad := open(t, []string{srv.url() + "/9999"})
	if err := waitDown(t, bad, 0, ErrDown); !strings.Contains(err.Error(), "out of range") {
		t.Errorf("database out of the server's range: %v", err)
	}
}

// An existing pool gives a connection of our own; none of its limit is used, and what it holds is left alone.
func TestConnectionsFromARedisPool(t *testing.T) {
	srv := startServer(t)
	for name, rp := range map[string]*redis.Pool{
		"Dial": {MaxActive: 1, Dial: func() (redis.Conn, error) {
			return redis.Dial("tcp", srv.addr, redis.DialReadTimeout(50*time.Millisecond))
		}},
		"DialContext": {MaxActive: 1, DialContext: func(ctx context.Context) (redis.Conn, error) {
			return redis.DialContext(ctx, "tcp", srv.addr, redis.DialDatabase(2))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := New([]Master{FromRedisPool("shared", rp)})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			waitUp(t, p)
			if p.Addr(0) != "shared" || rp.ActiveCount() != 0 {
				t.Errorf("addr %q, active %d", p.Addr(0), rp.ActiveCount())
			}
			slow := lua("slow", "local t = redis.call('TIME') repeat local n = redis.call('TIME') until n[1] ~= t[1] or n[2] - t[2] > 100000 return 1")
			if _, err := call(t, p, 0, slow, Stamp{}); err != nil {
				t.Errorf("the read timeout of the pool counts: %v", err)
			}
		})
	}
}

// H34: what the dial function of a foreign pool says is shown without credentials, and its timeouts are ErrTimeout.
func TestErrorsOfARedisPoolAreCleaned(t *testing.T) {
	fails := []error{
		errors.New("dial redis://user:" + secret + "@h:1: refused"),
		&net.OpError{Op: "dial", Net: "tcp", Err: timeoutError{}},
	}
	for i, is := range []error{ErrDown, ErrTimeout} {
		p, err := New([]Master{FromRedisPool("shared", &redis.Pool{Dial: func() (redis.Conn, error) { return nil, fails[i] }})})
		if err != nil {
			t.Fatal(err)
		}
		mustNotShow(t, waitDown(t, p, 0, is))
		_ = p.Close()
	}
}

// An authority is a CA made for one test.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, dir: t.TempDir()}
	a.cert, a.key = a.issue("ca", &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, nil)
	return a
}

// issue writes name.crt and name.key.
func (a *authority) issue(name string, template *x509.Certificate, parent *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.Subject = pkix.Name{CommonName: name}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	signer := a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	a.write(name+".crt", "CERTIFICATE", der)
	a.write(name+".key", "EC PRIVATE KEY", keyDER)
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, key
}

func (a *authority) path(name string) string { return filepath.Join(a.dir, name) }

func (a *authority) write(name, kind string, der []byte) {
	a.t.Helper()
	if err := os.WriteFile(a.path(name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

// TLS with a CA of one's own and a client's certificate; without the CA the server is not trusted.
func TestTLS(t *testing.T) {
	ca := newAuthority(t)
	ca.issue("server", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}, ca.cert)
	ca.issue("client", &x509.Certificate{}, ca.cert)
	port := freePort(t)
	startServer(t, "--tls-port", port, "--tls-cert-file", ca.path("server.crt"), "--tls-key-file", ca.path("server.key"),
		"--tls-ca-cert-file", ca.path("ca.crt"), "--tls-auth-clients", "yes")
	pair, err := tls.LoadX509KeyPair(ca.path("client.crt"), ca.path("client.key"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca.cert)
	url := "rediss://127.0.0.1:" + port
	p := open(t, []string{url}, WithTLSConfig(&tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}}))
	waitUp(t, p)
	box := newMailbox()
	for range 1000 {
		if err := p.Send(0, inspect("x"), Stamp{}, box); err != nil {
			t.Fatal(err)
		}
	}
	for range 1000 {
		if a := box.next(t); a.err != nil {
			t.Fatal(a.err)
		}
	}
	for name, conf := range map[string]*tls.Config{
		"certificate": {Certificates: []tls.Certificate{pair}},
		"TLS":         {RootCAs: roots, ServerName: "elsewhere"},
	} {
		bad := open(t, []string{url}, WithTLSConfig(conf))
		if err := waitDown(t, bad, 0, ErrDown); !strings.Contains(err.Error(), name) {
			t.Errorf("%q is not in %q", name, err)
		}
	}
}
