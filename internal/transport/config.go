package transport

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"slices"
	"strings"
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

// settings returns the configuration that all masters share, and that of each master, or an error if a setting is
// invalid.
func settings(masters []Master, opts []Option) (common Config, configs []Config, err error) {
	common = defaults()
	if err := common.apply(opts); err != nil {
		return common, nil, err
	}
	configs = make([]Config, len(masters))
	for i, m := range masters {
		if configs[i], err = m.settings(common); err != nil {
			return common, nil, err
		}
	}
	return common, configs, distinct(masters)
}

func (m Master) settings(common Config) (Config, error) {
	if m.err != nil {
		return Config{}, m.err
	}
	if m.addr == "" && m.foreign == nil {
		return Config{}, fault.Invalid("a master is the zero Master; make it with URL or FromRedisPool")
	}
	if m.Name == "" {
		return Config{}, fault.Invalid("the name of the master at %s is empty", m.addr)
	}
	cfg := common
	if m.foreign != nil {
		cfg.Target, cfg.credentials = wire.Target{DialTimeout: common.DialTimeout, Slots: wire.Process}, nil
	} else if !m.useTLS {
		cfg.TLS = nil
	}
	if err := cfg.apply(m.opts); err != nil {
		return Config{}, fault.New(fmt.Sprintf("pool: master %q: %s", m.Name, strings.TrimPrefix(err.Error(), "pool: ")), err)
	}
	switch {
	case m.foreign != nil && (cfg.TLS != nil || cfg.Password != "" || cfg.credentials != nil || cfg.Database != 0 ||
		cfg.Dialer != nil):
		return Config{}, fault.Invalid("master %q: TLS, credentials, database and dialer are those of its *redis.Pool",
			m.Name)
	case cfg.TLS != nil && !m.useTLS:
		return Config{}, fault.Invalid("master %q: it has a TLS configuration, but its URL does not use TLS; "+
			"write rediss://", m.Name)
	case cfg.TLS == nil && m.useTLS:
		cfg.TLS = &tls.Config{}
	}
	if cfg.credentials != nil {
		cfg.Provider = wire.NewProvider(cfg.credentials)
	}
	cfg.Network, cfg.Addr, cfg.Foreign = m.network, cmp.Or(m.addr, m.Name), m.foreign
	if m.authorityFunc != nil {
		by, err := m.authorityFunc(&m, &cfg)
		if err != nil {
			return Config{}, err
		}
		cfg.failover, cfg.FindFunc = &failover{cfg.TwoHolders, by}, by.Find
	}
	if cfg.failover != nil { // the client must notice a partition before a replica is promoted
		cfg.Heartbeat = min(cfg.Heartbeat, DefaultHeartbeat)
		if cfg.Timeout > longestTimeout {
			return Config{}, fault.Invalid("master %q: the timeout %v is above %v, after which a replica may have replaced "+
				"it; set a shorter timeout with WithTimeout", m.Name, cfg.Timeout, longestTimeout)
		}
	}
	return cfg, nil
}

// distinct returns an error if two masters have the same name, address or pool. A server with two addresses is
// detected later, by its run id.
func distinct(masters []Master) error {
	const why = "one server would have two votes, and its failure would cost both; two databases of a server are " +
		"still one server"
	for i, m := range masters {
		for j, other := range masters[:i] {
			switch {
			case m.Name == other.Name:
				return fault.Invalid("masters %d and %d are the same, %q: %s", j+1, i+1, m.Name, why)
			case m.addr != "" && m.network == other.network && m.addr == other.addr && m.service == other.service &&
				slices.Equal(m.nodes, other.nodes):
				return fault.Invalid("masters %d and %d (%q, %q) have the same address: %s", j+1, i+1, other.Name, m.Name, why)
			case m.foreign != nil && m.foreign == other.foreign:
				return fault.Invalid("masters %d and %d (%q, %q) have the same *redis.Pool: %s", j+1, i+1, other.Name, m.Name,
					why)
			}
		}
	}
	return nil
}
