package transport

import (
	"cmp"
	"crypto/tls"
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

// An Option changes the configuration of one master. Package pool makes and documents those of users.
type Option interface{ apply(*Config) error }

// optionFunc implements Option.
type optionFunc func(*Config) error

func (f optionFunc) apply(c *Config) error { return f(c) }

// Set returns an Option that calls set if the argument is valid. Otherwise [New] fails with an error that matches
// [ErrInvalid] and has this text.
func Set(valid bool, set func(*Config), format string, args ...any) Option {
	return optionFunc(func(c *Config) error {
		if !valid {
			return fault.Invalid(format, args...)
		}
		set(c)
		return nil
	})
}

// Config is the configuration of one master, made from the defaults by the options. The options of package pool say
// what the exported fields mean.
type Config struct {
	wire.Target
	Timeout       time.Duration
	Heartbeat     time.Duration
	Redial        wire.Redial
	QueueLimit    int
	AllowEviction bool
	TwoHolders    bool
	Sentinels     wire.Target // User, Password, Provider, TLS and TLSFunc of the connections to the sentinels
	Clock         *clock.Clock

	credentials   wire.CredentialsFunc
	fixedLogin    bool            // whether the options being applied include Login
	providedLogin bool            // whether the options being applied include SetProvider
	scripts       []*frame.Script // loaded on each new connection
	failover      *failover       // nil if the master is never replaced by a replica
}

// SetProvider makes f return the ACL user and the password for each connection.
func (cfg *Config) SetProvider(f wire.CredentialsFunc) { cfg.credentials, cfg.providedLogin = f, true }

func defaults() Config {
	return Config{
		Target: wire.Target{DialTimeout: DefaultDialTimeout, Slots: wire.Process}, Timeout: DefaultTimeout,
		Heartbeat: DefaultHeartbeat,
		Redial:    wire.Redial{Min: DefaultRedialMin, Max: DefaultRedialMax}, QueueLimit: DefaultQueueLimit,
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
		if err := o.apply(cfg); err != nil {
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

// UserName returns the name of the ACL user of the latest connection.
func (cfg *Config) UserName() string {
	user, _ := cfg.Login()
	return cmp.Or(user, "default")
}

// WithTLSFunc calls f for the TLS configuration of each connection to a master or a sentinel that uses TLS.
func WithTLSFunc(f func() (*tls.Config, error)) Option {
	return Set(f != nil, func(c *Config) {
		c.TLS, c.TLSFunc, c.Sentinels.TLSFunc = &tls.Config{}, f, f
	}, "the TLS function is nil")
}

// WithSentinelCredentialsProvider calls f for the credentials of each connection to a sentinel.
func WithSentinelCredentialsProvider(f wire.CredentialsFunc) Option {
	return Set(f != nil, func(c *Config) { c.Sentinels.Provider = wire.NewProvider(f) },
		"the sentinels' credentials provider is nil")
}

// WithProcessSlots makes a Transport with a dialer use the slots of the process. It must follow the option that sets
// the dialer. It is for dialers of other Redis clients: each client has a dialer of its own, and these use the network.
func WithProcessSlots() Option { return Set(true, func(c *Config) { c.Slots = wire.Process }, "") }

// WithScripts loads scripts on each new connection. A script that was not loaded is sent with its text.
func WithScripts(list ...*frame.Script) Option {
	return Set(true, func(c *Config) { c.scripts = list }, "")
}

// WithClock replaces the real clock, for tests and simulations. A Locker over the pool uses the same clock. Timeouts,
// heartbeats and pauses still use the time package.
func WithClock(clk *clock.Clock) Option { return Set(true, func(c *Config) { c.Clock = clk }, "") }

// WithHeartbeat sets how often a connection checks the identity and the fitness of its master.
func WithHeartbeat(d time.Duration) Option {
	return Set(d > 0, func(c *Config) { c.Heartbeat = d }, "the heartbeat %v is not positive", d)
}

// WithRedial sets the pause between attempts to connect. The pause doubles from minimum to maximum, and each pause is
// shortened by a random fraction of up to a half. After an attempt that timed out, it is at least a quarter of the time
// of that attempt, but not longer than maximum. If the last connection was in use for at least maximum, it is
// redialled immediately.
func WithRedial(minimum, maximum time.Duration) Option {
	return Set(minimum > 0 && maximum >= minimum, func(c *Config) { c.Redial.Min, c.Redial.Max = minimum, maximum },
		"the redial pauses %v and %v must satisfy 0 < min <= max", minimum, maximum)
}

// WithQueueLimit sets how many requests of one master may be queued or in flight. Calls beyond this limit fail
// immediately. Acquires may use only half of the limit, so that extensions and releases have the rest.
func WithQueueLimit(n int) Option {
	return Set(n >= 1, func(c *Config) { c.QueueLimit = n }, "the queue limit %d is below 1", n)
}

// Login returns an Option that sets the ACL user, which may be empty, and the password.
func Login(user, password string) Option {
	return Set(user == "" || password != "", func(c *Config) {
		c.User, c.Password, c.fixedLogin = user, password, true
	}, "a user is given without a password")
}
