package pool_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/pool"
)

// What stands in the options of other clients, as docs/clients.md has it.

// clients is as a program would write it whose other Redis client is go-redis or rueidis.
func clients(urls []string, roots *tls.Config) (*pool.Pool, error) {
	dialer := &net.Dialer{KeepAlive: 15 * time.Second}
	return pool.Dial(urls, // rediss://10.0.0.1:6379/0 and so on, one for each master
		pool.WithCredentials("lock", "secret"),            // Username, Password
		pool.WithDatabase(0),                              // DB; SelectDB
		pool.WithTLSConfig(roots),                         // TLSConfig
		pool.WithDialer(dialer.DialContext),               // Dialer; DialCtxFn
		pool.WithDialTimeout(time.Second),                 // DialTimeout; Dialer.Timeout
		pool.WithTimeout(500*time.Millisecond),            // ReadTimeout and WriteTimeout; ConnWriteTimeout
		pool.WithRedial(20*time.Millisecond, time.Second), // between two attempts to connect
	)
}

func ExampleDial_clients() {
	masters, err := clients([]string{"rediss://10.0.0.1", "rediss://10.0.0.2", "rediss://10.0.0.3"},
		&tls.Config{ServerName: "locks.example.com"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer masters.Close()
	fmt.Println(masters.N(), masters.Addr(0))
	// Output: 3 10.0.0.1:6379
}

// A pool of redigo gives its dial function. What else is set in it does not apply, and is named.
func ExamplePool_Warnings() {
	have := &redis.Pool{
		MaxIdle: 3,
		DialContext: func(ctx context.Context) (redis.Conn, error) {
			return redis.DialContext(ctx, "tcp", "10.0.0.1:6379", redis.DialUsername("lock"), redis.DialPassword("secret"))
		},
	}
	masters, err := pool.New([]pool.Master{pool.FromRedisPool("master-1", have)})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer masters.Close()
	for _, w := range masters.Warnings() {
		fmt.Println(w)
	}
	// Output:
	// pool: master "master-1": of its *redis.Pool, MaxIdle do not apply: its dial function makes connections that stay for the life of this pool
}
