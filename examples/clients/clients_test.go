package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/examples/internal/testmasters"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// addresses returns the addresses of three listening masters in memory.
func addresses(t *testing.T) (list []string) {
	t.Helper()
	for _, u := range testmasters.Listen(t, 3) {
		list = append(list, strings.TrimPrefix(u, "redis://"))
	}
	return list
}

// locks acquires a lock on the masters of a pool, and closes the pool.
func locks(t *testing.T, p *pool.Pool, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	l, err := redlock.New(p)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := l.Do(ctx, "orders:42", func(context.Context, *redlock.Lock) error { return nil }); err != nil {
		t.Error(err)
	}
}

func TestProgramLocksByEachClient(t *testing.T) {
	urls := testmasters.Listen(t, 3)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, client := range []string{"go-redis", "rueidis", "valkey-go", "redigo"} {
		var out strings.Builder
		if err := run(ctx, client, urls, &out); err != nil || !strings.HasPrefix(out.String(), "locked, token ") {
			t.Errorf("with the client %s the program printed %q, %v; want a token", client, out.String(), err)
		}
		if client == "redigo" {
			continue // redigo parses the URL only when it dials
		}
		if err := run(ctx, client, []string{"http://127.0.0.1:1"}, &out); err == nil {
			t.Errorf("with the client %s an invalid master is accepted", client)
		}
	}
	if err := run(ctx, "another", urls, io.Discard); err == nil {
		t.Error("an unknown client is accepted")
	}
}

func TestPoolsOfRedigoMakeMasters(t *testing.T) {
	pools, asked := map[string]*redis.Pool{}, atomic.Int32{}
	var fresh []pool.Master
	for _, addr := range addresses(t) {
		pools[addr] = &redis.Pool{Dial: func() (redis.Conn, error) { return redis.Dial("tcp", addr) }}
		fresh = append(fresh, withFreshPassword(addr, func(context.Context) (string, error) {
			asked.Add(1)
			return "", errors.New("no password today")
		}))
	}
	p, err := fromRedigo(pools)
	locks(t, p, err)
	if p, err = pool.New(fresh); err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	l, err := redlock.New(p)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = l.TryLock(t.Context(), "job")
	if err == nil || !strings.Contains(err.Error(), "no password today") || asked.Load() == 0 {
		t.Errorf("the password was requested %d times, and TryLock returned %v; want the error of the password",
			asked.Load(), err)
	}
}
