package transport

import (
	"cmp"
	"crypto/tls"
	"errors"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/redlock-go/redlock/internal/transport/cluster"
	"github.com/redlock-go/redlock/internal/transport/fault"
	"github.com/redlock-go/redlock/internal/transport/sentinel"
	"github.com/redlock-go/redlock/internal/transport/wire"
)

// A scheme describes the URLs of one scheme and its variants for TLS and Valkey.
type scheme struct {
	keys []string // the query parameters
	form string   // for error texts
	// parseFunc parses the parts of a URL that only this scheme has. hosts are all hosts of the URL.
	parseFunc func(m *Master, u *url.URL, hosts string) error
}

var schemes = map[string]scheme{
	"redis": {[]string{"name", "guard"}, "redis://[[user]:password@]host[:port][/database][?name=...][&guard=off]",
		parsePlain},
	"unix": {[]string{"name", "guard", "db"},
		"unix://[[user]:password@]/path/to/socket[?db=0][&name=...][&guard=off]", parseSocket},
	"redis+sentinel": {[]string{"allow", "db", "name"}, sentinel.Form, parseSentinel},
	"redis+cluster":  {[]string{"allow", "buckets", "name"}, cluster.Form, parseCluster},
}

// parsePlain sets the address and the name of a plain master.
func parsePlain(m *Master, u *url.URL, _ string) (err error) {
	m.addr, err = addrOf(u, "6379")
	m.Name = m.addr
	return err
}

// parseSocket sets the address and the name of a master from the path of its socket.
func parseSocket(m *Master, u *url.URL, _ string) error {
	if u.Host != "" || !strings.HasPrefix(u.Path, "/") || u.Path == "/" {
		return errors.New("a socket needs an absolute path: unix:///path/to/socket")
	}
	m.network, m.addr = "unix", filepath.Clean(u.Path)
	m.Name = m.addr
	return nil
}

// parseSentinel sets the fields of a master behind the sentinels at hosts.
func parseSentinel(m *Master, u *url.URL, hosts string) (err error) {
	m.authorityFunc = func(m *Master, cfg *Config) (Authority, error) {
		return &sentinel.Finder{Name: m.service, Sentinels: sentinelsOf(m, cfg)}, nil
	}
	if m.service, err = sentinel.NameIn(u); err != nil {
		return err
	}
	return m.parseHosts(hosts, sentinel.Port, m.service)
}

// sentinelsOf returns the sentinels of m, which get no credentials of m.
func sentinelsOf(m *Master, cfg *Config) (list []wire.Target) {
	for _, addr := range m.nodes {
		target := wire.Target{
			Network: "tcp", Addr: addr, Dialer: cfg.Dialer, DialTimeout: cfg.DialTimeout, Slots: cfg.Slots,
			User: cfg.Sentinels.User, Password: cfg.Sentinels.Password, Provider: cfg.Sentinels.Provider,
		}
		if m.useTLS {
			target.TLS, target.TLSFunc = cmp.Or(cfg.Sentinels.TLS, &tls.Config{}), cfg.Sentinels.TLSFunc
		}
		list = append(list, target)
	}
	return list
}

// checkSentinels returns an error if cfg has settings of sentinels, but no master has sentinels.
func checkSentinels(cfg *Config, masters []Master) error {
	given := cfg.Sentinels.Password != "" || cfg.Sentinels.Provider != nil || cfg.Sentinels.TLS != nil
	if given && !slices.ContainsFunc(masters, func(m Master) bool { return m.service != "" }) {
		return fault.Invalid("credentials or TLS of sentinels are given, but no master has a redis+sentinel:// URL")
	}
	return nil
}

// parseCluster sets the fields of a cluster with nodes at hosts.
func parseCluster(m *Master, u *url.URL, hosts string) (err error) {
	m.authorityFunc = func(m *Master, cfg *Config) (Authority, error) {
		if m.bucket == 0 {
			return nil, fault.Invalid("master %q is a cluster: OpenBuckets makes a pool for each of its buckets", m.Name)
		}
		return &cluster.Slot{Tag: Bucket{m.bucket, m.buckets}.Tag(), Nodes: nodesOf(m, cfg)}, nil
	}
	if m.buckets, err = cluster.BucketsIn(u); err != nil {
		return err
	}
	return m.parseHosts(hosts, cluster.Port, "cluster")
}

// nodesOf returns the nodes that the URL of a cluster lists.
func nodesOf(m *Master, cfg *Config) (list []wire.Target) {
	for _, addr := range m.nodes {
		target := cfg.Target
		target.Network, target.Addr = "tcp", addr
		if cfg.credentials != nil { // all nodes are queried concurrently, but a Provider makes one call at a time
			target.Provider = wire.NewProvider(cfg.credentials)
		}
		list = append(list, target)
	}
	return list
}
