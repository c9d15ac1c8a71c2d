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
func writeReadme(r *report, path, from string, check bool) error {
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
	made := []byte(head + begin + "\n" + markdown(r) + readmeEnd + tail)
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

// A column of a table in a README is one metric of one case.
type column struct {
	head, scenario, kase string
	m                    metric
}

// The tables of a README, by the scenario whose contenders have rows.
var readmeTables = []struct {
	scenario, head string
	columns        []column
}{
	{scenarioPairs, "lock + unlock", []column{
		{"p50, 1 goroutine (us)", scenarioPairs, latencyCase(opPair, 1), mP50},
		{"pairs/s, 64 goroutines", scenarioPairs, rateCase(64), mRate},
		{"pairs/s, 512", scenarioPairs, rateCase(512), mRate},
		{"client cpu a pair, 64 (us)", scenarioPairs, rateCase(64), mClientCPU},
		{"allocations", scenarioPairs, rateCase(64), mAllocs},
		{"connections a master, 512", scenarioPairs, rateCase(512), mConnections},
		{"keys left in 10 000", scenarioPairs, rateCase(64), mLeft},
	}},
	{scenarioContention, "one name, 1 ms holds", []column{
		{"64 goroutines: of a local mutex", scenarioContention, oneProcess.String(), mOfIdeal},
		{"8 processes: of a local mutex", scenarioContention, eightPaused.String(), mOfIdeal},
		{"wait p50 (ms)", scenarioContention, eightPaused.String(), mWait50},
		{"wait p99 (ms)", scenarioContention, eightPaused.String(), mWait99},
		{"commands a hold and master", scenarioContention, eightPaused.String(), mCommands},
		{"hand-off of two processes (us)", scenarioContention, twoInTurns.String(), mHandOff},
		{"9 at one instant, first holder p99 (us)", scenarioSplit, splitCase(9), mFirst99},
	}},
}

// markdown is the report as a section of a README.
func markdown(r *report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s. %s\n", r.headline(), r.Machine.CPU)
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "\nNote: %s.\n", n)
	}
	for _, t := range readmeTables {
		rows := [][]string{{t.head}}
		for _, c := range t.columns {
			rows[0] = append(rows[0], c.head)
		}
		for _, who := range r.Figures.who(t.scenario) {
			row := []string{who}
			for _, c := range t.columns {
				row = append(row, number(r.Figures, c.scenario, c.kase, who, c.m))
			}
			rows = append(rows, row)
		}
		writeRows(&b, rows)
	}
	writeRows(&b, readmeFaults(r.Figures))
	b.WriteString("\n")
	for _, t := range r.Targets {
		if t.Met == nil || *t.Met {
			continue
		}
		fmt.Fprintf(&b, "- Not met: %s is %s, the target is %s", t.Name, t.measured(), t.Target)
		if t.Floor != nil {
			fmt.Fprintf(&b, "; it is %s", t.floor())
		}
		b.WriteString(".\n")
	}
	return b.String()
}

// writeRows writes a table, unless it has nothing but its head.
func writeRows(b *strings.Builder, rows [][]string) {
	for i, row := range rows {
		if len(rows) > 1 && i == 0 {
			fmt.Fprintf(b, "\n| %s |\n|%s\n", strings.Join(row, " | "), strings.Repeat(" --- |", len(row)))
		} else if i > 0 {
			fmt.Fprintf(b, "| %s |\n", strings.Join(row, " | "))
		}
	}
}

// number is the median of a figure, "-" where there is none.
func number(l figures, scenario, kase, who string, m metric) string {
	f := l.find(scenario, kase, who, m)
	if f == nil {
		return "-"
	}
	return fmt.Sprintf("%.*f", digits(f.Median), f.Median)
}

func readmeFaults(l figures) [][]string {
	rows := [][]string{{"masters", "median latency / all healthy", "the floor"}}
	for _, f := range everyFault() {
		kase := f.String()
		if f.kind == healthy || l.of(scenarioFaults, kase, mOfHealthy) == nil {
			continue
		}
		floor := number(l, scenarioFaults, kase, nameFloor, mOfHealthy)
		if floor == "-" { // an older run, whose floor outlived no fault: masters that were hung or dead were absent
			if f.kind != slow {
				f.kind = "absent"
			}
			floor = number(l, scenarioFaults, "floor: "+f.String(), "floor/queued", mOfHealthy)
		}
		rows = append(rows, []string{kase, number(l, scenarioFaults, kase, nameLibrary, mOfHealthy), floor})
	}
	return rows
}
