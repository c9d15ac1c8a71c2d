package transport

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	"github.com/redlock-go/redlock/internal/transport/wire"
)

// The options of package pool, without its checks of the arguments.

func set(f func(*Config)) Option { return Set(true, f, "") }

func WithTLSConfig(t *tls.Config) Option { return set(func(c *Config) { c.TLS = t }) }

func WithCredentials(user, password string) Option { return Login(user, password) }

func WithCredentialsProvider(f wire.CredentialsFunc) Option {
	return set(func(c *Config) { c.SetProvider(f) })
}

func WithDatabase(n int) Option { return set(func(c *Config) { c.Database = n }) }

func WithDialer(f func(ctx context.Context, network, addr string) (net.Conn, error)) Option {
	slots := new(wire.Slots)
	return set(func(c *Config) { c.Dialer, c.Slots = f, slots })
}

func WithTimeout(d time.Duration) Option { return set(func(c *Config) { c.Timeout = d }) }

func WithDialTimeout(d time.Duration) Option { return set(func(c *Config) { c.DialTimeout = d }) }

func AllowEviction() Option { return set(func(c *Config) { c.AllowEviction = true }) }

func WithSentinelCredentials(user, password string) Option {
	return set(func(c *Config) { c.Sentinels.User, c.Sentinels.Password = user, password })
}

func WithSentinelTLS(t *tls.Config) Option { return set(func(c *Config) { c.Sentinels.TLS = t }) }
