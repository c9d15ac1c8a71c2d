package integration

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
)

// A link is a proxy in front of one master that can disturb the master's traffic. It listens on a port of this
// machine. If a method fails, it fails the test without ending it.
type link struct {
	t        testing.TB
	name     string
	upstream string
	addr     string // the address on which the link listens
	proxy    *toxiproxy.Proxy
	treated  bool // traffic is disturbed
}

// newLink starts a link that passes all traffic. The link ends with the test. Its port is not one that the system gives
// to outgoing connections, which could occupy it while the link is down.
func newLink(t testing.TB, name, upstream string) *link {
	t.Helper()
	zerolog.SetGlobalLevel(zerolog.Disabled) // some toxics write to standard output regardless of their logger
	port := must.Get(redisproc.FreePort())(t)
	l := &link{t: t, name: name, upstream: upstream, addr: fmt.Sprint("127.0.0.1:", port)}
	must.Do(t, l.up())
	t.Cleanup(l.down)
	return l
}

// down ends all connections and refuses new connections.
func (l *link) down() { l.proxy.Stop() }

// up accepts connections without disturbance again, at the same address. A process that another test is starting has
// the listener of before until it executes its program, so up waits for that.
func (l *link) up() error {
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	l.proxy = toxiproxy.NewProxy(server, l.name, l.addr, l.upstream)
	var err error
	redistest.Until(func() bool {
		err = l.proxy.Start()
		return !errors.Is(err, syscall.EADDRINUSE)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", l.name, err)
	}
	return nil
}

// reroute ends all connections and connects new ones to another server.
func (l *link) reroute(upstream string) {
	l.t.Helper()
	l.upstream, l.treated = upstream, true
	l.clear()
}

// clear removes all disturbances and ends all connections. It does not change a link without disturbances.
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

// A toxic is one kind of disturbance, as toxiproxy names it.
type toxic struct {
	Name       string         `json:"name"`
	Type       string         `json:"type"`
	Stream     string         `json:"stream"` // upstream: to the master; downstream: from it
	Toxicity   float32        `json:"toxicity"`
	Attributes map[string]any `json:"attributes,omitempty"`
}

// add disturbs all traffic from now on, including traffic of existing connections.
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
			l.t.Errorf("link %s: cannot add the toxic %s: %v", l.name, x.Name, err)
		}
	}
}

// slow delays the round trip by ms milliseconds, with a jitter in milliseconds.
func slow(ms, jitter int) toxic {
	return toxic{Type: "latency", Stream: "downstream", Toxicity: 1,
		Attributes: map[string]any{"latency": ms, "jitter": jitter}}
}

// modem limits one direction to rate kilobytes per second.
func modem(stream string, rate int) toxic {
	return toxic{Type: "bandwidth", Stream: stream, Toxicity: 1, Attributes: map[string]any{"rate": rate}}
}

// swallow drops all data in one direction. The connection stays open.
func swallow(stream string) toxic {
	return toxic{Type: "timeout", Stream: stream, Toxicity: 1, Attributes: map[string]any{"timeout": 0}}
}

// breakOff ends each connection after this number of bytes from the master, even in the middle of a reply. The client
// sees that the connection is reset. The second toxic passes all data; it is needed because the proxy resets
// connections only if there is a toxic of the type reset_peer.
func breakOff(bytes int) []toxic {
	return []toxic{
		{Type: "limit_data", Stream: "downstream", Toxicity: 1, Attributes: map[string]any{"bytes": bytes}},
		{Type: "reset_peer", Stream: "downstream", Toxicity: 0, Attributes: map[string]any{"timeout": 0}},
	}
}
