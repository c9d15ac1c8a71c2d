package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/redlock-go/redlock/examples/internal/testmasters"
	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/redlock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ttl = 2 * time.Second

// A running represents a running copy of the program, with its own masters.
type running struct {
	*testing.T
	servers []*redisproc.Server
	urls    []string
	config  string // the file with the URLs, or ""
	address string // of /metrics
	spans   *buffer
	stop    func() error
}

// A buffer is a bytes.Buffer for one concurrent writer and reader.
type buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// start runs the program over five masters that vote. The program gets their URLs as arguments, or in a file if
// inFile is set.
func start(t *testing.T, inFile bool) *running {
	t.Helper()
	servers, urls := testmasters.Start(t, 5)
	r := &running{T: t, servers: servers, urls: urls, spans: &buffer{}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.address = l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	if inFile {
		r.config = filepath.Join(t.TempDir(), "locks.json")
		text, err := json.Marshal(map[string][]string{"masters": urls})
		if err = errors.Join(err, os.WriteFile(r.config, text, 0o600)); err != nil {
			t.Fatal(err)
		}
		urls = nil
	}
	go func() { ended <- run(ctx, r.config, urls, l, r.spans, redlock.WithTTL(ttl)) }()
	r.stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() { _ = r.stop() })
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return r
}

// get returns the body of a page.
func get(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return string(body), err
}

// eventually waits until check returns true. After two minutes, it fails the test with the text that check has
// returned.
func (r *running) eventually(what string, check func() (bool, string)) {
	r.Helper()
	bound := time.After(2 * time.Minute)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, said := check()
		if ok {
			return
		}
		select {
		case <-tick.C:
		case <-bound:
			r.Fatalf("the program is not in the state %q after two minutes: %s", what, said)
		}
	}
}

// The program exports its metrics at /metrics, and a span of each call. The span of a lock is a child of the span of
// the job.
func TestProgramIsObserved(t *testing.T) {
	r := start(t, true)
	want := []string{
		`redlock_quorum 1`, `redlock_held`, `redlock_wait_seconds_count{op="lock",outcome="ok"}`,
		`redlock_master_voting{master="` + r.servers[4].Addr() + `"} 1`, `redlock_attempts_total{outcome="ok"}`,
	}
	r.eventually("the metrics", func() (bool, string) {
		page, err := get(t.Context(), "http://"+r.address+"/metrics")
		for _, text := range want {
			if err != nil || !strings.Contains(page, text) {
				return false, page
			}
		}
		return true, ""
	})
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	type id struct{ SpanID string }
	names, parents := map[string]string{}, map[string]string{}
	for d := json.NewDecoder(strings.NewReader(r.spans.String())); ; {
		var s struct {
			Name                string
			SpanContext, Parent id
		}
		if err := d.Decode(&s); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		names[s.SpanContext.SpanID], parents[s.SpanContext.SpanID] = s.Name, s.Parent.SpanID
	}
	seen := map[string]int{}
	for span, name := range names {
		above := parents[span]
		seen[names[parents[above]]+" > "+names[above]+" > "+name]++
	}
	for _, name := range []string{"redlock lock", "write", "redlock unlock"} {
		path := "job > redlock do > " + name
		if seen[path] == 0 {
			t.Errorf("there is no span with the path %q in %v", path, seen)
		}
	}
}

// The program is ready while a quorum of the masters votes.
func TestReadiness(t *testing.T) {
	r := start(t, false)
	says := func(want string) func() (bool, string) {
		return func() (bool, string) {
			page, err := get(t.Context(), "http://"+r.address+"/ready")
			return err == nil && strings.Contains(page, want), fmt.Sprint(page, err)
		}
	}
	r.eventually("ready", says("a quorum votes"))
	for _, s := range r.servers[:3] {
		if err := s.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	r.eventually("not ready", says(r.servers[0].Addr()))
}
