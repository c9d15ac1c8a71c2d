package pool_test

import (
	"crypto/tls"
	"fmt"

	"github.com/redlock-go/redlock/pool"
)

// One of three masters is behind sentinels that have a different password.
func ExampleWithSentinelCredentials() {
	p, err := pool.Open([]string{
		"redis://10.0.0.1", "redis://10.0.0.2",
		"redis+sentinel://10.0.0.3,10.0.0.4,10.0.0.5/mymaster",
	}, pool.WithSentinelCredentials("", "the sentinels' password"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	for i := range p.N() {
		fmt.Println(p.Addr(i))
	}
	// Output:
	// 10.0.0.1:6379
	// 10.0.0.2:6379
	// mymaster@10.0.0.3:26379,10.0.0.4:26379,10.0.0.5:26379
}

// The master and its sentinels have certificates from different authorities.
func ExampleWithSentinelTLS() {
	ofMaster, ofSentinels := &tls.Config{}, &tls.Config{}
	p, err := pool.Open([]string{"rediss+sentinel://10.0.0.3,10.0.0.4,10.0.0.5/mymaster"},
		pool.WithTLSConfig(ofMaster), pool.WithSentinelTLS(ofSentinels))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	fmt.Println(p.Addr(0))
	// Output:
	// mymaster@10.0.0.3:26379,10.0.0.4:26379,10.0.0.5:26379
}

// AllowTwoHolders lets a master vote although it accepts writes without its replicas. Use AllowTwoHolders only if it
// does no harm to do work twice. The Locker logs a warning.
func ExampleAllowTwoHolders() {
	p, err := pool.Open([]string{"redis+sentinel://10.0.0.3/mymaster"}, pool.AllowTwoHolders())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	fmt.Println(p.Addr(0))
	// Output:
	// mymaster@10.0.0.3:26379
}

// There is a pool for each bucket of a cluster. Each pool also contains the masters that are not clusters.
func ExampleOpenBuckets() {
	pools, err := pool.OpenBuckets([]string{"redis+cluster://10.0.0.1:7000,10.0.0.2:7000?buckets=2", "redis://10.0.0.9"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range pools {
		fmt.Println(p.Addr(0), p.Addr(1))
		_ = p.Close()
	}
	// Output:
	// cluster@10.0.0.1:7000,10.0.0.2:7000{1} 10.0.0.9:6379
	// cluster@10.0.0.1:7000,10.0.0.2:7000{2} 10.0.0.9:6379
}
