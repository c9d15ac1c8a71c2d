package main

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"text/tabwriter"
)

// A report is what a run gives. Its JSON form is stable: fields are added, never renamed. What was not measured is null.
type report struct {
	Masters     mastersInfo   `json:"masters"`
	Machine     machineInfo   `json:"machine"`
	Rounds      int           `json:"rounds"`
	DurationMS  float64       `json:"duration_ms"`
	Notes       []string      `json:"notes"`
	Pair        []pairResult  `json:"pair"`
	Faults      []faultResult `json:"faults"`
	Connections []int         `json:"library_connections"` // by master
	LeftBehind  *int          `json:"lock_keys_left_behind"`
	Targets     []target      `json:"targets"`
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
}

func newReport(c *config, m *masters) *report {
	r := &report{
		Masters:    mastersInfo{Kind: m.kind, N: len(m.urls)},
		Machine:    machineInfo{runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0)},
		Rounds:     c.rounds,
		DurationMS: float64(c.duration.Microseconds()) / 1000,
	}
	if m.note != "" {
		r.note("%s", m.note)
	}
	return r
}

func (r *report) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

func (r *report) writeJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(r)
}

// writeTable writes the report for a person.
func (r *report) writeTable(w io.Writer) error {
	fmt.Fprintf(w, "%d masters, %s", r.Masters.N, r.Masters.Kind)
	if r.Masters.Version != "" {
		fmt.Fprintf(w, ", %s", r.Masters.Version)
	}
	fmt.Fprintf(w, "; %s %s/%s, %d processors; %d rounds of %g ms; medians with the least and the most\n",
		r.Machine.Go, r.Machine.OS, r.Machine.Arch, r.Machine.CPUs, r.Rounds, r.DurationMS)
	for _, n := range r.Notes {
		fmt.Fprintf(w, "note: %s\n", n)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	r.pairTable(t)
	r.faultTable(t)
	r.targetTable(t)
	return t.Flush()
}

func (r *report) pairTable(t io.Writer) {
	for _, p := range r.Pair {
		unit := "goroutines"
		if p.Goroutines == 1 {
			unit = "goroutine"
		}
		fmt.Fprintf(t, "\nlock+unlock, %d %s\tp50 us\tp90 us\tp99 us\tmean us\tpairs/s\tallocs\tclient cpu us\tserver cpu us\n", p.Goroutines, unit)
		for _, name := range []string{nameLibrary, nameDirect, nameQueued} {
			f, ok := p.Contenders[name]
			if !ok {
				continue
			}
			fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", name, show(f.P50, 0), show(f.P90, 0), show(f.P99, 0), show(f.Mean, 0),
				show(f.Rate, 0), show(f.Allocs, 1), show(f.ClientCPU, 1), show(f.ServerCPU, 1))
		}
		fmt.Fprintf(t, "  library / %s\t%s\t\t\t\t%s\n", p.Floor, show(p.Latency, 2), show(p.Throughput, 2))
	}
	if len(r.Connections) > 0 {
		fmt.Fprintf(t, "\nconnections of the library, by master: %v\n", r.Connections)
	}
}

func (r *report) faultTable(t io.Writer) {
	if len(r.Faults) == 0 {
		return
	}
	fmt.Fprintf(t, "\nfaults, 1 goroutine\tp50 us\tp99 us\tmax us\tp50 / healthy\tclient cpu us\tfailed pairs\n")
	for _, f := range r.Faults {
		fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%s\t%s\t%d\n", f.Fault, show(f.P50, 0), show(f.P99, 0), show(f.Max, 0), show(f.Ratio, 2), show(f.ClientCPU, 0), f.Failed)
	}
}

func (r *report) targetTable(t io.Writer) {
	fmt.Fprintf(t, "\ntargets\ttarget\tmeasured\t\tthe floor itself\n")
	for _, g := range r.Targets {
		measured, verdict, floor := "-", "not measured", ""
		if g.Floor != nil {
			floor = fmt.Sprintf("%.4g", *g.Floor)
		}
		if g.Measured != nil {
			measured = fmt.Sprintf("%.4g", *g.Measured)
		}
		if g.Met != nil {
			if verdict = "met"; !*g.Met {
				verdict = "NOT MET"
			}
		}
		fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%s\n", g.Name, g.Target, measured, verdict, floor)
	}
}

// show writes a spread with the digits behind the point.
func show(s *spread, digits int) string {
	if s == nil {
		return "-"
	}
	return fmt.Sprintf("%.*f (%.*f-%.*f)", digits, s.Median, digits, s.Min, digits, s.Max)
}
