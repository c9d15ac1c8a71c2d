package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/redlock-go/redlock/internal/transport/sentinel"
	"github.com/redlock-go/redlock/internal/transport/wire"
)

// WithSentinelCredentials sets the ACL user, if not empty, and the password for the sentinels.
func WithSentinelCredentials(user, password string) Option {
	return option(password != "", func(c *Config) { c.sentinels.User, c.sentinels.Password = user, password },
		"the sentinels' password is empty")
}

// WithSentinelTLS sets the TLS configuration for the sentinels.
func WithSentinelTLS(t *tls.Config) Option {
	return option(t != nil, func(c *Config) { c.sentinels.TLS = t }, "the sentinels' TLS configuration is nil")
}

// parseStore removes the hosts and the parameters from a URL of sentinels or of a cluster, and leaves a URL of a plain
// master. hosts is the part of the URL between its credentials and its path.
func (m *Master) parseStore(u *url.URL, kind, hosts string) (err error) {
	port := ""
	switch kind {
	case "sentinel":
		port, err = "26379", m.parseSentinel(u)
	case "cluster":
		port, err = "6379", m.parseCluster(u)
	default:
		return fmt.Errorf("the scheme %q is none of redis+sentinel, redis+cluster", u.Scheme)
	}
	if err != nil {
		return err
	}
	switch allow := u.Query()["allow"]; {
	case len(allow) == 1 && allow[0] == "two-holders":
		m.opts = append(m.opts, AllowTwoHolders())
	case allow != nil:
		return errors.New("the parameter allow is two-holders or not there")
	}
	for host := range strings.SplitSeq(hosts, ",") {
		one, err := url.Parse("redis://" + host)
		if err != nil || host == "" || one.Path != "" || one.User != nil {
			return errors.New("one of its hosts cannot be read: they are host:port, with commas between them")
		}
		if one.Port() == "" {
			one.Host += ":" + port
		}
		addr, _, err := addrOf(one)
		if err != nil {
			return err
		}
		m.nodes = append(m.nodes, addr)
	}
	kept := url.Values{}
	if q := u.Query(); q.Has("name") {
		kept["name"] = q["name"]
	}
	u.RawQuery, u.Host = kept.Encode(), m.nodes[0]
	return nil
}

// parseSentinel sets the master's name from the path of u, replaces the path by the database, and checks the
// parameters.
func (m *Master) parseSentinel(u *url.URL) error {
	const form = "it is redis+sentinel://[user:password@]host:port,host:port,.../service" +
		"[?db=0][&allow=two-holders][&name=...], where service is the master's name for the sentinels"
	name := strings.Trim(u.Path, "/")
	if name == "" || strings.ContainsAny(name, "/@ ") {
		return errors.New("it does not name the master behind the sentinels: " + form)
	}
	m.service = name
	q := u.Query()
	u.Path = "/" + q.Get("db")
	return checkKeys(q, "; "+form, "allow", "db", "name")
}

// behindSentinels makes cfg refer to a master whose address the sentinels report.
func (cfg *Config) behindSentinels(m *Master) {
	finder := &sentinel.Finder{Name: m.service}
	for _, addr := range m.nodes {
		t := wire.Target{
			Network: "tcp", Addr: addr, Dialer: cfg.Dialer, DialTimeout: cfg.DialTimeout,
			User: cfg.sentinels.User, Password: cfg.sentinels.Password,
		}
		if m.useTLS {
			t.TLS = cfg.sentinels.TLS
			if t.TLS == nil {
				t.TLS = &tls.Config{}
			}
		}
		finder.Sentinels = append(finder.Sentinels, t)
	}
	f := &failover{twoHold: cfg.twoHolders, finder: finder}
	cfg.failover = f
	cfg.FindFunc = func(ctx context.Context) (string, error) {
		p, err := finder.Find(ctx)
		if err == nil {
			f.found(p)
		}
		return p.Addr, err
	}
}

// firstHost removes all hosts except the first from a URL of sentinels or of a cluster, because package url accepts
// only one host. hosts is the list that was in the URL.
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
