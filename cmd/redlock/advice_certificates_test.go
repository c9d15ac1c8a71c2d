//go:build linux

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"path/filepath"
	"strings"
	"time"

	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
)

// certificateAdvice returns the cases of certificates, and of servers that are no masters. The servers of the spoiled
// cases answer as the server in question does; the plain URL is a server in order.
func certificateAdvice() []adviceCase {
	list := []adviceCase{
		{name: "no Redis", about: "connection", what: "malformed",
			spoil: answers("redis", "HTTP/1.1 400 Bad Request\r\n\r\n"),
			apply: plainURL},
		{name: "no Redis, and no line", about: "connection", what: `it answered "220 mail"`, spoil: func(e *adviceEnv) {
			e.urls[1] = e.named("redis://" + redistest.Answer(e.t, "127.0.0.1", func(raw net.Conn) {
				_, _ = raw.Write([]byte("220 mail"))
				_, _ = io.Copy(io.Discard, raw) // it waits for more
			}))
		}, apply: plainURL},
		{name: "closes connections", about: "connection", what: "", spoil: answers("redis", ""), apply: plainURL},
		{name: "expired certificate", about: "connection", what: "expired", apply: withoutTLS,
			spoil: presents(func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })},
		{name: "certificate of tomorrow", about: "connection", what: "not yet valid", apply: withoutTLS,
			spoil: presents(func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Hour) })},
		{name: "certificate for code", about: "connection", what: "certificate", apply: withoutTLS,
			spoil: presents(func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning} })},
		{name: "a sentinel", about: "role", what: "it is a sentinel", apply: plainURL, spoil: func(e *adviceEnv) {
			e.urls[1] = e.named("redis://" + e.sentinel(e.master.Addr(), 1, 0))
		}},
		{name: "the password of a sentinel", about: "rights", what: "credentials of their own", apply: plainURL,
			spoil: func(e *adviceEnv) {
				e.behind(redistest.Sentinel(e.t, redisproc.Config{}, e.master.Addr(), 1, "requirepass secret").Addr())
			}},
		{name: "KeyDB", about: "version", what: "it is KeyDB", apply: plainURL, spoil: func(e *adviceEnv) {
			e.urls[1] = e.named("redis://" + e.rewriting("redis_git_sha1:........", "mvcc_depth:000000000000"))
		}},
		{name: "sentinels name a replica", about: "role", what: "it is a replica of", spoil: func(e *adviceEnv) {
			e.flags = []string{"--timeout", "10s"}
			e.behind(e.sentinel(e.master.Addr(), 2, 0))
			other := redistest.Test(e.t, 1, redisproc.Config{})[0]
			host, port, _ := strings.Cut(other.Addr(), ":")
			e.admin("REPLICAOF", host, port)
		}},
	}
	for alert, what := range map[byte]string{
		40: "handshake failure", 42: "bad certificate", 44: "revoked certificate", 45: "expired certificate",
		48: "unknown certificate authority", 116: "certificate required",
	} {
		list = append(list, adviceCase{
			name: fmt.Sprintf("alert %d", alert), about: "connection", what: what, apply: plainURL,
			spoil: answers("rediss", string([]byte{21, 3, 3, 0, 2, 2, alert})),
		})
	}
	return list
}

// withoutTLS makes check use the plain URL of master 1, without flags of TLS.
func withoutTLS(e *adviceEnv, f *printed) {
	e.flags = nil
	plainURL(e, f)
}

// answers returns a function that makes check use a server which answers the first data with text.
func answers(scheme, text string) func(*adviceEnv) {
	return func(e *adviceEnv) {
		e.urls[1] = e.named(scheme + "://" + redistest.Answer(e.t, "127.0.0.1", func(raw net.Conn) {
			_, _ = raw.Read(make([]byte, 4096))
			_, _ = raw.Write([]byte(text))
		}))
	}
}

// presents returns a function that makes check use a server with a changed certificate, whose authority check trusts.
func presents(change func(*x509.Certificate)) func(*adviceEnv) {
	return func(e *adviceEnv) {
		e.t.Helper()
		now := time.Now()
		cert := &x509.Certificate{
			SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour), IsCA: true,
			BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		}
		change(cert)
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			e.t.Fatal(err)
		}
		der, err := x509.CreateCertificate(rand.Reader, cert, cert, &key.PublicKey, key)
		if err != nil {
			e.t.Fatal(err)
		}
		file := filepath.Join(e.master.Dir(), "ca.pem")
		text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
		writeFile(e.t, file, string(text))
		conf := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
		addr := redistest.Answer(e.t, "127.0.0.1", func(raw net.Conn) { _ = tls.Server(raw, conf).Handshake() })
		e.urls[1] = e.named("rediss://" + addr)
		e.flags = []string{"--ca", file}
	}
}
