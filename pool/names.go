package pool

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/pool/internal/fault"
	"github.com/redlock-go/redlock/pool/internal/wire"
)

// A Master is one way to name one master; made by [URL] or [FromRedisPool].
type Master struct {
	// Name names the master in its admission record, in errors and in logs. It is host:port, or the path of a socket,
	// unless ?name= in the URL or the caller sets another; it contains no credentials. All clients must give a master the
	// same name: a client whose masters have other names than the admission records say acquires no lock. So a name
	// must not change; it is needed if clients reach the same master at different addresses. A server behind a name is
	// replaced by another one with another name, by "redlock set".
	Name string

	network string // "tcp" or "unix"; "" for FromRedisPool
	addr    string
	useTLS  bool
	opts    []Option // of the URL first, then the caller's
	service string   // the master's name for the sentinels that tell its address
	nodes   []string // the addresses of its sentinels, or of nodes of the cluster that it is
	buckets int      // of the cluster that it is
	bucket  int      // which of them, from 1; 0 where that is not known yet
	foreign *redis.Pool
	err     error
}

// URL names a master by
//
//	redis://[[user]:password@]host[:port][/database][?name=name]      also valkey://
//	rediss://...                                          the same over TLS; also valkeys://
//	unix://[[user]:password@]/path/to/socket[?db=database][&name=name]
//	redis+sentinel://[[user]:password@]host[:port],host[:port],.../service[?db=database][&allow=two-holders][&name=name]
//	redis+cluster://[[user]:password@]host[:port],host[:port],...?buckets=n[&allow=two-holders][&name=name]
//
// The name is what the admission records and errors call the master, see [Master]; clients that reach one master at
// different addresses give it the same name. A master is replaced by another one by "redlock set" (docs/masters.md),
// never by a change of the URLs alone. Behind sentinels the name is service@ with the sentinels' addresses in order, of a
// cluster cluster@ with those of the nodes that are given: with a name of their own they can change.
//
// The last two may also begin with valkey, rediss or valkeys. One is the master of that name behind sentinels, whose
// port is 26379 unless given; user and password are the master's. The other is a cluster with some of its nodes, for
// [DialBuckets]. They vote only where no failover can make two holders: see docs/stores.md.
//
// The port is 6379 unless given, the host localhost. A user without a colon is taken as a password, as redis-cli does.
// Special characters in user and password are percent-encoded. What is wrong with rawurl is told by [New].
func URL(rawurl string, opts ...Option) Master {
	m := Master{}
	if err := m.parse(rawurl); err != nil {
		shown := fault.RedactURL(rawurl)
		return Master{Name: shown, err: fault.Invalid("master %q: %v", shown, err)}
	}
	m.opts = append(m.opts, opts...)
	return m
}

// FromRedisPool names a master by an existing pool: its DialContext, or else its Dial, makes a connection that then
// belongs to this package alone. Nothing else of p is used: [Pool.Warnings] names what was set in vain. name is that
// of [Master], and must not contain credentials.
// Options about TLS, credentials, database and dialer are refused. Dial, which has no context, must return by itself:
// Close waits for it.
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

// unused names the options of its *redis.Pool that do not apply to m.
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

// Warnings names, a sentence each, the masters of which two holders are allowed ([AllowTwoHolders]), and for each that
// was made from a *redis.Pool the options of that pool that do not apply; none is the usual case. A Locker logs them,
// and has them among its own.
func (p *Pool) Warnings() (list []string) {
	for _, m := range *p.list.Load() {
		if m.cfg.failover != nil && m.cfg.failover.twoHold {
			list = append(list, fmt.Sprintf("pool: master %q: two holders are allowed: a lock may be held twice while it is "+
				"cut off together with some programs", m.Name))
		}
		if names := m.unused(); len(names) > 0 {
			list = append(list, fmt.Sprintf("pool: master %q: of its *redis.Pool, this does not apply: %s; its dial function "+
				"makes connections that are used for as long as they live", m.Name, strings.Join(names, ", ")))
		}
	}
	return list
}

// maxMasterName is the length of the longest name of a master, in bytes.
const maxMasterName = 256

// checkMasterName reports what is wrong with the name of a master that was given, or nil.
func checkMasterName(name string) error {
	switch {
	case name == "":
		return errors.New("its name is empty")
	case len(name) > maxMasterName:
		return fmt.Errorf("its name has %d bytes, more than %d", len(name), maxMasterName)
	case strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == ',' || r >= 0x7f }):
		return fmt.Errorf("its name %q has a space, a comma, or a character outside of ASCII", name)
	}
	return nil
}

// Err says what is wrong with how m was named; nil where nothing is. [New] and [Pool.Add] fail with it.
func (m Master) Err() error { return m.err }

// parse sets what raw says. Its errors contain no part of raw that may be a password.
func (m *Master) parse(raw string) error {
	if !strings.Contains(raw, "://") {
		return noScheme(raw)
	}
	raw, hosts := firstHost(raw)
	u, err := url.Parse(raw)
	if err != nil {
		return errors.New("it cannot be parsed as a URL: it is redis://host:port, and special characters in user and " +
			"password are percent-encoded")
	}
	scheme, kind, isStore := strings.Cut(u.Scheme, "+")
	if isStore {
		if err := m.parseStore(u, kind, hosts); err != nil {
			return err
		}
	}
	switch scheme {
	case "redis", "valkey":
		m.network = "tcp"
	case "rediss", "valkeys":
		m.network, m.useTLS = "tcp", true
	case "unix":
		m.network = "unix"
	}
	if m.network == "" || isStore && m.network == "unix" {
		return fmt.Errorf("the scheme %q is none of redis, rediss, valkey, valkeys, unix, redis+sentinel, redis+cluster",
			u.Scheme)
	}
	if u.Fragment != "" {
		return errors.New("it is not of the form redis://host:port")
	}
	for key, values := range u.Query() {
		if key != "name" && (key != "db" || m.network != "unix") || len(values) != 1 {
			return fmt.Errorf("the parameter %q is unknown, or given twice", shownKey(key))
		}
	}
	user := u.User.Username()
	password, isSet := u.User.Password()
	if !isSet {
		user, password = "", user
	}
	if user != "" || password != "" {
		m.opts = append(m.opts, WithCredentials(user, password))
	}
	addr, database, err := addrOf(u)
	if m.addr, m.Name = addr, addr; isStore {
		m.Name = cmp.Or(m.service, "cluster") + "@" + strings.Join(slices.Sorted(slices.Values(m.nodes)), ",")
	}
	if u.Query().Has("name") {
		m.Name = u.Query().Get("name")
		if err := checkMasterName(m.Name); err != nil {
			return err
		}
	}
	if err != nil || database == "" {
		return err
	}
	n, err := strconv.ParseUint(database, 10, 31)
	if err != nil {
		return fmt.Errorf("the database is not a number in 0..%d", math.MaxInt32)
	}
	m.opts = append(m.opts, WithDatabase(int(n)))
	return nil
}

// noScheme is the error of a target without a scheme. Where that is all it lacks, it shows how to write it.
func noScheme(raw string) error {
	hint, addr := "", strings.TrimPrefix(raw, "//")
	if addr != "" && !strings.ContainsAny(addr, "@?") && new(Master).parse("redis://"+addr) == nil {
		hint = "; write redis://" + addr
	}
	return errors.New("it is not of the form redis://host:port: it has no scheme" + hint)
}

// shownKey is a parameter's name as errors show it: what stands before an @ may be a password.
func shownKey(key string) string {
	if strings.Contains(key, "@") {
		return fault.Hidden
	}
	return key
}

// addrOf is the address that u names, and its database. Two spellings of one address become the same: case, a final
// dot, forms of an IP address.
func addrOf(u *url.URL) (addr, database string, err error) {
	if u.Scheme == "unix" {
		if u.Host != "" || !strings.HasPrefix(u.Path, "/") || u.Path == "/" {
			return "", "", errors.New("a socket is named by an absolute path: unix:///path/to/socket")
		}
		return filepath.Clean(u.Path), u.Query().Get("db"), nil
	}
	host := strings.TrimSuffix(strings.ToLower(cmp.Or(u.Hostname(), "localhost")), ".")
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil {
		host = ip.Unmap().String()
	}
	if strings.ContainsAny(host, "[]") {
		return "", "", errors.New("the host has a bracket too many; an IPv6 address is written redis://[::1]:6379")
	}
	if strings.Contains(host, ",") {
		return "", "", errors.New("it names several hosts: write one URL a master")
	}
	port, err := strconv.ParseUint(cmp.Or(u.Port(), "6379"), 10, 16)
	if err != nil || port == 0 {
		return "", "", errors.New("the port is not in 1..65535")
	}
	return net.JoinHostPort(host, strconv.FormatUint(port, 10)), strings.TrimPrefix(u.Path, "/"), nil
}

// settings returns what holds for all masters, and the configuration of each, or says what cannot be right about them.
func settings(masters []Master, opts []Option) (common config, configs []config, err error) {
	common = defaults()
	if err := common.apply(opts); err != nil {
		return common, nil, err
	}
	configs = make([]config, len(masters))
	for i, m := range masters {
		if configs[i], err = m.settings(common); err != nil {
			return common, nil, err
		}
	}
	return common, configs, distinct(masters)
}

func (m Master) settings(common config) (config, error) {
	if m.err != nil {
		return config{}, m.err
	}
	if m.addr == "" && m.foreign == nil {
		return config{}, fault.Invalid("a master is the zero Master; make it with URL or FromRedisPool")
	}
	if m.Name == "" {
		return config{}, fault.Invalid("the name of the master at %s is empty", m.addr)
	}
	cfg := common
	if m.foreign != nil {
		cfg.Target = wire.Target{DialTimeout: common.DialTimeout}
	} else if !m.useTLS {
		cfg.TLS = nil
	}
	if err := cfg.apply(m.opts); err != nil {
		return config{}, fault.New(fmt.Sprintf("pool: master %q: %s", m.Name, strings.TrimPrefix(err.Error(), "pool: ")), err)
	}
	switch {
	case m.foreign != nil && (cfg.TLS != nil || cfg.Password != "" || cfg.Database != 0 || cfg.Dialer != nil):
		return config{}, fault.Invalid("master %q: TLS, credentials, database and dialer are those of its *redis.Pool",
			m.Name)
	case cfg.TLS != nil && !m.useTLS:
		return config{}, fault.Invalid("master %q: it has a TLS configuration and does not use TLS; write rediss://", m.Name)
	case cfg.TLS == nil && m.useTLS:
		cfg.TLS = &tls.Config{}
	}
	cfg.Network, cfg.Addr, cfg.Foreign = m.network, m.addr, m.foreign
	switch {
	case m.service != "":
		cfg.behindSentinels(&m)
	case m.buckets > 0 && m.bucket == 0:
		return config{}, fault.Invalid("master %q is a cluster: DialBuckets makes a pool for each of its buckets", m.Name)
	case m.buckets > 0:
		cfg.inCluster(&m)
	}
	if cfg.failover != nil { // whether it is alone must be known in time
		cfg.heartbeat = min(cfg.heartbeat, DefaultHeartbeat)
		if cfg.timeout > longestTimeout {
			return config{}, fault.Invalid("master %q: the timeout %v is above %v, and a replica may be in its place by then; "+
				"give it a shorter one by WithTimeout", m.Name, cfg.timeout, longestTimeout)
		}
	}
	return cfg, nil
}

// distinct refuses a server that is named twice. Two servers behind two names are found out by their run ids later.
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
