package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/long"
	"github.com/redlock-go/redlock/redlock"
)

// A monitor is a Prometheus server that scrapes a running program, with the rules of deploy/prometheus. Their windows
// and delays are a few seconds.
type monitor struct {
	*running
	api string // URL
}

// brief shortens the durations of a rule: those of "for", and the windows of rates.
var brief = strings.NewReplacer("for: 15s", "for: 1s", "for: 2m", "for: 2s", "for: 5m", "for: 2s", "[5m]", "[20s]")

const prometheusConfig = `
global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}
rule_files: [alerts.yml]
scrape_configs:
  - job_name: observed
    static_configs: [{targets: [%q]}]
`

// watch starts a Prometheus server for the program r.
func watch(t *testing.T, r *running) *monitor {
	t.Helper()
	text, err := os.ReadFile(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	rules := brief.Replace(string(text))
	plain := regexp.MustCompile(`(?m)#.*$`).ReplaceAllString(rules, "")
	if left := regexp.MustCompile(`\d+m\b`).FindString(plain); left != "" {
		t.Fatalf("the rules have the duration %s, which the test does not shorten", left)
	}
	dir := t.TempDir()
	for name, content := range map[string]string{
		"alerts.yml": rules, "prometheus.yml": fmt.Sprintf(prometheusConfig, r.address),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("prometheus", "--config.file="+filepath.Join(dir, "prometheus.yml"),
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address=127.0.0.1:0", "--log.format=json")
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	address, read := make(chan string, 1), make(chan struct{})
	var all bytes.Buffer
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(io.TeeReader(log, &all)); lines.Scan(); {
			var line struct{ Msg, Address string }
			if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "Listening on" && line.Address != "" {
				address <- line.Address
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-read
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("the log of Prometheus ends with\n%s", all.Bytes()[max(0, all.Len()-2000):])
		}
	})
	select {
	case a := <-address:
		return &monitor{r, "http://" + a + "/api/v1/"}
	case <-read:
		t.Fatal("Prometheus has ended")
	case <-time.After(time.Minute):
		t.Fatal("Prometheus does not listen after a minute")
	}
	return nil
}

// An alert is a firing alert.
type alert struct {
	State               string
	Labels, Annotations map[string]string
}

// firing returns the firing alerts by their names.
func (m *monitor) firing(ctx context.Context) (map[string][]alert, error) {
	var answer struct{ Data struct{ Alerts []alert } }
	text, err := get(ctx, m.api+"alerts")
	if err == nil {
		err = json.Unmarshal([]byte(text), &answer)
	}
	list := map[string][]alert{}
	for _, a := range answer.Data.Alerts {
		if a.State == "firing" {
			list[a.Labels["alertname"]] = append(list[a.Labels["alertname"]], a)
		}
	}
	return list, err
}

// fires waits until exactly the alerts with these names are firing, and returns them.
func (m *monitor) fires(what string, names ...string) (list map[string][]alert) {
	m.Helper()
	began := time.Now()
	slices.Sort(names)
	m.eventually(what, func() (bool, string) {
		var err error
		list, err = m.firing(m.Context())
		return err == nil && slices.Equal(slices.Sorted(maps.Keys(list)), names), fmt.Sprint("firing: ", list, err)
	})
	m.Logf("%s: after %v the alerts are %q", what, time.Since(began).Round(100*time.Millisecond), names)
	return list
}

// shows waits until the query has a result.
func (m *monitor) shows(query string) {
	m.Helper()
	m.eventually(query, func() (bool, string) {
		text, err := get(m.Context(), m.api+"query?query="+url.QueryEscape(query))
		return err == nil && strings.Contains(text, `"metric"`), fmt.Sprint(text, err)
	})
}

// says checks the summary of the only alert with this name.
func (m *monitor) says(list map[string][]alert, name, summary string) {
	m.Helper()
	if a := list[name]; len(a) != 1 || a[0].Annotations["summary"] != summary {
		m.Errorf("%s has the alerts %v, want one with the summary %q", name, a, summary)
	}
}

// A Prometheus server with the rules of deploy/prometheus reports each fault of real masters and of a client, and the
// alert ends with the fault.
func TestAlertsFireAndEnd(t *testing.T) {
	if !long.Enabled() {
		t.Skip("needs -long: a master votes 30 s after its restart")
	}
	if _, err := exec.LookPath("prometheus"); err != nil {
		t.Skip("needs prometheus (Debian, Ubuntu: apt-get install prometheus)")
	}
	r := start(t, true)
	m := watch(t, r)
	m.shows(`redlock_quorum == 1 and on (instance) redlock_held > 0 and on (instance) redlock_spare_masters == 2`)
	m.shows(`sum(rate(redlock_wait_seconds_count[20s])) > 0`) // the windows of the rules have samples
	m.fires("all masters vote")

	addr := func(i int) string { return r.servers[i].Addr() }
	kill := func(i int) {
		if err := r.servers[i].Kill(); err != nil {
			t.Fatal(err)
		}
	}
	kill(4)
	m.says(m.fires("one master is down", "RedlockMasterOut"), "RedlockMasterOut",
		addr(4)+" has no vote; clients of observed that see this: 1")
	kill(3)
	list := m.fires("two masters are down", "RedlockMasterOut", "RedlockNoSpare")
	m.says(list, "RedlockNoSpare", r.address+": if one more master fails, no lock can be acquired")
	if out := list["RedlockMasterOut"]; len(out) != 2 || out[0].Labels["master"] == out[1].Labels["master"] {
		t.Errorf("the alerts of two masters are %v", out)
	}
	kill(2)
	list = m.fires("three masters are down", "RedlockMasterOut", "RedlockNoQuorum", "RedlockLost")
	m.says(list, "RedlockNoQuorum", r.address+" can acquire no lock: too few masters vote")
	m.says(list, "RedlockLost", r.address+" of observed has lost locks before their release (lost)")
	m.fires("the loss is old", "RedlockMasterOut", "RedlockNoQuorum")

	for _, s := range r.servers[2:] {
		if err := s.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	m.shows(`count(redlock_master_state{state="quarantine"} == 1) == 3`)
	m.fires("three masters are in quarantine", "RedlockMasterOut", "RedlockNoQuorum")
	m.fires("all masters vote again")

	text, err := os.ReadFile(r.config)
	if err != nil {
		t.Fatal(err)
	}
	write := func(content string) {
		if err := os.WriteFile(r.config, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(strings.Replace(string(text), addr(0), "127.0.0.1:1", 1)) // another list of the same epoch
	m.says(m.fires("another file", "RedlockFileUnusable"), "RedlockFileUnusable",
		r.address+" cannot use the masters in its file")
	write(string(text))
	m.fires("the right file")

	other, err := redlock.Open(r.urls)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	hangs, err := other.Lock(t.Context(), "job:1", redlock.WithTTL(10*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	m.says(m.fires("a holder hangs", "RedlockWaits"), "RedlockWaits",
		"observed: more than 1% of the calls wait longer than a second for a lock")
	if err := hangs.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.fires("the holder goes on")
}
