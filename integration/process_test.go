package integration

import (
	"context"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/redisproc"
)

func processBackend() (*backend, error) {
	path, err := redisproc.Find()
	if err != nil {
		return nil, err
	}
	return &backend{name: "processes of " + path, start: startProcesses}, nil
}

// startProcesses starts n servers one after the other, which takes about ten milliseconds each. A server that the test
// will cut from the network is behind a link.
func startProcesses(t testing.TB, n int, s setup) []Master {
	t.Helper()
	list := make([]Master, n)
	for i := range n {
		m := &processMaster{setup: s}
		m.startServer(t, "master-"+strconv.Itoa(i+1))
		if s.cuttable {
			m.link = newLink(t, m.Name(), m.server.Addr())
		}
		list[i] = m
	}
	return list
}

type processMaster struct {
	setup  setup
	server *redisproc.Server
	link   *link // nil if the server is reached directly
}

// startServer starts the server. A TLS server needs its port in two arguments, so startServer chooses the port. If
// another process takes the port first, startServer chooses another.
func (m *processMaster) startServer(t testing.TB, name string) {
	t.Helper()
	var err error
	for range 5 {
		cfg := redisproc.Config{Name: name, Args: m.setup.args}
		if m.setup.tls {
			if cfg.Port, err = redisproc.FreePort(); err != nil {
				break
			}
			cfg.Args = append([]string{"--port", "0", "--tls-port", strconv.Itoa(cfg.Port)}, m.setup.args...)
		}
		if m.server, err = redisproc.Start(t.Context(), cfg); err == nil {
			t.Cleanup(func() {
				if err := m.server.Stop(); err != nil {
					t.Error(err)
				}
			})
			return
		}
		if !strings.Contains(err.Error(), "in use") {
			break
		}
	}
	t.Fatal(err)
}

func (m *processMaster) Name() string { return m.server.Name() }

func (m *processMaster) URL() string {
	addr, scheme := m.server.Addr(), "redis://"
	if m.link != nil {
		addr = m.link.addr
	}
	if m.setup.tls {
		scheme = "rediss://"
	}
	return scheme + addr
}

func (m *processMaster) Peer() (host, port string) {
	host, port, _ = net.SplitHostPort(m.server.Addr())
	return host, port
}

func (m *processMaster) dialOptions() []redis.DialOption { return m.setup.dial }

func (m *processMaster) Pause(context.Context) error     { return m.server.Pause() }
func (m *processMaster) Resume(context.Context) error    { return m.server.Resume() }
func (m *processMaster) Kill(context.Context) error      { return m.server.Kill() }
func (m *processMaster) Start(ctx context.Context) error { return m.server.Restart(ctx) }

func (m *processMaster) Cut(context.Context) error {
	m.link.down()
	return nil
}

func (m *processMaster) Join(ctx context.Context) error {
	if err := m.link.up(); err != nil {
		return err
	}
	return awaitPing(ctx, m.URL(), m.setup.dial...)
}
