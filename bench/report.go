package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// reportFormat is counted up where the meaning of a field changes; fields are added without.
const reportFormat = 1

// A report is what a run gives.
type report struct {
	Format     int            `json:"format"`
	Time       time.Time      `json:"time"`
	Masters    mastersInfo    `json:"masters"`
	Machine    machineInfo    `json:"machine"`
	Build      buildInfo      `json:"build"`
	Parameters parametersInfo `json:"parameters"`
	Notes      []string       `json:"notes"`
	Figures    []*figure      `json:"figures"`
	Curves     []curve        `json:"curves"`
	Targets    []target       `json:"targets"`

	figures figures
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

// A buildInfo says what was measured: the commit, where the build knows it, and the versions of the modules.
type buildInfo struct {
	Commit   string            `json:"commit"`
	Modified bool              `json:"modified"`
	Modules  map[string]string `json:"modules"`
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
		Format:  reportFormat,
		Time:    time.Now().UTC().Truncate(time.Second),
		Masters: mastersInfo{Kind: m.kind(), N: len(m.urls)},
		Machine: machineInfo{runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), cpuModel()},
		Build:   newBuildInfo(),
		Parameters: parametersInfo{
			Scenarios: c.scenarios, Goroutines: c.goroutines, Rounds: c.rounds, Duration: c.duration,
		},
		Notes:  []string{},
		Curves: []curve{},
	}
	for _, e := range c.entrants {
		r.Parameters.Contenders = append(r.Parameters.Contenders, e.name)
	}
	if load := loadBefore(); load > float64(r.Machine.CPUs)/2 {
		r.note("busy before the run (load %.1f on %d processors): it says little", load, r.Machine.CPUs)
	}
	return r
}

// loadBefore is the machine's load average over the last minute, 0 where it is not known.
func loadBefore() (load float64) {
	text, err := os.ReadFile("/proc/loadavg")
	if err == nil {
		_, _ = fmt.Sscan(string(text), &load)
	}
	return load
}

// cpuModel is the name of the processor, "" where it is not known.
func cpuModel() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func newBuildInfo() buildInfo {
	b := buildInfo{Modules: map[string]string{}}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	for _, d := range info.Deps {
		b.Modules[d.Path] = d.Version
	}
	if b.Commit == "" {
		b.Commit, b.Modified = commitHere()
	}
	return b
}

// commitHere is the commit of the working directory, which is what "go run" has built and does not note; "" outside of
// a repository.
func commitHere() (commit string, modified bool) {
	head, err := exec.Command("git", "rev-parse", "HEAD").Output()
	if err != nil {
		return "", false
	}
	changes, err := exec.Command("git", "status", "--porcelain", "-uno").Output()
	return strings.TrimSpace(string(head)), err == nil && len(changes) > 0
}

// firstLine is as much of an error as a note has room for; nil gives "".
func firstLine(err error) string {
	text, _, _ := strings.Cut(errText(err), "\n")
	if len(text) > 160 {
		text = text[:160] + "..."
	}
	return text
}

func (r *report) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !slices.Contains(r.Notes, text) {
		r.Notes = append(r.Notes, text)
	}
}

// writeJSON writes a figure and a curve a line, so that a kept run is read, and its changes are, without a tool.
func (r *report) writeJSON(w io.Writer) error {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil {
		return err
	}
	text := out.String()
	for _, field := range []string{
		"time", "masters", "machine", "build", "parameters", "notes", "figures", "curves", "targets",
	} {
		text = strings.Replace(text, `,"`+field+`":`, ",\n\""+field+`":`, 1)
	}
	for _, first := range []string{"scenario", "kind", "name"} {
		text = strings.NewReplacer(`[{"`+first+`":`, "[\n{\""+first+`":`, `,{"`+first+`":`, ",\n{\""+first+`":`).Replace(text)
	}
	_, err := io.WriteString(w, text)
	return err
}

// readReport reads what writeJSON has written.
func readReport(path string) (*report, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	r := new(report)
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("bench: %s: %w", path, err)
	}
	if r.Format != reportFormat {
		return nil, fmt.Errorf("bench: %s has format %d, not %d: measure it again", path, r.Format, reportFormat)
	}
	r.figures.list = r.Figures
	return r, nil
}

// writeTables writes the report for a person.
func (r *report) writeTables(w io.Writer) error {
	fmt.Fprintln(w, r.headline())
	for _, n := range r.Notes {
		fmt.Fprintf(w, "note: %s\n", n)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range r.cases() {
		c.write(t)
	}
	return t.Flush()
}

func (r *report) headline() string {
	s := fmt.Sprintf("%d masters, %s", r.Masters.N, r.Masters.Kind)
	if r.Masters.Version != "" {
		s += ", " + r.Masters.Version
	}
	return s + fmt.Sprintf("; %s %s/%s, %d processors; %d rounds of %v; medians with the least and the most", r.Machine.Go,
		r.Machine.OS, r.Machine.Arch, r.Machine.CPUs, r.Parameters.Rounds, r.Parameters.Duration)
}

// writeTargets writes the targets that this run tells something of.
func (r *report) writeTargets(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	open := 0
	fmt.Fprintf(t, "\ntargets\ttarget\tmeasured\t\tfor comparison\n")
	for _, g := range r.Targets {
		if g.Met == nil {
			open++
		} else {
			fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%s\n", g.Name, g.Target, g.measured(), g.verdict(), g.floor())
		}
	}
	if open > 0 {
		fmt.Fprintf(t, "  %d others are not measured by this run\n", open)
	}
	return t.Flush()
}
