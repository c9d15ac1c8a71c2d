package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"golang.org/x/perf/benchmath"
)

// fewestRounds is how many rounds each report needs for a significant difference. With three rounds each, even the
// clearest difference occurs by chance with a probability of one in ten.
const fewestRounds = 4

// writeComparison lists the figures of the new report that differ significantly from those of the old report,
// according to the Mann-Whitney U test at 5 %, and counts the others.
func writeComparison(w io.Writer, old, now *report) error {
	fmt.Fprintln(w)
	for i, r := range []*report{old, now} {
		fmt.Fprintf(w, "%s: %s, %s, %d rounds of %v\n", []string{"old", "new"}[i],
			r.Time.Format("2006-01-02 15:04"), r.Build, r.Parameters.Rounds, r.Parameters.Duration)
	}
	if old.Machine != now.Machine || old.Masters != now.Masters {
		fmt.Fprintf(w, "note: they were measured on different machines or masters: %v, %v and %v, %v\n",
			old.Machine, old.Masters, now.Machine, now.Masters)
	}
	if min(old.Parameters.Rounds, now.Parameters.Rounds) < fewestRounds {
		fmt.Fprintf(w, "note: with fewer than %d rounds on either side differences may be chance\n", fewestRounds)
	}
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(out, "\ncase\tcontender\tmetric\told\tnew\tchange\t\n")
	same, alone := 0, 0
	t := benchmath.DefaultThresholds
	for _, f := range now.Figures {
		before := old.Figures.find(f.Scenario, f.Case, f.Who, metric{name: f.Metric})
		if before == nil {
			alone++
			continue
		}
		c := benchmath.AssumeNothing.Compare(benchmath.NewSample(before.Rounds, &t), benchmath.NewSample(f.Rounds, &t))
		if c.P > c.Alpha {
			same++
			continue
		}
		judgement := "worse"
		switch {
		case f.Better == "" || f.Median == before.Median:
			judgement = ""
		case (f.Median < before.Median) == (f.Better == less):
			judgement = "better"
		}
		fmt.Fprintf(out, "%s: %s\t%s\t%s %s\t%v\t%v\t%s (p=%.3f)\t%s\n", f.Scenario, f.Case, f.Who, f.Metric, f.Unit,
			before, f, c.FormatDelta(before.Median, f.Median), c.P, judgement)
	}
	if err := out.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%d figures do not differ; %d are in the new run alone\n", same, alone)
	return err
}
