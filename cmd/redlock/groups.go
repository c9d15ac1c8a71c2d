package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// locks are what commands need of a fleet: a Locker, or the Groups of several.
type locks interface {
	Lock(ctx context.Context, name string, opts ...redlock.LockOption) (*redlock.Lock, error)
	TryLock(ctx context.Context, name string, opts ...redlock.LockOption) (*redlock.Lock, error)
	Who(ctx context.Context, name string) (redlock.Who, error)
	ForceRelease(ctx context.Context, name, id string) (released int, err error)
	Ready(ctx context.Context) []redlock.MasterInfo
	Check(ctx context.Context) ([]pool.Finding, error)
	AdmitNow(ctx context.Context) error
	Quarantine(ctx context.Context, addr string) error
	RaiseGuardTime(ctx context.Context, g time.Duration) error
	Close(ctx context.Context) error
}

// groupSets are the masters of several groups.
type groupSets []redlock.Set

// name goes by these masters alone. A slash between two stands between two groups.
func (c *fleetConfig) name(urls []string) {
	c.Set, c.Groups, c.useSet = redlock.Set{}, nil, false
	for {
		at := slices.Index(urls, "/")
		if at < 0 {
			break
		}
		c.Groups = append(c.Groups, redlock.Set{Masters: urls[:at]})
		urls = urls[at+1:]
	}
	if c.Masters = urls; len(c.Groups) > 0 {
		c.Groups, c.Masters = append(c.Groups, c.Set), nil
	}
}

// checkGroups checks what a file says of groups.
func (c *fleetConfig) checkGroups(path string) error {
	if len(c.Groups) > 0 && (len(c.Masters) > 0 || c.Group != "") {
		return fmt.Errorf("%s: the masters are named by groups, or by masters, which may be one group, not both", path)
	}
	if c.Group == "" {
		return nil
	}
	if n, err := fmt.Sscanf(c.Group, "%d/%d", &c.group[0], &c.group[1]); n != 2 || err != nil {
		return fmt.Errorf("%s: group %q: it is the number of one and of all, as 2/3", path, c.Group)
	}
	return nil
}

// ofGroup is what c says of one group.
func (c *fleetConfig) ofGroup(i int) *fleetConfig {
	one := *c
	one.Set, one.Groups, one.group = c.Groups[i], nil, [2]int{i + 1, len(c.Groups)}
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

// openPools is open, and returns the pools as well.
func (a *app) openPools(
	c *fleetConfig, opts ...redlock.Option,
) (l locks, pools []*pool.Pool, shut func(context.Context), err error) {
	var lockers []*redlock.Locker
	shut = func(ctx context.Context) {
		for i, l := range lockers {
			_ = l.Close(ctx) // what a master has not got has expired there soon
			_ = pools[i].Close()
		}
	}
	add := func(c *fleetConfig) error {
		more, over, err := a.openOne(c, opts...)
		lockers, pools = append(lockers, more...), append(pools, over...)
		return err
	}
	if len(c.Groups) == 0 {
		if err = add(c); err == nil && pools[0].Bucket().Of == 0 {
			return lockers[0], pools, shut, nil
		}
	}
	for i := range c.Groups {
		if err = add(c.ofGroup(i)); err != nil {
			err = fmt.Errorf("group %d of %d: %w", i+1, len(c.Groups), err)
			break
		}
	}
	if err == nil {
		l, err = redlock.Spread(lockers...)
	}
	if err != nil {
		over, cancel := context.WithCancel(context.Background())
		cancel()
		shut(over)
		return nil, nil, nil, err
	}
	return l, pools, shut, nil
}
