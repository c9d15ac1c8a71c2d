//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redlock-go/redlock/internal/long"
	"github.com/redlock-go/redlock/internal/redisproc"
)

// A server is a Prometheus server. Each second it scrapes a program, and evaluates the rules of deploy/prometheus.
type server struct {
	*running
	url string
}

// pause matches the time that a rule waits. The rules wait for minutes before they fire. In the test they wait for a
// second, with unchanged expressions.
var pause = regexp.MustCompile(`(?m)^( *for:) .*$`)

// scraped starts the server program at path.
func (r *running) scraped(path string) *server {
	r.Helper()
	dir := r.TempDir()
	rules, err := os.ReadFile(rulesFile)
	if err != nil {
		r.Fatal(err)
	}
	for name, text := range map[string]string{
		"rules.yml": pause.ReplaceAllString(string(rules), "$1 1s"),
		"prometheus.yml": fmt.Sprintf(`
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [rules.yml]
scrape_configs:
  - job_name: observed
    static_configs: [{targets: [%q]}]
`, r.address),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			r.Fatal(err)
		}
	}
	port, err := redisproc.FreePort()
	if err != nil {
		r.Fatal(err)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		r.Fatal(err)
	}
	p := &server{running: r, url: fmt.Sprintf("http://127.0.0.1:%d", port)}
	// The shell ends the server when its input ends: with the test, however that ends.
	shell := exec.Command("sh", "-c", `"$@" & cat; kill -9 $!; wait`, "sh", path,
		"--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+strings.TrimPrefix(p.url, "http://"))
	shell.Stdout, shell.Stderr = log, log
	alive, err := shell.StdinPipe()
	if err != nil {
		r.Fatal(err)
	}
	if err := shell.Start(); err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() {
		_ = alive.Close()
		_ = shell.Wait() // the shell was killed
		if text, err := os.ReadFile(log.Name()); r.Failed() && err == nil {
			r.Logf("the server said:\n%s", text)
		}
		log.Close()
	})
	return p
}

// ask calls the API of the server, and decodes the data of the response.
func (p *server) ask(path string, data any) error {
	body, err := get(p.Context(), p.url+path)
	if err != nil {
		return err
	}
	answer := struct {
		Status, Error string
		Data          any
	}{Data: data}
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		return err
	}
	if answer.Status != "success" {
		return fmt.Errorf("%s: %s", answer.Status, answer.Error)
	}
	return nil
}

// An alert is an alert of the server.
type alert struct {
	State       string
	Labels      map[string]string
	Annotations map[string]string
}

// firing returns the sorted names of the firing alerts.
func (p *server) firing() (names []string, all []alert) {
	var data struct{ Alerts []alert }
	if err := p.ask("/api/v1/alerts", &data); err != nil {
		return []string{err.Error()}, nil
	}
	for _, a := range data.Alerts {
		if a.State == "firing" && !slices.Contains(names, a.Labels["alertname"]) {
			names = append(names, a.Labels["alertname"])
		}
	}
	slices.Sort(names)
	return names, data.Alerts
}

// fires waits until an alert fires.
func (p *server) fires(name string) (found alert) {
	p.Helper()
	p.eventually(name, func() (bool, string) {
		names, all := p.firing()
		for _, a := range all {
			if a.State == "firing" && a.Labels["alertname"] == name {
				found = a
				return true, ""
			}
		}
		return false, fmt.Sprintf("firing are %q of %v", names, all)
	})
	return found
}

// quiet fails the test if any other alert fires.
func (p *server) quiet(but ...string) {
	p.Helper()
	slow := `sum(redlock_wait_seconds_count{op="lock"}) - sum(redlock_wait_seconds_bucket{op="lock",le="1"})`
	if n, _, err := p.value(slow); err == nil && n > 0 { // a busy machine alone makes calls wait
		but = append(but, "RedlockWaits")
	}
	if names, all := p.firing(); slices.ContainsFunc(names, func(n string) bool { return !slices.Contains(but, n) }) {
		p.Errorf("firing are %q: %v", names, all)
	}
}

// value returns the sum of the current results of a query.
func (p *server) value(query string) (sum float64, series int, err error) {
	var data struct {
		Result []struct{ Value [2]any }
	}
	if err := p.ask("/api/v1/query?query="+url.QueryEscape(query), &data); err != nil {
		return 0, 0, err
	}
	for _, s := range data.Result {
		var v float64
		if _, err := fmt.Sscan(fmt.Sprint(s.Value[1]), &v); err != nil {
			return 0, 0, err
		}
		sum += v
	}
	return sum, len(data.Result), nil
}

// A server of Prometheus scrapes the program while its masters fail. Each rule of deploy/prometheus fires for the fault
// that it reports, and none before; each query of README.md has a result.
func TestRulesFireAndQueriesAnswer(t *testing.T) {
	if !long.Enabled() {
		t.Skip("needs -long: it takes half a minute")
	}
	path, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("needs a prometheus program (Debian, Ubuntu: apt-get install prometheus)")
	}
	r := start(t, false)
	p := r.scraped(path)
	p.eventually("ten seconds of metrics", func() (bool, string) {
		n, _, err := p.value("sum(count_over_time(redlock_quorum[1m]))")
		return n >= 10, fmt.Sprint(n, err)
	})
	p.quiet()
	for _, query := range document(t, "README.md", "promql") {
		if v, n, err := p.value(query); err != nil || n == 0 || v != v {
			t.Errorf("%s gives %v, %d series, %v", query, v, n, err)
		}
	}

	if err := r.servers[0].Kill(); err != nil {
		t.Fatal(err)
	}
	if a := p.fires("RedlockMasterOut"); a.Labels["master"] != r.servers[0].Addr() {
		t.Errorf("%s is down, and the alert is of %v", r.servers[0].Addr(), a.Labels)
	}
	p.quiet("RedlockMasterOut")

	// Another client holds the names that the jobs need.
	for _, name := range []string{"job:1", "job:2"} {
		k, err := r.other.Lock(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		defer k.Unlock(t.Context())
	}
	p.fires("RedlockWaits")
	p.quiet("RedlockMasterOut", "RedlockWaits")

	// Three of five masters are down: held locks are lost, and nothing can be acquired.
	for _, s := range r.servers[1:3] {
		if err := s.Pause(); err != nil {
			t.Fatal(err)
		}
	}
	lost := p.fires("RedlockLost")
	if lost.Labels["reason"] != "lost" {
		t.Errorf("the leader's lock was lost, and the alert is of %v", lost.Labels)
	}
	p.fires("RedlockNoQuorum")

	// The query for the number of masters that may still fail gives less than 0.
	query := document(t, "README.md", "promql")
	i := slices.IndexFunc(query, func(q string) bool { return strings.Contains(q, "floor(") })
	if v, n, err := p.value(query[i]); err != nil || n != 1 || v >= 0 {
		t.Errorf("with three of five gone %s gives %v, %d series, %v", query[i], v, n, err)
	}

	for _, s := range r.servers[1:3] {
		if err := s.Resume(); err != nil {
			t.Fatal(err)
		}
	}
	p.eventually("the end of RedlockNoQuorum", func() (bool, string) {
		names, _ := p.firing()
		return !slices.Contains(names, "RedlockNoQuorum"), fmt.Sprint(names)
	})
}
