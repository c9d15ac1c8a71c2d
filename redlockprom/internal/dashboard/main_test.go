package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
	"github.com/redlock-go/redlock/redlockprom"
)

const (
	file   = "../../../deploy/grafana/redlock.json"
	alerts = "../../../deploy/prometheus/alerts.yml"
	readme = "../../../examples/observed/README.md"
)

func read(t *testing.T, path string) []byte {
	t.Helper()
	return must.Get(os.ReadFile(path))(t)
}

func TestFileIsCurrent(t *testing.T) {
	want := must.Get(generate())(t)
	if !bytes.Equal(read(t, file), want) {
		t.Error("deploy/grafana/redlock.json is out of date: run " +
			"go run ./redlockprom/internal/dashboard >deploy/grafana/redlock.json")
	}
}

// series returns the names of all series with their labels. A histogram has three series.
func series(t *testing.T) map[string][]string {
	t.Helper()
	metrics := must.Get(exported())(t)
	all := map[string][]string{}
	histograms := histograms(t)
	for name, m := range metrics {
		labels := append([]string{"job", "instance"}, m.labels...)
		if !slices.Contains(histograms, name) {
			all[name] = labels
			continue
		}
		all[name+"_count"], all[name+"_sum"] = labels, labels
		all[name+"_bucket"] = append(slices.Clone(labels), "le")
	}
	return all
}

// histograms returns the names of the histograms. It first reports an event for each histogram, because a histogram
// without events has no series.
func histograms(t *testing.T) (names []string) {
	t.Helper()
	c := redlockprom.New()
	trace := c.Trace()
	trace.Event(redlockinfo.Event{Kind: "call", Op: "lock"})
	trace.Event(redlockinfo.Event{Kind: "vote", Master: "a", Vote: "granted", Elapsed: time.Millisecond})
	trace.Event(redlockinfo.Event{Kind: "released"})
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	families := must.Get(registry.Gather())(t)
	for _, f := range families {
		if f.GetType() == dto.MetricType_HISTOGRAM {
			names = append(names, f.GetName())
		}
	}
	return names
}

var (
	quoted   = regexp.MustCompile(`"[^"]*"`)
	selected = regexp.MustCompile(`(\w+)\s*(?:\{([^}]*)\})?`)
	matcher  = regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)`)
	grouping = regexp.MustCompile(`\b(?:by|without|on|ignoring)\s*\(([^)]*)\)`)
)

// checkQuery returns the metrics that a query reads. It returns an error if a metric is not in all, if a grouping
// uses a label that no metric of the query has, or if a selector uses a label that its metric does not have.
func checkQuery(all map[string][]string, expr string) (metrics []string, err error) {
	bare := quoted.ReplaceAllString(expr, "")
	labels := map[string]bool{}
	for _, m := range selected.FindAllStringSubmatch(bare, -1) {
		name := m[1]
		if !strings.HasPrefix(name, "redlock_") {
			continue
		}
		if all[name] == nil {
			return nil, fmt.Errorf("%s is not exported", name)
		}
		metrics = append(metrics, name)
		for _, l := range all[name] {
			labels[l] = true
		}
		for _, l := range matcher.FindAllStringSubmatch(m[2], -1) {
			if !slices.Contains(all[name], l[1]) {
				err = errors.Join(err, fmt.Errorf("%s has no label %s", name, l[1]))
			}
		}
	}
	for _, g := range grouping.FindAllStringSubmatch(bare, -1) {
		for l := range strings.SplitSeq(g[1], ",") {
			if l = strings.TrimSpace(l); !labels[l] {
				err = errors.Join(err, fmt.Errorf("no metric of the query has the label %q", l))
			}
		}
	}
	if len(metrics) == 0 {
		err = errors.Join(err, errors.New("the query reads no metric"))
	}
	return metrics, err
}

func TestCheckQuery(t *testing.T) {
	all := map[string][]string{"redlock_held": {"job"}, "redlock_votes_total": {"job", "vote"}}
	for expr, valid := range map[string]bool{
		`redlock_held`: true, `sum by (job) (redlock_held)`: true, `redlock_votes_total{vote="a", job=~"b"} > 1`: true,
		`sum by (vote) (redlock_held)`: false, `redlock_held{vote="a"}`: false, `redlock_lost`: false, `up`: false,
		`redlock_votes_total{vote="by (x)"} / on (job) redlock_held`: true,
		`redlock_votes_total / on (x) redlock_held`:                  false,
	} {
		if _, err := checkQuery(all, expr); (err == nil) != valid {
			t.Errorf("checkQuery of %s returned %v, want valid: %v", expr, err, valid)
		}
	}
}

// Each query of the dashboard uses metrics and labels that the collector exports, and the description of the panel
// contains these metrics. Each metric is on a panel.
func TestQueriesMatchTheCollector(t *testing.T) {
	all := series(t)
	var dashboard struct {
		Panels []struct {
			Title, Description string
			Targets            []struct{ Expr, LegendFormat string }
		}
	}
	must.Do(t, json.Unmarshal(read(t, file), &dashboard))
	shown := map[string]bool{}
	for _, p := range dashboard.Panels {
		for _, q := range p.Targets {
			metrics, err := checkQuery(all, q.Expr)
			if err != nil {
				t.Errorf("panel %q: %s: %v", p.Title, q.Expr, err)
			}
			for _, l := range regexp.MustCompile(`\{\{(\w+)\}\}`).FindAllStringSubmatch(q.LegendFormat, -1) {
				if !regexp.MustCompile(`by \([^)]*\b` + l[1] + `\b`).MatchString(q.Expr) {
					t.Errorf("panel %q: the legend %q contains a label that the query %s does not return", p.Title,
						q.LegendFormat, q.Expr)
				}
			}
			if !strings.Contains(q.Expr, selector) {
				t.Errorf("panel %q: the query %s does not use the variables of the dashboard", p.Title, q.Expr)
			}
			for _, m := range metrics {
				shown[base(m)] = true
				if !strings.Contains(p.Description, base(m)+":") {
					t.Errorf("panel %q: its description lacks %s", p.Title, base(m))
				}
			}
		}
	}
	for name := range all {
		if !shown[base(name)] {
			t.Errorf("%s is on no panel", base(name))
		}
	}
}

// base returns the name of the metric of a series.
func base(name string) string {
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		name = strings.TrimSuffix(name, suffix)
	}
	return name
}

// Each alert, and each query in the README of the example, uses metrics and labels that the collector exports.
func TestAlertsMatchTheCollector(t *testing.T) {
	all := series(t)
	for path, pattern := range map[string]string{alerts: `(?m)^ *expr: (.*)$`, readme: "(?s)```promql\n(.*?)```"} {
		found := regexp.MustCompile(pattern).FindAllSubmatch(read(t, path), -1)
		if len(found) == 0 {
			t.Fatalf("%s has no expressions", path)
		}
		for _, m := range found {
			if _, err := checkQuery(all, string(m[1])); err != nil {
				t.Errorf("%s: %v", m[1], err)
			}
		}
	}
}
