package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// madeReport returns a report of two rounds in which the library takes twice as long as the floor, and half as long as
// redsync.
func madeReport() *report {
	r := &report{Masters: 5, Version: "redis 7.0.15", Rounds: 2}
	for i, who := range []string{nameFloor, nameLibrary, nameRedigo} {
		for _, noise := range []float64{1, 1.01} {
			v := float64(int(100)<<i) * noise
			for _, q := range percentiles {
				r.add(place{scenarioCost, goroutinesCase(1), who}, q.m, v)
				r.add(place{scenarioLoad, eight.String(), who}, q.wait(), v)
			}
			r.add(place{scenarioCost, goroutinesCase(1), who}, mConns, 1)
			r.add(place{scenarioLoad, goroutinesCase(64), who}, mRate, 1e6/v)
			for _, f := range faults {
				r.add(place{scenarioFaults, f.String(), who}, mP50, v)
				r.add(place{scenarioFaults, f.String(), who}, mOfHealthy, noise)
			}
		}
	}
	return r
}

func TestRatios(t *testing.T) {
	of := func(rounds ...float64) *figure { return &figure{spread: *newSpread(rounds)} }
	for _, c := range []struct {
		s    *spread
		want string
	}{
		{ratio(of(2, 3, 9), of(4, 0, 3)), "~1.75 (0.50-3.00)"}, // the second round has no value
		{ratio(of(3, 2), of(1, 1)), "2.50 (2.00-3.00)"},
		{ratio(of(3), of(2)), "1.50 (1.50-1.50)"},
		{ratio(of(1), nil), "-"},
	} {
		if got := c.s.String(); got != c.want {
			t.Errorf("the ratio is %s, want %s", got, c.want)
		}
	}
}

// A miss counts in a short run only if every round misses by a factor of two; on a busy machine not if the target is
// about the library alone.
func TestMisses(t *testing.T) {
	for _, c := range []struct {
		name                string
		values              []float64
		alone               bool
		short, busy, missed bool
	}{
		{"met", []float64{1, 1}, false, false, false, false},
		{"missed", []float64{1, 1.5, 2}, false, false, false, true},
		{"by less than two", []float64{2, 2}, false, true, false, false},
		{"in one round", []float64{1, 9}, false, true, false, false},
		{"in every round", []float64{3, 9}, false, true, true, true},
		{"alone", []float64{3, 9}, true, true, false, true},
		{"alone and busy", []float64{3, 9}, true, true, true, false},
	} {
		r := new(report)
		for _, v := range c.values {
			if c.alone {
				r.add(place{scenarioFaults, "one hung", nameLibrary}, mOfHealthy, v)
			} else {
				r.add(place{scenarioCost, "1 goroutine", nameLibrary}, mConns, v)
			}
		}
		if c.busy {
			r.Busy = "The machine was busy."
		}
		if got := r.missed(c.short); got != c.missed {
			t.Errorf("%s: missed is %v, want %v", c.name, got, c.missed)
		}
	}
}

// A report is written in every form.
func TestDeliver(t *testing.T) {
	dir, r := t.TempDir(), madeReport()
	at := func(name string) string { return filepath.Join(dir, name) }
	var text, page bytes.Buffer
	c := &config{check: true, svg: dir, html: at("page.html")}
	if err := errors.Join(r.deliver(c, &text), os.WriteFile(at("text"), text.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	for name, list := range map[string][]string{
		"page.html": {"Lock and unlock take 201 us (2.00 of floor, 0.50 of redsync/redigo).", "<svg", "NOT MET", "</html>",
			"library / other, p50"},
		"text": {"p50, us", "0.50 (0.50-0.50)", "64 callers complete 4975 pairs a second",
			"cost: 1 goroutine: pair / floor <= 1.2: 2 (2-2), NOT MET\n",
			"cost: 1 goroutine: pair / redsync/redigo <= 0.8: 0.5 (0.5-0.5), met\n",
			"cost: 1 goroutine: pair / redsync/rueidis <= 0.8: not measured\n",
			"load: 64 goroutines: pairs/s / floor >= 0.55: 0.5 (0.5-0.5), NOT MET\n",
			"faults: two slow: pair / healthy <= 1.1: 1 (1-1.01), met\n"},
		"faults.svg": {"two dead", "redsync/redigo"},
		"load.svg":   {"pairs/s"}, "cost.svg": {"p99.9"}, "contention.svg": {"Waits"},
	} {
		text, err := os.ReadFile(at(name))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range list {
			if !bytes.Contains(text, []byte(s)) {
				t.Errorf("%s does not contain %q:\n%s", name, s, text)
			}
		}
		for _, bad := range []string{"<script", "<link", "@import", "src=", "url("} { // the page must load nothing
			if bytes.Contains(text, []byte(bad)) {
				t.Errorf("%s contains %q", name, bad)
			}
		}
		for d := xml.NewDecoder(bytes.NewReader(text)); err == nil && strings.HasSuffix(name, ".svg"); {
			if _, err = d.Token(); err != nil && !errors.Is(err, io.EOF) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if err := errors.Join(new(report).deliver(c, &text), new(report).writePage(&page, nil)); err != nil {
		t.Errorf("a report without figures: %v", err)
	}
}
