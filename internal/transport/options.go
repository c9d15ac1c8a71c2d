package transport

import (
	"crypto/tls"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/frame"
	"github.com/redlock-go/redlock/internal/transport/fault"
	"github.com/redlock-go/redlock/internal/transport/wire"
)

// An Option changes the configuration of one master. Package pool makes and documents those of users.
type Option interface{ apply(*Config) error }

// optionFunc implements Option.
type optionFunc func(*Config) error

func (f optionFunc) apply(cfg *Config) error { return f(cfg) }

// Set returns an Option that calls set if the argument is valid. Otherwise [New] fails with an error that matches
// [fault.ErrInvalid] and has this text.
func Set(valid bool, set func(*Config), format string, args ...any) Option {
	return optionFunc(func(cfg *Config) error {
		if !valid {
			return fault.Invalid(format, args...)
		}
		set(cfg)
		return nil
	})
}

// WithTLSFunc calls f for the TLS configuration of each connection to a master or a sentinel that uses TLS.
func WithTLSFunc(f func() (*tls.Config, error)) Option {
	return Set(f != nil, func(cfg *Config) {
		cfg.TLS, cfg.TLSFunc, cfg.Sentinels.TLSFunc = &tls.Config{}, f, f
	}, "the TLS function is nil")
}

// WithSentinelCredentialsProvider calls f for the credentials of each connection to a sentinel.
func WithSentinelCredentialsProvider(f wire.CredentialsFunc) Option {
	return Set(f != nil, func(cfg *Config) { cfg.Sentinels.Provider = wire.NewProvider(f) },
		"the sentinels' credentials provider is nil")
}

// WithProcessSlots makes a Transport with a dialer use the slots of the process. It must follow the option that sets
// the dialer. It is for dialers of other Redis clients: each client has a dialer of its own, and these use the network.
func WithProcessSlots() Option { return Set(true, func(cfg *Config) { cfg.Slots = wire.Process }, "") }

// WithScripts loads scripts on each new connection. A script that was not loaded is sent with its text.
func WithScripts(list ...*frame.Script) Option {
	return Set(true, func(cfg *Config) { cfg.scripts = list }, "")
}

// WithClock replaces the real clock, for tests and simulations. A Locker over the pool uses the same clock. Timeouts,
// heartbeats and pauses still use the time package.
func WithClock(clk *clock.Clock) Option { return Set(true, func(cfg *Config) { cfg.Clock = clk }, "") }

// WithHeartbeat sets how often a connection checks the identity and the fitness of its master.
func WithHeartbeat(d time.Duration) Option {
	return Set(d > 0, func(cfg *Config) { cfg.Heartbeat = d }, "the heartbeat %v is not positive", d)
}

// WithRedial sets the pause between attempts to connect. The pause doubles from minimum to maximum, and each pause is
// shortened by a random fraction of up to a half. After an attempt that timed out, it is at least a quarter of the time
// of that attempt, but not longer than maximum. If the last connection was in use for at least maximum, it is
// redialled immediately.
func WithRedial(minimum, maximum time.Duration) Option {
	return Set(minimum > 0 && maximum >= minimum, func(cfg *Config) { cfg.Redial.Min, cfg.Redial.Max = minimum, maximum },
		"the redial pauses %v and %v must satisfy 0 < min <= max", minimum, maximum)
}

// WithQueueLimit sets how many requests of one master may be queued or in flight. Calls beyond this limit fail
// immediately. Acquires may use only half of the limit, so that extensions and releases have the rest.
func WithQueueLimit(n int) Option {
	return Set(n >= 1, func(cfg *Config) { cfg.QueueLimit = n }, "the queue limit %d is below 1", n)
}

// Login returns an Option that sets the ACL user, which may be empty, and the password.
func Login(user, password string) Option {
	return Set(user == "" || password != "", func(cfg *Config) {
		cfg.User, cfg.Password, cfg.fixedLogin = user, password, true
	}, "a user is given without a password")
}
