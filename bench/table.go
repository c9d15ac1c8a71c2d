package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// A caseTable is what was measured in one case: a row for each contender, a column for each metric.
type caseTable struct {
	scenario, name string
	metrics        []string
	rows           []string
	figures        map[[2]string]*figure // by row and metric
}

// cases are the tables of the report, in the order of measuring.
func (r *report) cases() (list []*caseTable) {
	index := map[[2]string]*caseTable{}
	for _, f := range r.Figures {
		key := [2]string{f.Scenario, f.Case}
		c := index[key]
		if c == nil {
			c = &caseTable{scenario: f.Scenario, name: f.Case, figures: map[[2]string]*figure{}}
			index[key] = c
			list = append(list, c)
		}
		c.add(f)
	}
	return list
}

func (c *caseTable) add(f *figure) {
	c.figures[[2]string{f.Who, f.Metric}] = f
	c.metrics = appendNew(c.metrics, f.Metric)
	c.rows = appendNew(c.rows, f.Who)
}

func appendNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// chief is the metric by which the contenders of a case are compared: the first that says which side is better.
func (c *caseTable) chief() string {
	for _, m := range c.metrics {
		for _, who := range c.rows {
			if f := c.figures[[2]string{who, m}]; f != nil && f.Better != "" {
				return m
			}
		}
	}
	return ""
}

// versus is the library's chief figure over that of who; nil where there is none.
func (c *caseTable) versus(who string) *spread {
	m := c.chief()
	if who == nameLibrary {
		return nil
	}
	return ratio(c.figures[[2]string{nameLibrary, m}], c.figures[[2]string{who, m}])
}

func (c *caseTable) write(t io.Writer) {
	fmt.Fprintf(t, "\n%s: %s", c.scenario, c.name)
	for _, m := range c.metrics {
		fmt.Fprintf(t, "\t%s%s", m, c.unit(m))
	}
	if len(c.rows) > 1 && c.figures[[2]string{nameLibrary, c.chief()}] != nil {
		fmt.Fprintf(t, "\tlibrary / it (%s)", c.chief())
	}
	fmt.Fprintln(t)
	for _, who := range c.rows {
		fmt.Fprintf(t, "  %s", who)
		for _, m := range c.metrics {
			fmt.Fprintf(t, "\t%s", c.cell(who, m))
		}
		if v := c.versus(who); v != nil {
			fmt.Fprintf(t, "\t%s", showRatio(v))
		}
		fmt.Fprintln(t)
	}
}

func (c *caseTable) unit(m string) string {
	for _, who := range c.rows {
		if f := c.figures[[2]string{who, m}]; f != nil && f.Unit != "" && f.Unit != "1" && !strings.Contains(m, "/s") {
			return " " + f.Unit
		}
	}
	return ""
}

func (c *caseTable) cell(who, m string) string {
	f := c.figures[[2]string{who, m}]
	if f == nil {
		return "-"
	}
	return show(&f.spread)
}

// show writes a spread with as many digits as its size needs.
func show(s *spread) string {
	if s == nil {
		return "-"
	}
	d := digits(s.Median)
	if len(s.Rounds) < 2 {
		return fmt.Sprintf("%.*f", d, s.Median)
	}
	return fmt.Sprintf("%.*f (%.*f-%.*f)", d, s.Median, d, s.Min, d, s.Max)
}

// showRatio writes a ratio; with "~" before it where the rounds disagree on which side is ahead.
func showRatio(s *spread) string {
	text := fmt.Sprintf("%.2f (%.2f-%.2f)", s.Median, s.Min, s.Max)
	if void(s) {
		return "~" + text
	}
	return text
}

func digits(v float64) int {
	switch v = math.Abs(v); {
	case v == math.Trunc(v) || v >= 100:
		return 0
	case v >= 10:
		return 1
	case v >= 1:
		return 2
	}
	return 3
}
