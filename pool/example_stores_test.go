package pool_test

import (
	"crypto/tls"
	"fmt"

	"github.com/redlock-go/redlock/pool"
)

// One of three masters is behind sentinels, which have a password of their own. FailsOver tells which.
func ExampleWithSentinelCredentials() {
	p, err := pool.Dial([]string{
		"redis://10.0.0.1", "redis://10.0.0.2",
		"redis+sentinel://10.0.0.3,10.0.0.4,10.0.0.5/mymaster",
	}, pool.WithSentinelCredentials("", "the sentinels' password"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	for i := range p.N() {
		fmt.Println(p.Addr(i), p.FailsOver(i))
	}
	// Output:
	// 10.0.0.1:6379 false
	// 10.0.0.2:6379 false
	// mymaster@10.0.0.3:26379,10.0.0.4:26379,10.0.0.5:26379 true
}

// FailsOver tells which masters cost their vote for a while when one of their replicas is promoted.
func ExamplePool_FailsOver() {
	p, err := pool.Dial([]string{"redis+sentinel://10.0.0.3,10.0.0.4,10.0.0.5/mymaster"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	fmt.Println(p.FailsOver(0))
	// Output:
	// true
}

// The master and its sentinels have certificates of two authorities.
func ExampleWithSentinelTLS() {
	ofMaster, ofSentinels := &tls.Config{}, &tls.Config{}
	p, err := pool.Dial([]string{"rediss+sentinel://10.0.0.3,10.0.0.4,10.0.0.5/mymaster"},
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

// For work that may be done twice: a master that goes on without its replicas may vote. A Locker logs the warning.
func ExampleAllowTwoHolders() {
	p, err := pool.Dial([]string{"redis+sentinel://10.0.0.3/mymaster"}, pool.AllowTwoHolders())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	fmt.Println(p.Warnings()[0])
	// Output:
	// pool: master "mymaster@10.0.0.3:26379": two holders are allowed: a lock may be held twice while it is cut off together with some programs
}

// Each bucket of a cluster has a pool. Plain masters beside the cluster are in all of them.
func ExampleDialBuckets() {
	pools, err := pool.DialBuckets([]string{"redis+cluster://10.0.0.1:7000,10.0.0.2:7000?buckets=2", "redis://10.0.0.9"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range pools {
		b := p.Bucket()
		fmt.Println(b.Number, "of", b.Of, b.Tag(), p.Addr(0), p.Addr(1))
		_ = p.Close()
	}
	// Output:
	// 1 of 2 {1} cluster@10.0.0.1:7000,10.0.0.2:7000{1} 10.0.0.9:6379
	// 2 of 2 {2} cluster@10.0.0.1:7000,10.0.0.2:7000{2} 10.0.0.9:6379
}

// The tag of a bucket puts its keys into one hash slot.
func ExampleBucket() {
	fmt.Println(pool.Bucket{Number: 17, Of: 64}.Tag())
	// Output:
	// {17}
}

// A program tells by it whether a pool for each bucket is needed.
func ExampleMaster_Buckets() {
	fmt.Println(pool.URL("redis+cluster://10.0.0.1:7000?buckets=64").Buckets(), pool.URL("redis://10.0.0.1").Buckets())
	// Output:
	// 64 0
}

// The pool of plain masters is for no bucket.
func ExamplePool_Bucket() {
	p, err := pool.Dial([]string{"redis://10.0.0.1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	fmt.Println(p.Bucket().Of)
	// Output:
	// 0
}
