package main

import (
	"bytes"
	"fmt"
	"html/template"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

const (
	plotWidth  = 8.4 * vg.Inch
	plotHeight = 3.6 * vg.Inch
)

// palette has colours that people who see no red or green tell apart as well; the first is the library's.
var palette = []color.Color{
	color.RGBA{0, 114, 178, 255}, color.RGBA{230, 159, 0, 255}, color.RGBA{0, 158, 115, 255},
	color.RGBA{204, 121, 167, 255},
	color.RGBA{213, 94, 0, 255}, color.RGBA{86, 180, 233, 255}, color.RGBA{120, 120, 120, 255},
	color.RGBA{160, 140, 0, 255},
	color.RGBA{80, 60, 130, 255}, color.RGBA{170, 80, 80, 255}, color.RGBA{60, 110, 60, 255}, color.RGBA{40, 40, 40, 255},
	color.RGBA{200, 170, 140, 255},
}

// colourOf is the same for a contender in every plot of a page.
func colourOf(who string) color.Color {
	for i, e := range entrants {
		if e.name == who {
			return palette[i%len(palette)]
		}
	}
	return color.Black
}

// linesPlot draws curves; logX for times that spread over orders of magnitude.
func linesPlot(title, xLabel, yLabel string, list []curve, logX, logY bool) (template.HTML, error) {
	p := newPlot(title, xLabel, yLabel)
	for i, c := range list {
		points := make(plotter.XYs, 0, len(c.X))
		for j := range c.X {
			if (!logX || c.X[j] > 0) && (!logY || c.Y[j] > 0) {
				points = append(points, plotter.XY{X: c.X[j], Y: c.Y[j]})
			}
		}
		if len(points) == 0 {
			continue
		}
		l, err := plotter.NewLine(points)
		if err != nil {
			return "", fmt.Errorf("bench: plot %q: %w", title, err)
		}
		l.Color, l.Width = colourOf(c.Who), vg.Points(1.6)
		if i >= len(palette)/2 {
			l.Dashes = []vg.Length{vg.Points(5), vg.Points(2)}
		}
		p.Add(l)
		p.Legend.Add(c.Who, l)
	}
	if logX { // the curves end at the top right: room for the legend is beyond them
		p.X.Max *= 20
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	if logY {
		p.X.Max *= 1.3
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	return render(p)
}

// barsPlot draws a bar a contender, with the range of its rounds.
func barsPlot(title, xLabel string, list []*figure) (template.HTML, error) {
	p := newPlot(title, xLabel, "")
	var names []string
	for i := len(list) - 1; i >= 0; i-- { // the first on top
		f := list[i]
		bar, err := plotter.NewBarChart(plotter.Values{f.Median}, vg.Points(12))
		if err != nil {
			return "", fmt.Errorf("bench: plot %q: %w", title, err)
		}
		at := float64(len(names))
		bar.XMin, bar.Horizontal, bar.Color, bar.LineStyle.Width = at, true, colourOf(f.Who), 0
		p.Add(bar)
		if len(f.Rounds) > 1 {
			ends, err := plotter.NewLine(plotter.XYs{{X: f.Min, Y: at}, {X: f.Max, Y: at}})
			if err != nil {
				return "", fmt.Errorf("bench: plot %q: %w", title, err)
			}
			ends.Width = vg.Points(1.2)
			p.Add(ends)
		}
		names = append(names, f.Who)
	}
	p.NominalY(names...)
	p.X.Min = 0
	return renderSized(p, plotHeight*vg.Length(math.Max(0.45, float64(len(list)+3)/14)))
}

func newPlot(title, xLabel, yLabel string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, xLabel, yLabel
	p.Title.Padding = vg.Points(6)
	p.Legend.Top, p.Legend.Left = false, false
	p.Legend.Padding = vg.Points(2)
	p.Legend.ThumbnailWidth = vg.Points(18)
	p.Add(plotter.NewGrid())
	return p
}

func render(p *plot.Plot) (template.HTML, error) { return renderSized(p, plotHeight) }

// renderSized gives the plot as an SVG element that can stand in a page.
func renderSized(p *plot.Plot, height vg.Length) (template.HTML, error) {
	c := vgsvg.New(plotWidth, height)
	p.Draw(draw.New(c))
	var out bytes.Buffer
	if _, err := c.WriteTo(&out); err != nil {
		return "", fmt.Errorf("bench: plot: %w", err)
	}
	text := out.Bytes()
	if i := bytes.Index(text, []byte("<svg")); i > 0 {
		text = text[i:] // a declaration of XML has no place in a page
	}
	return template.HTML(text), nil
}
