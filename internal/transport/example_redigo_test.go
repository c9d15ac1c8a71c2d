package transport_test

import (
	"context"
	"fmt"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/transport"
)

// A Transport uses only the dial function of a redigo pool. Warnings lists its other settings, which have no effect.
func ExampleTransport_Warnings() {
	have := &redis.Pool{
		MaxIdle: 3,
		DialContext: func(ctx context.Context) (redis.Conn, error) {
			return redis.DialContext(ctx, "tcp", "10.0.0.1:6379", redis.DialUsername("lock"), redis.DialPassword("secret"))
		},
	}
	masters, err := transport.New([]transport.Master{transport.FromRedisPool("master-1", have)})
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
