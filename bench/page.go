package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"github.com/redlock-go/redlock/bench/internal/page"
)

// writePage writes the report as one HTML page. The page contains the targets of this project only if check is set.
func writePage(w io.Writer, r *report, check bool) error {
	p := page.Page{
		Title:    pageTitle(r),
		Warning:  r.Busy,
		Sentence: sentence(r),
		Setup: fmt.Sprintf("%s. %s. Measured %s, commit %v.", r.headline(), r.Machine.CPU,
			r.Time.Format("2006-01-02 15:04 MST"), r.Build),
		Notes:  r.Notes,
		Tables: tables(r.Figures),
	}
	for _, n := range []struct {
		line
		what string
	}{
		{lineOne, "How long does it take to lock and unlock a name?"},
		{lineDead, "And while one master is dead?"},
		{lineRate, "How many locks do 64 callers of one process complete?"},
		{lineHand, "How soon does a waiting process acquire a released lock?"},
	} {
		if mine, redsync, _ := n.of(r.Figures); mine != nil {
			value, unit := shown(mine)
			number := page.Number{Value: value, Unit: unit, What: n.what}
			if redsync != nil {
				value, unit = shown(redsync)
				number.Versus = fmt.Sprintf("redsync: %s %s", value, unit)
			}
			p.Numbers = append(p.Numbers, number)
		}
	}
	p.Pictures = []page.Picture{latencyPicture(r.Figures), ratePicture(r.Figures), waitsPicture(r), faultsPicture(r)}
	if check {
		p.Targets = pageTargets(r)
	}
	return p.Write(w)
}

// pageTargets returns the targets that were measured.
func pageTargets(r *report) (list []page.Target) {
	bound := strings.NewReplacer("<=", "at most", ">=", "at least")
	for _, t := range r.Targets {
		if t.Met == nil {
			continue
		}
		class := "missed"
		if *t.Met && t.Void {
			class = "unsure"
		} else if *t.Met {
			class = "met"
		}
		list = append(list, page.Target{
			Class: class, Name: t.Name, Text: t.measured() + ", the target is " + bound.Replace(t.Target),
			Reason: strings.TrimSpace(t.reason() + " " + cause(r, t.Why)),
		})
	}
	return list
}

// cause returns a measurement that shows why a target is missed, or "" if there is none.
func cause(r *report, why string) string {
	l, many := r.Figures, rateCase(64)
	compare := func(m metric, what, than string) string {
		mine, other := l.median(scenarioPairs, many, nameLibrary, m), l.median(scenarioPairs, many, than, m)
		if mine == nil || other == nil {
			return ""
		}
		return fmt.Sprintf("Measured: %s %.3g, and %.3g with %s.", what, *mine, *other, than)
	}
	switch why {
	case whySafety:
		return compare(mServerCPU, "the servers' processor time for a pair, in us, is", nameFloor)
	case whyClient:
		return compare(mClientCPU, "the client's processor time for a pair, in us, is", nameScripts)
	case whyBoxed:
		return compare(mAllocs, "the allocations for a pair are", nameScripts)
	case whyTurns, whyInstant, whyOneLess:
		if r.Machine.CPUs > 0 {
			return fmt.Sprintf("Measured: %d processors for %d servers and their clients.", r.Machine.CPUs, r.Masters.N)
		}
	}
	return ""
}

// pageTitle returns a sentence with the main result of the run.
func pageTitle(r *report) string {
	mine, redsync, _ := lineOne.of(r.Figures)
	if mine == nil {
		return fmt.Sprintf("The cost of a lock over %d masters", r.Masters.N)
	}
	value, unit := shown(mine)
	s := fmt.Sprintf("Locking and unlocking a name takes %s %s", value, unit)
	if redsync != nil {
		value, unit = shown(redsync)
		s += fmt.Sprintf(", %s redsync's %s %s", inWords(mine, redsync), value, unit)
	}
	if dead, _, _ := lineDead.of(r.Figures); dead != nil {
		value, unit = shown(dead)
		s += fmt.Sprintf(", and %s %s while a master is dead", value, unit)
	}
	return s
}

// sentence returns a sentence that compares the cost of a lock with that of a lock that is not safe.
func sentence(r *report) string {
	mine, _, floor := lineOne.of(r.Figures)
	if mine == nil || floor == nil {
		return fmt.Sprintf("Measured over %d masters.", r.Masters.N)
	}
	value, unit := shown(floor)
	return fmt.Sprintf("A minimal lock over %d masters, which is not safe, takes %s %s. The difference is the "+
		"price of fencing tokens, protection after restarts, and queues.", r.Masters.N, value, unit)
}

// inWords returns the relation between the times mine and other, in words.
func inWords(mine, other *figure) string {
	switch s := ratio(mine, other); {
	case s == nil || s.void():
		return "about as long as"
	case s.Median < 1:
		return "less than"
	}
	return "more than"
}

// shown formats a figure for readers: times in milliseconds, rates as whole numbers.
func shown(f *figure) (value, unit string) {
	switch f.Unit {
	case "us":
		return strconv.FormatFloat(rounded(f.Median/1000, 2), 'f', -1, 64), "ms"
	case "1/s":
		text := strconv.FormatFloat(rounded(f.Median, 3), 'f', 0, 64)
		if n := len(text) - 3; n > 0 {
			text = text[:n] + "\u00a0" + text[n:]
		}
		return text, "a second"
	}
	return brief(f), f.Unit
}

// pageLine returns a line in the colour that the contender has in every plot.
func pageLine(who string, points plotter.XYs) page.Line {
	i := slices.IndexFunc(entrants, func(e entrant) bool { return e.name == who })
	if i < 0 {
		i = len(entrants)
	}
	name := strings.NewReplacer("redsync/redigo", "redsync", "redsync/", "redsync, ").Replace(who)
	return page.Line{Who: name, Colour: i, Points: points}
}

func latencyPicture(l figures) page.Picture {
	p := page.Picture{
		Title: "How long does a lock take?", X: "ms", LogX: true, Across: 1,
		Text: "The points of each line are the median, the 90th percentile and the 99th percentile.",
	}
	for _, n := range goroutinesIn(l) {
		panel := page.Panel{Title: goroutinesCase(n), Rows: true}
		for _, who := range slices.Backward(l.who(scenarioPairs)) { // so that the first contender is on top
			var points plotter.XYs
			for _, m := range []metric{mP50, mP90, mP99} {
				if v := l.median(scenarioPairs, latencyCase(opPair, n), who, m); v != nil {
					points = append(points, plotter.XY{X: *v / 1000, Y: float64(len(panel.Lines))})
				}
			}
			if len(points) > 0 {
				panel.Lines = append(panel.Lines, pageLine(who, points))
			}
		}
		p.Panels = append(p.Panels, panel)
	}
	return p
}

// goroutinesIn returns the goroutine counts for which pairs were measured.
func goroutinesIn(l figures) (list []int) {
	for _, f := range l {
		var n int
		_, err := fmt.Sscanf(f.Case, "rate, %d goroutine", &n)
		if err == nil && f.Scenario == scenarioPairs && !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	return list
}

func ratePicture(l figures) page.Picture {
	p := page.Picture{
		Title: "How many locks a second?", X: "goroutines", Y: "locks a second", LogX: true, Across: 1,
		Text: "All goroutines run in one process. Each locks and unlocks its own names.",
	}
	var panel page.Panel
	for _, who := range l.who(scenarioPairs) {
		var points plotter.XYs
		for _, n := range goroutinesIn(l) {
			if v := l.median(scenarioPairs, rateCase(n), who, mRate); v != nil {
				points = append(points, plotter.XY{X: float64(n), Y: *v})
			}
		}
		if len(points) > 0 {
			panel.Lines = append(panel.Lines, pageLine(who, points))
		}
	}
	for _, n := range goroutinesIn(l) {
		p.XTicks = append(p.XTicks, plot.Tick{Value: float64(n), Label: strconv.Itoa(n)})
	}
	p.Panels = []page.Panel{panel}
	return p
}

func waitsPicture(r *report) page.Picture {
	p := page.Picture{
		Title: "How long do processes wait for the same name?", X: "share of waits", Y: "ms at most", LogY: true, Across: 2,
		Text: "2, 8 or 20 processes lock one name. The lines show percentiles of their waits.",
	}
	nines := func(share float64) float64 { return -math.Log10(1 - share/100) } // each further nine has the same width
	for _, share := range []float64{50, 90, 99, 99.9} {
		p.XTicks = append(p.XTicks, plot.Tick{Value: nines(share), Label: fmt.Sprintf("%g %%", share)})
	}
	for _, s := range []shape{eightPaused, twoInTurns, twentyPlain, twentyFair} {
		title := fmt.Sprintf("%d processes, %v hold, %v pause", s.processes, s.hold, s.pause)
		if s.fair {
			title += ", fair"
		}
		panel := page.Panel{Title: title, Lines: curveLines(r, curveWaits, s.String(), nines)}
		p.Panels = append(p.Panels, panel)
	}
	return p
}

func faultsPicture(r *report) page.Picture {
	p := page.Picture{
		Title: "What happens when masters fail?", X: "ms", Y: "ms per pair", LogY: true, Across: 2,
		Text: "One caller locks and unlocks while masters fail. The lines show how long a pair took at each time. " +
			"redsync is omitted if a master hangs, because it would wait until the master resumes.",
	}
	half := millis(r.Parameters.Duration / 2)
	for i, label := range []string{"fault", fmt.Sprint(half), fmt.Sprint(2 * half)} {
		p.XTicks = append(p.XTicks, plot.Tick{Value: float64(i) * half, Label: label})
	}
	for _, f := range nearFaults(0) {
		same := func(x float64) float64 { return x }
		p.Panels = append(p.Panels, page.Panel{Title: f.String(), Lines: curveLines(r, curveFault, f.String(), same)})
	}
	return p
}

// curveLines returns the curves of one kind and case. Of redsync's variants it returns only the first, so that all
// lines can be distinguished.
func curveLines(r *report, kind, kase string, x func(float64) float64) (list []page.Line) {
	for _, c := range r.Curves {
		if c.Kind != kind || c.Case != kase || anyRedsync(c.Who) && c.Who != nameRedsync {
			continue
		}
		var points plotter.XYs
		for i := range c.X {
			if c.Y[i] > 0 {
				points = append(points, plotter.XY{X: x(c.X[i]), Y: c.Y[i]})
			}
		}
		if len(points) > 0 {
			list = append(list, pageLine(c.Who, points))
		}
	}
	return list
}
