package transport

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/transport/fault"
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
func FromRedisPool(name string, pool *redis.Pool, opts ...Option) Master {
	if err := checkMasterName(name); err != nil {
		return Master{err: fault.Invalid("a master made from a *redis.Pool: %v", err)}
	}
	m := Master{Name: name, foreign: pool, opts: opts}
	switch {
	case pool == nil:
		m.err = fault.Invalid("master %q: the *redis.Pool is nil", name)
	case pool.DialContext == nil && pool.Dial == nil:
		m.err = fault.Invalid("master %q: the *redis.Pool has neither DialContext nor Dial", name)
	}
	return m
}

// maxMasterName is the maximum length of the name of a master in bytes.
const maxMasterName = 256

// checkMasterName returns an error if name is not a valid name of a master.
func checkMasterName(name string) error {
	switch {
	case name == "":
		return errors.New("its name is empty")
	case strings.Contains(name, "://"): // it may contain a password
		return errors.New("its name is a URL: use the host:port, which is the name for clients that use the URL")
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
	if err != nil && strings.ContainsFunc(raw, unicode.IsSpace) {
		return errors.New("it contains a space or a line break: write one URL per master, and %20 in a password")
	}
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
	query := u.Query()
	if err := m.parseQuery(query, form); err != nil {
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
	database := query.Get("db")
	if scheme == "redis" {
		database = strings.TrimPrefix(u.Path, "/")
	}
	err = form.parseFunc(m, u, hosts)
	if name := query.Get("name"); err == nil && query.Has("name") {
		m.Name, err = name, checkMasterName(name)
	}
	if err != nil || database == "" {
		return err
	}
	n, err := strconv.ParseUint(database, 10, 31)
	if err != nil {
		return fmt.Errorf("the database is not a number in 0..%d", math.MaxInt32)
	}
	m.opts = append(m.opts, Set(true, func(cfg *Config) { cfg.Database = int(n) }, ""))
	return nil
}

// parseQuery checks that the URL has only parameters of its form, each at most once, and applies guard and allow.
func (m *Master) parseQuery(query url.Values, form scheme) error {
	for key, values := range query {
		if slices.Contains(form.keys, key) && len(values) == 1 {
			continue
		}
		if strings.Contains(key, "@") { // the text before the @ may be a password
			key = fault.Hidden
		}
		return fmt.Errorf("the parameter %q is unknown or given twice; the form is %s", key, form.form)
	}
	if m.noGuard = query.Get("guard") == "off"; query.Has("guard") && !m.noGuard {
		return errors.New("the parameter guard has only the value off")
	}
	switch {
	case query.Get("allow") == "two-holders":
		m.opts = append(m.opts, Set(true, func(cfg *Config) { cfg.TwoHolders = true }, ""))
	case query.Has("allow"):
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
		if slices.Contains(m.nodes, addr) { // a sentinel would count twice for the majority
			return errors.New("one of its hosts is given twice")
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
