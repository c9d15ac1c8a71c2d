package integration

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// A link is a proxy in front of one master, on a port of this machine, that treats what passes through it badly. Its
// methods fail the test without ending it.
type link struct {
	t        testing.TB
	name     string
	upstream string
	addr     string // where it listens
	proxy    *toxiproxy.Proxy
	treated  bool // badly
}

// newLink starts one that lets everything pass. It ends with the test.
func newLink(t testing.TB, name, upstream string) *link {
	t.Helper()
	zerolog.SetGlobalLevel(zerolog.Disabled) // some toxics write to the standard output whatever logger they are given
	l := &link{t: t, name: name, upstream: upstream, addr: "127.0.0.1:0"}
	if err := l.up(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.down)
	return l
}

// down ends all connections and refuses new ones.
func (l *link) down() { l.proxy.Stop() }

// up accepts connections at the address that it always had, and treats them well.
func (l *link) up() error {
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	l.proxy = toxiproxy.NewProxy(server, l.name, l.addr, l.upstream)
	if err := l.proxy.Start(); err != nil {
		return fmt.Errorf("%s: %w", l.name, err)
	}
	l.addr = l.proxy.Listen
	return nil
}

// reroute ends all connections and leads new ones to another server.
func (l *link) reroute(upstream string) {
	l.t.Helper()
	l.upstream, l.treated = upstream, true
	l.clear()
}

// clear ends all bad treatment, and all connections with it. A link that treats everything well is left alone.
func (l *link) clear() {
	l.t.Helper()
	if !l.treated {
		return
	}
	l.treated = false
	l.down()
	if err := l.up(); err != nil {
		l.t.Error(err)
	}
}

// A toxic is one kind of bad treatment, as toxiproxy names it.
type toxic struct {
	Name       string         `json:"name"`
	Type       string         `json:"type"`
	Stream     string         `json:"stream"` // upstream: to the master; downstream: from it
	Toxicity   float32        `json:"toxicity"`
	Attributes map[string]any `json:"attributes,omitempty"`
}

// add has the link treat everything so from now on, connections that there are included.
func (l *link) add(toxics ...toxic) {
	l.t.Helper()
	l.treated = true
	for _, x := range toxics {
		x.Name = x.Type + "-" + x.Stream
		text, err := json.Marshal(x)
		if err == nil {
			_, err = l.proxy.Toxics.AddToxicJson(strings.NewReader(string(text)))
		}
		if err != nil {
			l.t.Errorf("%s: %s: %v", l.name, x.Name, err)
		}
	}
}

// slow delays both directions together by the given milliseconds, more or less.
func slow(ms, jitter int) toxic {
	return toxic{Type: "latency", Stream: "downstream", Toxicity: 1, Attributes: map[string]any{"latency": ms, "jitter": jitter}}
}

// modem lets one direction pass at a number of kilobytes a second.
func modem(stream string, rate int) toxic {
	return toxic{Type: "bandwidth", Stream: stream, Toxicity: 1, Attributes: map[string]any{"rate": rate}}
}

// swallow accepts everything in one direction and hands on nothing; the connection stays.
func swallow(stream string) toxic {
	return toxic{Type: "timeout", Stream: stream, Toxicity: 1, Attributes: map[string]any{"timeout": 0}}
}

// breakOff ends each connection after that many bytes from the master, wherever in a reply that is; new connections by
// a reset. The second toxic passes everything: it is there because the proxy resets what has one of its type.
func breakOff(bytes int) []toxic {
	return []toxic{
		{Type: "limit_data", Stream: "downstream", Toxicity: 1, Attributes: map[string]any{"bytes": bytes}},
		{Type: "reset_peer", Stream: "downstream", Toxicity: 0, Attributes: map[string]any{"timeout": 0}},
	}
}
