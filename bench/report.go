package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"time"

	"golang.org/x/perf/benchmath"
)

// A report is the result of a run.
type report struct {
	Format   int           `json:"format"` // 2; incremented if the meaning of a field changes
	Time     time.Time     `json:"time"`
	Masters  int           `json:"masters"`
	Version  string        `json:"version"` // of the masters
	Machine  string        `json:"machine"`
	Rounds   int           `json:"rounds"`
	Duration time.Duration `json:"duration_ns"`
	Busy     string        `json:"busy,omitempty"` // a warning if other programs used the machine
	Notes    []string      `json:"notes"`
	Figures  []*figure     `json:"figures"`
}

// A figure holds the values of one metric in one place.
type figure struct {
	place
	metric
	spread
}

// A place is a contender in a case of a scenario.
type place struct {
	Scenario string `json:"scenario"`
	Case     string `json:"case"`
	Who      string `json:"who"`
}

// A metric is what a figure measures. For all but rates and shares, less is better.
type metric struct {
	Metric string `json:"metric"`
	Unit   string `json:"unit"`
}

// A spread is the median of the values of all rounds, with the smallest and the largest value.
type spread struct {
	Median float64   `json:"median"`
	Low    float64   `json:"low"`
	High   float64   `json:"high"`
	Rounds []float64 `json:"rounds"`
}

var nan = math.NaN()

func newReport(c *config, m *masters, version string) *report {
	r := &report{
		Format: 2, Time: time.Now().UTC().Truncate(time.Second), Masters: len(m.urls), Version: version,
		Rounds: c.rounds, Duration: c.duration, Notes: []string{}, Figures: []*figure{},
	}
	cpus := runtime.GOMAXPROCS(0)
	r.Machine = fmt.Sprintf("%s %s/%s, %d processors", runtime.Version(), runtime.GOOS, runtime.GOARCH, cpus)
	var load float64 // average of the last minute, if the system reports it
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		_, _ = fmt.Sscan(string(text), &load)
	}
	if load > float64(cpus)/2 {
		r.Busy = fmt.Sprintf("The machine was busy (load %.1f on %d processors): the figures are unreliable.", load, cpus)
	}
	return r
}

func (r *report) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(r.Notes, text) {
		r.Notes = append(r.Notes, text)
	}
}

// add adds the value of one round to a figure. A value that is NaN or infinite was not measured, and is ignored.
func (r *report) add(p place, m metric, value float64) {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return
	}
	f := r.find(p, m)
	if f == nil {
		f = &figure{place: p, metric: m}
		r.Figures = append(r.Figures, f)
	}
	f.spread = *newSpread(append(f.Rounds, value))
}

// find returns a figure, or nil if it was not measured.
func (r *report) find(p place, m metric) *figure {
	i := slices.IndexFunc(r.Figures, func(f *figure) bool { return f.place == p && f.metric == m })
	if i < 0 {
		return nil
	}
	return r.Figures[i]
}

// values returns the spread of f, or nil if f was not measured.
func (f *figure) values() *spread {
	if f == nil {
		return nil
	}
	return &f.spread
}

// newSpread returns the spread of values, which it keeps, or nil if there are none.
func newSpread(values []float64) *spread {
	if len(values) == 0 {
		return nil
	}
	sample := benchmath.NewSample(slices.Clone(values), &benchmath.DefaultThresholds)
	median := benchmath.AssumeNothing.Summary(sample, 0.95).Center
	return &spread{median, slices.Min(values), slices.Max(values), values}
}

// ratio returns the spread of the ratios a/b of all rounds, or nil if one of them was not measured.
func ratio(a, b *figure) *spread {
	if a == nil || b == nil {
		return nil
	}
	var list []float64
	for i := range min(len(a.Rounds), len(b.Rounds)) {
		if b.Rounds[i] > 0 {
			list = append(list, a.Rounds[i]/b.Rounds[i])
		}
	}
	return newSpread(list)
}

// String formats a ratio: with a leading "~" if it is above 1 in some rounds and below 1 in others.
func (s *spread) String() string {
	if s == nil {
		return "-"
	}
	text := fmt.Sprintf("%.2f (%.2f-%.2f)", s.Median, s.Low, s.High)
	if s.Low < 1 && s.High > 1 {
		return "~" + text
	}
	return text
}

// deliver writes the requested files, and to stdout the JSON document or the text.
func (r *report) deliver(c *config, stdout io.Writer) (err error) {
	targets := r.targets()
	if !c.check {
		targets = nil
	}
	if c.html != "" {
		var page bytes.Buffer
		err = errors.Join(r.writePage(&page, targets), os.WriteFile(c.html, page.Bytes(), 0o644))
	}
	if c.svg != "" {
		err = errors.Join(err, r.writePlots(c.svg))
	}
	if !c.json {
		return errors.Join(err, r.writeText(stdout, targets))
	}
	e := json.NewEncoder(stdout)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	return errors.Join(err, e.Encode(r))
}
