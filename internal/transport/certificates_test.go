package transport

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/internal/transport/fault"
)

// H114: the advice for a certificate follows from the reason of package x509.
func TestAdviceForServerCertificates(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(cert *x509.Certificate)
		want   string
	}{
		{"expired", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }, StepExpired},
		{"not yet valid", func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Minute) }, stepEarly},
		{"another address", func(c *x509.Certificate) { c.IPAddresses = nil }, stepHost},
		{"another name", func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"certificate"} }, stepHost},
		{"another purpose", func(c *x509.Certificate) {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning}
		}, stepUnfit},
		{"a critical extension", func(c *x509.Certificate) {
			c.ExtraExtensions = append(c.ExtraExtensions, critical)
		}, stepUnfit},
		{"unknown authority", nil, stepAuthority},
	} {
		t.Run(c.name, func(t *testing.T) {
			cert, roots := certificateWith(t, c.change)
			addr := redistest.Answer(t, "127.0.0.1", func(raw net.Conn) {
				_ = tls.Server(raw, &tls.Config{Certificates: []tls.Certificate{cert}}).Handshake()
			})
			p := open(t, []string{"rediss://" + addr}, WithTLSConfig(&tls.Config{RootCAs: roots}))
			err := waitDown(t, p, 0, fault.ErrDown)
			if !strings.HasSuffix(err.Error(), "; "+c.want) {
				t.Errorf("the error does not end with %q: %v", c.want, err)
			}
		})
	}
}

// H114: the advice for the certificate of a client follows from the alert of the server.
func TestAdviceForTLSAlerts(t *testing.T) {
	for alert, want := range map[byte]string{
		40: stepCommon, 42: stepClientRefused, 43: stepClientRefused, 44: stepClientRevoked, 45: StepClientExpired,
		46: stepClientRefused, 47: stepCommon, 48: stepClientAuthority, 49: stepClientRefused, 70: stepCommon,
		116: stepClientCertificate,
	} {
		t.Run(fmt.Sprint(alert), func(t *testing.T) {
			addr := redistest.Answer(t, "127.0.0.1", func(raw net.Conn) {
				_, _ = raw.Read(make([]byte, 4096))
				_, _ = raw.Write([]byte{21, 3, 3, 0, 2, 2, alert})
			})
			err := waitDown(t, open(t, []string{"rediss://" + addr}), 0, fault.ErrDown)
			if !strings.HasSuffix(err.Error(), "; "+want) {
				t.Errorf("the error does not end with %q: %v", want, err)
			}
		})
	}
}

// H114: something that is no Redis server, a server that closes new connections, and one that does not answer a TLS
// handshake have advice of their own.
func TestAdviceForOtherServers(t *testing.T) {
	_, roots := certificateWith(t, func(*x509.Certificate) {})
	read := func(raw net.Conn) { _, _ = raw.Read(make([]byte, 4096)) }
	say := func(text string) func(net.Conn) {
		return func(raw net.Conn) {
			read(raw)
			_, _ = raw.Write([]byte(text))
		}
	}
	for _, c := range []struct {
		name, scheme string
		answer       func(raw net.Conn)
		says         string
	}{
		{"HTTP", "redis", say("HTTP/1.1 400 Bad Request\r\n\r\n"), stepServer},
		{"memcached", "redis", say("ERROR\r\n"), stepServer},
		{"closes", "redis", read, stepClosed},
		{"closes, with TLS", "rediss", read, stepFull},
		{"resets", "redis", func(raw net.Conn) { _ = raw.(*net.TCPConn).SetLinger(0) }, stepClosed},
		{"TLS to a port without", "rediss", say("-ERR unknown command\r\n"), StepPlain},
		{"TLS to a port that waits for a line", "rediss", func(raw net.Conn) {
			head := make([]byte, 4)
			if _, _ = raw.Read(head); head[0] == '*' {
				_, _ = raw.Write([]byte("+PONG\r\n"))
				return
			}
			for { // as a Redis does: it waits for the end of a line
				if _, err := raw.Read(head); err != nil {
					return
				}
			}
		}, silentTLS},
		{"hangs", "rediss", func(raw net.Conn) {
			for buf := make([]byte, 4096); ; {
				if _, err := raw.Read(buf); err != nil {
					return
				}
			}
		}, silentTLS},
	} {
		t.Run(c.name, func(t *testing.T) {
			opts := []Option{WithDialTimeout(300 * time.Millisecond)}
			if c.scheme == "rediss" {
				opts = append(opts, WithTLSConfig(&tls.Config{RootCAs: roots}))
			}
			p := open(t, []string{c.scheme + "://" + redistest.Answer(t, "127.0.0.1", c.answer)}, opts...)
			if err := waitDown(t, p, 0, fault.ErrDown); !strings.HasSuffix(err.Error(), c.says) {
				t.Errorf("the error does not end with %q: %v", c.says, err)
			}
		})
	}
}

var critical = pkix.Extension{Id: asn1.ObjectIdentifier{1, 2, 3, 4}, Critical: true, Value: []byte{5, 0}}

// certificateWith returns the certificate of a server at 127.0.0.1 after change, and the authority that has signed it.
// If change is nil, it returns another authority.
func certificateWith(t *testing.T, change func(*x509.Certificate)) (cert tls.Certificate, roots *x509.CertPool) {
	t.Helper()
	roots = x509.NewCertPool()
	now := time.Now()
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	server := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	if change != nil {
		change(server)
	}
	signer := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	if change != nil {
		der := must.Get(x509.CreateCertificate(rand.Reader, ca, ca, &signer.PublicKey, signer))(t)
		root := must.Get(x509.ParseCertificate(der))(t)
		roots.AddCert(root)
	}
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	der := must.Get(x509.CreateCertificate(rand.Reader, server, ca, &key.PublicKey, signer))(t)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots
}
