package main

import (
	"context"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/pool"
)

// fromRedigo returns a pool of masters from the redigo pools of a program. The keys are the names of the masters.
func fromRedigo(pools map[string]*redis.Pool) (*pool.Pool, error) {
	var masters []pool.Master
	for name, p := range pools {
		masters = append(masters, pool.FromRedisPool(name, p))
	}
	return pool.New(masters)
}

// withFreshPassword returns a master that calls password for each new connection.
func withFreshPassword(addr string, password func(context.Context) (string, error)) pool.Master {
	return pool.FromRedisPool(addr, &redis.Pool{DialContext: func(ctx context.Context) (redis.Conn, error) {
		secret, err := password(ctx)
		if err != nil {
			return nil, err
		}
		return redis.DialContext(ctx, "tcp", addr, redis.DialUsername("lock"), redis.DialPassword(secret))
	}})
}
