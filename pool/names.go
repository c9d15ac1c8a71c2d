package pool

import (
	"context"
	"fmt"
	"math"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gomodule/redigo/redis"
)

// A Master is one way to name one master; made by [URL] or [FromRedisPool].
type Master struct {
	name    string // what errors call it; no credentials
	network string // "tcp" or "unix"; "" for FromRedisPool
	addr    string
	useTLS  bool
	opts    []Option // of the URL first, then the caller's

	foreign *redis.Pool
	err     error
}

// URL names a master by
//
//	redis://[[user]:password@]host[:port][/database]      also valkey://
//	rediss://...                                          the same over TLS; also valkeys://
//	unix://[[user]:password@]/path/to/socket[?db=database]
//
// The port is 6379 unless given, the host localhost. A user without a colon is taken as a password, as redis-cli does.
// Special characters in user and password are percent-encoded. What is wrong with rawurl is told by [New].
func URL(rawurl string, opts ...Option) Master {
	m, err := parseURL(rawurl)
	if err != nil {
		return Master{name: redactURL(rawurl), err: err}
	}
	m.opts = append(m.opts, opts...)
	return m
}

// FromRedisPool names a master by an existing pool: its DialContext, or else its Dial, makes a connection that then
// belongs to this package alone. No connection is taken out of p, and its limits and TestOnBorrow are not used. name
// is for errors and must not contain credentials. Of the options those about TLS, credentials, database and dialer
// have no meaning here and are refused. Dial, which has no context, must return by itself: Close waits for it.
func FromRedisPool(name string, p *redis.Pool, opts ...Option) Master {
	m := Master{name: name, foreign: p, opts: opts}
	switch {
	case name == "":
		m.err = invalid("a master made from a *redis.Pool has no name")
	case p == nil:
		m.err = invalid("master %q: the *redis.Pool is nil", name)
	case p.DialContext == nil && p.Dial == nil:
		m.err = invalid("master %q: the *redis.Pool has neither DialContext nor Dial", name)
	}
	return m
}

func parseURL(raw string) (Master, error) {
	u, err := url.Parse(raw)
	if err != nil {
		// The text of err repeats parts of raw, of a password among them.
		return Master{}, invalid("master %q cannot be parsed as a URL: it is redis://host:port, and special characters in user and "+
			"password are percent-encoded", redactURL(raw))
	}
	bad := func(format string, args ...any) (Master, error) {
		return Master{}, invalid("master %q: "+format, append([]any{redactURL(raw)}, args...)...)
	}
	if u.Opaque != "" || u.Fragment != "" {
		return bad("it is not of the form redis://host:port")
	}
	m := Master{}
	switch u.Scheme {
	case "redis", "valkey":
		m.network = "tcp"
	case "rediss", "valkeys":
		m.network, m.useTLS = "tcp", true
	case "unix":
		m.network = "unix"
	case "":
		return bad("it has no scheme; write redis://, rediss:// or unix:// before it")
	default:
		return bad("the scheme %q is none of redis, rediss, valkey, valkeys, unix", u.Scheme)
	}
	for key, values := range u.Query() {
		if key != "db" || len(values) != 1 || m.network != "unix" {
			if strings.Contains(key, "@") {
				key = hidden // what stands before an @ may be a password
			}
			return bad("the parameter %q is unknown, or given twice", key)
		}
	}
	m.opts = credentials(u.User)
	if m.network == "unix" {
		return m.socket(u, bad)
	}
	return m.host(u, bad)
}

type badFunc func(format string, args ...any) (Master, error)

func (m Master) host(u *url.URL, bad badFunc) (Master, error) {
	host, port := normalHost(u.Hostname()), u.Port()
	if port == "" {
		port = "6379"
	}
	if strings.ContainsAny(host, "[]") {
		return bad("the host has a bracket too many; an IPv6 address is written redis://[::1]:6379")
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return bad("the port is not in 1..65535")
	} else {
		port = strconv.Itoa(n)
	}
	m.addr = net.JoinHostPort(host, port)
	m.name = m.addr
	return m.database(strings.TrimPrefix(u.Path, "/"), bad)
}

func (m Master) socket(u *url.URL, bad badFunc) (Master, error) {
	if u.Host != "" || !strings.HasPrefix(u.Path, "/") || u.Path == "/" {
		return bad("a socket is named by an absolute path: unix:///path/to/socket")
	}
	m.addr = filepath.Clean(u.Path)
	m.name = m.addr
	return m.database(u.Query().Get("db"), bad)
}

func (m Master) database(text string, bad badFunc) (Master, error) {
	if text == "" {
		return m, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > math.MaxInt32 {
		return bad("the database is not a number in 0..%d", math.MaxInt32)
	}
	m.opts = append(m.opts, WithDatabase(n))
	return m, nil
}

// normalHost makes two spellings of one host the same: case, a final dot, forms of an IP address.
func normalHost(host string) string {
	if host == "" {
		return "localhost"
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().String()
	}
	return strings.TrimSuffix(strings.ToLower(host), ".")
}

func credentials(u *url.Userinfo) []Option {
	if u == nil {
		return nil
	}
	user := u.Username()
	password, isSet := u.Password()
	if !isSet {
		user, password = "", user
	}
	if user == "" && password == "" {
		return nil
	}
	return []Option{WithCredentials(user, password)}
}

// resolve returns the settings of each master, or says what cannot be right about them.
func resolve(masters []Master, opts []Option) ([]config, error) {
	if len(masters) == 0 {
		return nil, invalid("there is no master: the list is empty")
	}
	common := defaults()
	if err := common.apply(opts); err != nil {
		return nil, err
	}
	configs := make([]config, len(masters))
	encrypted := false
	for i, m := range masters {
		cfg, err := m.settings(common)
		if err != nil {
			return nil, err
		}
		configs[i] = cfg
		encrypted = encrypted || m.useTLS
	}
	if common.tls != nil && !encrypted {
		return nil, invalid("a TLS configuration is given and no master uses TLS: write rediss:// in place of redis://")
	}
	return configs, distinct(masters)
}

func (m Master) settings(common config) (config, error) {
	if m.err != nil {
		return config{}, m.err
	}
	if m.name == "" {
		return config{}, invalid("a master is the zero Master; make it with URL or FromRedisPool")
	}
	cfg := common
	if m.foreign != nil || !m.useTLS {
		cfg.tls = nil
	}
	if m.foreign != nil {
		cfg.user, cfg.password, cfg.database, cfg.dialer = "", "", 0, nil
	}
	if err := cfg.apply(m.opts); err != nil {
		return config{}, newCause(fmt.Sprintf("pool: master %q: %s", m.name, strings.TrimPrefix(err.Error(), "pool: ")), err)
	}
	switch {
	case m.foreign != nil && (cfg.tls != nil || cfg.password != "" || cfg.database != 0 || cfg.dialer != nil):
		return config{}, invalid("master %q: TLS, credentials, database and dialer are those of its *redis.Pool", m.name)
	case cfg.tls != nil && !m.useTLS:
		return config{}, invalid("master %q: it has a TLS configuration and does not use TLS; write rediss://", m.name)
	}
	return cfg, nil
}

// distinct refuses a server that is named twice. Two servers behind two names are found out by their run ids later.
func distinct(masters []Master) error {
	const why = "one server would have two votes, and its failure would cost both; two databases of a server are still one server"
	names := make(map[string]int, len(masters))
	pools := make(map[*redis.Pool]int, len(masters))
	for i, m := range masters {
		if j, ok := names[m.name]; ok {
			return invalid("masters %d and %d are the same, %q: %s", j, i, m.name, why)
		}
		names[m.name] = i
		if m.foreign == nil {
			continue
		}
		if j, ok := pools[m.foreign]; ok {
			return invalid("masters %d and %d (%q, %q) have the same *redis.Pool: %s", j, i, masters[j].name, m.name, why)
		}
		pools[m.foreign] = i
	}
	return nil
}

// dialForeign makes a connection in the way of the *redis.Pool.
func (m Master) dialForeign(ctx context.Context) (redis.Conn, error) {
	if m.foreign.DialContext != nil {
		return m.foreign.DialContext(ctx)
	}
	return m.foreign.Dial()
}
