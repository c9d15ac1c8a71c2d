package configfile

import (
	"errors"
	"fmt"
	"slices"

	"github.com/redlock-go/redlock/redlock"
)

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

// Open creates a Locker over the masters of c. opts take precedence over c.
func (c *Config) Open(opts ...redlock.Option) (*redlock.Locker, error) {
	reach, err := c.poolOptions()
	if err != nil {
		return nil, err
	}
	var urls [][]string
	var sets []redlock.Configuration
	changes := false
	for _, one := range c.shards() {
		urls = append(urls, one.urls())
		set := redlock.Configuration{} // the masters at the URLs
		if one.Change {
			set, changes = one.Configuration, true
		}
		sets = append(sets, set)
	}
	if changes {
		opts = append(opts, redlock.WithConfiguration(sets...))
	}
	opts = slices.Concat([]redlock.Option{redlock.WithPool(reach...)}, c.lockerOptions(), opts)
	if len(c.Shards) > 0 {
		return redlock.OpenSharded(urls, opts...)
	}
	return redlock.Open(urls[0], opts...)
}
