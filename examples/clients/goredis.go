package main

import (
	"net/url"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/redlock-go/redlock/pool"
)

// fromGoRedis makes a pool from options of go-redis, those of one server for each master, as they are given to
// NewClient.
func fromGoRedis(servers []*goredis.Options) (*pool.Pool, error) {
	var masters []pool.Master
	for _, o := range servers {
		u := url.URL{Scheme: "redis", Host: o.Addr}
		if o.Network == "unix" {
			u = url.URL{Scheme: "unix", Path: o.Addr}
		}
		opts := []pool.Option{pool.WithDatabase(o.DB)}
		if o.Password != "" {
			opts = append(opts, pool.WithCredentials(o.Username, o.Password))
		}
		switch {
		case o.Dialer != nil: // go-redis speaks no TLS over its connections: where TLS is wanted, it does that itself
			opts = append(opts, pool.WithDialer(o.Dialer))
		case o.TLSConfig != nil:
			u.Scheme = "rediss"
			opts = append(opts, pool.WithTLSConfig(o.TLSConfig))
		}
		if o.DialTimeout > 0 {
			opts = append(opts, pool.WithDialTimeout(o.DialTimeout))
		}
		if o.ReadTimeout > 0 {
			opts = append(opts, pool.WithTimeout(o.ReadTimeout)) // keep it small against the TTL
		}
		masters = append(masters, pool.URL(u.String(), opts...))
	}
	return pool.New(masters)
}

// fromGoRedisFailover names a master behind sentinels from options of go-redis, as they are given to NewFailoverClient.
func fromGoRedisFailover(o *goredis.FailoverOptions) pool.Master {
	scheme, opts := "redis", []pool.Option{pool.WithDatabase(o.DB)}
	if o.Password != "" {
		opts = append(opts, pool.WithCredentials(o.Username, o.Password))
	}
	if o.SentinelPassword != "" {
		opts = append(opts, pool.WithSentinelCredentials(o.SentinelUsername, o.SentinelPassword))
	}
	if o.TLSConfig != nil { // go-redis speaks to both by it
		scheme = "rediss"
		opts = append(opts, pool.WithTLSConfig(o.TLSConfig), pool.WithSentinelTLS(o.TLSConfig))
	}
	return pool.URL(scheme+"+sentinel://"+strings.Join(o.SentinelAddrs, ",")+"/"+o.MasterName, opts...)
}
