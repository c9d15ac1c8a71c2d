package main

import (
	_ "embed" // the page's template is a file of its own
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// A page is what the template shows.
type page struct {
	Headline string
	Report   *report
	Commit   string
	Plots    []template.HTML
	Targets  []target
	Tables   []pageTable
	Does     []entrant
}

// Name and Text are what the template says of a contender.
func (e entrant) Name() string { return e.name }

// Text is what the contender does beyond, or short of, the others.
func (e entrant) Text() string { return e.does }

// Verdict and Value are what the template says of a target.
func (t target) Verdict() string { return t.verdict() }

// Value is what was measured.
func (t target) Value() string { return t.measured() }

// Class is how the row is coloured.
func (t target) Class() string {
	switch {
	case *t.Met && !t.Void:
		return "met"
	case *t.Met:
		return "unsure"
	}
	return "missed"
}

type pageTable struct {
	Title string
	Heads []string
	Rows  [][]string
}

// writePage writes the report as one page that loads nothing from anywhere.
func (r *report) writePage(w io.Writer) error {
	p := page{Headline: r.headline(), Report: r, Commit: commitOf(r)}
	for _, t := range r.Targets {
		if t.Met != nil {
			p.Targets = append(p.Targets, t)
		}
	}
	for _, e := range entrants {
		if e.does != "" && slices.Contains(r.Parameters.Contenders, e.name) {
			p.Does = append(p.Does, e)
		}
	}
	var err error
	if p.Plots, err = r.plots(); err != nil {
		return err
	}
	for _, c := range r.cases() {
		p.Tables = append(p.Tables, c.page())
	}
	if err := pageTemplate.Execute(w, p); err != nil {
		return fmt.Errorf("bench: page: %w", err)
	}
	return nil
}

// page is the table as a page shows it.
func (c *caseTable) page() pageTable {
	t := pageTable{Title: c.scenario + ": " + c.name, Heads: []string{""}}
	for _, m := range c.metrics {
		t.Heads = append(t.Heads, m+c.unit(m))
	}
	t.Heads = append(t.Heads, "library / it ("+c.chief()+")")
	for _, who := range c.rows {
		row := []string{who}
		for _, m := range c.metrics {
			row = append(row, c.cell(who, m))
		}
		ratio := ""
		if v := c.versus(who); v != nil {
			ratio = showRatio(v)
		}
		t.Rows = append(t.Rows, append(row, ratio))
	}
	return t
}

// plots draws what the report has: shares of latencies, rates, contention, faults over time.
func (r *report) plots() (list []template.HTML, err error) {
	add := func(html template.HTML, failed error) {
		if failed != nil && err == nil {
			err = failed
		}
		list = append(list, html)
	}
	for _, kase := range r.curveCases(curveCDF) {
		title := "share of pairs that took at most so long: " + kase
		add(linesPlot(title, "us", "share", r.curves(curveCDF, kase), true, false))
	}
	for _, c := range r.cases() {
		switch {
		case c.scenario == scenarioPairs && strings.HasPrefix(c.name, "rate"):
			add(barsPlot("pairs a second: "+strings.TrimPrefix(c.name, "rate, "), "1/s", c.column(mRate)))
		case c.scenario == scenarioContention && c.has(mHolds):
			add(barsPlot("holds a second: "+c.name, "1/s", c.column(mHolds)))
		case c.scenario == scenarioSplit && c.has(mFirst99):
			add(barsPlot("until somebody has it, p99: "+c.name, "us", c.column(mFirst99)))
		}
	}
	return list, err
}

func (c *caseTable) has(m metric) bool { return len(c.column(m)) > 0 }

// column is one metric of every contender that has it.
func (c *caseTable) column(m metric) (list []*figure) {
	for _, who := range c.rows {
		if f := c.figures[[2]string{who, m.name}]; f != nil {
			list = append(list, f)
		}
	}
	return list
}
