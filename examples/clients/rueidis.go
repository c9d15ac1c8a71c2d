package main

import (
	"context"
	"fmt"
	"net"

	"github.com/redis/rueidis"

	"github.com/redlock-go/redlock/pool"
)

// fromRueidis makes a pool from options of rueidis, those of one server for each master.
func fromRueidis(servers []rueidis.ClientOption) (*pool.Pool, error) {
	var masters []pool.Master
	for _, o := range servers {
		if len(o.InitAddress) != 1 || o.Sentinel.MasterSet != "" {
			return nil, fmt.Errorf("%q: a master is one server, which has one address", o.InitAddress)
		}
		scheme := "redis://"
		opts := []pool.Option{pool.WithDatabase(o.SelectDB)}
		if o.Password != "" {
			opts = append(opts, pool.WithCredentials(o.Username, o.Password))
		}
		switch {
		case o.DialCtxFn != nil: // it speaks TLS itself
			opts = append(opts, pool.WithDialer(func(ctx context.Context, _, addr string) (net.Conn, error) {
				return o.DialCtxFn(ctx, addr, &o.Dialer, o.TLSConfig)
			}))
		case o.TLSConfig != nil:
			scheme = "rediss://"
			opts = append(opts, pool.WithTLSConfig(o.TLSConfig), pool.WithDialer(o.Dialer.DialContext))
		default:
			opts = append(opts, pool.WithDialer(o.Dialer.DialContext))
		}
		if o.Dialer.Timeout != 0 {
			opts = append(opts, pool.WithDialTimeout(o.Dialer.Timeout))
		}
		if o.ConnWriteTimeout != 0 {
			opts = append(opts, pool.WithTimeout(o.ConnWriteTimeout)) // keep it small against the TTL
		}
		masters = append(masters, pool.URL(scheme+o.InitAddress[0], opts...))
	}
	return pool.New(masters)
}
