package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/redlock-go/redlock/bench/internal/page"
)

// tables returns the tables of the report, in the order of measuring. There is one table for each case, with a
// column for each metric and a row for each contender.
func tables(l figures) (list []page.Table) {
	cases := map[string]figures{}
	var titles []string
	for _, f := range l {
		title := f.Scenario + ": " + f.Case
		titles, cases[title] = appendNew(titles, title), append(cases[title], f)
	}
	for _, title := range titles {
		list = append(list, tableOf(title, cases[title]))
	}
	return list
}

// tableOf returns a table of the figures of one case. It compares the contenders by the first metric for which a
// larger or a smaller value is better.
func tableOf(title string, l figures) page.Table {
	t := page.Table{Title: title, Heads: []string{""}}
	var metrics, who []string
	var chief metric
	for _, f := range l {
		if len(metrics) < len(appendNew(metrics, f.Metric)) {
			metrics, t.Heads = append(metrics, f.Metric), append(t.Heads, f.Metric+unitOf(f))
		}
		who = appendNew(who, f.Who)
		if chief.name == "" && f.Better != "" {
			chief.name = f.Metric
		}
	}
	scenario, kase := l[0].Scenario, l[0].Case
	mine := l.find(scenario, kase, nameLibrary, chief)
	if len(who) > 1 && mine != nil {
		t.Heads = append(t.Heads, "library / row ("+chief.name+")")
	}
	for _, w := range who {
		row := []string{w}
		for _, m := range metrics {
			cell := "-"
			if f := l.find(scenario, kase, w, metric{name: m}); f != nil {
				cell = f.String()
			}
			row = append(row, cell)
		}
		if v := ratio(mine, l.find(scenario, kase, w, chief)); v != nil && w != nameLibrary {
			row = append(row, v.asRatio())
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func unitOf(f *figure) string {
	if f.Unit == "" || f.Unit == "1" || strings.Contains(f.Metric, "/s") {
		return ""
	}
	return " " + f.Unit
}

// writeTables writes tables of all figures.
func writeTables(w io.Writer, r *report) error {
	fmt.Fprintln(w, r.headline())
	for _, n := range r.Notes {
		fmt.Fprintf(w, "note: %s\n", n)
	}
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, t := range tables(r.Figures) {
		fmt.Fprintf(out, "\n%s%s\n", t.Title, strings.Join(t.Heads, "\t"))
		for _, row := range t.Rows {
			fmt.Fprintf(out, "  %s\n", strings.Join(row, "\t"))
		}
	}
	return out.Flush()
}

// writeTargets writes the targets that this run has measured, then the cause of each target that is missed.
func writeTargets(w io.Writer, list []target) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	open := 0
	fmt.Fprintf(out, "\ntargets\ttarget\tmeasured\t\tfor comparison\n")
	for _, t := range list {
		if t.Met == nil {
			open++
		} else {
			fmt.Fprintf(out, "  %s\t%s\t%s\t%s\t%s\n", t.Name, t.Target, t.measured(), t.verdict(), t.floor())
		}
	}
	if open > 0 {
		fmt.Fprintf(out, "  %d other targets: not measured by this run\n", open)
	}
	if err := out.Flush(); err != nil {
		return err
	}
	for _, t := range list {
		if t.Met != nil && !*t.Met && t.Why != "" {
			if _, err := fmt.Fprintf(w, "  %s: %s\n", t.Name, t.Why); err != nil {
				return err
			}
		}
	}
	return nil
}
