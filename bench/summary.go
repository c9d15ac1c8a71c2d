package main

import (
	"cmp"
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

var (
	lineOne   = line{"one lock, taken and released, us", scenarioPairs, latencyCase(opPair, 1), mP50, ""}
	lineDead  = line{"  the same, one master dead, us", scenarioFaults, oneDead.String(), mP50, ""}
	lineRate  = line{"locks a second, 64 callers", scenarioPairs, rateCase(64), mRate, ""}
	lineHand  = line{"hand-over of two programs, us *", scenarioContention, twoInTurns.String(), mHandOff, nameIdeal}
	lineBytes = line{"bytes left on a master", scenarioPairs, rateCase(64), mBytesAll, ""}
	lineKept  = line{"  for at most, s", scenarioPairs, rateCase(64), mKept, ""}
)

var summaryLines = []line{lineOne, lineDead, lineRate, lineHand, lineBytes, lineKept}

// of are the figures of the line; nil where they were not measured.
func (l line) of(list figures) (mine, redsync, floor *figure) {
	best := func(fits func(string) bool) *figure { return list.best(l.scenario, l.kase, l.m, fits) }
	return best(only(nameLibrary)), best(anyRedsync), best(only(cmp.Or(l.floor, nameFloor)))
}

const summaryForm = "%-34s %8s %9s %7s %9s %8s\n"

// writeSummary writes what a run comes to in a few lines: what a lock costs beside redsync and the floor. Lines that
// the run tells nothing of are left out.
func writeSummary(w io.Writer, r *report) error {
	text := fmt.Sprintf("\n%d masters", r.Masters.N)
	if r.Masters.Version != "" {
		text += " (" + r.Masters.Version + ")"
	}
	text += fmt.Sprintf(", %d processors, %d rounds of %v\n", r.Machine.CPUs, r.Parameters.Rounds, r.Parameters.Duration)
	rows := ""
	for _, l := range summaryLines {
		if mine, redsync, floor := l.of(r.Figures); mine != nil {
			rows += fmt.Sprintf(summaryForm, l.name, brief(mine),
				brief(redsync), times(mine, redsync), brief(floor), times(mine, floor))
		}
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
		if runes := []rune("note: " + n); len(runes) > summaryWidth {
			text += string(runes[:summaryWidth-3]) + "...\n"
		} else {
			text += string(runes) + "\n"
		}
	}
	if more := len(r.Notes) - len(notes); more > 0 {
		text += fmt.Sprintf("and %d more notes: -v shows them\n", more)
	}
	_, err := io.WriteString(w, text)
	return err
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
	return s.mark() + fmt.Sprintf("%.*f", min(digits(s.Median), 2), s.Median)
}
