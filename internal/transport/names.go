package transport

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/transport/fault"
	"github.com/redlock-go/redlock/internal/transport/wire"
)

// A Master is one server and the way to reach it. [URL] and [FromRedisPool] make a Master.
type Master struct {
	// Name identifies the master in its admission record, in errors and in logs; it contains no credentials.
	Name string

	network string // "tcp" or "unix"; "" for FromRedisPool
	addr    string
	useTLS  bool
	opts    []Option // options of the URL first, then those of the caller
	service string   // the name of the master for its sentinels; "" if it has none
	nodes   []string // the addresses of the hosts that know the master: its sentinels, or nodes of the cluster
	buckets int      // number of buckets of the cluster
	bucket  int      // number of the bucket, from 1; 0 if not yet known
	// authorityFunc returns the authority that finds the master. It is nil for a plain master.
	authorityFunc func(m *Master, cfg *Config) (Authority, error)
	foreign       *redis.Pool
	noGuard       bool  // whether the URL has guard=off
	err           error // why the Master is invalid
}

// URL describes a master by a URL. Package pool documents the schemes. [New] returns an error if rawurl is invalid.
func URL(rawurl string, opts ...Option) Master {
	m := Master{}
	if err := m.parse(rawurl); err != nil {
		shown := fault.RedactURL(rawurl)
		return Master{Name: shown, err: fault.Invalid("master %q: %v", shown, err)}
	}
	m.opts = append(m.opts, opts...)
	return m
}

// FromRedisPool describes a master by an existing pool, of which only DialContext, or else Dial, is used.
// [Transport.Warnings] lists its settings that have no effect.
func FromRedisPool(name string, p *redis.Pool, opts ...Option) Master {
	m := Master{Name: name, foreign: p, opts: opts}
	switch {
	case name == "":
		m.err = fault.Invalid("a master made from a *redis.Pool has no name")
	case p == nil:
		m.err = fault.Invalid("master %q: the *redis.Pool is nil", name)
	case p.DialContext == nil && p.Dial == nil:
		m.err = fault.Invalid("master %q: the *redis.Pool has neither DialContext nor Dial", name)
	}
	return m
}

// unused returns the settings of m's *redis.Pool that have no effect.
func (m Master) unused() (names []string) {
	p := m.foreign
	if p == nil {
		return nil
	}
	for _, option := range []struct {
		name string
		set  bool
	}{
		{"TestOnBorrow", p.TestOnBorrow != nil}, {"TestOnBorrowContext", p.TestOnBorrowContext != nil},
		{"MaxIdle", p.MaxIdle != 0}, {"MaxActive", p.MaxActive != 0}, {"IdleTimeout", p.IdleTimeout != 0},
		{"Wait", p.Wait}, {"MaxConnLifetime", p.MaxConnLifetime != 0},
	} {
		if option.set {
			names = append(names, option.name)
		}
	}
	return names
}

// Warnings returns a sentence for each master that allows two holders (TwoHolders of [Config]), and for each made from
// a *redis.Pool with settings that have no effect. The list is usually empty. A Locker logs these warnings, and
// includes them in its own.
func (t *Transport) Warnings() (list []string) {
	for _, m := range *t.list.Load() {
		if m.cfg.failover.twoHolders() {
			list = append(list, fmt.Sprintf("pool: master %q: two holders are allowed: a lock may have two holders while a "+
				"partition isolates the master with some clients", m.Name))
		}
		if names := m.unused(); len(names) > 0 {
			list = append(list, fmt.Sprintf("pool: master %q: these fields of its *redis.Pool are ignored: %s; its dial "+
				"function makes the connections, which are kept open", m.Name, strings.Join(names, ", ")))
		}
	}
	return list
}

// maxMasterName is the maximum length of the name of a master in bytes.
const maxMasterName = 256

// checkMasterName returns an error if name is not a valid name of a master.
func checkMasterName(name string) error {
	switch {
	case name == "":
		return errors.New("its name is empty")
	case len(name) > maxMasterName:
		return fmt.Errorf("its name has %d bytes, more than %d", len(name), maxMasterName)
	case strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == ',' || r >= 0x7f }):
		return fmt.Errorf("its name %q has a space, a comma, or a character that is not printable ASCII", name)
	}
	return nil
}

// Err returns why m is invalid, or nil. [New] and [Transport.Use] return the same error.
func (m Master) Err() error { return m.err }

// parse sets the fields of m from raw. Its errors contain no part of raw that may be a password.
func (m *Master) parse(raw string) error {
	if !strings.Contains(raw, "://") {
		return noScheme(raw)
	}
	raw, hosts := firstHost(raw)
	u, err := url.Parse(raw)
	if err != nil {
		return errors.New("it cannot be parsed as a URL: write redis://host:port, with special characters in user and " +
			"password percent-encoded")
	}
	scheme := strings.Replace(u.Scheme, "valkey", "redis", 1)
	m.network, m.useTLS = "tcp", strings.HasPrefix(scheme, "rediss")
	scheme = strings.Replace(scheme, "rediss", "redis", 1)
	form, known := schemes[scheme]
	if !known {
		return fmt.Errorf("the scheme %q is not one of redis, rediss, valkey, valkeys, unix, redis+sentinel, redis+cluster",
			u.Scheme)
	}
	if u.Fragment != "" {
		return errors.New("it is not of the form " + form.form)
	}
	q := u.Query()
	if err := m.parseQuery(q, form); err != nil {
		return err
	}
	user := u.User.Username()
	password, isSet := u.User.Password()
	if !isSet {
		user, password = "", user
	}
	if user != "" || password != "" {
		m.opts = append(m.opts, Login(user, password))
	}
	database := q.Get("db")
	if scheme == "redis" {
		database = strings.TrimPrefix(u.Path, "/")
	}
	err = form.parseFunc(m, u, hosts)
	if name := q.Get("name"); err == nil && q.Has("name") {
		m.Name, err = name, checkMasterName(name)
	}
	if err != nil || database == "" {
		return err
	}
	n, err := strconv.ParseUint(database, 10, 31)
	if err != nil {
		return fmt.Errorf("the database is not a number in 0..%d", math.MaxInt32)
	}
	m.opts = append(m.opts, Set(true, func(c *Config) { c.Database = int(n) }, ""))
	return nil
}

// parseQuery checks that the URL has only parameters of its form, each at most once, and applies guard and allow.
func (m *Master) parseQuery(q url.Values, form scheme) error {
	for key, values := range q {
		if slices.Contains(form.keys, key) && len(values) == 1 {
			continue
		}
		if strings.Contains(key, "@") { // the text before the @ may be a password
			key = fault.Hidden
		}
		return fmt.Errorf("the parameter %q is unknown or given twice; the form is %s", key, form.form)
	}
	if m.noGuard = q.Get("guard") == "off"; q.Has("guard") && !m.noGuard {
		return errors.New("the parameter guard has only the value off")
	}
	switch {
	case q.Get("allow") == "two-holders":
		m.opts = append(m.opts, Set(true, func(c *Config) { c.TwoHolders = true }, ""))
	case q.Has("allow"):
		return errors.New("the parameter allow must be two-holders or absent")
	}
	return nil
}

// parseHosts sets the addresses of the hosts that know the master, and names the master after them.
func (m *Master) parseHosts(hosts, defaultPort, service string) error {
	for host := range strings.SplitSeq(hosts, ",") {
		one, err := url.Parse("redis://" + host)
		if err != nil || host == "" || one.Path != "" || one.User != nil {
			return errors.New("one of its hosts is invalid: hosts must be host or host:port, separated by commas")
		}
		addr, err := addrOf(one, defaultPort)
		if err != nil {
			return err
		}
		m.nodes = append(m.nodes, addr)
	}
	m.addr = m.nodes[0]
	m.Name = service + "@" + strings.Join(slices.Sorted(slices.Values(m.nodes)), ",")
	return nil
}

// firstHost removes all hosts except the first from a URL of sentinels or of a cluster, because package url accepts
// only one host. hosts is the list of all hosts.
func firstHost(raw string) (one, hosts string) {
	scheme, rest, _ := strings.Cut(raw, "://")
	if !strings.Contains(scheme, "+") {
		return raw, ""
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	start := strings.LastIndexByte(rest[:end], '@') + 1
	first, _, _ := strings.Cut(rest[start:end], ",")
	return scheme + "://" + rest[:start] + first + rest[end:], rest[start:end]
}

// noScheme returns the error for a target without a scheme. If nothing else is wrong with the target, the error shows
// how to write it.
func noScheme(raw string) error {
	hint, addr := "", strings.TrimPrefix(raw, "//")
	if addr != "" && !strings.ContainsAny(addr, "@?") && new(Master).parse("redis://"+addr) == nil {
		hint = "; write redis://" + addr
	}
	return errors.New("it has no scheme, and is not of the form redis://host:port" + hint)
}

// addrOf returns the host and the port of u. Different spellings of one address (case, a final dot, forms of an IP
// address) give the same result.
func addrOf(u *url.URL, defaultPort string) (string, error) {
	if strings.Count(u.Host, ":") > 1 && !strings.ContainsAny(u.Host, "[,") {
		return "", errors.New("write an IPv6 address in brackets: redis://[::1]:6379")
	}
	host := strings.TrimSuffix(strings.ToLower(cmp.Or(u.Hostname(), "localhost")), ".")
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil {
		host = ip.Unmap().String()
	}
	if strings.ContainsAny(host, "[]") {
		return "", errors.New("the host has an extra bracket; write an IPv6 address as redis://[::1]:6379")
	}
	if strings.Contains(host, ",") {
		return "", errors.New("it names several hosts: write one URL per master")
	}
	port, err := strconv.ParseUint(cmp.Or(u.Port(), defaultPort), 10, 16)
	if err != nil || port == 0 {
		return "", errors.New("the port is not in 1..65535")
	}
	return net.JoinHostPort(host, strconv.FormatUint(port, 10)), nil
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
				return fault.Invalid("masters %d and %d are the same, %q: %s", j, i, m.Name, why)
			case m.addr != "" && m.network == other.network && m.addr == other.addr && m.service == other.service &&
				slices.Equal(m.nodes, other.nodes):
				return fault.Invalid("masters %d and %d (%q, %q) have the same address: %s", j, i, other.Name, m.Name, why)
			case m.foreign != nil && m.foreign == other.foreign:
				return fault.Invalid("masters %d and %d (%q, %q) have the same *redis.Pool: %s", j, i, other.Name, m.Name, why)
			}
		}
	}
	return nil
}
