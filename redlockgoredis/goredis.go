package redlockgoredis

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"

	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/pool"
)

// New calls [pool.New] for the masters that clients with these options use. Each UniversalOptions is for one master: a
// server, or a master behind sentinels if MasterName is set. If New returns an error, the error matches
// [pool.ErrInvalid], and nothing was dialled. Otherwise the caller must close the Pool.
func New(servers []*redis.UniversalOptions, opts ...pool.Option) (*pool.Pool, error) {
	masters := make([]pool.Master, len(servers))
	for i, o := range servers {
		var err error
		switch {
		case o == nil:
			err = invalid("the options of master %d are nil: give options for each master", i+1)
		case len(o.Addrs) == 0: // a client would use this machine
			err = invalid("Addrs of master %d is empty: give the address of the master, or those of its sentinels", i+1)
		case o.MasterName != "":
			masters[i], err = Failover(o.Failover(), opts...)
		case len(o.Addrs) > 1 || o.IsClusterMode:
			err = invalid("%q: the addresses of a cluster: use Buckets; for independent masters, use separate options",
				o.Addrs)
		default:
			masters[i], err = Master(o.Simple(), opts...)
		}
		if err != nil {
			return nil, err
		}
	}
	return pool.New(masters)
}

// Master returns the master that a client with these options uses. The options may be those for NewClient, or the
// result of [redis.Client.Options], but not of a failover client, which needs [Failover]. An error matches
// [pool.ErrInvalid].
func Master(o *redis.Options, opts ...pool.Option) (pool.Master, error) {
	switch {
	case o == nil:
		return pool.Master{}, invalid("the options are nil")
	case o.Addr == "FailoverClient": // the text of go-redis; the dialer finds the master
		return pool.Master{}, invalid("the options of a failover client: use Failover with its FailoverOptions")
	}
	scheme, own := reach(o)
	u := url.URL{Scheme: scheme, Host: o.Addr}
	if o.Network == "unix" || strings.HasPrefix(o.Addr, "/") {
		if scheme == "rediss" {
			return pool.Master{}, invalid("%s: TLS is not supported over a Unix socket", o.Addr)
		}
		u = url.URL{Scheme: "unix", Path: o.Addr}
	}
	return pool.URL(u.String(), append(own, opts...)...), nil
}

// Failover returns the master that a failover client with these options uses. TLSConfig applies to the master and to
// its sentinels. An error matches [pool.ErrInvalid].
func Failover(o *redis.FailoverOptions, opts ...pool.Option) (pool.Master, error) {
	switch {
	case o == nil || o.MasterName == "" || len(o.SentinelAddrs) == 0:
		return pool.Master{}, invalid("a failover client needs MasterName and SentinelAddrs")
	case o.ReplicaOnly:
		return pool.Master{}, invalid("%s: ReplicaOnly must not be set: a replica has no vote", o.MasterName)
	}
	scheme, own := reach(&redis.Options{
		Dialer: o.Dialer, TLSConfig: o.TLSConfig, Username: o.Username, Password: o.Password, DB: o.DB,
		CredentialsProvider: o.CredentialsProvider, CredentialsProviderContext: o.CredentialsProviderContext,
		StreamingCredentialsProvider: o.StreamingCredentialsProvider,
	})
	if scheme == "rediss" {
		own = append(own, pool.WithSentinelTLS(o.TLSConfig))
	}
	if o.SentinelPassword != "" {
		own = append(own, pool.WithSentinelCredentials(o.SentinelUsername, o.SentinelPassword))
	}
	u := url.URL{Scheme: scheme + "+sentinel", Host: strings.Join(o.SentinelAddrs, ","), Path: "/" + o.MasterName}
	return pool.URL(u.String(), append(own, opts...)...), nil
}

// Buckets calls [pool.OpenBuckets] for the cluster that a cluster client with these options uses. It returns a Pool for
// each of n buckets, for redlock.NewSharded. All clients must use the same n. The caller must close each Pool. If
// Buckets returns an error, the error matches [pool.ErrInvalid], and nothing was dialled.
func Buckets(o *redis.ClusterOptions, n int, opts ...pool.Option) ([]*pool.Pool, error) {
	if o == nil || len(o.Addrs) == 0 {
		return nil, invalid("a cluster needs Addrs")
	}
	scheme, own := reach(&redis.Options{
		Dialer: o.Dialer, TLSConfig: o.TLSConfig, Username: o.Username, Password: o.Password,
		CredentialsProvider: o.CredentialsProvider, CredentialsProviderContext: o.CredentialsProviderContext,
		StreamingCredentialsProvider: o.StreamingCredentialsProvider,
	})
	u := url.URL{Scheme: scheme + "+cluster", Host: strings.Join(o.Addrs, ","), RawQuery: fmt.Sprint("buckets=", n)}
	return pool.OpenBuckets([]string{u.String()}, append(own, opts...)...)
}

// reach returns the base of the URL's scheme, "redis" or "rediss", to which the caller may add "+cluster" and the like,
// and the pool options for dialling, TLS and the login.
func reach(o *redis.Options) (scheme string, own []pool.Option) {
	scheme = "redis"
	switch {
	case o.Dialer != nil:
		own = append(own, pool.WithDialer(o.Dialer), transport.WithProcessSlots())
	case o.TLSConfig != nil:
		scheme = "rediss"
		own = append(own, pool.WithTLSConfig(o.TLSConfig))
	}
	withContext := o.CredentialsProviderContext
	switch streaming, plain := o.StreamingCredentialsProvider, o.CredentialsProvider; {
	case streaming != nil:
		withContext = func(context.Context) (string, string, error) { return present(streaming) }
	case withContext == nil && plain != nil:
		withContext = func(context.Context) (string, string, error) {
			user, password := plain()
			return user, password, nil
		}
	}
	switch {
	case withContext != nil:
		own = append(own, pool.WithCredentialsProvider(withContext))
	case o.Password != "":
		own = append(own, pool.WithCredentials(o.Username, o.Password))
	}
	return scheme, append(own, pool.WithDatabase(o.DB))
}

// A listener is an auth.CredentialsListener that ignores later credentials.
type listener struct{ _ byte }

func (*listener) OnNext(auth.Credentials) {}
func (*listener) OnError(error)           {}

// present returns the current credentials of p.
func present(p auth.StreamingCredentialsProvider) (user, password string, err error) {
	c, cancel, err := p.Subscribe(&listener{})
	if err != nil {
		return "", "", err
	}
	user, password = c.BasicAuth()
	if cancel != nil {
		err = cancel()
	}
	return user, password, err
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: redlockgoredis: "+format, append([]any{pool.ErrInvalid}, args...)...)
}
