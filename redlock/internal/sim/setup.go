package sim

import "time"

// A Setup says which run it is. The same setup is the same run.
type Setup struct {
	Seed uint64
	// Kind is the name of the kind; "" is the kind of the seed.
	Kind string
}

// now is true time. It runs with the time of the bubble, and is ahead of it by all the freezes of the whole network:
// nothing that runs on timers has noticed those.
func (w *world) now() time.Time { return time.Now().Add(time.Duration(w.leaped.Load())) }

// since is how much true time has passed since t, which is a true time.
func (w *world) since(t time.Time) time.Duration { return w.now().Sub(t) }
