package main

import (
	"bytes"
	_ "embed" // for the template of the picture
	"fmt"
	"os"
	"strconv"
	"text/template"
	"time"
)

// A picture collects the frames of a run, and draws them as SVG.
type picture struct {
	title  string
	frames []frame
	notes  []note
}

// A note is a text at a moment.
type note struct {
	at   time.Duration
	text string
}

func (p *picture) add(f frame) { p.frames = append(p.frames, f) }

// Sizes of the drawing, in pixels.
const (
	left, top   = 96, 66
	second      = 74 // pixels for a second
	lane, thick = 34, 20
	area        = 64 // height of the curve for a whole TTL
)

// A box is a rectangle, or a text, of the drawing.
type box struct {
	X, Y, W, H float64
	Class      string // of the style sheet in picture.svg
	Text       string
}

//go:embed picture.svg
var pictureSource string

func x(at time.Duration) float64 { return left + at.Seconds()*second }

// write draws the picture to a file.
func (p *picture) write(file string) error {
	last := p.frames[len(p.frames)-1]
	n := len(last.masters)
	bottom := float64(top + n*lane + area + 18)
	data := struct {
		Title                         string
		TTL                           string
		Width, Height                 float64
		CardWidth, CardHeight         float64
		Bottom, End                   float64
		Masters, Bars, Notes, Seconds []box
		Curves                        map[string]string
	}{
		Title: p.title, TTL: fmt.Sprintf("TTL %v s", ttl.Seconds()), Width: x(last.at) + 16, Height: bottom + 30,
		CardWidth: x(last.at) + 15, CardHeight: bottom + 29, Bottom: bottom, End: x(last.at),
		Curves: make(map[string]string),
	}
	for i, one := range p.notes {
		data.Notes = append(data.Notes, box{X: x(one.at), Y: float64(44 + i%2*13), Text: one.text})
	}
	for i := range n {
		y := float64(top + i*lane)
		data.Masters = append(data.Masters, box{Y: y + thick - 5, Text: fmt.Sprintf("master %d", i+1), H: y + thick/2})
		data.Bars = append(data.Bars, p.bars(y, func(f frame) (class, text string) {
			switch m := f.masters[i]; m.state {
			case killed:
				return "gone", "killed"
			case hangs:
				return "gone", "hangs"
			case quarantine:
				return "quarantine", ""
			}
			return "", ""
		})...)
		data.Bars = append(data.Bars, p.bars(y, func(f frame) (class, text string) {
			m := f.masters[i]
			if m.who == "" {
				return "", ""
			}
			if m.state == quarantine {
				return m.who, "lock of " + m.who + " restored, no vote"
			}
			return m.who, "lock of " + m.who
		})...)
	}
	for _, who := range []string{"A", "B"} {
		data.Curves[who] = p.curve(who, bottom)
	}
	for s := range int(last.at.Seconds()) + 1 {
		data.Seconds = append(data.Seconds, box{X: x(time.Duration(s) * time.Second), Text: fmt.Sprintf("%d s", s)})
	}
	px := func(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }
	t, err := template.New("picture").Funcs(template.FuncMap{"px": px}).Parse(pictureSource)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := t.Execute(&out, data); err != nil {
		return err
	}
	return os.WriteFile(file, out.Bytes(), 0o644)
}

// bars joins the frames in which class returns the same class of the style sheet. A bar gets its text if there is room.
func (p *picture) bars(y float64, class func(frame) (class, text string)) (list []box) {
	for k := 0; k < len(p.frames); {
		c, _ := class(p.frames[k])
		end := k + 1
		for end < len(p.frames) {
			if next, _ := class(p.frames[end]); next != c {
				break
			}
			end++
		}
		from, to := x(p.frames[k].at), x(p.frames[min(end, len(p.frames)-1)].at)
		_, text := class(p.frames[(k+end)/2])
		if c != "" && to-from > 4 {
			b := box{X: from, Y: y, W: to - from, H: thick, Class: c}
			if c == "A" || c == "B" { // inside of what the state of the master draws
				b.Y, b.H = y+2, thick-4
			}
			if float64(len(text))*6.4 < b.W {
				b.Text = text
			}
			list = append(list, b)
		}
		k = end
	}
	return list
}

// curve returns the path of the validity of a program's lock.
func (p *picture) curve(who string, bottom float64) string {
	var path bytes.Buffer
	begun, end := false, 0.0
	for _, f := range p.frames {
		if f.who != who {
			continue
		}
		end = x(f.at)
		if !begun {
			fmt.Fprintf(&path, "M%.1f %.1f", end, bottom)
			begun = true
		}
		fmt.Fprintf(&path, "L%.1f %.1f", end, bottom-f.left.Seconds()/ttl.Seconds()*area)
	}
	if begun {
		fmt.Fprintf(&path, "L%.1f %.1fZ", end, bottom)
	}
	return path.String()
}
