package page

import (
	_ "embed" // for the template file
	"fmt"
	"html/template"
	"io"
	"slices"
)

//go:embed page.html
var source string

// A Page holds the content of the page.
type Page struct {
	Title, Sentence, Setup string
	Warning                string // why the figures are not reliable; "" if they are
	Numbers                []Number
	Pictures               []Picture
	Targets                []Target
	Notes                  []string
	Tables                 []Table
}

// A Number is shown in large type below the text What.
type Number struct{ Value, Unit, What, Versus string }

// A Target is one cell of the strip of targets. Class is "met", "unsure" or "missed"; Reason may be "".
type Target struct{ Class, Name, Text, Reason string }

// A Table is initially collapsed.
type Table struct {
	Title string
	Heads []string
	Rows  [][]string
}

// Colours holds the colours of contenders on light and on dark screens. They differ also for readers who cannot
// distinguish red from green.
var Colours = [][2]string{
	{"#0b62a8", "#63b1ee"}, {"#6a6a6a", "#a8a8a8"}, {"#bf5208", "#f5a05c"}, {"#8a3fa0", "#cf9cf0"},
	{"#8c6a00", "#e2c15a"}, {"#0c7a58", "#52cfa6"}, {"#1d1d1d", "#f2f2f2"}, {"#a03050", "#f090a8"}, {"#405090", "#a8b4e8"},
	{"#5a7a1e", "#b5d66a"},
}

// Write writes the page to w. It omits plots and panels without lines.
func (p Page) Write(w io.Writer) error {
	var drawn []Picture
	for _, f := range p.Pictures {
		if f.Panels = slices.DeleteFunc(f.Panels, func(p Panel) bool { return len(p.Lines) == 0 }); len(f.Panels) > 0 {
			drawn = append(drawn, f)
		}
	}
	p.Pictures = drawn
	draw := template.FuncMap{
		"wide":    func(f Picture) (template.HTML, error) { return f.svg(wide, f.Across) },
		"narrow":  func(f Picture) (template.HTML, error) { return f.svg(narrow, 1) },
		"colours": func(i int) template.CSS { return colours(i) },
	}
	t, err := template.New("page").Funcs(draw).Parse(source)
	if err == nil {
		err = t.Execute(w, p)
	}
	if err != nil {
		return fmt.Errorf("page: %w", err)
	}
	return nil
}

// colours returns the colour definitions for light screens (0) or dark screens (1).
func colours(screen int) (css template.CSS) {
	for i, c := range Colours {
		css += template.CSS(fmt.Sprintf("--c%d:%s;", i, c[screen]))
	}
	return css
}
