package redlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

func TestZZPoison(t *testing.T) {
	for _, bar := range []string{"9007199254740990", "4503599627370496"} {
		servers := 0
		srv, p, l := masters(t, 5)
		_ = servers
		held, err := l.Lock(t.Context(), "n")
		if err != nil {
			t.Fatal(err)
		}
		c, err := redis.DialURL(srv[0].URL())
		if err != nil {
			t.Fatal(err)
		}
		keys, _ := redis.Strings(c.Do("KEYS", "*bar"))
		t.Log(keys)
		c.Do("DEL", "redlock:{n}:lock")
		c.Do("SET", keys[0], bar)
		c.Close()
		urls := []string{}
		for _, s := range srv {
			urls = append(urls, s.URL())
		}
		p2, _ := pool.Dial(urls)
		t.Cleanup(func() { p2.Close() })
		_ = p
		l2 := locker(t, p2)
		counts := map[string]int{}
		for i := 0; i < 30; i++ {
			_, err := l2.TryLock(t.Context(), "n")
			var s string
			if err != nil {
				s = err.Error()
			}
			counts[s]++
		}
		t.Log("while held:", counts)
		held.Unlock(context.Background())
		counts = map[string]int{}
		for i := 0; i < 30; i++ {
			k, err := l2.TryLock(t.Context(), "n")
			s := "won"
			if err != nil {
				s = err.Error()
			} else {
				k.Unlock(t.Context())
			}
			counts[s]++
		}
		t.Log("after release:", counts)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		k, err := l2.Lock(ctx, "n")
		t.Log("lock, waiting 3 s:", err)
		if err == nil {
			k.Unlock(t.Context())
		}
		cancel()
		l3 := locker(t, p2, redlock.WithTTL(9*time.Second))
		k, err = l3.TryLock(t.Context(), "n")
		t.Log("a fresh Locker:", err)
		if err == nil {
			k.Unlock(t.Context())
		}
	}
}
