package redlockgoredis

import (
	"context"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"

	"github.com/redlock-go/redlock/internal/clientoptions"
	"github.com/redlock-go/redlock/pool"
)

// New calls [pool.New] for the masters that clients with these options use. Each UniversalOptions is for one master: a
// server, or a master behind sentinels if MasterName is set. If New returns an error, the error matches
// [pool.ErrInvalid], and nothing was dialled. Otherwise the caller must close the Pool.
func New(servers []*redis.UniversalOptions, opts ...pool.Option) (*pool.Pool, error) {
	return clientoptions.New(len(servers), func(i int) (pool.Master, error) {
		if servers[i] == nil {
			return pool.Master{}, invalid("the options of master %d are nil: give options for each master", i+1)
		}
		return from(servers[i]).Master(opts)
	})
}

// Master returns the master that a client with these options uses. The options may be those for NewClient, or the
// result of [redis.Client.Options], but not of a failover client, which needs [Failover]. An error matches
// [pool.ErrInvalid].
func Master(o *redis.Options, opts ...pool.Option) (pool.Master, error) {
	switch {
	case o == nil:
		return pool.Master{}, invalid("the options are nil")
	case o.Addr == "FailoverClient": // go-redis's name for it
		return pool.Master{}, invalid("the options of a failover client: use Failover with its FailoverOptions")
	}
	return ofClient(o).Master(opts)
}

// Failover returns the master that a failover client with these options uses. TLSConfig applies to the master and to
// its sentinels. An error matches [pool.ErrInvalid].
func Failover(o *redis.FailoverOptions, opts ...pool.Option) (pool.Master, error) {
	if o == nil || o.MasterName == "" || len(o.SentinelAddrs) == 0 {
		return pool.Master{}, invalid("a failover client needs MasterName and SentinelAddrs")
	}
	return ofFailover(o).Master(opts)
}

// Buckets calls [pool.OpenBuckets] for the cluster that a cluster client with these options uses. It returns a Pool for
// each of n buckets, for redlock.NewSharded. All clients must use the same n. The caller must close each Pool. If
// Buckets returns an error, the error matches [pool.ErrInvalid], and nothing was dialled.
func Buckets(o *redis.ClusterOptions, n int, opts ...pool.Option) ([]*pool.Pool, error) {
	if o == nil {
		return nil, invalid("the options are nil")
	}
	return ofCluster(o).Buckets(n, opts)
}

const name = "redlockgoredis"

func ofClient(o *redis.Options) *clientoptions.Options {
	shared := from(&redis.UniversalOptions{
		Addrs: []string{o.Addr}, DB: o.DB,
		Dialer: o.Dialer, TLSConfig: o.TLSConfig, Username: o.Username, Password: o.Password,
		CredentialsProvider: o.CredentialsProvider, CredentialsProviderContext: o.CredentialsProviderContext,
		StreamingCredentialsProvider: o.StreamingCredentialsProvider,
	})
	shared.Unix = o.Network == "unix"
	return shared
}

func ofFailover(o *redis.FailoverOptions) *clientoptions.Options {
	return from(&redis.UniversalOptions{
		Addrs: o.SentinelAddrs, DB: o.DB, MasterName: o.MasterName, ReadOnly: o.ReplicaOnly,
		SentinelUsername: o.SentinelUsername, SentinelPassword: o.SentinelPassword,
		Dialer: o.Dialer, TLSConfig: o.TLSConfig, Username: o.Username, Password: o.Password,
		CredentialsProvider: o.CredentialsProvider, CredentialsProviderContext: o.CredentialsProviderContext,
		StreamingCredentialsProvider: o.StreamingCredentialsProvider,
	})
}

func ofCluster(o *redis.ClusterOptions) *clientoptions.Options {
	return from(&redis.UniversalOptions{
		Addrs:  o.Addrs,
		Dialer: o.Dialer, TLSConfig: o.TLSConfig, Username: o.Username, Password: o.Password,
		CredentialsProvider: o.CredentialsProvider, CredentialsProviderContext: o.CredentialsProviderContext,
		StreamingCredentialsProvider: o.StreamingCredentialsProvider,
	})
}

// from maps the options of go-redis.
func from(o *redis.UniversalOptions) *clientoptions.Options {
	return &clientoptions.Options{
		Package: name, Addrs: o.Addrs, MasterSet: o.MasterName, Cluster: o.IsClusterMode,
		Dial: o.Dialer, TLS: o.TLSConfig, SentinelTLS: o.TLSConfig,
		Credentials: credentials(o), User: o.Username, Password: o.Password,
		SentinelUser: o.SentinelUsername, SentinelPassword: o.SentinelPassword,
		Database: o.DB, ReplicaOnly: o.MasterName != "" && o.ReadOnly, // a client without sentinels ignores ReadOnly
	}
}

// credentials returns the provider that go-redis would use, or nil.
func credentials(o *redis.UniversalOptions) func(context.Context) (user, password string, err error) {
	switch streaming, plain := o.StreamingCredentialsProvider, o.CredentialsProvider; {
	case streaming != nil:
		return func(context.Context) (string, string, error) { return present(streaming) }
	case o.CredentialsProviderContext != nil:
		return o.CredentialsProviderContext
	case plain != nil:
		return func(context.Context) (string, string, error) {
			user, password := plain()
			return user, password, nil
		}
	}
	return nil
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

func invalid(format string, args ...any) error { return clientoptions.Invalid(name, format, args...) }
