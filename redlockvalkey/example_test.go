package redlockvalkey_test

import (
	"log"

	"github.com/valkey-io/valkey-go"

	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlockvalkey"
)

// New returns a pool of three masters, of which one is behind sentinels.
func ExampleNew() {
	masters, err := redlockvalkey.New([]valkey.ClientOption{
		{InitAddress: []string{"10.0.0.1:6379"}, Username: "lock", Password: "secret"},
		{InitAddress: []string{"10.0.0.2:6379"}, Username: "lock", Password: "secret"},
		{
			InitAddress: []string{"10.0.1.1:26379", "10.0.1.2:26379", "10.0.1.3:26379"},
			Sentinel:    valkey.SentinelOption{MasterSet: "third"},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer masters.Close()
	if _, err := redlock.New(masters); err != nil {
		log.Print(err)
	}
}

// Master returns a master. Set its name if other clients reach the same master at another address.
func ExampleMaster() {
	m, err := redlockvalkey.Master(valkey.ClientOption{InitAddress: []string{"10.0.0.1:6379"}})
	if err != nil {
		log.Fatal(err)
	}
	m.Name = "first"
	p, err := pool.New([]pool.Master{m})
	if err != nil {
		log.Fatal(err)
	}
	defer p.Close()
}

// Buckets returns a pool for each bucket of a cluster.
func ExampleBuckets() {
	pools, err := redlockvalkey.Buckets(valkey.ClientOption{InitAddress: []string{"10.0.0.1:6379", "10.0.0.2:6379"}}, 64)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := redlock.NewSharded(pools); err != nil {
		log.Print(err)
	}
	for _, p := range pools {
		defer p.Close()
	}
}
