package pool

import (
	"context"
	"crypto/tls"
	"math"
	"net"
	"time"

	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/internal/transport/wire"
)

type config = transport.Config

// limit returns an Option for the limit of a time. A shorter one was most likely meant in another unit. Multiples of a
// much longer one would overflow.
func limit(what string, d time.Duration, set func(*config)) Option {
	return transport.Set(d >= time.Millisecond && d <= time.Hour, set,
		"the %s %v: must be from 1ms to 1h; a number without a unit is in nanoseconds", what, d)
}

// WithTLSConfig sets the TLS configuration for masters with rediss:// or valkeys:// URLs. By default, the certificate
// authorities of the system are trusted. If no master uses TLS, [New] refuses the option, because connections would
// silently be unencrypted.
func WithTLSConfig(t *tls.Config) Option {
	return transport.Set(t != nil, func(c *config) { c.TLS = t }, "the TLS configuration is nil")
}

// WithCredentials logs in with a password and, unless user is empty, as that ACL user. Credentials in a URL take
// precedence.
func WithCredentials(user, password string) Option { return transport.Login(user, password) }

// WithCredentialsProvider logs in with the ACL user and the password that f returns, for credentials that expire or
// rotate. If the user is empty, only the password is sent. f is called for each connection that logs in to a master,
// after the server has accepted the connection. A master has two connections (see the package comment), and a cluster
// has one more for each node in its URL, to look up the owner of a bucket. A connection that is up keeps its login.
//
// The context of f ends when the attempt to connect ends, at the latest after its limit ([WithDialTimeout]). Calls for
// different masters, and for the nodes of a cluster, may overlap. If f fails, panics, returns no password or does not
// return in time, the attempt fails, and the master is down with that reason. After a pause, f is called
// again. Other masters are not affected. A call that ignores the end of its context keeps its master down until it
// returns.
//
// The error of the master contains the text of the error that f returns, but does not wrap that error. Credentials and
// queries of URLs, and the password, are removed from the text; it must not contain any other secret. [New] fails if
// [WithCredentials] is given as well. Credentials in a URL take precedence, as do the options of one master over those
// of all masters. Sentinels use [WithSentinelCredentials].
func WithCredentialsProvider(f func(ctx context.Context) (user, password string, err error)) Option {
	return transport.Set(f != nil, func(c *config) { c.SetProvider(f) }, "the credentials provider is nil")
}

// WithDatabase selects database n; the default is 0. A database in a URL takes precedence. Clients in different
// databases do not see each other's locks, although their masters have the same names: redlock check reports records of
// the same prefix in other databases.
func WithDatabase(n int) Option {
	return transport.Set(n >= 0 && n <= math.MaxInt32, func(c *config) { c.Database = n },
		"database %d is not in 0..%d", n, math.MaxInt32)
}

// WithDialer makes connections with f, which gets the network ("tcp" or "unix") and the address. f must return when its
// context ends, because Close waits for f. If f fails, panics or returns no connection, the attempt to connect fails.
// If TLS is configured, it runs over the connection that f returns. Only pools that are given the same Option value
// share the limit on attempts to connect ([WithDialTimeout]).
func WithDialer(f func(ctx context.Context, network, addr string) (net.Conn, error)) Option {
	slots := new(wire.Slots) // the same address may mean different servers for different dialers
	return transport.Set(f != nil, func(c *config) { c.Dialer, c.Slots = f, slots }, "the dialer is nil")
}

// WithTimeout bounds the silence of a master: if the master sends nothing for d while a written request awaits its
// reply, the master is considered down, and the pool connects again. The time for which a request waits in the pool's
// queue is not included. The default is 500 ms; d is from 1 ms to an hour, and should be small compared with the TTL of
// the locks. An attempt to acquire a lock fails after 15 s in any case. For a master behind Sentinel or in a cluster, a
// timeout above 9 s is refused.
func WithTimeout(d time.Duration) Option {
	return limit("timeout", d, func(c *config) { c.Timeout = d })
}

// WithDialTimeout bounds the time to make a connection, from dialling to the end of the handshake. The default is one
// second; d is from 1 ms to an hour. After an attempt that timed out, the next one has twice the time, up to 4 s, or up
// to d if d is longer.
//
// The pools of a process make at most eight connections to one address at a time. Further attempts wait for at most the
// same time, which counts separately; those that replace a connection for calls go first. A master that hangs does not
// delay connections to other addresses.
func WithDialTimeout(d time.Duration) Option {
	return limit("dial timeout", d, func(c *config) { c.DialTimeout = d })
}

// AllowEviction admits masters whose eviction policy can drop locks. If a lock is evicted, a second client can acquire
// it unnoticed.
func AllowEviction() Option {
	return transport.Set(true, func(c *config) { c.AllowEviction = true }, "")
}

// AllowTwoHolders admits a master behind Sentinel or in a cluster that keeps accepting writes without its replicas. If
// a partition isolates such a master together with some clients, a replica is promoted for the other clients, and a
// lock may have two holders. Without this option, the master has no vote. In a URL, the option is written
// allow=two-holders. A Locker logs a warning if the option is set.
func AllowTwoHolders() Option {
	return transport.Set(true, func(c *config) { c.TwoHolders = true }, "")
}

// WithSentinelCredentials logs in to the sentinels, with a password and, unless user is empty, as that ACL user. The
// default is no login. The credentials of the master, from its URL or from [WithCredentials], are never sent to a
// sentinel.
func WithSentinelCredentials(user, password string) Option {
	return transport.Set(password != "", func(c *config) { c.Sentinels.User, c.Sentinels.Password = user, password },
		"the sentinels' password is empty")
}

// WithSentinelTLS sets the TLS configuration for the sentinels of masters with rediss+sentinel:// or
// valkeys+sentinel:// URLs. By default, the certificate authorities of the system are trusted. [WithTLSConfig] applies
// only to the masters.
func WithSentinelTLS(t *tls.Config) Option {
	return transport.Set(t != nil, func(c *config) { c.Sentinels.TLS = t }, "the sentinels' TLS configuration is nil")
}
