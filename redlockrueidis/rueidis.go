package redlockrueidis

import (
	"context"
	"net"

	"github.com/redis/rueidis"

	"github.com/redlock-go/redlock/internal/clientoptions"
	"github.com/redlock-go/redlock/pool"
)

// New calls [pool.New] for the masters that clients with these options use. Each ClientOption is for one master. If New
// returns an error, the error matches [pool.ErrInvalid], and nothing was dialled. Otherwise the caller must close the
// Pool.
func New(servers []rueidis.ClientOption, opts ...pool.Option) (*pool.Pool, error) {
	return clientoptions.New(len(servers), func(i int) (pool.Master, error) { return Master(servers[i], opts...) })
}

// Master returns the master that a client with these options uses: a server, or a master behind sentinels if
// Sentinel.MasterSet is set. An error matches [pool.ErrInvalid].
func Master(o rueidis.ClientOption, opts ...pool.Option) (pool.Master, error) {
	return from(&o).Master(opts)
}

// Buckets calls [pool.OpenBuckets] for the cluster that a client with these options uses. It returns a Pool for each of
// n buckets, for redlock.NewSharded. All clients must use the same n. The caller must close each Pool. If Buckets
// returns an error, the error matches [pool.ErrInvalid], and nothing was dialled.
func Buckets(o rueidis.ClientOption, n int, opts ...pool.Option) ([]*pool.Pool, error) {
	return from(&o).Buckets(n, opts)
}

// from maps the options of rueidis.
func from(o *rueidis.ClientOption) *clientoptions.Options {
	dialer, secure := o.Dialer, o.TLSConfig
	shared := &clientoptions.Options{
		Package: "redlockrueidis", Addrs: o.InitAddress, MasterSet: o.Sentinel.MasterSet,
		Dialer: &dialer, TLS: secure, SentinelTLS: o.Sentinel.TLSConfig,
		User: o.Username, Password: o.Password,
		SentinelUser: o.Sentinel.Username, SentinelPassword: o.Sentinel.Password,
		Database: o.SelectDB, ReplicaOnly: o.ReplicaOnly,
	}
	switch dial, plain := o.DialCtxFn, o.DialFn; {
	case dial != nil:
		shared.Dial = func(ctx context.Context, _, addr string) (net.Conn, error) { return dial(ctx, addr, &dialer, secure) }
	case plain != nil:
		shared.Dial = func(_ context.Context, _, addr string) (net.Conn, error) { return plain(addr, &dialer, secure) }
	}
	if credentials := o.AuthCredentialsFn; credentials != nil && len(o.InitAddress) > 0 {
		at := rueidis.AuthCredentialsContext{Address: shared.Addr()}
		shared.Credentials = func(context.Context) (user, password string, err error) {
			c, err := credentials(at)
			return c.Username, c.Password, err
		}
	}
	return shared
}
