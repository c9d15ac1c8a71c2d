package redistest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
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
	dir := Certificates(t)
	s, addr = SecureIn(t, dir, "no")
	return s, addr, trusting(t, dir)
}

// trusting returns a configuration that trusts the authority in dir, without a client's certificate.
func trusting(t testing.TB, dir string) *tls.Config {
	t.Helper()
	cfg, err := ClientTLS(dir)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{RootCAs: cfg.RootCAs}
}

// SecureIn is Secure with the certificates in dir. clients says whether clients need a certificate: yes, no or
// optional.
func SecureIn(t testing.TB, dir, clients string) (s *redisproc.Server, addr string) {
	t.Helper()
	Need(t)
	port, err := redisproc.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	args := append(TLSArgs(dir, clients), "--tls-port", strconv.Itoa(port))
	if s, err = redisproc.Start(t.Context(), redisproc.Config{Args: args}); err != nil {
		t.Skipf("needs a server with TLS: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s, net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}

// TLSArgs returns the arguments of a server that uses the certificates in dir.
func TLSArgs(dir, clients string) []string {
	return []string{"--tls-cert-file", filepath.Join(dir, "server.pem"),
		"--tls-key-file", filepath.Join(dir, "server.key"), "--tls-ca-cert-file", filepath.Join(dir, "ca.pem"),
		"--tls-auth-clients", clients}
}

// ClientTLS returns a configuration that trusts the authority in dir, and presents the client's certificate.
func ClientTLS(dir string) (*tls.Config, error) {
	text, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s/ca.pem contains no certificate", dir)
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "client.pem"), filepath.Join(dir, "client.key"))
	if err != nil {
		return nil, err
	}
	return &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}

// Certificates makes a directory with the certificate of a private CA (ca.pem), and with certificates for 127.0.0.1
// and further hosts that this CA has signed, of servers (server.pem, server.key) and of clients (client.pem,
// client.key). Any user may read the files, because a server in a container runs as another user.
func Certificates(t testing.TB, hosts ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	err := os.Chmod(dir, 0o755)
	var authority *x509.Certificate
	var signer *ecdsa.PrivateKey
	for i, name := range []string{"ca", "server", "client"} {
		if err == nil {
			err = issue(dir, name, int64(i+1), append(hosts, "127.0.0.1"), &authority, &signer)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// issue writes a certificate and its key. The first call makes the CA, which signs the certificates of later calls.
func issue(
	dir, name string, serial int64, hosts []string, authority **x509.Certificate, signer **ecdsa.PrivateKey,
) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			cert.IPAddresses = append(cert.IPAddresses, ip)
		} else {
			cert.DNSNames = append(cert.DNSNames, host)
		}
	}
	if *authority == nil {
		cert.IsCA, cert.BasicConstraintsValid, cert.KeyUsage = true, true, x509.KeyUsageCertSign
		*authority, *signer = cert, key
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, *authority, &key.PublicKey, *signer)
	if err != nil {
		return err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	for file, block := range map[string]*pem.Block{
		name + ".pem": {Type: "CERTIFICATE", Bytes: der}, name + ".key": {Type: "PRIVATE KEY", Bytes: secret},
	} {
		if err := os.WriteFile(filepath.Join(dir, file), pem.EncodeToMemory(block), 0o644); err != nil {
			return err
		}
	}
	return nil
}
