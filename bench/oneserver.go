package main

import (
	"context"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

// The contenders of this file lock on one server. They are a reference of another kind: what a majority costs more.

type redislockContender struct {
	client *redis.Client
	locks  *redislock.Client
	prefix string
}

func openRedislock(_ context.Context, s setting, _ func(error)) (contender, error) {
	options, err := redis.ParseURL(s.URLs[0])
	if err != nil {
		return nil, err
	}
	c := redis.NewClient(options)
	return &redislockContender{c, redislock.New(c), s.Prefix}, nil
}

func (c *redislockContender) caller() caller { return c }

func (c *redislockContender) tryLock(ctx context.Context, name string) (held, error) {
	return c.obtain(ctx, name, redislock.NoRetry())
}

// lock polls: the library knows nothing else. The back-off is the one of its documentation, which begins shorter.
func (c *redislockContender) lock(ctx context.Context, name string) (held, error) {
	return c.obtain(ctx, name, redislock.ExponentialBackoff(16*time.Millisecond, 100*time.Millisecond))
}

func (c *redislockContender) obtain(ctx context.Context, name string, retry redislock.RetryStrategy) (held, error) {
	lock, err := c.locks.Obtain(ctx, c.prefix+name, lockTTL, &redislock.Options{RetryStrategy: retry})
	if err != nil {
		return nil, err
	}
	return redislockHeld{lock}, nil
}

func (c *redislockContender) close(context.Context) error { return c.client.Close() }

type redislockHeld struct{ lock *redislock.Lock }

// Unlock implements held.
func (h redislockHeld) Unlock(ctx context.Context) error { return h.lock.Release(ctx) }

// Extend implements extender.
func (h redislockHeld) Extend(ctx context.Context) error { return h.lock.Refresh(ctx, lockTTL, nil) }

type rueidislockContender struct{ locker rueidislock.Locker }

// openRueidislock opens it as its documentation says for one server: one key a lock, and no messages about own keys.
func openRueidislock(_ context.Context, s setting, _ func(error)) (contender, error) {
	l, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: []string{hostOf(s.URLs[0])}},
		KeyPrefix:    s.Prefix, KeyMajority: 1, KeyValidity: lockTTL, NoLoopTracking: true,
	})
	if err != nil {
		return nil, err
	}
	return &rueidislockContender{l}, nil
}

func (c *rueidislockContender) caller() caller { return c }

func (c *rueidislockContender) tryLock(ctx context.Context, name string) (held, error) {
	_, cancel, err := c.locker.TryWithContext(ctx, name)
	if err != nil {
		return nil, err
	}
	return rueidislockHeld(cancel), nil
}

func (c *rueidislockContender) lock(ctx context.Context, name string) (held, error) {
	_, cancel, err := c.locker.WithContext(ctx, name)
	if err != nil {
		return nil, err
	}
	return rueidislockHeld(cancel), nil
}

func (c *rueidislockContender) close(context.Context) error {
	c.locker.Close()
	return nil
}

type rueidislockHeld context.CancelFunc

// Unlock implements held.
func (h rueidislockHeld) Unlock(context.Context) error {
	h()
	return nil
}
