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
	"github.com/redis/rueidis/rueidislock"
)

// A heldFunc releases a lock.
type heldFunc func(ctx context.Context) error

func (f heldFunc) Unlock(ctx context.Context) error { return f(ctx) }

// redsyncPool connects redsync to a master with one of the clients that redsync supports, and returns how to close it.
type redsyncPool func(url string) (redsyncredis.Pool, func() error, error)

// openRedsync returns a function that opens redsync over the pools. With failFast, redsync returns when a quorum has
// replied.
func openRedsync(connect redsyncPool, failFast bool) func(context.Context, setting) (contender, error) {
	return func(ctx context.Context, s setting) (contender, error) {
		c := &redsyncContender{prefix: s.Prefix, failFast: failFast}
		var pools []redsyncredis.Pool
		for _, u := range s.URLs {
			p, shut, err := connect(u)
			if err != nil {
				return nil, errors.Join(err, c.close(ctx))
			}
			pools, c.shut = append(pools, p), append(c.shut, shut)
		}
		c.rs = redsync.New(pools...)
		return c, nil
	}
}

type redsyncContender struct {
	rs       *redsync.Redsync
	prefix   string
	failFast bool
	shut     []func() error
}

// lock calls LockContext again after redsync has used up its tries, as users of redsync do.
func (c *redsyncContender) lock(ctx context.Context, name string) (held, error) {
	m := c.rs.NewMutex(c.prefix+name, redsync.WithExpiry(lockTTL), redsync.WithFailFast(c.failFast))
	for {
		err := m.LockContext(ctx)
		var taken *redsync.ErrTaken
		if err == nil || ctx.Err() != nil || !errors.As(err, &taken) && !errors.Is(err, redsync.ErrFailed) {
			return heldFunc(func(ctx context.Context) error {
				ok, err := m.UnlockContext(ctx)
				if ok {
					return nil
				}
				return fmt.Errorf("redsync cannot unlock: %w", err)
			}), err
		}
	}
}

func (c *redsyncContender) close(context.Context) (err error) {
	for _, shut := range c.shut {
		err = errors.Join(err, shut())
	}
	return err
}

// redigoPool keeps as many idle connections as redsync needs. With three, as in the example of redsync, redsync would
// dial for nearly every command.
func redigoPool(url string) (redsyncredis.Pool, func() error, error) {
	p := &redis.Pool{MaxIdle: 1024, IdleTimeout: 240 * time.Second,
		DialContext: func(ctx context.Context) (redis.Conn, error) {
			return redis.DialURLContext(ctx, url, redis.DialConnectTimeout(peerTimeout),
				redis.DialReadTimeout(peerTimeout), redis.DialWriteTimeout(peerTimeout))
		}}
	return redsyncredigo.NewPool(p), p.Close, nil
}

func rueidisPool(url string) (redsyncredis.Pool, func() error, error) {
	options, err := rueidisOptions(url)
	if err != nil {
		return nil, nil, err
	}
	c, err := rueidis.NewClient(options)
	if err != nil {
		return nil, nil, err
	}
	return redsyncrueidis.NewPool(rueidiscompat.NewAdapter(c)), func() error { c.Close(); return nil }, nil
}

func rueidisOptions(url string) (rueidis.ClientOption, error) {
	o, err := rueidis.ParseURL(url)
	o.ForceSingleClient, o.ConnWriteTimeout, o.Dialer.Timeout = true, peerTimeout, peerTimeout
	return o, err
}

// openRueidislock opens rueidislock over the first master, with one key for each lock: rueidislock keeps a lock on one
// server or cluster, and one key is its fastest setting.
func openRueidislock(_ context.Context, s setting) (contender, error) {
	o, err := rueidisOptions(s.URLs[0])
	if err != nil {
		return nil, err
	}
	l, err := rueidislock.NewLocker(rueidislock.LockerOption{ClientOption: o, KeyPrefix: s.Prefix, KeyMajority: 1,
		KeyValidity: lockTTL, NoLoopTracking: true})
	return rueidislockContender{l}, err
}

type rueidislockContender struct{ rueidislock.Locker }

func (c rueidislockContender) lock(ctx context.Context, name string) (held, error) {
	_, release, err := c.WithContext(ctx, name)
	return heldFunc(func(context.Context) error { release(); return nil }), err
}

func (c rueidislockContender) close(context.Context) error {
	c.Close()
	return nil
}
