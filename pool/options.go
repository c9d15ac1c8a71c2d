package pool

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	"github.com/redlock-go/redlock/internal/transport"
)

// WithTLSConfig sets the TLS configuration for masters with rediss:// or valkeys:// URLs. Without it the system's roots
// are trusted. It is an error if no master uses TLS, because connections would silently be unencrypted.
func WithTLSConfig(t *tls.Config) Option { return transport.WithTLSConfig(t) }

// WithCredentials logs in with a password and, unless user is empty, as that ACL user. Credentials in a URL take
// precedence.
func WithCredentials(user, password string) Option { return transport.WithCredentials(user, password) }

// WithCredentialsProvider logs in with the ACL user and the password that f returns, for credentials that expire or
// rotate. If the user is empty, only the password is sent. f is called for each connection that logs in to a master,
// once the server has accepted it: a master has two (see the package comment), and a cluster one more for each node in
// its URL, to look up the owner of a bucket. A connection that is up keeps its login.
//
// The context of f ends with the dial ([WithDialTimeout]). Calls for different masters, and for the nodes of a cluster,
// may overlap. If f fails, panics, returns no password or does not return in time, the dial fails, the master is down
// with that reason, and f is called again after a pause ([WithRedial]); other masters are not affected. A call that
// ignores the end of its context keeps its master down until it returns.
//
// The error of the master has the text of the error that f returns, without the credentials and queries of URLs and
// without the password, and does not wrap it. The text must not contain any other secret. [New] fails if
// [WithCredentials] is given as well. Credentials in a URL take precedence, and so do the options of one master over
// those of all. Sentinels use [WithSentinelCredentials].
func WithCredentialsProvider(f func(ctx context.Context) (user, password string, err error)) Option {
	return transport.WithCredentialsProvider(f)
}

// WithDatabase selects database n; the default is 0. A database in a URL takes precedence.
func WithDatabase(n int) Option { return transport.WithDatabase(n) }

// WithDialer makes connections with f, which gets the network ("tcp" or "unix") and the address. f must return when its
// context ends: Close waits for it. If TLS is configured, it runs over the connection that f returns.
func WithDialer(f func(ctx context.Context, network, addr string) (net.Conn, error)) Option {
	return transport.WithDialer(f)
}

// WithTimeout bounds the silence of a master: if it sends nothing for d while a written request waits for its reply,
// the master counts as down, and the connection is made again. The time that a request waits in the pool's queue does
// not count. The default is 500 ms. Keep it small compared with the TTL of the locks. More than 9 s are refused for a
// master behind Sentinel or a cluster.
func WithTimeout(d time.Duration) Option { return transport.WithTimeout(d) }

// WithDialTimeout bounds making a connection, from dialling to the end of the handshake. The default is 1 s.
func WithDialTimeout(d time.Duration) Option { return transport.WithDialTimeout(d) }

// WithHeartbeat sets how often a connection checks the identity and the fitness of its master. The default is 3 s,
// which is also the maximum for a master behind Sentinel or a cluster.
func WithHeartbeat(d time.Duration) Option { return transport.WithHeartbeat(d) }

// WithRedial sets the pause between attempts to connect. It doubles from minimum to maximum, and each pause is
// shortened by a random fraction of up to a half. If a connection was in use for a while, it is redialled at once. The
// defaults are 20 ms and 1 s.
func WithRedial(minimum, maximum time.Duration) Option { return transport.WithRedial(minimum, maximum) }

// WithQueueLimit sets how many requests of one master may be queued or in flight; beyond it calls fail at once.
// Acquires may use half of it, which leaves room for extensions and releases. The default is 32768.
func WithQueueLimit(n int) Option { return transport.WithQueueLimit(n) }

// AllowEviction admits masters whose eviction policy can drop locks. A lock may then have a second holder without
// notice.
func AllowEviction() Option { return transport.AllowEviction() }

// AllowTwoHolders admits a master behind Sentinel, or a cluster, that keeps taking writes without its replicas. While
// it is partitioned away together with some clients, a replica is promoted for the others, and a lock may have two
// holders. Without this option such a master has no vote. In a URL it is allow=two-holders. A Locker logs a warning.
func AllowTwoHolders() Option { return transport.AllowTwoHolders() }

// WithSentinelCredentials logs in to the sentinels, with a password and, unless user is empty, as that ACL user. The
// default is no login. The credentials of the master, from its URL or from [WithCredentials], are never sent to a
// sentinel.
func WithSentinelCredentials(user, password string) Option {
	return transport.WithSentinelCredentials(user, password)
}

// WithSentinelTLS sets the TLS configuration for the sentinels of masters with rediss+sentinel:// or
// valkeys+sentinel:// URLs. Without it the system's roots are trusted. [WithTLSConfig] applies to the masters alone.
func WithSentinelTLS(t *tls.Config) Option { return transport.WithSentinelTLS(t) }
