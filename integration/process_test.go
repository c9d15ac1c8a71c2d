package integration

import (
	"testing"

	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
)

func processBackend() (*backend, error) {
	path, err := redisproc.Find()
	if err != nil {
		return nil, err
	}
	return &backend{name: "processes of " + path, start: startProcesses}, nil
}

func startProcesses(t testing.TB, n int) []Master {
	t.Helper()
	list := make([]Master, n)
	for i, s := range redistest.Test(t, n, redisproc.Config{Name: "master"}) {
		list[i] = processMaster{s}
	}
	return list
}

type processMaster struct{ server *redisproc.Server }

func (m processMaster) Name() string { return m.server.Name() }
func (m processMaster) URL() string  { return m.server.URL() }

func (m processMaster) Pause(t testing.TB)  { t.Helper(); m.must(t, m.server.Pause()) }
func (m processMaster) Resume(t testing.TB) { t.Helper(); m.must(t, m.server.Resume()) }
func (m processMaster) Kill(t testing.TB)   { t.Helper(); m.must(t, m.server.Kill()) }
func (m processMaster) Start(t testing.TB)  { t.Helper(); m.must(t, m.server.Restart(t.Context())) }

func (m processMaster) must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
