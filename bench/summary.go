package main

import (
	"fmt"
	"io"
)

// summaryWidth and summaryNotes bound the summary: it is to be read at a glance, in any terminal.
const (
	summaryWidth = 80
	summaryNotes = 4
)

// A line of the summary is one figure of the library beside that of redsync and that of the floor.
type line struct {
	name           string
	scenario, kase string
	m              metric
	floor          string // whose figure stands beside it in place of the floor's
}

var summaryLines = []line{
	{name: "one lock, taken and released, us", scenario: scenarioPairs, kase: latencyCase(opPair, 1), m: mP50},
	{name: "  the same, one master dead, us", scenario: scenarioFaults, kase: oneDead.String(), m: mP50},
	{name: "locks a second, 64 callers", scenario: scenarioPairs, kase: rateCase(64), m: mRate},
	{
		name: "hand-over of two programs, us *", scenario: scenarioContention, kase: twoInTurns.String(), m: mHandOff,
		floor: nameIdeal,
	},
	{name: "bytes left on a master", scenario: scenarioPairs, kase: rateCase(64), m: mBytesAll},
	{name: "  for at most, s", scenario: scenarioPairs, kase: rateCase(64), m: mKept},
}

// writeSummary writes what a run comes to in a few lines: what a lock costs beside redsync and the floor. Lines that
// the run tells nothing of are left out.
func (r *report) writeSummary(w io.Writer) error {
	text := fmt.Sprintf("\n%d masters", r.Masters.N)
	if r.Masters.Version != "" {
		text += " (" + r.Masters.Version + ")"
	}
	text += fmt.Sprintf(", %d processors, %d rounds of %v\n", r.Machine.CPUs, r.Parameters.Rounds, r.Parameters.Duration)
	rows := ""
	for _, l := range summaryLines {
		rows += r.summaryLine(l)
	}
	if rows != "" {
		text += fmt.Sprintf(summaryForm, "", nameLibrary, "redsync", "ratio", nameFloor, "ratio") + rows
		text += "ratio: the library's over it; ~: the rounds disagree; * beside a local mutex\n"
	}
	notes := r.Notes
	if len(notes) > summaryNotes {
		notes = notes[:summaryNotes-1]
	}
	for _, n := range notes {
		text += clipped("note: "+n) + "\n"
	}
	if more := len(r.Notes) - len(notes); more > 0 {
		text += fmt.Sprintf("and %d more notes: -v shows them\n", more)
	}
	_, err := io.WriteString(w, text)
	return err
}

const summaryForm = "%-34s %8s %9s %7s %9s %8s\n"

// summaryLine is "" where the library has no such figure.
func (r *report) summaryLine(l line) string {
	mine := r.figures.find(l.scenario, l.kase, nameLibrary, l.m.name)
	if mine == nil {
		return ""
	}
	if l.floor == "" {
		l.floor = nameFloor
	}
	redsync, floor := r.best(l.scenario, l.kase, l.m, "redsync/", nil), r.best(l.scenario, l.kase, l.m, l.floor, nil)
	return fmt.Sprintf(summaryForm, l.name, brief(mine),
		brief(redsync), times(mine, redsync), brief(floor), times(mine, floor))
}

// brief is a median as short as it can be, "-" where there is none.
func brief(f *figure) string {
	if f == nil {
		return "-"
	}
	return fmt.Sprintf("%.*f", min(digits(f.Median), 2), f.Median)
}

// times is how many times the other figure mine is, with "~" where the rounds do not agree on which is larger.
func times(mine, other *figure) string {
	s := ratio(mine, other)
	if s == nil {
		return "-"
	}
	text := fmt.Sprintf("%.*f", min(digits(s.Median), 2), s.Median)
	if s.Median < 1 {
		text = fmt.Sprintf("%.2f", s.Median)
	}
	if void(s) {
		text = "~" + text
	}
	return text
}

// clipped is a text that fits into a line of the summary.
func clipped(text string) string {
	runes := []rune(text)
	if len(runes) > summaryWidth {
		return string(runes[:summaryWidth-3]) + "..."
	}
	return text
}
