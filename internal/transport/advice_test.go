package transport

import (
	"crypto/tls"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/redisproc/redistest"
)

// H56, H114: the error for each of these mistakes quotes the server's reply, names the fix, and contains no password.
func TestErrorsSayWhatToDo(t *testing.T) {
	plain := startServer(t)
	withPassword := startServer(t, "--requirepass", "secret")
	full := startServer(t, "--maxclients", "1")
	proxy := startServer(t, "--rename-command", "INFO", "")
	busy := startServer(t)
	needsServers(t)
	_, secure, _ := redistest.Secure(t)
	keep, err := net.Dial("tcp", full.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer keep.Close()
	caller, err := redis.Dial("tcp", busy.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer caller.Close()
	_ = caller.Send("EVAL", "while true do end", "0")
	if err := caller.Flush(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, url, want string
		opts            []Option
	}{
		{"no password", withPassword.url(), "NOAUTH|set the password in the URL, or with WithCredentials", nil},
		{"wrong password", "redis://:wrong@" + withPassword.addr, "WRONGPASS|the user and the password of this master", nil},
		{"unknown user", "redis://nobody:wrong@" + withPassword.addr, "WRONGPASS|the user and the password", nil},
		{"password if there is none", "redis://u:wrong@" + plain.addr, "the user and the password of this master", nil},
		{"password for no user", "redis://:wrong@" + plain.addr, "without any password", nil},
		{"max clients", full.url(), "stop a program that holds no locks and has many connections there", nil},
		{"proxy", proxy.url(), "this seems to be a proxy, which does not answer INFO", nil},
		{"busy", busy.url(), "a script is running there: end it with `SCRIPT KILL`",
			[]Option{WithDialTimeout(10 * time.Second)}},
		{"TLS to a plain port", "rediss://" + plain.addr, "run redlock check: it shows whether the server hangs",
			[]Option{WithDialTimeout(time.Second)}},
		{"plain to a TLS port", "redis://" + secure, "if the port is one for TLS, use rediss://", nil},
		{"unknown authority", "rediss://" + secure, "set the certificate authority that signed its certificate", nil},
		{"other name", "rediss://" + secure, "use a host name that is in its certificate",
			[]Option{WithTLSConfig(&tls.Config{ServerName: "elsewhere"})}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := open(t, []string{c.url}, c.opts...)
			err := waitDown(t, p, 0, ErrDown)
			for want := range strings.SplitSeq(c.want, "|") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not contain %[2]q: %[1]s", err, want)
				}
			}
			for _, err := range []error{err, p.Send(0, inspect("x"), Stamp{}, newMailbox())} {
				if text := err.Error(); strings.Contains(text, "secret") || strings.Contains(text, ":wrong@") {
					t.Errorf("the error contains a password: %s", text)
				}
			}
		})
	}
	waitUp(t, open(t, []string{withPassword.url()}, WithCredentials("", "secret")))
}

// H114: an IPv6 address is always written in brackets.
func TestIPv6Addresses(t *testing.T) {
	for _, bad := range []string{"redis://::1:6379", "redis://::1", "redis://fe80::1:2:6379"} {
		_, err := Open([]string{bad})
		if err == nil || !strings.Contains(err.Error(), "redis://[::1]:6379") {
			t.Errorf("Open of %s does not suggest brackets: %v", bad, err)
		}
	}
	for given, want := range map[string]string{
		"redis://[::1]:7000": "[::1]:7000", "redis://[::1]": "[::1]:6379", "redis://[0:0::1]:6379": "[::1]:6379",
		"redis://[::ffff:10.0.0.1]:1": "10.0.0.1:1",
	} {
		if got := URL(given).Name; got != want {
			t.Errorf("%s is named %q, want %q", given, got, want)
		}
	}
	server := startServer(t)
	if l, err := net.Listen("tcp", "[::1]:0"); err != nil {
		t.Skipf("needs IPv6: %v", err)
	} else {
		_ = l.Close()
	}
	// The server listens on IPv4 only.
	addr := redistest.Answer(t, "::1", func(in net.Conn) { redistest.Relay(in, server.addr, nil) })
	waitUp(t, open(t, []string{"redis://" + addr}))
}
