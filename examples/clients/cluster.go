package clients

import (
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// dialCluster locks on a cluster. The pools are closed after the Groups.
func dialCluster(url string) (*redlock.Groups, []*pool.Pool, error) {
	pools, err := pool.DialBuckets([]string{url})
	if err != nil {
		return nil, nil, err
	}
	groups, err := redlock.Buckets(pools)
	if err != nil {
		for _, p := range pools {
			_ = p.Close()
		}
	}
	return groups, pools, err
}
