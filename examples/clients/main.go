// Command clients acquires a lock on masters that are configured by the options of another Redis client.
//
//	go run ./examples/clients go-redis redis://10.0.0.1:6379 redis://10.0.0.2:6379 redis://10.0.0.3:6379
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/gomodule/redigo/redis"
	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/valkey-io/valkey-go"

	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlockgoredis"
	"github.com/redlock-go/redlock/redlockrueidis"
	"github.com/redlock-go/redlock/redlockvalkey"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) < 3 {
		log.Fatal("usage: clients go-redis|rueidis|valkey-go|redigo redis://host:port ...")
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := run(ctx, os.Args[1], os.Args[2:], os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run acquires one lock.
func run(ctx context.Context, client string, urls []string, out io.Writer) error {
	masters, err := from(client, urls)
	if err != nil {
		return err
	}
	defer masters.Close()
	locker, err := redlock.New(masters)
	if err != nil {
		return err
	}
	defer locker.Close()
	return locker.Do(ctx, "orders:42", func(_ context.Context, lock *redlock.Lock) error {
		_, err := fmt.Fprintln(out, "locked, token", lock.Token())
		return err
	})
}

// from returns a pool of masters from the options of another Redis client. A real program already has such options;
// this example parses them from URLs.
func from(client string, urls []string) (*pool.Pool, error) {
	switch client {
	case "go-redis":
		masters := make([]pool.Master, len(urls))
		for i, u := range urls {
			o, err := goredis.ParseURL(u)
			if err != nil {
				return nil, err
			}
			if masters[i], err = redlockgoredis.Master(o); err != nil {
				return nil, err
			}
		}
		return pool.New(masters)
	case "rueidis":
		servers := make([]rueidis.ClientOption, len(urls))
		for i, u := range urls {
			o, err := rueidis.ParseURL(u)
			if err != nil {
				return nil, err
			}
			servers[i] = o
		}
		return redlockrueidis.New(servers)
	case "valkey-go":
		servers := make([]valkey.ClientOption, len(urls))
		for i, u := range urls {
			o, err := valkey.ParseURL(u)
			if err != nil {
				return nil, err
			}
			servers[i] = o
		}
		return redlockvalkey.New(servers)
	case "redigo":
		pools := make(map[string]*redis.Pool)
		for _, u := range urls {
			dial := func(ctx context.Context) (redis.Conn, error) { return redis.DialURLContext(ctx, u) }
			pools[pool.URL(u).Name] = &redis.Pool{DialContext: dial}
		}
		return fromRedigo(pools)
	}
	return nil, fmt.Errorf("unknown client %q: use go-redis, rueidis, valkey-go or redigo", client)
}
