package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"golang.org/x/perf/benchmath"
)

// fewestRounds is the minimum number of rounds of each report for significant differences. With three rounds each,
// even the clearest difference occurs by chance with a probability of 10 %.
const fewestRounds = 4

// writeComparison lists the figures of the new report that differ significantly from those of the old report,
// according to the Mann-Whitney U test at a level of 5 %, and counts the others.
func writeComparison(w io.Writer, old, latest *report) error {
	fmt.Fprintln(w)
	for i, r := range []*report{old, latest} {
		fmt.Fprintf(w, "%s: %s, %s, %d rounds of %v\n", []string{"old", "new"}[i],
			r.Time.Format("2006-01-02 15:04"), r.Build, r.Parameters.Rounds, r.Parameters.Duration)
	}
	if old.Machine != latest.Machine || old.Masters != latest.Masters {
		fmt.Fprintf(w, "note: the machines or masters differ: old %v, %v; new %v, %v\n",
			old.Machine, old.Masters, latest.Machine, latest.Masters)
	}
	if min(old.Parameters.Rounds, latest.Parameters.Rounds) < fewestRounds {
		fmt.Fprintf(w, "note: with fewer than %d rounds in one of the runs, differences may be due to chance\n", fewestRounds)
	}
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(out, "\ncase\tcontender\tmetric\told\tnew\tchange\t\n")
	same, alone := 0, 0
	t := benchmath.DefaultThresholds
	for _, f := range latest.Figures {
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
	_, err := fmt.Fprintf(w, "\n%d figures do not differ significantly; %d are only in the new run\n", same, alone)
	return err
}
