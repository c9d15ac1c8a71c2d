package pool_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock/redlocktest"
)

// A pool over five masters, for redlock.New.
func Example() {
	masters, err := pool.Dial([]string{
		"redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3", "redis://10.0.0.4", "redis://10.0.0.5",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer masters.Close()
}

// Dial does not block and needs no living master. What cannot be right is an error at once.
func ExampleDial() {
	_, err := pool.Dial([]string{"redis://10.0.0.1", "10.0.0.2:6379"})
	fmt.Println(errors.Is(err, pool.ErrInvalid))
	// Output:
	// true
}

// New is for masters that are not all reached in the same way.
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
		"locks.example.com",
	} {
		m := pool.URL(text)
		fmt.Println(m.Name, m.Err() == nil)
	}
	// Output:
	// 10.0.0.1:6379 true
	// locks.example.com:6380 true
	// /run/redis/locks.sock true
	// locks.example.com false
}

// Err tells what is wrong before anything is dialled. It never has the password.
func ExampleMaster() {
	m := pool.URL("redis://lock:secret@10.0.0.1:99999")
	fmt.Println(m.Name)
	fmt.Println(m.Err())
	// Output:
	// redis://xxxxx@10.0.0.1:99999
	// pool: master "redis://xxxxx@10.0.0.1:99999": the port is not in 1..65535
}

// A program that has redigo pools keeps them. Each master gets one connection more.
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

// All options are checked at once, and nothing is dialled where one cannot be right.
func ExampleOption() {
	dialer := &net.Dialer{KeepAlive: 15 * time.Second}
	masters, err := pool.Dial([]string{"redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"},
		pool.WithTimeout(300*time.Millisecond),              // an answer may take so long; then the master is down
		pool.WithDialTimeout(time.Second),                   // a connection may take so long, with its handshake
		pool.WithHeartbeat(3*time.Second),                   // so often an idle master is asked who it is
		pool.WithRedial(20*time.Millisecond, 2*time.Second), // between two attempts to connect
		pool.WithQueueLimit(10_000),                         // calls that wait for one master
		pool.WithCredentials("lock", "secret"),              // those in a URL win
		pool.WithDatabase(2),                                // so does one in a URL
		pool.WithClock(nil),                                 // the real one; a test may give clock.Runtime()
		pool.WithDialer(dialer.DialContext),                 // a proxy, or masters in memory
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer masters.Close()
}

// Where an answer takes longer, the master counts as down until it is connected anew.
func ExampleWithTimeout() {
	masters := redlocktest.New(3)
	defer masters.Close()
	p, err := masters.Pool(pool.WithTimeout(200 * time.Millisecond))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	fmt.Println(p.Timeout(0))
	// Output:
	// 200ms
}

// A private certificate authority, and a certificate of the client's own.
func ExampleWithTLSConfig() {
	config := &tls.Config{
		RootCAs:      nil, // x509.NewCertPool(), with the authority's certificate
		Certificates: nil, // from tls.LoadX509KeyPair
	}
	urls := []string{"rediss://10.0.0.1", "rediss://10.0.0.2", "rediss://10.0.0.3"}
	masters, err := pool.Dial(urls, pool.WithTLSConfig(config))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer masters.Close()
}

// A user of the masters' access control lists. Which rights it needs is in docs/operations.md.
func ExampleWithCredentials() {
	masters, err := pool.Dial([]string{"redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"},
		pool.WithCredentials("lock", os.Getenv("LOCK_PASSWORD")))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer masters.Close()
}

// A dialer reaches masters through a proxy, or in memory.
func ExampleWithDialer() {
	masters := redlocktest.New(3)
	defer masters.Close()
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		return masters.Dial(ctx, network, addr)
	}
	p, err := pool.Dial(masters.URLs(), pool.WithDialer(dial))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	fmt.Println(p.N(), "masters")
	// Output:
	// 3 masters
}

// In a testing/synctest bubble the instants of the pool follow the bubble's clock.
func ExampleWithClock() {
	masters := redlocktest.New(3)
	defer masters.Close()
	p, err := masters.Pool(pool.WithClock(clock.Runtime()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	fmt.Println(p.N(), "masters")
	// Output:
	// 3 masters
}

// A Locker goes by the clock of its pool.
func ExamplePool_Clock() {
	masters := redlocktest.New(1)
	defer masters.Close()
	p, err := masters.Pool()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	fmt.Println(p.Clock().Now().IsZero())
	// Output:
	// false
}

// For caches of work that may be done twice: masters that evict keys may vote.
func ExampleAllowEviction() {
	masters := redlocktest.New(1)
	defer masters.Close()
	masters.Master(0).SetPolicy("allkeys-lru", 1<<30)
	p, err := masters.Pool(pool.AllowEviction())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	up := make(chan error, 8) // Watch calls the function before it returns if the master is connected by then
	stop := p.Watch(func(e pool.Event) { up <- e.Err })
	fmt.Println(<-up)
	stop()
	// Output:
	// <nil>
}
