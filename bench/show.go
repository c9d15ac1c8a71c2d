package main

import (
	"bytes"
	_ "embed" // for the template of the page
	"errors"
	"fmt"
	"html/template"
	"image/color"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// writeTables writes a table for each case, with a column for each contender and a row for the median of each metric.
// The last row compares the contenders by the first metric.
func (r *report) writeTables(w io.Writer) {
	var places []place // without a contender
	for _, f := range r.Figures {
		places = appendNew(places, place{f.Scenario, f.Case, ""})
	}
	for _, at := range places {
		var who []string
		var metrics []metric
		for _, f := range r.Figures {
			if f.Scenario == at.Scenario && f.Case == at.Case {
				who, metrics = appendNew(who, f.Who), appendNew(metrics, f.metric)
			}
		}
		fmt.Fprintf(w, "\n%s: %s\n\t%s\t\n", at.Scenario, at.Case, strings.Join(who, "\t"))
		row := func(label string, value func(who string) string) {
			fmt.Fprint(w, label)
			for _, one := range who {
				fmt.Fprint(w, "\t", value(one))
			}
			fmt.Fprint(w, "\t\n")
		}
		find := func(who string, m metric) *figure { return r.find(place{at.Scenario, at.Case, who}, m) }
		for _, m := range metrics {
			label := strings.TrimSuffix(m.Metric+", "+m.Unit, ", ")
			row(label, func(who string) string { return number(find(who, m)) })
		}
		row("library / other, "+metrics[0].Metric, func(who string) string {
			return ratio(find(nameLibrary, metrics[0]), find(who, metrics[0])).String()
		})
	}
}

func appendNew[T comparable](list []T, s T) []T {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// number formats a median with three significant digits, and without an exponent.
func number(f *figure) string {
	if f == nil {
		return "-"
	} else if f.Median >= 100 {
		return fmt.Sprintf("%.0f", f.Median)
	}
	return fmt.Sprintf("%.3g", f.Median)
}

// writeText writes the tables, the targets and the verdict.
func (r *report) writeText(w io.Writer, targets []target) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	r.writeTables(out)
	fmt.Fprintln(out)
	for _, t := range targets {
		fmt.Fprintf(out, "%v\n", t)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(out, "note: %s\n", n)
	}
	fmt.Fprintf(out, "\n%d masters (%s), %s; medians of %d rounds of %v\n%s\n%s", r.Masters, r.Version, r.Machine,
		r.Rounds, r.Duration, r.Busy, r.verdict())
	return out.Flush()
}

// A picture is a plot with a line for each contender. Its points are the medians of one metric in several cases, or of
// several metrics in one case.
type picture struct {
	file, title string
	x, y        string
	scale       float64 // factor of the values
	points      []point
}

type point struct {
	label string
	at    place // without a contender
	m     metric
}

// pictures lists the plots of the three questions.
func (r *report) pictures() []picture {
	cost := picture{"cost", "One caller locks and unlocks a free name", "percentile", "ms", 1e-3, nil}
	wait := picture{"contention", "Waits: " + eight.String(), "percentile", "ms", 1e-3, nil}
	for _, q := range percentiles {
		cost.points = append(cost.points, point{q.m.Metric, place{scenarioCost, goroutinesCase(1), ""}, q.m})
		wait.points = append(wait.points, point{q.m.Metric, place{scenarioLoad, eight.String(), ""}, q.wait()})
	}
	load := picture{"load", "Each goroutine locks and unlocks names of its own", "goroutines", "pairs/s", 1,
		[]point{{"1", place{scenarioCost, goroutinesCase(1), ""}, mRate}}}
	for _, f := range r.Figures {
		if f.Scenario == scenarioLoad && f.Metric == mRate.Metric {
			n := strings.TrimSuffix(f.Case, " goroutines")
			load.points = appendNew(load.points, point{n, place{scenarioLoad, f.Case, ""}, mRate})
		}
	}
	broken := picture{"faults", "One caller locks and unlocks a free name", "masters", "ms (median)", 1e-3, nil}
	for _, f := range faults {
		broken.points = append(broken.points, point{f.String(), place{scenarioFaults, f.String(), ""}, mP50})
	}
	return []picture{cost, load, wait, broken}
}

// svg returns the picture as an SVG document with the legend below the plot, or nil if nothing of it was measured.
func (r *report) svg(p picture) ([]byte, error) {
	q, legend := plot.New(), plot.NewLegend()
	q.Title.Text, q.X.Label.Text, q.Y.Label.Text = p.title, p.x, p.y
	q.Y.Scale, q.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	q.Add(plotter.NewGrid())
	const width, height, entry = vg.Length(520), vg.Length(300), vg.Length(14)
	below := vg.Length(0)
	for i, who := range names(entrants) {
		var line plotter.XYs
		for x, one := range p.points {
			if f := r.find(place{one.at.Scenario, one.at.Case, who}, one.m); f != nil && f.Median > 0 {
				line = append(line, plotter.XY{X: float64(x), Y: f.Median * p.scale})
			}
		}
		if line == nil {
			continue
		}
		drawn, points, err := plotter.NewLinePoints(line)
		if err != nil {
			return nil, err
		}
		colours := plotutil.DarkColors
		drawn.Color, points.Color = colours[i%len(colours)], colours[i%len(colours)]
		points.Shape, drawn.Dashes = plotutil.Shape(i), plotutil.Dashes(i/len(colours))
		if who == nameLibrary {
			drawn.Width = 3
		}
		q.Add(drawn, points)
		legend.Add(who, drawn, points)
		below += entry
	}
	if below == 0 {
		return nil, nil
	}
	var labels []string
	for _, one := range p.points {
		labels = append(labels, one.label)
	}
	q.NominalX(labels...)
	legend.Left, legend.YOffs, legend.XOffs = true, 4, 40
	canvas := vgsvg.New(width, height+below)
	all := draw.New(canvas)
	canvas.SetColor(color.White)
	canvas.Fill(all.Rectangle.Path())
	q.Draw(draw.Crop(all, 4, -16, below, -4))
	legend.Draw(all)
	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		return nil, err
	}
	return bytes.ReplaceAll(out.Bytes(), []byte("Liberation Sans"), []byte("Liberation Sans,Arial,sans-serif")), nil
}

func init() { plot.DefaultFont.Variant = "Sans" } // before any plot is made

// writePlots writes the plots to files of a directory.
func (r *report) writePlots(dir string) error {
	errs := []error{os.MkdirAll(dir, 0o755)}
	for _, p := range r.pictures() {
		svg, err := r.svg(p)
		if err == nil && svg != nil {
			err = os.WriteFile(filepath.Join(dir, p.file+".svg"), svg, 0o644)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

//go:embed page.html
var pageSource string

// writePage writes an HTML page that loads nothing else.
func (r *report) writePage(w io.Writer, targets []target) error {
	var text bytes.Buffer
	data := map[string]any{"Answers": strings.Split(strings.TrimSpace(r.verdict()), "\n"), "Busy": r.Busy}
	errs := []error{r.writeText(&text, targets)}
	var plots []template.HTML
	for _, p := range r.pictures() {
		svg, err := r.svg(p)
		if errs = append(errs, err); svg != nil {
			plots = append(plots, template.HTML(svg[bytes.Index(svg, []byte("<svg")):]))
		}
	}
	data["Plots"], data["Text"] = plots, text.String()
	t, err := template.New("page").Parse(pageSource)
	if err := errors.Join(append(errs, err)...); err != nil {
		return err
	}
	return t.Execute(w, data)
}
