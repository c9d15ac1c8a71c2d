package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	redsyncredigo "github.com/go-redsync/redsync/v4/redis/redigo"
	redsyncrueidis "github.com/go-redsync/redsync/v4/redis/rueidis"
	"github.com/gomodule/redigo/redis"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidiscompat"
)

// redsyncWire lists the commands that redsync sends.
var redsyncWire = []string{"set", "evalsha", "eval"}

// redsyncPools connects redsync to each master with one of the clients that redsync supports, as redsync's
// documentation shows.
type redsyncPools func(urls []string) (pools []redsyncredis.Pool, shut func() error, err error)

// redsyncOpener returns a function that opens redsync over the pools. failFast is the option of redsync to return
// when a quorum has replied.
func redsyncOpener(connect redsyncPools, failFast bool) func(context.Context, setting) (contender, error) {
	return func(_ context.Context, s setting) (contender, error) {
		pools, shut, err := connect(s.URLs)
		if err != nil {
			return nil, err
		}
		options := []redsync.Option{redsync.WithExpiry(lockTTL), redsync.WithFailFast(failFast)}
		return &redsyncContender{rs: redsync.New(pools...), prefix: s.Prefix, options: options, shut: shut}, nil
	}
}

type redsyncContender struct {
	rs      *redsync.Redsync
	prefix  string
	options []redsync.Option
	shut    func() error
}

func (c *redsyncContender) caller() caller { return c }

func (c *redsyncContender) mutex(name string) *redsync.Mutex {
	return c.rs.NewMutex(c.prefix+name, c.options...)
}

func (c *redsyncContender) tryLock(ctx context.Context, name string) (held, error) {
	m := c.mutex(name)
	return redsyncHeld{m}, m.TryLockContext(ctx)
}

// lock calls LockContext again after redsync has used up its tries, as users of redsync do.
func (c *redsyncContender) lock(ctx context.Context, name string) (held, error) {
	m := c.mutex(name)
	for {
		err := m.LockContext(ctx)
		var taken *redsync.ErrTaken
		if err == nil || ctx.Err() != nil || !errors.As(err, &taken) && !errors.Is(err, redsync.ErrFailed) {
			return redsyncHeld{m}, err
		}
	}
}

func (c *redsyncContender) close(context.Context) error { return c.shut() }

type redsyncHeld struct{ m *redsync.Mutex }

// Unlock implements held.
func (h redsyncHeld) Unlock(ctx context.Context) error {
	if ok, err := h.m.UnlockContext(ctx); !ok {
		return fmt.Errorf("bench: redsync cannot unlock: %w", err)
	}
	return nil
}

// redigoPools keeps as many idle connections as redsync needs. With three idle connections, as in the example of
// redsync, redsync would dial for nearly every command.
func redigoPools(urls []string) (list []redsyncredis.Pool, shut func() error, err error) {
	var pools []*redis.Pool
	for _, u := range urls {
		p := &redis.Pool{
			MaxIdle: 1024, IdleTimeout: 240 * time.Second,
			DialContext: func(ctx context.Context) (redis.Conn, error) { return redis.DialURLContext(ctx, u) },
		}
		pools, list = append(pools, p), append(list, redsyncredigo.NewPool(p))
	}
	return list, func() (err error) {
		for _, p := range pools {
			err = errors.Join(err, p.Close())
		}
		return err
	}, nil
}

func rueidisPools(urls []string) (list []redsyncredis.Pool, shut func() error, err error) {
	var clients []rueidis.Client
	shut = func() error {
		for _, c := range clients {
			c.Close()
		}
		return nil
	}
	for _, u := range urls {
		var c rueidis.Client
		options, err := rueidis.ParseURL(u)
		if err == nil {
			c, err = rueidis.NewClient(options)
		}
		if err != nil {
			return nil, nil, errors.Join(err, shut())
		}
		clients, list = append(clients, c), append(list, redsyncrueidis.NewPool(rueidiscompat.NewAdapter(c)))
	}
	return list, shut, nil
}
