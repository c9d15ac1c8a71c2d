package redistest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/redisproc"
)

// Secure starts one server that also speaks TLS. It returns the address for TLS, and a configuration that trusts the
// certificate of the server. It skips the test if the server was built without TLS.
func Secure(t testing.TB) (s *redisproc.Server, addr string, trust *tls.Config) {
	t.Helper()
	Need(t)
	args, trust := certificate(t)
	port, err := redisproc.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	s, err = redisproc.Start(t.Context(), redisproc.Config{Args: append(args, "--tls-port", strconv.Itoa(port))})
	if err != nil {
		t.Skipf("needs a server with TLS: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), trust
}

// certificate makes a certificate for 127.0.0.1. It returns the arguments of a server that uses it, and a configuration
// that trusts it.
func certificate(t testing.TB) (args []string, trust *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, kind string, data []byte) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	file := write("server.crt", "CERTIFICATE", der)
	args = []string{"--tls-cert-file", file, "--tls-key-file", write("server.key", "PRIVATE KEY", private),
		"--tls-ca-cert-file", file, "--tls-auth-clients", "no"}
	roots := x509.NewCertPool()
	if parsed, err := x509.ParseCertificate(der); err == nil {
		roots.AddCert(parsed)
	}
	return args, &tls.Config{RootCAs: roots}
}
