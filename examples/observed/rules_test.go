package main

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const (
	rulesFile = "../../deploy/prometheus/alerts.yml"
	runbook   = "../../docs/night.md"
	runbooks  = "https://github.com/redlock-go/redlock/blob/main/docs/night.md#"
)

// Each rule contains the fields that an operator needs, and is described in a section of the documentation. The
// documentation describes no other rules.
func TestRulesAreComplete(t *testing.T) {
	text, err := os.ReadFile(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&file); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(runbook)
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^### (Redlock\w+)$`).FindAllSubmatch(page, -1) {
		sections[string(m[1])] = true
	}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			if !sections[r.Alert] {
				t.Errorf("%s has no section in docs/night.md", r.Alert)
			}
			delete(sections, r.Alert)
			if want := runbooks + strings.ToLower(r.Alert); r.Annotations["runbook_url"] != want {
				t.Errorf("%s has the runbook %q, want %q", r.Alert, r.Annotations["runbook_url"], want)
			}
			if r.Expr == "" || r.Annotations["summary"] == "" {
				t.Errorf("%s has no expression or no summary", r.Alert)
			}
			if s := r.Labels["severity"]; s != "warning" && s != "critical" {
				t.Errorf("%s has the severity %q, want warning or critical", r.Alert, s)
			}
		}
	}
	for name := range sections {
		t.Errorf("docs/night.md describes the unknown rule %s", name)
	}
}

// promtool accepts the rules, and the unit tests of the rules in alerts_test.yml pass.
func TestRulesPassPromtool(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("needs promtool (Debian, Ubuntu: apt-get install prometheus)")
	}
	for _, args := range [][]string{{"check", "rules", "alerts.yml"}, {"test", "rules", "alerts_test.yml"}} {
		cmd := exec.CommandContext(t.Context(), promtool, args...)
		cmd.Dir = "../../deploy/prometheus"
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}
