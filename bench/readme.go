package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
)

// The marks between which writeReadme replaces what stands there.
const (
	readmeBegin = "<!-- figures: made from %s by -readme, not by hand -->"
	readmeEnd   = "<!-- end of figures -->"
)

// errStale says that a file's figures are not those of the report.
var errStale = errors.New("its figures are not those of the run")

// writeReadme puts the figures of the report, which stands in the file from, between the marks in the file at path.
// With check it changes nothing, and fails with errStale where something would change.
func (r *report) writeReadme(path, from string, check bool) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	begin := fmt.Sprintf(readmeBegin, from)
	head, _, ok := strings.Cut(string(text), readmeBegin[:len("<!-- figures:")])
	_, tail, ok2 := strings.Cut(string(text), readmeEnd)
	if !ok || !ok2 {
		return fmt.Errorf("bench: %s has no lines %q and %q to put figures between", path, begin, readmeEnd)
	}
	made := []byte(head + begin + "\n" + r.markdown() + readmeEnd + tail)
	switch {
	case bytes.Equal(made, text):
		return nil
	case check:
		return fmt.Errorf("bench: %s: %w in %s: run go run ./bench -from %s -readme %s", path, errStale, from, from, path)
	}
	info, err := os.Stat(path)
	if err == nil {
		err = os.WriteFile(path, made, info.Mode())
	}
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	return nil
}

// markdown is the report as a section of a README.
func (r *report) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s. %s\n", r.headline(), r.Machine.CPU)
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "\nNote: %s.\n", n)
	}
	for _, part := range []func() ([]string, [][]string){r.readmePairs, r.readmeWaiting, r.readmeFaults} {
		heads, rows := part()
		if len(rows) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n| %s |\n|%s\n", strings.Join(heads, " | "), strings.Repeat(" --- |", len(heads)))
		for _, row := range rows {
			fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
		}
	}
	b.WriteString("\n")
	for _, t := range r.Targets {
		if t.Met != nil && !*t.Met {
			floor := t.floor()
			if floor != "" && t.FloorOf == "" {
				floor += " of the floor itself"
			}
			if floor != "" {
				floor = "; it is " + floor
			}
			fmt.Fprintf(&b, "- Not met: %s is %s, the target is %s%s.\n", t.Name, t.measured(), t.Target, floor)
		}
	}
	return b.String()
}

// number is the median of a figure, "-" where there is none.
func (r *report) number(scenario, kase, who string, m metric) string {
	f := r.figures.find(scenario, kase, who, m.name)
	if f == nil {
		return "-"
	}
	return fmt.Sprintf("%.*f", digits(f.Median), f.Median)
}

func (r *report) readmePairs() (heads []string, rows [][]string) {
	heads = []string{
		"lock + unlock", "p50, 1 goroutine (us)", "pairs/s, 64 goroutines", "pairs/s, 512", "client cpu a pair, 64 (us)",
		"allocations", "connections a master, 512", "keys left in 10 000",
	}
	for _, who := range r.who(scenarioPairs) {
		rows = append(rows, []string{
			who, r.number(scenarioPairs, latencyCase(opPair, 1), who, mP50), r.number(scenarioPairs, rateCase(64), who, mRate),
			r.number(scenarioPairs, rateCase(512), who, mRate), r.number(scenarioPairs, rateCase(64), who, mClientCPU),
			r.number(scenarioPairs, rateCase(64), who, mAllocs), r.number(scenarioPairs, rateCase(512), who, mConnections),
			r.number(scenarioPairs, rateCase(64), who, mLeft),
		})
	}
	return heads, rows
}

func (r *report) readmeWaiting() (heads []string, rows [][]string) {
	heads = []string{
		"one name, 1 ms holds",
		"64 goroutines: of a local mutex", "8 processes: of a local mutex", "wait p50 / p99 (ms)",
		"commands a hold and master", "hand-off of two processes (us)", "9 at one instant, first holder p99 (us)",
	}
	for _, who := range r.who(scenarioContention) {
		of := func(s shape, m metric) string { return r.number(scenarioContention, s.String(), who, m) }
		rows = append(rows, []string{
			who, of(oneProcess, mOfIdeal), of(eightPaused, mOfIdeal),
			of(eightPaused, mWait50) + " / " + of(eightPaused, mWait99),
			of(eightPaused, mCommands), of(twoInTurns, mHandOff),
			r.number(scenarioSplit, splitCase(9), who, mFirst99),
		})
	}
	return heads, rows
}

func (r *report) readmeFaults() (heads []string, rows [][]string) {
	heads = []string{"masters", "median latency / all healthy", "the floor"}
	for _, f := range everyFault() {
		if f.count > 0 && r.of(scenarioFaults, f.String(), mOfHealthy) != nil {
			rows = append(rows, []string{
				f.String(), r.number(scenarioFaults, f.String(), nameLibrary, mOfHealthy), r.floorUnder(f),
			})
		}
	}
	return heads, rows
}

// floorUnder is what a fault costs the floor. In older runs another floor had it, which outlived no fault: masters
// that were hung or dead were absent from the start.
func (r *report) floorUnder(f fault) string {
	if r.figures.find(scenarioFaults, f.String(), nameFloor, mOfHealthy.name) != nil {
		return r.number(scenarioFaults, f.String(), nameFloor, mOfHealthy)
	}
	old := f
	if f.kind == hung || f.kind == dead {
		old.kind = "absent"
	}
	return r.number(scenarioFaults, "floor: "+old.String(), "floor/queued", mOfHealthy)
}

// who lists those that have figures of a scenario.
func (r *report) who(scenario string) (list []string) {
	for _, f := range r.Figures {
		if f.Scenario == scenario {
			list = appendNew(list, f.Who)
		}
	}
	return list
}
