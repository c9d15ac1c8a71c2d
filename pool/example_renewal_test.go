package pool_test

import (
	"crypto/tls"
	"fmt"

	"github.com/redlock-go/redlock/pool"
)

// The certificate of the client is read for each connection, so it may be renewed while the program runs.
func ExampleWithTLSConfig_renewal() {
	masters, err := pool.Open([]string{"rediss://10.0.0.1:6379", "rediss://10.0.0.2:6379", "rediss://10.0.0.3:6379"},
		pool.WithTLSConfig(&tls.Config{
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				pair, err := tls.LoadX509KeyPair("client.pem", "client.key")
				return &pair, err
			},
		}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer masters.Close()
}
