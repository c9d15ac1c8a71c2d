package main

import "time"

// A curve is one line of a plot.
type curve struct {
	Kind string    `json:"kind"`
	Case string    `json:"case"`
	Who  string    `json:"who"`
	X    []float64 `json:"x"`
	Y    []float64 `json:"y"`
}

// curveCDF is a curve of the share of pairs (Y) that took at most X us, in the last round.
const curveCDF = "cdf"

// cdfSteps is how many points a curve of shares has.
const cdfSteps = 100

// setCurve replaces the curve of the same kind, case and contender: the last round's stays.
func (r *report) setCurve(c curve) {
	for i := range c.X {
		c.X[i], c.Y[i] = rounded(c.X[i], 4), rounded(c.Y[i], 4)
	}
	for i := range r.Curves {
		if o := &r.Curves[i]; o.Kind == c.Kind && o.Case == c.Case && o.Who == c.Who {
			*o = c
			return
		}
	}
	r.Curves = append(r.Curves, c)
}

// cdf draws sorted values; the last percent has ten points of its own.
func cdf(kase, who string, sorted []time.Duration) curve {
	c := curve{Kind: curveCDF, Case: kase, Who: who}
	add := func(p float64) {
		c.X, c.Y = append(c.X, micros(percentile(sorted, p))), append(c.Y, p/100)
	}
	for i := 1; i < cdfSteps; i++ {
		add(100 * float64(i) / cdfSteps)
	}
	for i := 1; i <= 9; i++ {
		add(99 + float64(i)/10)
	}
	return c
}

// curves are those of one kind and case.
func (r *report) curves(kind, kase string) (list []curve) {
	for _, c := range r.Curves {
		if c.Kind == kind && c.Case == kase {
			list = append(list, c)
		}
	}
	return list
}

// curveCases are the cases that have curves of a kind.
func (r *report) curveCases(kind string) (list []string) {
	for _, c := range r.Curves {
		if c.Kind == kind {
			list = appendNew(list, c.Case)
		}
	}
	return list
}
