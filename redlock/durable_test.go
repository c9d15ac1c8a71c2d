package redlock

import (
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
)

// Each row is about master 0, which its operator has named as one that remembers every write.
func TestOnlyADurableMasterWithItsOwnMemoryIsAdmittedAtOnce(t *testing.T) {
	const guard = 40 * time.Second
	old := scripts.Marker{Identity: "old/r1", Home: "h0", Guard: 50 * time.Second, Epoch: 3}
	with := func(change func(f *fact)) fact {
		f := markerFact("new/r2", old)
		f.home = "h0"
		change(&f)
		return f
	}
	marked := func(m scripts.Marker) func(f *fact) {
		return func(f *fact) { f.text, f.marker = m.String(), m }
	}
	ok := admittedFact("b/b", guard, 0)
	for name, c := range map[string]struct {
		own, other fact
		atOnce     bool
	}{
		"restarted with its memory":                 {with(func(*fact) {}), ok, true},
		"not named":                                 {with(func(f *fact) { f.home = "" }), ok, false},
		"restarted empty, or flushed":               {with(func(f *fact) { f.text, f.marker = "", scripts.Marker{} }), ok, false},
		"restarted during a quarantine":             {with(marked(scripts.Marker{Identity: "old/r1", Home: "h0", Guard: guard, Pending: 1})), ok, false},
		"the same process: a replica in between":    {with(func(f *fact) { f.identity = "old/r2" }), ok, false},
		"the marker was copied from another master": {with(marked(scripts.Marker{Identity: "b/b", Home: "h1", Guard: guard})), ok, false},
		"that one is down, and nobody knows it":     {with(marked(scripts.Marker{Identity: "x/x", Home: "h1", Guard: guard})), dead, false},
		"it was not named when it was admitted":     {with(marked(scripts.Marker{Identity: "old/r1", Guard: guard})), ok, false},
		"its clock is wrong":                        {with(func(f *fact) { f.now += time.Hour.Microseconds() }), ok, false},
		"no marker but words":                       {with(func(f *fact) { f.text, f.bad = "words", true }), ok, false},
	} {
		facts := []fact{c.own, c.other, ok}
		got, ph := nextMove(facts, oneSet(len(facts)), 0, reckoning{epoch, oneSet(len(facts)).all()}, 0, guard, 0)
		if (got.step == stepNow) != c.atOnce || ph == phaseAdmitted {
			t.Errorf("%s: %+v, phase %d", name, got, ph)
		}
		if c.atOnce && (got.guard != old.Guard || got.epoch != old.Epoch) {
			t.Errorf("%s: it gets another guard time or epoch: %+v", name, got)
		}
	}
}

// An admitted master gets its home once, and nobody changes it: programs that know it by two addresses would never end.
func TestTheHomeOfADurableMasterIsWrittenOnce(t *testing.T) {
	for home, want := range map[string]step{"": stepNow, "h0": stepNone, "h1": stepNone} {
		m := scripts.Marker{Identity: "a/a", Home: home, Guard: time.Minute, Epoch: 3}
		f := markerFact("a/a", m)
		f.home = "h0"
		got, ph := nextMove([]fact{f}, oneSet(1), 0, reckoning{epoch, 1}, 0, time.Minute, 0)
		if got.step != want || ph != phaseAdmitted || want == stepNow && (got.guard != m.Guard || got.epoch != m.Epoch) {
			t.Errorf("home %q: %+v, phase %d", home, got, ph)
		}
	}
}
