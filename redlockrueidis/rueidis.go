package redlockrueidis

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/redis/rueidis"

	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/pool"
)

// New calls [pool.New] for the masters that clients with these options use. Each ClientOption is for one master. If New
// returns an error, the error matches [pool.ErrInvalid], and nothing was dialled. Otherwise the caller must close the
// Pool.
func New(servers []rueidis.ClientOption, opts ...pool.Option) (*pool.Pool, error) {
	masters := make([]pool.Master, len(servers))
	for i := range servers {
		var err error
		if masters[i], err = Master(servers[i], opts...); err != nil {
			return nil, err
		}
	}
	return pool.New(masters)
}

// Master returns the master that a client with these options uses: a server, or a master behind sentinels if
// Sentinel.MasterSet is set. An error matches [pool.ErrInvalid].
func Master(o rueidis.ClientOption, opts ...pool.Option) (pool.Master, error) {
	switch {
	case o.ReplicaOnly:
		return pool.Master{}, invalid("%q: ReplicaOnly must not be set: a replica has no vote", o.InitAddress)
	case len(o.InitAddress) == 0:
		return pool.Master{}, invalid("InitAddress is empty: give the address of the master")
	case o.Sentinel.MasterSet != "":
		return failover(&o, opts)
	case len(o.InitAddress) > 1:
		return pool.Master{}, invalid("%q: the addresses of a cluster: use Buckets; for independent masters, use "+
			"separate options", o.InitAddress)
	}
	scheme, own := reach(&o)
	u := url.URL{Scheme: scheme, Host: o.InitAddress[0]}
	if strings.HasPrefix(o.InitAddress[0], "/") {
		if scheme == "rediss" {
			return pool.Master{}, invalid("%s: TLS is not supported over a Unix socket", o.InitAddress[0])
		}
		u = url.URL{Scheme: "unix", Path: o.InitAddress[0]}
	}
	own = append(own, pool.WithDatabase(o.SelectDB))
	return pool.URL(u.String(), append(own, opts...)...), nil
}

// failover returns a master behind sentinels.
func failover(o *rueidis.ClientOption, opts []pool.Option) (pool.Master, error) {
	s := &o.Sentinel
	scheme, own := reach(o)
	if (s.TLSConfig == nil) != (o.TLSConfig == nil) || scheme == "redis" && s.TLSConfig != o.TLSConfig {
		return pool.Master{}, invalid("%s: use TLS for the master and its sentinels, or for neither; "+
			"with a dial function, use the same TLSConfig for both", s.MasterSet)
	}
	if scheme == "rediss" {
		own = append(own, pool.WithSentinelTLS(s.TLSConfig))
	}
	if s.Password != "" {
		own = append(own, pool.WithSentinelCredentials(s.Username, s.Password))
	}
	own = append(own, pool.WithDatabase(o.SelectDB))
	u := url.URL{Scheme: scheme + "+sentinel", Host: strings.Join(o.InitAddress, ","), Path: "/" + s.MasterSet}
	return pool.URL(u.String(), append(own, opts...)...), nil
}

// Buckets calls [pool.OpenBuckets] for the cluster that a client with these options uses. It returns a Pool for each of
// n buckets, for redlock.NewSharded. All clients must use the same n. The caller must close each Pool. If Buckets
// returns an error, the error matches [pool.ErrInvalid], and nothing was dialled.
func Buckets(o rueidis.ClientOption, n int, opts ...pool.Option) ([]*pool.Pool, error) {
	switch {
	case len(o.InitAddress) == 0 || o.Sentinel.MasterSet != "":
		return nil, invalid("%q: Buckets needs the addresses of a cluster, and no Sentinel.MasterSet", o.InitAddress)
	case o.ReplicaOnly:
		return nil, invalid("%q: ReplicaOnly must not be set: a replica has no vote", o.InitAddress)
	case o.SelectDB != 0:
		return nil, invalid("%q: SelectDB must not be set: a cluster has only database 0", o.InitAddress)
	}
	scheme, own := reach(&o)
	u := url.URL{Scheme: scheme + "+cluster", Host: strings.Join(o.InitAddress, ","), RawQuery: fmt.Sprint("buckets=", n)}
	return pool.OpenBuckets([]string{u.String()}, append(own, opts...)...)
}

// reach returns "redis" or "rediss", the beginning of the scheme of the URL, and the pool options for dialling, TLS and
// the login.
func reach(o *rueidis.ClientOption) (scheme string, own []pool.Option) {
	scheme = "redis"
	dialer, secure := o.Dialer, o.TLSConfig
	switch dial, plain := o.DialCtxFn, o.DialFn; {
	case dial != nil:
		own = append(own, pool.WithDialer(func(ctx context.Context, _, addr string) (net.Conn, error) {
			return dial(ctx, addr, &dialer, secure)
		}))
	case plain != nil:
		own = append(own, pool.WithDialer(func(_ context.Context, _, addr string) (net.Conn, error) {
			return plain(addr, &dialer, secure)
		}))
	default:
		own = append(own, pool.WithDialer(dialer.DialContext))
		if secure != nil {
			scheme = "rediss"
			own = append(own, pool.WithTLSConfig(secure))
		}
	}
	own = append(own, transport.WithProcessSlots())
	switch credentials := o.AuthCredentialsFn; {
	case credentials != nil:
		at := rueidis.AuthCredentialsContext{Address: address(o.InitAddress[0])}
		own = append(own, pool.WithCredentialsProvider(func(context.Context) (user, password string, err error) {
			c, err := credentials(at)
			return c.Username, c.Password, err
		}))
	case o.Password != "":
		own = append(own, pool.WithCredentials(o.Username, o.Password))
	}
	return scheme, own
}

// An address is an address in the options. It implements net.Addr.
type address string

// Network implements net.Addr.
func (a address) Network() string {
	if strings.HasPrefix(string(a), "/") {
		return "unix"
	}
	return "tcp"
}

// String implements net.Addr.
func (a address) String() string { return string(a) }

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: redlockrueidis: "+format, append([]any{pool.ErrInvalid}, args...)...)
}
