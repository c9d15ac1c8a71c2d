package main

import (
	"cmp"
	"fmt"
	"io"
)

// summaryWidth and summaryNotes limit the size of the summary, which must be readable at a glance in any terminal.
const (
	summaryWidth = 80
	summaryNotes = 3
)

// A line of the summary compares one figure of the library with the same figure of redsync and of the floor.
type line struct {
	name           string
	scenario, kase string
	m              metric
	floor          string // contender to show in the column of the floor; "" for the floor
}

var (
	lineOne   = line{"lock and unlock, us", scenarioPairs, latencyCase(opPair, 1), mP50, ""}
	lineDead  = line{"  with one dead master, us", scenarioFaults, oneDead.String(), mP50, ""}
	lineRate  = line{"locks per second, 64 callers", scenarioPairs, rateCase(64), mRate, ""}
	lineHand  = line{"hand-off between processes, us *", scenarioContention, twoInTurns.String(), mHandOff, nameIdeal}
	lineBytes = line{"bytes per name left on a master", scenarioPairs, rateCase(64), mBytes, ""}
	lineKept  = line{"  kept for at most, s", scenarioPairs, rateCase(64), mKept, ""}
)

var summaryLines = []line{lineOne, lineDead, lineRate, lineHand, lineBytes, lineKept}

// of returns the figures of the library, of redsync and of the floor for the line; each is nil if it was not
// measured.
func (l line) of(list figures) (mine, redsync, floor *figure) {
	best := func(fits func(string) bool) *figure { return list.best(l.scenario, l.kase, l.m, fits) }
	return best(only(nameLibrary)), best(anyRedsync), best(only(cmp.Or(l.floor, nameFloor)))
}

const summaryForm = "%-34s %8s %9s %7s %9s %8s\n"

// writeSummary writes the result of a run in a few lines, which compare the cost of a lock with redsync and with the
// floor. It omits lines without figures.
func writeSummary(w io.Writer, r *report) error {
	text := "\n" + verdict(r) + fmt.Sprintf("%d masters", r.Masters.N)
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
		text += "ratio: library / other; ~: not significant; *: compared with a local mutex\n"
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
		text += fmt.Sprintf("%d more notes: -v shows them\n", more)
	}
	_, err := io.WriteString(w, text)
	return err
}

// verdict returns sentences about the cost of a lock, or "" if that was not measured. If the machine was busy, the
// first line says so.
func verdict(r *report) (text string) {
	if r.Busy != "" {
		text = r.Busy + "\n"
	}
	if mine, redsync, _ := lineOne.of(r.Figures); mine != nil {
		text += fmt.Sprintf("Lock and unlock take %s us%s.\n", brief(mine), compared(mine, redsync, "that of redsync"))
	}
	if mine, redsync, _ := lineRate.of(r.Figures); mine != nil {
		text += fmt.Sprintf("64 callers complete %s locks per second%s.\n", brief(mine),
			compared(mine, redsync, "as many as with redsync"))
	}
	return text
}

// compared returns a text like ", 0.60 times that of redsync", or "" without a figure of redsync.
func compared(mine, redsync *figure, with string) string {
	if redsync == nil {
		return ""
	}
	return fmt.Sprintf(", %s times %s", times(mine, redsync), with)
}

// brief formats a median with few digits. It returns "-" if there is none.
func brief(f *figure) string {
	if f == nil {
		return "-"
	}
	return fmt.Sprintf("%.*f", min(digits(f.Median), 2), f.Median)
}

// times returns the ratio of mine to other as text. The text begins with "~" if the ratio is above 1 in some rounds
// and below 1 in others.
func times(mine, other *figure) string {
	s := ratio(mine, other)
	if s == nil {
		return "-"
	}
	return s.mark() + fmt.Sprintf("%.*f", min(digits(s.Median), 2), s.Median)
}
