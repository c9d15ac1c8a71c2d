package sim

import "time"

// freezeAll stops the machines of all clients, and their network, for less than the longest validity. When the machines
// resume, their clocks and the clocks of the masters have advanced. If the clients run in virtual machines, the
// clients' boot clocks have not advanced. Timers do not notice the freeze. (suspend stops one machine while others
// continue.) If reply is set, the freeze happens when the client is about to read the next reply of a master.
func (w *simulation) freezeAll(c *client, reply bool) {
	d := w.upTo(w.plan.most)
	if reply {
		c.freezeNext = d
		return
	}
	w.leapBy(d)
}

// leapBy makes d of true time pass instantly. The caller must hold simulation.mu.
func (w *simulation) leapBy(d time.Duration) {
	w.note(-1, -1, "all machines stop for", "", int64(d))
	w.leaped.Add(int64(d))
	for _, c := range w.clients {
		c.jumped = time.Now()
		if w.plan.frozen {
			c.watch.miss(d)
		}
	}
}

// readNext starts the freeze that must happen before the next reply is read, if there is one.
func (c *client) readNext() {
	if d := c.freezeNext; d > 0 && c.w.faults {
		c.freezeNext = 0
		c.w.seen.reach(frozenBeforeReading, true)
		c.w.leapBy(d)
	}
}

// farthestTurn is the maximum change of a wall clock in runs of the kind setback.
const farthestTurn = 3 * time.Hour

// turn changes a client's wall clock by delta. In runs of the kind setback, only the sign of delta counts: the change
// is up to farthestTurn, and may affect all clients.
func (w *simulation) turn(c *client, delta time.Duration) {
	all := []*client{c}
	if w.plan.kind == setback {
		if hours := w.upTo(farthestTurn); delta < 0 {
			delta = -hours
		} else {
			delta = hours
		}
		if w.random.IntN(2) == 0 {
			all = w.clients
		}
	}
	for _, c := range all {
		what := "sets its wall clock forward by"
		if delta < 0 {
			what = "sets its wall clock back by"
		}
		w.note(c.index, -1, what, "", int64(delta.Abs()))
		c.watch.turn(delta)
		c.jumped = time.Now()
		c.turned = c.turned || delta > 0
	}
}

// forgetAndTurn makes a majority of the masters lose their data. At most one max TTL later, it sets the wall clocks of
// the clients back.
func (w *simulation) forgetAndTurn() {
	for _, s := range w.servers[:len(w.servers)/2+1] {
		w.note(-1, s.index, "loses all its keys", "", 0)
		s.State.Flush()
		s.forget()
	}
	d := w.upTo(w.plan.guard)
	w.calmFrom = later(w.calmFrom, time.Now().Add(d))
	w.at(d, slotFaults, func() {
		for _, c := range w.clients {
			w.turn(c, -1)
		}
	})
}
