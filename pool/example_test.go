package pool_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlocktest"
)

// Open does not block, even if no master is up. It reports invalid URLs immediately.
func ExampleOpen() {
	_, err := pool.Open([]string{"redis://10.0.0.1", "10.0.0.2:6379"})
	fmt.Println(errors.Is(err, pool.ErrInvalid))
	// Output:
	// true
}

// New accepts masters that are reached in different ways.
func ExampleNew() {
	far := pool.URL("rediss://far.example.com", pool.WithTimeout(2*time.Second))
	masters, err := pool.New([]pool.Master{
		pool.URL("redis://10.0.0.1"), pool.URL("redis://10.0.0.2"), far,
	}, pool.WithCredentials("lock", "secret"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer masters.Close()
}

func ExampleURL() {
	for _, text := range []string{
		"redis://10.0.0.1",
		"rediss://lock:secret@locks.example.com:6380/2",
		"unix:///run/redis/locks.sock?db=1",
	} {
		fmt.Println(pool.URL(text).Name)
	}
	// Output:
	// 10.0.0.1:6379
	// locks.example.com:6380
	// /run/redis/locks.sock
}

// New reports invalid masters before it dials any. Neither the name of the master nor the error contains the
// password.
func ExampleMaster() {
	m := pool.URL("redis://lock:secret@10.0.0.1:99999")
	_, err := pool.New([]pool.Master{m})
	fmt.Println(m.Name)
	fmt.Println(err)
	// Output:
	// redis://xxxxx@10.0.0.1:99999
	// pool: master "redis://xxxxx@10.0.0.1:99999": the port is not in 1..65535
}

// A program can keep its redigo pools. The library makes one additional connection to each master.
func ExampleFromRedisPool() {
	to := func(addr string) *redis.Pool {
		return &redis.Pool{DialContext: func(ctx context.Context) (redis.Conn, error) {
			return redis.DialContext(ctx, "tcp", addr)
		}}
	}
	have := []*redis.Pool{to("10.0.0.1:6379"), to("10.0.0.2:6379"), to("10.0.0.3:6379")}
	var list []pool.Master
	for i, p := range have {
		list = append(list, pool.FromRedisPool(fmt.Sprint("master-", i+1), p))
	}
	masters, err := pool.New(list)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer masters.Close()
}

// Open checks all options before it dials. If an option is invalid, Open returns an error.
func ExampleOption() {
	dialer := &net.Dialer{KeepAlive: 15 * time.Second}
	masters, err := pool.Open([]string{"redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"},
		pool.WithTimeout(300*time.Millisecond), // a master that takes longer counts as down until it is connected
		pool.WithDialTimeout(time.Second),      // limit for a connection attempt, with the handshake
		pool.WithCredentials("lock", "secret"), // a user with the rights in docs/run.md; a URL's take precedence
		pool.WithDatabase(2),                   // a database in a URL takes precedence
		pool.WithDialer(dialer.DialContext),    // dials through a proxy, or to masters in memory
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer masters.Close()
}

// A secret manager rewrites the file when it rotates the password of the ACL user "lock". Each connection logs in
// with the content that the file has at that time.
func ExampleWithCredentialsProvider() {
	fromFile := func(context.Context) (user, password string, err error) {
		text, err := os.ReadFile("/run/secrets/redis-lock")
		return "lock", strings.TrimSpace(string(text)), err
	}
	masters, err := pool.Open([]string{"rediss://10.0.0.1", "rediss://10.0.0.2", "rediss://10.0.0.3"},
		pool.WithCredentialsProvider(fromFile))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer masters.Close()
}

// The masters have certificates from a private certificate authority, and require a client certificate. It is read for
// each connection, so it may be renewed while the program runs.
func ExampleWithTLSConfig() {
	masters, err := pool.Open([]string{"rediss://10.0.0.1:6379", "rediss://10.0.0.2:6379", "rediss://10.0.0.3:6379"},
		pool.WithTLSConfig(&tls.Config{
			RootCAs: nil, // x509.NewCertPool(), with the authority's certificate
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

// Masters that evict keys may vote. Use AllowEviction only if it does no harm to do work twice, for example to fill a
// cache.
func ExampleAllowEviction() {
	masters := redlocktest.New(1) // a real master may have maxmemory-policy allkeys-lru
	defer masters.Close()
	p, err := masters.Pool(pool.AllowEviction())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	locker, err := redlock.New(p)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locker.Close()
	_, err = locker.TryLock(context.Background(), "orders:42")
	fmt.Println(err)
	// Output:
	// <nil>
}

// A pool numbers its masters from 0. The names of the masters contain no credentials.
func ExamplePool() {
	masters := redlocktest.New(3)
	defer masters.Close()
	p, err := masters.Pool() // Pool calls pool.Open
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	for i := range p.N() {
		fmt.Println(i, p.Addr(i))
	}
	// Output:
	// 0 master-1:6379
	// 1 master-2:6379
	// 2 master-3:6379
}
