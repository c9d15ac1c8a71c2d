package sim

import (
	"io"
	"time"
)

// A Setup identifies a run. Equal setups give identical runs.
type Setup struct {
	Seed uint64
	// Kind is the name of the kind of the run. If it is "", the seed determines the kind.
	Kind string
	// Trace receives the events of the schedule, one JSON object per line; nil for none.
	Trace io.Writer
}

// now returns true time, which is ahead of the bubble's time by the total length of all freezes of the whole network.
// Timers do not notice these freezes.
func (w *simulation) now() time.Time { return time.Now().Add(time.Duration(w.leaped.Load())) }

// since returns the true time since t, which must be a true time.
func (w *simulation) since(t time.Time) time.Duration { return w.now().Sub(t) }
