package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"golang.org/x/perf/benchmath"
)

// fewestRounds is how many rounds each side needs for a difference to be told from chance: with three and three even
// the clearest has a probability of one in ten.
const fewestRounds = 4

// writeComparison writes which figures of the new report differ from those of the old one by more than chance would
// have it, by the U test of Mann and Whitney at 5 %, and how many do not.
func writeComparison(w io.Writer, old, now *report) error {
	fmt.Fprintf(w, "\nold: %s, %s, %d rounds of %v\nnew: %s, %s, %d rounds of %v\n",
		old.Time.Format("2006-01-02 15:04"), commitOf(old), old.Parameters.Rounds, old.Parameters.Duration,
		now.Time.Format("2006-01-02 15:04"), commitOf(now), now.Parameters.Rounds, now.Parameters.Duration)
	if old.Machine != now.Machine || old.Masters != now.Masters {
		fmt.Fprintf(w, "note: they were measured on different machines or masters: %v, %v and %v, %v\n",
			old.Machine, old.Masters, now.Machine, now.Masters)
	}
	if min(old.Parameters.Rounds, now.Parameters.Rounds) < fewestRounds {
		fmt.Fprintf(w, "note: with fewer than %d rounds on either side no difference can be told from chance\n", fewestRounds)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\ncase\tcontender\tmetric\told\tnew\tchange\t\n")
	same, alone := 0, 0
	for _, f := range now.Figures {
		before := old.figures.find(f.Scenario, f.Case, f.Who, f.Metric)
		if before == nil {
			alone++
			continue
		}
		c := compare(before, f)
		if c.P > c.Alpha {
			same++
			continue
		}
		fmt.Fprintf(t, "%s: %s\t%s\t%s %s\t%s\t%s\t%s (p=%.3f)\t%s\n", f.Scenario, f.Case, f.Who, f.Metric, f.Unit,
			show(&before.spread), show(&f.spread), c.FormatDelta(before.Median, f.Median), c.P, judgement(before, f))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%d figures do not differ; %d are in the new run alone\n", same, alone)
	return err
}

func compare(old, now *figure) benchmath.Comparison {
	t := benchmath.DefaultThresholds
	return benchmath.AssumeNothing.Compare(benchmath.NewSample(old.Rounds, &t), benchmath.NewSample(now.Rounds, &t))
}

// judgement says whether a change is for the better.
func judgement(old, now *figure) string {
	switch {
	case now.Better == "" || now.Median == old.Median:
		return ""
	case (now.Median < old.Median) == (now.Better == less):
		return "better"
	}
	return "worse"
}

func commitOf(r *report) string {
	if r.Build.Commit == "" {
		return "commit unknown"
	}
	c := r.Build.Commit[:min(len(r.Build.Commit), 12)]
	if r.Build.Modified {
		c += " with changes"
	}
	return c
}
