package transport

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"strings"

	"github.com/redlock-go/redlock/internal/transport/sentinel"
	"github.com/redlock-go/redlock/internal/transport/wire"
)

// parseSentinel sets the fields of a master behind the sentinels at hosts from the path of its URL.
func (m *Master) parseSentinel(path, hosts string, form urlForm) error {
	m.service = strings.Trim(path, "/")
	if m.service == "" || strings.ContainsAny(m.service, "/@ ") {
		return errors.New("the path of the URL must be the name of the master that the sentinels monitor; " +
			"the form is " + form.text)
	}
	return m.parseHosts(hosts, "26379")
}

// behindSentinels makes cfg refer to a master whose address the sentinels report.
func (cfg *Config) behindSentinels(m *Master) {
	finder := &sentinel.Finder{Name: m.service}
	for _, addr := range m.nodes {
		t := wire.Target{
			Network: "tcp", Addr: addr, Dialer: cfg.Dialer, DialTimeout: cfg.DialTimeout,
			Slots: cfg.Slots,
			User:  cfg.Sentinels.User, Password: cfg.Sentinels.Password, Provider: cfg.Sentinels.Provider,
		}
		if m.useTLS {
			t.TLS, t.TLSFunc = cmp.Or(cfg.Sentinels.TLS, &tls.Config{}), cfg.Sentinels.TLSFunc
		}
		finder.Sentinels = append(finder.Sentinels, t)
	}
	f := &failover{twoHold: cfg.TwoHolders, finder: finder}
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
