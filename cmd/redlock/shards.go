package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/redlock-go/redlock/internal/private"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// shardSets are the masters of several shards.
type shardSets []redlock.Configuration

// name makes c use only these masters. A slash separates those of two shards.
func (c *deploymentConfig) name(urls []string) {
	c.Configuration, c.Shards, c.useSet = redlock.Configuration{}, nil, false
	for {
		at := slices.Index(urls, "/")
		if at < 0 {
			break
		}
		c.Shards = append(c.Shards, redlock.Configuration{Masters: urls[:at]})
		urls = urls[at+1:]
	}
	if c.Masters = urls; len(c.Shards) > 0 {
		c.Shards, c.Masters = append(c.Shards, c.Configuration), nil
	}
}

// checkShards checks the shards in a file.
func (c *deploymentConfig) checkShards(path string) error {
	if len(c.Shards) > 0 && (len(c.Masters) > 0 || c.Shard != "") {
		return fmt.Errorf("%s: the masters are named by shards, or by masters, which may be one shard, not both", path)
	}
	if c.Shard == "" {
		return nil
	}
	if n, err := fmt.Sscanf(c.Shard, "%d/%d", &c.shard[0], &c.shard[1]); n != 2 || err != nil {
		return fmt.Errorf("%s: shard %q: it is the number of one and of all, as 2/3", path, c.Shard)
	}
	return nil
}

// ofShard returns the part of c for one shard.
func (c *deploymentConfig) ofShard(i int) *deploymentConfig {
	one := *c
	one.Configuration, one.Shards, one.shard = c.Shards[i], nil, [2]int{i + 1, len(c.Shards)}
	one.useSet = one.Epoch != 0 || len(one.Next) > 0
	if !slices.Equal(c.Durable, []string{"all"}) {
		one.Durable = nil
		for _, u := range slices.Concat(one.Masters, one.Next) {
			if name := pool.URL(u).Name; slices.Contains(c.Durable, name) {
				one.Durable = append(one.Durable, name)
			}
		}
	}
	return &one
}

// openPools is open, and returns the pools as well: one for each shard.
func (a *app) openPools(
	c *deploymentConfig, opts ...redlock.Option,
) (l *redlock.Locker, pools []*pool.Pool, shut func(context.Context), err error) {
	shards := []*deploymentConfig{c}
	if len(c.Shards) > 0 {
		shards = nil
		for i := range c.Shards {
			shards = append(shards, c.ofShard(i))
		}
	}
	var sets []redlock.Configuration
	changes := false
	for i, one := range shards {
		more, err := one.dial()
		if err != nil {
			if len(shards) > 1 {
				err = fmt.Errorf("shard %d of %d: %w", i+1, len(shards), err)
			}
			closeAll(pools)
			return nil, nil, nil, err
		}
		pools = append(pools, more...)
		set := redlock.Configuration{} // the masters of its pool
		if one.useSet {
			set, changes = one.Configuration, true
		}
		sets = append(sets, set)
	}
	silent := redlock.WithLogger(slog.New(slog.DiscardHandler)) // the command itself says what it finds
	opts = c.options(append([]redlock.Option{silent}, opts...)...)
	if changes {
		opts = append(opts, redlock.WithConfiguration(sets...))
	}
	if len(pools) > 1 || len(c.Shards) > 0 {
		l, err = redlock.NewSharded(pools, opts...)
	} else {
		l, err = redlock.New(pools[0], opts...)
	}
	if err != nil {
		closeAll(pools)
		return nil, nil, nil, err
	}
	for _, w := range private.Of(l).Warnings() {
		a.complain(errors.New(w))
	}
	return l, pools, func(ctx context.Context) {
		_ = l.Close(ctx) // what a master has not got has expired there soon
		closeAll(pools)
	}, nil
}

func closeAll(pools []*pool.Pool) {
	for _, p := range pools {
		_ = p.Close() // it returns nil
	}
}
