package redlock

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// A lineTwin is the rule of a line read plainly: who contends, and who is parked in which order.
type lineTwin struct {
	held    *hold
	contend []*lockConfig
	parked  []*parked
	called  map[*parked]bool // those that have got their turn to contend
}

// mayContend reports whether a call would contend at once.
func (w *lineTwin) mayContend(cfg *lockConfig) bool {
	if slices.ContainsFunc(w.parked, func(p *parked) bool { return p.cfg.priority >= cfg.priority }) {
		return false
	}
	urgent := cfg.fair && !slices.ContainsFunc(w.contend, func(c *lockConfig) bool { return c.priority >= cfg.priority })
	return urgent || len(w.contend) == 0 && w.held == nil
}

func (w *lineTwin) park(p *parked) {
	at := len(w.parked)
	for at > 0 && w.parked[at-1].cfg.priority < p.cfg.priority {
		at--
	}
	w.parked = slices.Insert(w.parked, at, p)
}

// move lets the first who is parked contend, where the rule says so.
func (w *lineTwin) move() {
	if len(w.parked) == 0 {
		return
	}
	first := w.parked[0].cfg
	urgent := first.fair && !slices.ContainsFunc(w.contend, func(c *lockConfig) bool { return c.priority >= first.priority })
	if urgent || len(w.contend) == 0 && w.held == nil {
		p := w.parked[0]
		w.parked = w.parked[1:]
		w.contend = append(w.contend, p.cfg)
		w.called[p] = true
	}
}

// compare says how the line differs from its twin.
func (w *lineTwin) compare(ls *lines, name string) string {
	ln := ls.all[name]
	if w.held == nil && len(w.contend) == 0 && len(w.parked) == 0 {
		if ln != nil {
			return fmt.Sprintf("a line of nobody is kept: %+v", ln)
		}
		return ""
	}
	if ln == nil {
		return "the line is gone"
	}
	if ln.holder != w.held || len(ln.contending) != len(w.contend) {
		return fmt.Sprintf("held by %p, %d contend; want %p, %d", ln.holder, len(ln.contending), w.held, len(w.contend))
	}
	var list []*parked
	end := &ln.first
	for p := ln.first; p != nil; p = p.next {
		list, end = append(list, p), &p.next
	}
	if !slices.Equal(list, w.parked) || ln.end != end {
		return fmt.Sprintf("parked are %v, want %v; the end is right: %t", list, w.parked, ln.end == end)
	}
	return ""
}

// A lineGame makes random moves on a line and its twin.
type lineGame struct {
	ls     lines
	twin   lineTwin
	random *rand.Rand
}

func (g *lineGame) config() *lockConfig {
	cfg := &lockConfig{fair: g.random.IntN(2) == 0}
	if cfg.fair {
		cfg.priority = g.random.IntN(4) - 1
	}
	return cfg
}

// step makes one move and says what went otherwise than the twin's.
func (g *lineGame) step() string {
	w := &g.twin
	switch pick := g.random.IntN(10); {
	case pick < 5:
		cfg := g.config()
		contends := w.mayContend(cfg)
		_, p := g.ls.join("n", cfg)
		if contends != (p == nil) {
			return fmt.Sprintf("contends: %t, want %t", p == nil, contends)
		}
		if p == nil {
			w.contend = append(w.contend, cfg)
		} else {
			w.park(p)
		}
	case pick < 7 && len(w.contend) > 0:
		i := g.random.IntN(len(w.contend))
		cfg := w.contend[i]
		w.contend = slices.Delete(w.contend, i, i+1)
		var h *hold
		if w.held == nil && g.random.IntN(3) > 0 {
			h = &hold{name: "n"}
			w.held = h
		}
		w.move()
		g.ls.resign(g.ls.all["n"], cfg, h)
	case pick < 8 && w.held != nil:
		h := w.held
		w.held = nil
		w.move()
		g.ls.ended(h)
	case pick < 9 && w.held != nil:
		return g.handOn()
	case len(w.parked) > 0:
		i := g.random.IntN(len(w.parked))
		p := w.parked[i]
		w.parked = slices.Delete(w.parked, i, i+1)
		w.move()
		if !g.ls.quit(g.ls.all["n"], p) {
			return "one that was parked was not found"
		}
	}
	return ""
}

func (g *lineGame) handOn() string {
	w := &g.twin
	from, to := w.held, &hold{name: "n"}
	may := len(w.contend) == 0 && len(w.parked) > 0 && !w.parked[0].cfg.fair
	next, turn := g.ls.handOn(from, func(*parked) *hold { return to })
	if may != (next != nil) {
		return fmt.Sprintf("handed on: %t, want %t", next != nil, may)
	}
	if !may {
		return ""
	}
	if turn != w.parked[0] || next != to {
		return "it went to another than the first"
	}
	w.held, w.parked = to, w.parked[1:]
	w.move()
	return ""
}

// A line does what its rule says, in whatever order things happen: whoever is called was first, nobody is forgotten,
// and nothing is kept of a name that nobody wants.
func TestALineIsTheRuleReadPlainly(t *testing.T) {
	for seed := range uint64(300) {
		g := &lineGame{random: rand.New(rand.NewPCG(seed, 1)), twin: lineTwin{called: map[*parked]bool{}}}
		all := map[*parked]bool{}
		for n := range 200 {
			problem := g.step()
			if problem == "" {
				problem = g.twin.compare(&g.ls, "n")
			}
			for _, p := range g.twin.parked {
				all[p] = true
			}
			for p := range all {
				if g.twin.called[p] != (len(p.turn) == 1) {
					problem = fmt.Sprintf("called: %t, want %t", len(p.turn) == 1, g.twin.called[p])
				}
			}
			if problem != "" {
				t.Fatalf("seed %d, step %d: %s", seed, n, problem)
			}
		}
	}
}

// Among those who are parked the priority counts first, and then who came first.
func TestParkedCallsAreInTheOrderOfPriorityThenOfComing(t *testing.T) {
	var ls lines
	ls.join("n", &lockConfig{fair: true, priority: 1000})
	var got []int
	for _, priority := range []int{0, 5, -3, 5, 0, 7, -3} {
		ls.join("n", &lockConfig{fair: true, priority: priority})
	}
	ln := ls.all["n"]
	for p := ln.first; p != nil; p = p.next {
		got = append(got, p.cfg.priority)
	}
	if want := []int{7, 5, 5, 0, 0, -3, -3}; !slices.Equal(got, want) {
		t.Errorf("the order is %v, want %v", got, want)
	}
}

// One whose turn has come at the moment at which it gives up is told so: the turn must go to somebody.
func TestOneThatQuitsTooLateIsToldSo(t *testing.T) {
	var ls lines
	cfg := &lockConfig{}
	ln, _ := ls.join("n", cfg)
	_, p := ls.join("n", cfg)
	ls.resign(ln, cfg, nil)
	if ls.quit(ln, p) || len(p.turn) != 1 {
		t.Error("one that has been called was taken out of the line")
	}
	ls.resign(ln, cfg, nil)
	if len(ls.all) != 0 {
		t.Errorf("%d lines are left", len(ls.all))
	}
}

// Lines that are of no more use are used again, and as many as that are kept at most.
func TestLinesLeaveNoTrace(t *testing.T) {
	var ls lines
	cfg := &lockConfig{}
	var open []*line
	for i := range 2 * maxFreeLines {
		ln, _ := ls.join(fmt.Sprint("n", i), cfg)
		open = append(open, ln)
	}
	for _, ln := range open {
		ls.resign(ln, cfg, nil)
	}
	if len(ls.all) != 0 || len(ls.free) != maxFreeLines {
		t.Errorf("%d lines in use, %d kept", len(ls.all), len(ls.free))
	}
	ln, p := ls.join("other", cfg)
	if p != nil || ln.name != "other" || ln.holder != nil || ln.last != nil || ln.first != nil || len(ln.contending) != 1 {
		t.Errorf("a line that is used again is %+v", ln)
	}
}

// A hold that ends is no more the line's, and one of before does not end that of now.
func TestAnEarlierHoldDoesNotEndTheLaterOne(t *testing.T) {
	var ls lines
	a, b := &hold{name: "n"}, &hold{name: "n"}
	ls.hold(a)
	ls.hold(b) // of a call that was quicker than the line heard of it
	if ls.holder("n") != a || b.line != nil {
		t.Fatal("two holders")
	}
	ls.ended(b)
	if ls.holder("n") != a {
		t.Error("another hold's end has ended it")
	}
	ls.ended(a)
	ls.ended(a)
	if ls.holder("n") != nil || len(ls.all) != 0 {
		t.Error("it is still held")
	}
}

// The line knows how its contenders failed last, for the errors of those who are parked; a hold makes that forgotten.
func TestALineTellsHowTheLastAttemptFailed(t *testing.T) {
	var ls lines
	cfg := &lockConfig{}
	ln, _ := ls.join("n", cfg)
	ls.failed(ln, cfg, ErrTooSlow)
	if !errors.Is(ls.why(ln), ErrTooSlow) {
		t.Error("it was forgotten")
	}
	ls.resign(ln, cfg, &hold{name: "n"})
	if err := ls.why(ln); err != nil {
		t.Errorf("after it was held: %v", err)
	}
}
