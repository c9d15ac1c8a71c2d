package main

import (
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// dialCluster returns a Locker over a cluster, and its pools. Close the Locker before the pools.
func dialCluster(url string) (*redlock.Locker, []*pool.Pool, error) {
	pools, err := pool.OpenBuckets([]string{url})
	if err != nil {
		return nil, nil, err
	}
	locker, err := redlock.NewSharded(pools)
	if err != nil {
		for _, p := range pools {
			_ = p.Close()
		}
	}
	return locker, pools, err
}
