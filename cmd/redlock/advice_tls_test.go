//go:build linux

package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
)

// tlsAdvice returns the cases in which master 1 itself has a port for TLS, beside the one on which the lock is held.
func tlsAdvice() []adviceCase {
	const wrong = "certificate is valid for 127.0.0.1, not 127.0.0.2"
	return []adviceCase{
		{name: "an announced address", args: []string{"--bind", "127.0.0.1", "127.0.0.2"}, about: "connection", what: wrong,
			spoil: announced,
			apply: func(e *adviceEnv, _ *printed) {
				e.install(redistest.Certificates(e.t, "127.0.0.2"))
				e.admin("CONFIG", "SET", "tls-cert-file", filepath.Join(e.certificates, "server.pem"))
			}},
		{name: "an announced address, and names in the certificates", args: []string{"--bind", "127.0.0.1", "127.0.0.2"},
			about: "connection", what: wrong,
			spoil: announced,
			apply: func(e *adviceEnv, _ *printed) {
				on := []string{e.second}
				e.on(on, "SENTINEL", "CONFIG", "SET", "resolve-hostnames", "yes")
				e.on(on, "SENTINEL", "CONFIG", "SET", "announce-hostnames", "yes")
				e.on(on, "SENTINEL", "REMOVE", "master")
				e.on(on, "SENTINEL", "MONITOR", "master", "localhost", e.tlsPort, "1")
				setting("replica-announce-ip", "localhost")(e)
			}},
		{name: "no file of the authority", about: "connection", what: "ca.pem: no such file", apply: whole,
			spoil: breaks(func(file string) error { return os.Remove(file) })},
		{name: "an unreadable file of the authority", about: "connection", what: "contains no certificate", apply: whole,
			spoil: breaks(func(file string) error { return os.WriteFile(file, []byte("?"), 0o600) })},
	}
}

// secured lets master 1 listen on a port for TLS, with certificates for localhost and 127.0.0.1, which check trusts. It
// returns the port.
func (e *adviceEnv) secured() string {
	e.t.Helper()
	e.certificates = e.t.TempDir()
	e.install(redistest.Certificates(e.t, "localhost"))
	port, err := redisproc.FreePort()
	if err != nil {
		e.t.Fatal(err)
	}
	if list, _ := e.admin("CONFIG", "GET", "tls-port").([]any); len(list) == 0 {
		e.t.Skip("needs a server with TLS")
	}
	for _, set := range [][2]string{{"tls-auth-clients", "no"}, {"tls-ca-cert-file", e.pem("ca.pem")},
		{"tls-cert-file", e.pem("server.pem")}, {"tls-key-file", e.pem("server.key")}} {
		setting(set[0], set[1])(e)
	}
	setting("tls-port", port)(e)
	e.flags = []string{"--ca", e.pem("ca.pem")}
	return strconv.Itoa(port)
}

func (e *adviceEnv) pem(name string) string { return filepath.Join(e.certificates, name) }

// install copies the certificates in dir to the place where master 1 and check read them. Authorities that were
// installed earlier are still trusted.
func (e *adviceEnv) install(dir string) {
	e.t.Helper()
	for _, name := range []string{"ca.pem", "server.pem", "server.key"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if before, _ := os.ReadFile(e.pem(name)); name == "ca.pem" {
			text = append(text, before...)
		}
		if err == nil {
			err = os.WriteFile(e.pem(name), text, 0o600)
		}
		if err != nil {
			e.t.Fatal(err)
		}
	}
}

// announced starts a sentinel that announces master 1 at 127.0.0.2, which is not in its certificate, and makes check
// use the sentinel.
func announced(e *adviceEnv) {
	e.t.Helper()
	e.tlsPort = e.secured()
	port, err := redisproc.FreePort()
	if err != nil {
		e.t.Fatal(err)
	}
	e.second = redistest.Sentinel(e.t, redisproc.Config{}, net.JoinHostPort("127.0.0.2", e.tlsPort), 1,
		fmt.Sprint("tls-port ", port), "tls-replication yes", "tls-auth-clients no", "tls-ca-cert-file "+e.pem("ca.pem"),
		"tls-cert-file "+e.pem("server.pem"), "tls-key-file "+e.pem("server.key")).Addr()
	e.urls[1] = e.named(fmt.Sprintf("rediss+sentinel://127.0.0.1:%d/master", port))
}

// breaks returns a function that makes check use a relay which breaks the file of the authority after the start of
// check, until e.honest is set: with the first connection, which it closes.
func breaks(how func(file string) error) func(*adviceEnv) {
	return func(e *adviceEnv) {
		e.t.Helper()
		to := net.JoinHostPort("127.0.0.1", e.secured())
		whole, err := os.ReadFile(e.pem("ca.pem"))
		if err != nil {
			e.t.Fatal(err)
		}
		e.before = func() { _ = os.WriteFile(e.pem("ca.pem"), whole, 0o600) }
		e.urls[1] = e.named("rediss://" + redistest.Answer(e.t, "127.0.0.1", func(raw net.Conn) {
			if e.honest.Load() {
				redistest.Relay(raw, to, nil)
			} else {
				_ = how(e.pem("ca.pem"))
			}
		}))
	}
}

// whole makes the file of the authority whole, and keeps it so.
func whole(e *adviceEnv, _ *printed) {
	e.honest.Store(true)
	e.before()
}
