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

func WithTLSConfig(t *tls.Config) Option { return set(func(cfg *Config) { cfg.TLS = t }) }

func WithCredentials(user, password string) Option { return Login(user, password) }

func WithCredentialsProvider(f wire.CredentialsFunc) Option {
	return set(func(cfg *Config) { cfg.SetProvider(f) })
}

func WithDatabase(n int) Option { return set(func(cfg *Config) { cfg.Database = n }) }

func WithDialer(f func(ctx context.Context, network, addr string) (net.Conn, error)) Option {
	slots := new(wire.Slots)
	return set(func(cfg *Config) { cfg.Dialer, cfg.Slots = f, slots })
}

func WithTimeout(d time.Duration) Option { return set(func(cfg *Config) { cfg.Timeout = d }) }

func WithDialTimeout(d time.Duration) Option { return set(func(cfg *Config) { cfg.DialTimeout = d }) }

func AllowEviction() Option { return set(func(cfg *Config) { cfg.AllowEviction = true }) }

func WithSentinelCredentials(user, password string) Option {
	return set(func(cfg *Config) { cfg.Sentinels.User, cfg.Sentinels.Password = user, password })
}

func WithSentinelTLS(t *tls.Config) Option { return set(func(cfg *Config) { cfg.Sentinels.TLS = t }) }
