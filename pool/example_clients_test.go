package pool_test

import (
	"context"
	"fmt"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/pool"
)

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
	// pool: master "master-1": of its *redis.Pool, this does not apply: MaxIdle; its dial function makes connections that are used for as long as they live
}
