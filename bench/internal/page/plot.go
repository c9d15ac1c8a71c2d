package page

import (
	"bytes"
	"cmp"
	"fmt"
	"html/template"
	"image/color"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// A Picture is a group of panels with the same axes.
type Picture struct {
	Title, Text string
	X, Y        string // axis labels
	LogX, LogY  bool
	XTicks      []plot.Tick // nil: ticks are chosen from the range
	Across      int         // number of panels side by side if there is room
	Panels      []Panel
}

// A Panel has a line for each contender. If Rows is set, each line has its own row, with the name of the contender to
// the left. Otherwise the names are at the ends of the lines.
type Panel struct {
	Title string
	Rows  bool
	Lines []Line
}

// A Line shows the values of one contender in the colour Colours[Colour].
type Line struct {
	Who    string
	Colour int
	Points plotter.XYs
}

// Sizes in points. row is the height of one line in a panel with rows.
const (
	wide, narrow   = 490, 262
	single, shared = 280, 165 // heights of a picture with one panel, and with several
	frame          = 52       // height of everything outside the area of the lines
	row, letter    = 21, 10
)

// Placeholder colours. The style sheet of the page replaces them for light and dark screens.
var ink, grid = color.RGBA{1, 1, 1, 255}, color.RGBA{2, 2, 2, 255}

func placeholder(i int) color.RGBA { return color.RGBA{3, 3, uint8(i), 255} }

// svg returns the picture as an element of a page.
func (p Picture) svg(width vg.Length, across int) (template.HTML, error) {
	across = min(across, len(p.Panels))
	rows := (len(p.Panels) + across - 1) / across
	height := vg.Length(shared)
	if len(p.Panels) == 1 {
		height = single
	}
	if p.Panels[0].Rows {
		height = frame + row*vg.Length(len(p.Panels[0].Lines))
	}
	grid := make([][]*plot.Plot, rows)
	for i := range grid {
		grid[i] = make([]*plot.Plot, across)
	}
	for i, panel := range p.Panels {
		one, err := p.plot(panel, height-frame)
		if err != nil {
			return "", fmt.Errorf("page: %s: %w", p.Title, err)
		}
		if i+across < len(p.Panels) {
			one.X.Label.Text = "" // the panel below has the label
		}
		if i%across > 0 {
			one.Y.Label.Text = ""
		}
		grid[i/across][i%across] = one
	}
	c := vgsvg.New(width, height*vg.Length(rows))
	tiles := draw.Tiles{Rows: rows, Cols: across, PadX: 8, PadY: 6, PadLeft: 3, PadRight: 4, PadTop: 2}
	for i, line := range plot.Align(grid, tiles, draw.New(c)) {
		for j, at := range line {
			if grid[i][j] != nil {
				grid[i][j].Draw(at)
			}
		}
	}
	var out bytes.Buffer
	if _, err := c.WriteTo(&out); err != nil {
		return "", fmt.Errorf("page: %s: %w", p.Title, err)
	}
	return template.HTML(styled(out.String())), nil
}

// styled returns an SVG document as an element with the colours and fonts of the page.
func styled(svg string) string {
	svg = svg[strings.Index(svg, "<svg"):]
	list := []string{"#010101", "var(--ink)", "#020202", "var(--grid)", "Liberation Sans", "Liberation Sans,Arial"}
	for i := range Colours {
		list = append(list, fmt.Sprintf("#0303%02X", i), fmt.Sprintf("var(--c%d)", i))
	}
	return strings.NewReplacer(list...).Replace(svg)
}

// plot draws one panel. height is that of the area in which the lines are drawn.
func (p Picture) plot(panel Panel, height vg.Length) (*plot.Plot, error) {
	q := plot.New()
	q.BackgroundColor = color.Transparent
	q.Title.Text, q.X.Label.Text, q.Y.Label.Text = panel.Title, p.X, p.Y
	for _, s := range []*text.Style{
		&q.Title.TextStyle, &q.X.Label.TextStyle, &q.Y.Label.TextStyle, &q.X.Tick.Label, &q.Y.Tick.Label,
	} {
		s.Color, s.Font = ink, font.Font{Typeface: "Liberation", Variant: "Sans", Size: letter}
	}
	for _, a := range []*plot.Axis{&q.X, &q.Y} {
		a.LineStyle.Color, a.Tick.LineStyle.Color, a.Padding = grid, grid, 3
	}
	p.scale(&q.X, p.LogX, func(at plotter.XY) float64 { return at.X })
	p.scale(&q.Y, p.LogY, func(at plotter.XY) float64 { return at.Y })
	if p.XTicks != nil {
		q.X.Tick.Marker = plot.ConstantTicks(p.XTicks)
	}
	if panel.Rows {
		var names []string
		for _, l := range panel.Lines {
			names = append(names, l.Who)
		}
		q.NominalY(names...)
		q.Y.Tick.Label.Color, q.Y.Min, q.Y.Max = ink, -0.5, float64(len(names))-0.5
	}
	lines := plotter.NewGrid()
	lines.Vertical.Color, lines.Horizontal.Color = grid, grid
	q.Add(lines)
	above := nudges(panel, &q.Y, height)
	for i, l := range panel.Lines {
		if err := p.add(q, l, panel.Rows, above[i]); err != nil {
			return nil, err
		}
	}
	return q, nil
}

// scale gives an axis the common range of all panels.
func (p Picture) scale(a *plot.Axis, log bool, of func(plotter.XY) float64) {
	a.Min, a.Max = math.Inf(1), math.Inf(-1)
	for _, panel := range p.Panels {
		for _, l := range panel.Lines {
			for _, at := range l.Points {
				a.Min, a.Max = min(a.Min, of(at)), max(a.Max, of(at))
			}
		}
	}
	if log {
		a.Min, a.Max = a.Min*0.9, a.Max*1.1
		a.Scale, a.Tick.Marker = plot.LogScale{}, plot.TickerFunc(logTicks)
	} else {
		a.Min, a.Max, a.Tick.Marker = min(a.Min, 0), a.Max*1.05, plot.TickerFunc(evenTicks)
	}
}

// evenTicks returns labelled ticks at two to ten round numbers.
func evenTicks(least, most float64) (list []plot.Tick) {
	step := math.Pow(10, math.Floor(math.Log10(most-least)))
	if most-least < 4*step {
		step /= 2
	}
	for v := step * math.Ceil(least/step); v <= most; v += step {
		list = append(list, plot.Tick{Value: v, Label: plain(v)})
	}
	return list
}

// logTicks returns ticks at 1, 2, 5 and their products with powers of ten. If there are at least three powers of ten,
// only these have labels. For a small range it returns the ticks of evenTicks.
func logTicks(least, most float64) (list []plot.Tick) {
	if most/least < 5 {
		return evenTicks(least, most)
	}
	powers := math.Floor(math.Log10(most)) - math.Ceil(math.Log10(least)) + 1
	for decade := math.Pow(10, math.Floor(math.Log10(least))); decade <= most; decade *= 10 {
		for _, n := range []float64{1, 2, 5} {
			if v := n * decade; v >= least && v <= most {
				label := plain(v)
				if n > 1 && powers >= 3 {
					label = ""
				}
				list = append(list, plot.Tick{Value: v, Label: label})
			}
		}
	}
	return list
}

// plain formats a number with two significant digits.
func plain(v float64) string {
	short, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 2, 64), 64) // cannot fail: it parses FormatFloat's output
	return strconv.FormatFloat(short, 'f', -1, 64)
}

// nudges returns how far up to move the name at the end of each line, so that no name covers another.
func nudges(panel Panel, y *plot.Axis, height vg.Length) []vg.Length {
	at, order := make([]vg.Length, len(panel.Lines)), make([]int, len(panel.Lines))
	for i, l := range panel.Lines {
		order[i], at[i] = i, height*vg.Length(y.Norm(l.Points[len(l.Points)-1].Y))
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(at[i], at[j]) })
	moved, floor := make([]vg.Length, len(at)), vg.Length(math.Inf(-1))
	for _, i := range order {
		moved[i] = max(at[i], floor) - at[i]
		floor = at[i] + moved[i] + letter + 1
	}
	return moved
}

// add draws a line. Its label is the name, at the end of the line, or, if rows is set, the value of the first point.
func (p Picture) add(q *plot.Plot, l Line, rows bool, above vg.Length) error {
	line, points, err := plotter.NewLinePoints(l.Points)
	if err != nil {
		return err
	}
	line.Color, line.Width = placeholder(l.Colour), 1.6
	points.Color, points.Shape, points.Radius = placeholder(l.Colour), draw.CircleGlyph{}, 2.5
	at, name := len(l.Points)-1, l.Who
	offset := vg.Point{X: 5, Y: above - letter/3}
	if rows {
		at, name, offset = 0, plain(l.Points[0].X), vg.Point{X: 0, Y: 4}
	}
	labels, err := plotter.NewLabels(plotter.XYLabels{XYs: l.Points[at : at+1], Labels: []string{name}})
	if err != nil {
		return err
	}
	labels.Offset = offset
	labels.TextStyle[0].Color = placeholder(l.Colour)
	labels.TextStyle[0].Font = font.Font{Typeface: "Liberation", Variant: "Sans", Size: letter}
	q.Add(line, labels)
	if p.LogX { // the lines of the other plots have too many points
		q.Add(points)
	}
	return nil
}
