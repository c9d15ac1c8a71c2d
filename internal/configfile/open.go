package configfile

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// A Shard contains the masters of one shard.
type Shard = redlock.Configuration

func (c *Config) checkShards() error {
	if len(c.Shards) > 0 && (len(c.Masters) > 0 || c.Shard != "") {
		return errors.New(`"shards" and "masters" (or "shard") exclude each other: use one of them`)
	}
	if c.Shard == "" {
		return nil
	}
	if n, err := fmt.Sscanf(c.Shard, "%d/%d", &c.shard[0], &c.shard[1]); n != 2 || err != nil {
		return fmt.Errorf("shard %q: must have the form 2/3 (number/total)", c.Shard)
	}
	return nil
}

// inChange reports whether s contains an epoch or next masters. If so, Open passes s to the Locker.
func inChange(s redlock.Configuration) bool { return s.Epoch != 0 || len(s.Next) > 0 }

// shards returns a Config for each shard.
func (c *Config) shards() []*Config {
	if len(c.Shards) == 0 {
		return []*Config{c}
	}
	var list []*Config
	for _, s := range c.Shards {
		one := *c
		one.Configuration, one.Shards, one.Change = s, nil, inChange(s)
		list = append(list, &one)
	}
	return list
}

// Configurations returns the configuration of each shard.
func (c *Config) Configurations() (list []redlock.Configuration) {
	for _, one := range c.shards() {
		list = append(list, one.Configuration)
	}
	return list
}

// openPools creates the pool of one shard, or one pool for each bucket of a cluster.
func (c *Config) openPools() ([]*pool.Pool, error) {
	opts, err := c.poolOptions()
	if err != nil {
		return nil, err
	}
	urls := c.urls()
	if slices.ContainsFunc(urls, func(u string) bool { return transport.URL(u).Buckets() > 0 }) {
		return pool.OpenBuckets(urls, opts...)
	}
	p, err := pool.Open(urls, opts...)
	return []*pool.Pool{p}, err
}

// Open creates a pool for each shard or bucket, and a Locker over the pools. opts take precedence over c. shut closes
// the Locker, which tries to release its locks until ctx ends, and then closes the pools.
func (c *Config) Open(opts ...redlock.Option) (
	l *redlock.Locker, pools []*pool.Pool, shut func(ctx context.Context) error, err error,
) {
	defer func() {
		if err != nil {
			closeAll(pools)
		}
	}()
	var sets []redlock.Configuration
	changes := false
	shards := c.shards()
	for i, one := range shards {
		more, err := one.openPools()
		if err != nil {
			if len(shards) > 1 {
				err = fmt.Errorf("shard %d of %d: %w", i+1, len(shards), err)
			}
			return nil, pools, nil, err
		}
		pools = append(pools, more...)
		set := redlock.Configuration{} // the masters of the pool
		if one.Change {
			set, changes = one.Configuration, true
		}
		sets = append(sets, set)
	}
	if changes {
		opts = append(opts, redlock.WithConfiguration(sets...))
	}
	opts = slices.Concat(c.lockerOptions(), opts)
	if len(pools) > 1 || len(c.Shards) > 0 {
		l, err = redlock.NewSharded(pools, opts...)
	} else {
		l, err = redlock.New(pools[0], opts...)
	}
	return l, pools, func(ctx context.Context) error {
		err := l.Close(ctx)
		closeAll(pools)
		return err
	}, err
}

func closeAll(pools []*pool.Pool) {
	for _, p := range pools {
		_ = p.Close() // never fails
	}
}
