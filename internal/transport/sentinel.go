package transport

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/redlock-go/redlock/internal/frame"
	"github.com/redlock-go/redlock/internal/heartbeat"
	"github.com/redlock-go/redlock/internal/transport/fault"
	"github.com/redlock-go/redlock/internal/transport/sentinel"
	"github.com/redlock-go/redlock/internal/transport/wire"
)

// parseSentinel sets the fields of a master behind the sentinels at hosts from its URL.
func parseSentinel(m *Master, u *url.URL, hosts string) error {
	m.authorityFunc = behindSentinels
	m.service = strings.Trim(u.Path, "/")
	if m.service == "" || strings.ContainsAny(m.service, "/@ ") {
		return errors.New("the path of the URL must be the name of the master that the sentinels monitor; " +
			"the form is " + forms["redis+sentinel"].text)
	}
	return m.parseHosts(hosts, "26379")
}

// sentinels find a master, and report when a replica would replace it. They implement authority.
type sentinels struct {
	sentinel.Finder
	reported atomic.Pointer[Promotion] // reported last; nil if they have not reported a rule
}

// behindSentinels makes cfg refer to a master whose address the sentinels report.
func behindSentinels(m *Master, cfg *Config) (authority, error) {
	by := &sentinels{Finder: sentinel.Finder{Name: m.service}}
	for _, addr := range m.nodes {
		t := wire.Target{
			Network: "tcp", Addr: addr, Dialer: cfg.Dialer, DialTimeout: cfg.DialTimeout,
			Slots: cfg.Slots,
			User:  cfg.Sentinels.User, Password: cfg.Sentinels.Password, Provider: cfg.Sentinels.Provider,
		}
		if m.useTLS {
			t.TLS, t.TLSFunc = cmp.Or(cfg.Sentinels.TLS, &tls.Config{}), cfg.Sentinels.TLSFunc
		}
		by.Sentinels = append(by.Sentinels, t)
	}
	cfg.FindFunc = func(ctx context.Context) (string, error) {
		p, err := by.Find(ctx)
		if err == nil {
			by.found(p)
		}
		return p.Addr, err
	}
	return by, nil
}

// found stores the promotion rule that the sentinels have reported.
func (by *sentinels) found(p sentinel.Place) { by.reported.Store(&Promotion{p.Replicas, p.DownAfter}) }

// follow ends the session when the sentinels report another address for the master. It compares the address of the
// session with every answer, even an unchanged one: right after a promotion, some sentinels still report the old
// address, and a session with the old address may begin after other sentinels have reported the new address.
func (by *sentinels) follow(m *master) {
	by.Follow(m.ctx, func(p sentinel.Place) {
		by.found(p)
		if s := m.state.Load().sess; s != nil && s.addr != p.Addr {
			s.pipe.Kill("failover", fault.Down(fmt.Errorf("the sentinels name %s as the master, no longer %s", p.Addr, s.addr)))
		}
	})
}

func (by *sentinels) rule(*Stopping) *Promotion { return by.reported.Load() }

func (by *sentinels) settings(*Stopping) []wire.Question { return nil }

func (by *sentinels) place(*Stopping) []wire.Question { return nil }

func (by *sentinels) heartbeat(string) *frame.Call { return heartbeat.Call(true) }

func (by *sentinels) digest(map[string]string) string { return noDigest }

func (by *sentinels) clustered() bool { return false }

func (by *sentinels) finder() *sentinel.Finder { return &by.Finder }

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
