package redlockgoredis_test

import (
	"log"

	"github.com/redis/go-redis/v9"

	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlockgoredis"
)

// New returns a pool of three masters, of which one is behind sentinels.
func ExampleNew() {
	masters, err := redlockgoredis.New([]*redis.UniversalOptions{
		{Addrs: []string{"10.0.0.1:6379"}, Username: "lock", Password: "secret"},
		{Addrs: []string{"10.0.0.2:6379"}, Username: "lock", Password: "secret"},
		{Addrs: []string{"10.0.1.1:26379", "10.0.1.2:26379", "10.0.1.3:26379"}, MasterName: "third"},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer masters.Close()
	if _, err := redlock.New(masters); err != nil {
		log.Print(err)
	}
}

// Master uses the options of existing clients, each of which is connected to one master.
func ExampleMaster() {
	var masters []pool.Master
	for _, addr := range []string{"10.0.0.1:6379", "10.0.0.2:6379", "10.0.0.3:6379"} {
		client := redis.NewClient(&redis.Options{Addr: addr})
		m, err := redlockgoredis.Master(client.Options())
		if err != nil {
			log.Fatal(err)
		}
		masters = append(masters, m)
	}
	p, err := pool.New(masters)
	if err != nil {
		log.Fatal(err)
	}
	defer p.Close()
}

func ExampleFailover() {
	m, err := redlockgoredis.Failover(&redis.FailoverOptions{
		MasterName: "locks", SentinelAddrs: []string{"10.0.1.1:26379", "10.0.1.2:26379"}, SentinelPassword: "secret",
	})
	if err != nil {
		log.Fatal(err)
	}
	m.Name = "locks" // the default name contains the sentinels' addresses, which may change
}

// Buckets returns a pool for each bucket of a cluster.
func ExampleBuckets() {
	pools, err := redlockgoredis.Buckets(&redis.ClusterOptions{Addrs: []string{"10.0.0.1:6379", "10.0.0.2:6379"}}, 64)
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
