package pool

import (
	"context"
	"crypto/tls"
	"math"
	"net"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/pool/internal/fault"
	"github.com/redlock-go/redlock/pool/internal/sentinel"
	"github.com/redlock-go/redlock/pool/internal/wire"
)

// The defaults of the options.
const (
	DefaultTimeout     = 500 * time.Millisecond
	DefaultDialTimeout = time.Second
	DefaultHeartbeat   = 3 * time.Second
	DefaultRedialMin   = 20 * time.Millisecond
	DefaultRedialMax   = time.Second
	DefaultQueueLimit  = 32768
)

// An Option sets how masters are reached. Given to [New] or [Dial] it holds for all masters, given to [URL] or
// [FromRedisPool] for that one, and overrides the other. New refuses what cannot be right by [ErrInvalid].
type Option func(*config) error

// config is what holds for one master.
type config struct {
	wire.Target
	timeout       time.Duration
	heartbeat     time.Duration
	redial        wire.Pauses
	queueLimit    int
	allowEviction bool
	clock         *clock.Clock
	twoHolders    bool
	sentinels     wire.Target      // how they are spoken to: User, Password, TLS
	finder        *sentinel.Finder // nil where no sentinel tells the address
	tag           string           // of the bucket, where the master is a cluster
	failover      *failover        // nil where others do not replace the master
}

func defaults() config {
	return config{
		Target: wire.Target{DialTimeout: DefaultDialTimeout}, timeout: DefaultTimeout, heartbeat: DefaultHeartbeat,
		redial: wire.Pauses{Min: DefaultRedialMin, Max: DefaultRedialMax}, queueLimit: DefaultQueueLimit,
	}
}

func (cfg *config) apply(opts []Option) error {
	for _, o := range opts {
		if o == nil {
			return fault.Invalid("an option is nil")
		}
		if err := o(cfg); err != nil {
			return err
		}
	}
	return nil
}

// option sets something, where what was given is valid.
func option(valid bool, set func(*config), format string, args ...any) Option {
	return func(c *config) error {
		if !valid {
			return fault.Invalid(format, args...)
		}
		set(c)
		return nil
	}
}

func positive(what string, d time.Duration, set func(*config)) Option {
	return option(d > 0, set, "the %s %v is not positive", what, d)
}

// WithTLSConfig gives the TLS configuration for masters named by rediss:// or valkeys://. Without it the system's
// roots are trusted. It is an error when no master uses TLS: connections would silently be in the clear.
func WithTLSConfig(t *tls.Config) Option {
	return option(t != nil, func(c *config) { c.TLS = t }, "the TLS configuration is nil")
}

// WithCredentials logs in with a password and, unless user is empty, as that ACL user. Those in a URL win.
func WithCredentials(user, password string) Option {
	return option(user == "" || password != "", func(c *config) { c.User, c.Password = user, password },
		"a user is given without a password")
}

// WithDatabase selects database n; the default is 0. One in a URL wins.
func WithDatabase(n int) Option {
	return option(n >= 0 && n <= math.MaxInt32, func(c *config) { c.Database = n },
		"database %d is not in 0..%d", n, math.MaxInt32)
}

// WithDialer makes connections by f, which gets the network ("tcp" or "unix") and the address. f must return when its
// context ends: Close waits for it. TLS, where asked for, is spoken over the connection that f returns.
func WithDialer(f func(ctx context.Context, network, addr string) (net.Conn, error)) Option {
	return option(f != nil, func(c *config) { c.Dialer = f }, "the dialer is nil")
}

// WithTimeout bounds the silence of a master: if it sends nothing for so long while a request that was written waits
// for its reply, it counts as down, and the connection is made anew. The time that a request waits in the pool's queue
// does not count. The default is 500 ms. Keep it small against the TTL of the locks. Where others may replace the
// master ([Pool.FailsOver]) more than 9 s are refused.
func WithTimeout(d time.Duration) Option {
	return positive("timeout", d, func(c *config) { c.timeout = d })
}

// WithDialTimeout bounds making a connection, from dialling to the end of the handshake. The default is 1 s.
func WithDialTimeout(d time.Duration) Option {
	return positive("dial timeout", d, func(c *config) { c.DialTimeout = d })
}

// WithHeartbeat sets how often a connection asks its master again who it is and whether it is fit. The default is 3 s,
// and where others may replace the master ([Pool.FailsOver]) it is at most that.
func WithHeartbeat(d time.Duration) Option {
	return positive("heartbeat", d, func(c *config) { c.heartbeat = d })
}

// WithRedial sets the pause between attempts to connect: it doubles from minimum to maximum, and each is shortened by a
// random share of up to a half. A connection that has served is redialled at once. The defaults are 20 ms and 1 s.
func WithRedial(minimum, maximum time.Duration) Option {
	return option(minimum > 0 && maximum >= minimum, func(c *config) { c.redial.Min, c.redial.Max = minimum, maximum },
		"the redial pauses %v and %v are not 0 < min <= max", minimum, maximum)
}

// WithQueueLimit bounds how many requests of one master may be queued or in flight; Send fails with [ErrQueueFull]
// beyond it. Acquires may take half of it, so that extensions and releases find room. The default is 32768.
func WithQueueLimit(n int) Option {
	return option(n >= 1, func(c *config) { c.queueLimit = n }, "the queue limit %d is below 1", n)
}

// AllowEviction admits masters whose eviction policy can drop locks: then nothing announces a second holder.
func AllowEviction() Option { return option(true, func(c *config) { c.allowEviction = true }, "") }

// WithClock sets another clock than the real one, for tests and simulations. A Locker over the pool goes by it, too.
// Timeouts, heartbeats and pauses do not: they follow the time package.
func WithClock(clk *clock.Clock) Option { return option(true, func(c *config) { c.clock = clk }, "") }
