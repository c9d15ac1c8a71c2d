package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// reportFormat must be incremented if the meaning of a field changes, but not if a field is added.
const reportFormat = 1

// A report is the result of a run.
type report struct {
	Format     int            `json:"format"`
	Time       time.Time      `json:"time"`
	Masters    mastersInfo    `json:"masters"`
	Machine    machineInfo    `json:"machine"`
	Build      buildInfo      `json:"build"`
	Parameters parametersInfo `json:"parameters"`
	Busy       string         `json:"busy,omitempty"` // a warning if other programs used the machine
	Notes      []string       `json:"notes"`
	Figures    figures        `json:"figures"`
	Curves     []curve        `json:"curves"`
	Targets    []target       `json:"targets"`
}

type mastersInfo struct {
	Kind    string `json:"kind"`
	N       int    `json:"n"`
	Version string `json:"version"`
}

type machineInfo struct {
	Go   string `json:"go"`
	OS   string `json:"os"`
	Arch string `json:"arch"`
	CPUs int    `json:"cpus"`
	CPU  string `json:"cpu"`
}

// A buildInfo identifies the measured code: the commit of the working directory, or "" outside of a repository.
type buildInfo struct {
	Commit   string `json:"commit"`
	Modified bool   `json:"modified"`
}

func (b buildInfo) String() string {
	switch {
	case b.Commit == "":
		return "commit unknown"
	case b.Modified:
		return b.Commit[:min(len(b.Commit), 12)] + " with changes"
	}
	return b.Commit[:min(len(b.Commit), 12)]
}

type parametersInfo struct {
	Scenarios  []string      `json:"scenarios"`
	Contenders []string      `json:"contenders"`
	Goroutines []int         `json:"goroutines"`
	Rounds     int           `json:"rounds"`
	Duration   time.Duration `json:"duration_ns"`
}

func newReport(c *config, m *masters) *report {
	r := &report{
		Format:     reportFormat,
		Time:       time.Now().UTC().Truncate(time.Second),
		Masters:    mastersInfo{Kind: m.kind(), N: len(m.urls)},
		Machine:    machineInfo{runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), cpuModel()},
		Parameters: parametersInfo{Scenarios: c.chosen, Goroutines: c.goroutines, Rounds: c.rounds, Duration: c.duration},
		Notes:      []string{},
		Figures:    figures{},
		Curves:     []curve{},
	}
	for _, e := range c.entrants {
		r.Parameters.Contenders = append(r.Parameters.Contenders, e.name)
	}
	if head, err := exec.Command("git", "rev-parse", "HEAD").Output(); err == nil {
		changes, err := exec.Command("git", "status", "--porcelain", "-uno").Output()
		r.Build = buildInfo{strings.TrimSpace(string(head)), err == nil && len(changes) > 0}
	}
	var load float64 // average of the last minute, if the system reports it
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		_, _ = fmt.Sscan(string(text), &load)
	}
	if load > float64(r.Machine.CPUs)/2 {
		r.Busy = fmt.Sprintf("The machine was busy (load %.1f on %d processors): the figures are unreliable.", load,
			r.Machine.CPUs)
	}
	return r
}

// cpuModel returns the name of the processor, or "" if the name is unknown.
func cpuModel() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func (r *report) note(format string, args ...any) {
	r.Notes = appendNew(r.Notes, fmt.Sprintf(format, args...))
}

// firstLine returns the first line of an error, cut to the length of a note, or "" if err is nil.
func firstLine(err error) string {
	if err == nil {
		return ""
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	if len(text) > 160 {
		text = text[:160] + "..."
	}
	return text
}

func (r *report) writeJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	return e.Encode(r)
}

// readReport reads reports that writeJSON has written. paths lists their files, separated by commas. It merges the
// rounds of all reports into one.
func readReport(paths string) (all *report, err error) {
	for _, path := range strings.Split(paths, ",") {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("bench: %w", err)
		}
		r := new(report)
		if err := json.Unmarshal(text, r); err != nil {
			return nil, fmt.Errorf("bench: %s: %w", path, err)
		}
		if r.Format != reportFormat {
			return nil, fmt.Errorf("bench: %s: format %d, want format %d: measure again", path, r.Format, reportFormat)
		}
		if all == nil {
			all = r
			continue
		}
		for _, f := range r.Figures {
			for _, v := range f.Rounds {
				all.Figures.add(f.Scenario, f.Case, f.Who, metric{f.Metric, f.Unit, f.Better}, v)
			}
		}
		all.Parameters.Rounds += r.Parameters.Rounds
		all.Targets = targetsOf(all.Figures)
	}
	return all, nil
}

// headline returns a line that describes the masters, the machine and the rounds.
func (r *report) headline() string {
	s := fmt.Sprintf("%d masters, %s", r.Masters.N, r.Masters.Kind)
	if r.Masters.Version != "" {
		s += ", " + r.Masters.Version
	}
	return s + fmt.Sprintf("; %s %s/%s, %d processors; %d rounds of %v; medians, smallest and largest values",
		r.Machine.Go, r.Machine.OS, r.Machine.Arch, r.Machine.CPUs, r.Parameters.Rounds, r.Parameters.Duration)
}
