package transport

import (
	"cmp"
	"context"
	"crypto/tls"
	"math"
	"net"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/frame"
	"github.com/redlock-go/redlock/internal/transport/fault"
	"github.com/redlock-go/redlock/internal/transport/wire"
)

// Defaults of the options.
const (
	DefaultTimeout     = 500 * time.Millisecond
	DefaultDialTimeout = time.Second
	DefaultHeartbeat   = 3 * time.Second
	DefaultRedialMin   = 20 * time.Millisecond
	DefaultRedialMax   = time.Second
	DefaultQueueLimit  = 32768
)

// An Option sets how masters are reached. Package pool documents the options. Option is an alias, so that tests and
// simulations of this module can pass options of this package, such as [WithClock], to package pool.
type Option = func(*Config) error

// Config is the configuration of one master, made from the defaults by the options.
type Config struct {
	wire.Target
	credentials   wire.CredentialsFunc
	fixedLogin    bool // whether the options being applied include WithCredentials
	providedLogin bool // whether the options being applied include WithCredentialsProvider
	timeout       time.Duration
	heartbeat     time.Duration
	redial        wire.Redial
	queueLimit    int
	allowEviction bool
	clock         *clock.Clock
	twoHolders    bool
	scripts       []*frame.Script // loaded on each new connection
	sentinels     wire.Target     // User, Password, Provider, TLS and TLSFunc of the connections to the sentinels
	tag           string          // hash tag of the bucket, if the master is a cluster
	failover      *failover       // nil if the master is never replaced by a replica
}

func defaults() Config {
	return Config{
		Target: wire.Target{DialTimeout: DefaultDialTimeout, Slots: wire.Process}, timeout: DefaultTimeout,
		heartbeat: DefaultHeartbeat,
		redial:    wire.Redial{Min: DefaultRedialMin, Max: DefaultRedialMax}, queueLimit: DefaultQueueLimit,
	}
}

// apply applies opts. If opts contain credentials of one kind, fixed or from a provider, credentials of the other kind
// from an earlier call are dropped.
func (cfg *Config) apply(opts []Option) error {
	cfg.fixedLogin, cfg.providedLogin = false, false
	for _, o := range opts {
		if o == nil {
			return fault.Invalid("an option is nil")
		}
		if err := o(cfg); err != nil {
			return err
		}
	}
	switch {
	case cfg.fixedLogin && cfg.providedLogin:
		return fault.Invalid("WithCredentials, or credentials in the URL, and WithCredentialsProvider exclude each other: " +
			"use one of them")
	case cfg.fixedLogin:
		cfg.credentials = nil
	case cfg.providedLogin:
		cfg.User, cfg.Password = "", ""
	}
	return nil
}

// userName returns the name of the ACL user of the latest connection.
func (cfg *Config) userName() string {
	user, _ := cfg.Login()
	return cmp.Or(user, "default")
}

// option returns an Option that calls set if the argument is valid, and fails otherwise.
func option(valid bool, set func(*Config), format string, args ...any) Option {
	return func(c *Config) error {
		if !valid {
			return fault.Invalid(format, args...)
		}
		set(c)
		return nil
	}
}

func positive(what string, d time.Duration, set func(*Config)) Option {
	return option(d > 0, set, "the %s %v is not positive", what, d)
}

// WithTLSConfig sets the TLS configuration of masters that use TLS.
func WithTLSConfig(t *tls.Config) Option {
	return option(t != nil, func(c *Config) { c.TLS = t }, "the TLS configuration is nil")
}

// WithTLSFunc calls f for the TLS configuration of each connection to a master or a sentinel that uses TLS.
func WithTLSFunc(f func() (*tls.Config, error)) Option {
	return option(f != nil, func(c *Config) {
		c.TLS, c.TLSFunc, c.sentinels.TLSFunc = &tls.Config{}, f, f
	}, "the TLS function is nil")
}

// WithCredentials sets the ACL user, if not empty, and the password.
func WithCredentials(user, password string) Option {
	return option(user == "" || password != "", func(c *Config) {
		c.User, c.Password, c.fixedLogin = user, password, true
	}, "a user is given without a password")
}

// WithCredentialsProvider calls f for the credentials of each connection.
func WithCredentialsProvider(f wire.CredentialsFunc) Option {
	return option(f != nil, func(c *Config) { c.credentials, c.providedLogin = f, true },
		"the credentials provider is nil")
}

// WithDatabase selects database n.
func WithDatabase(n int) Option {
	return option(n >= 0 && n <= math.MaxInt32, func(c *Config) { c.Database = n },
		"database %d is not in 0..%d", n, math.MaxInt32)
}

// WithDialer makes connections with f. Only Transports that are given the same Option value share their slots, because
// the same address may mean different servers for different dialers; see [wire.Slots].
func WithDialer(f func(ctx context.Context, network, addr string) (net.Conn, error)) Option {
	slots := new(wire.Slots)
	return option(f != nil, func(c *Config) { c.Dialer, c.Slots = f, slots }, "the dialer is nil")
}

// WithProcessSlots makes a Transport with a dialer use the slots of the process. It must follow WithDialer. It is for
// dialers of other Redis clients: each client has a dialer of its own, and these use the network.
func WithProcessSlots() Option { return option(true, func(c *Config) { c.Slots = wire.Process }, "") }

// WithTimeout bounds the silence of a master while a written request waits for its reply.
func WithTimeout(d time.Duration) Option {
	return positive("timeout", d, func(c *Config) { c.timeout = d })
}

// WithDialTimeout bounds the time to make a connection, from dialling to the end of the handshake. After a timeout,
// further attempts have more time; see [wire.Redial].
func WithDialTimeout(d time.Duration) Option {
	return positive("dial timeout", d, func(c *Config) { c.DialTimeout = d })
}

// WithHeartbeat sets how often a connection checks the identity and the fitness of its master.
func WithHeartbeat(d time.Duration) Option {
	return positive("heartbeat", d, func(c *Config) { c.heartbeat = d })
}

// WithRedial sets the pause between attempts to connect.
func WithRedial(minimum, maximum time.Duration) Option {
	return option(minimum > 0 && maximum >= minimum, func(c *Config) { c.redial.Min, c.redial.Max = minimum, maximum },
		"the redial pauses %v and %v must satisfy 0 < min <= max", minimum, maximum)
}

// WithQueueLimit sets how many requests of one master may be queued or in flight. If there are more, Send fails with
// [ErrQueueFull].
func WithQueueLimit(n int) Option {
	return option(n >= 1, func(c *Config) { c.queueLimit = n }, "the queue limit %d is below 1", n)
}

// AllowEviction admits masters whose eviction policy can drop locks.
func AllowEviction() Option { return option(true, func(c *Config) { c.allowEviction = true }, "") }

// WithScripts loads scripts on each new connection. A script that was not loaded is sent with its text.
func WithScripts(list ...*frame.Script) Option {
	return option(true, func(c *Config) { c.scripts = list }, "")
}

// WithClock replaces the real clock, for tests and simulations. A Locker over the pool uses the same clock. Timeouts,
// heartbeats and pauses still use the time package.
func WithClock(clk *clock.Clock) Option { return option(true, func(c *Config) { c.clock = clk }, "") }
