package sim

import "time"

// freezeAll lets the machines of all programs, and their network, stand still together for less than the longest
// validity. Their clocks have gone on when they wake up, or only the wall clocks where those are virtual machines;
// the masters have gone on, too. Nothing that runs on a timer notices. A freeze of one machine, during which others
// go on, is suspend. With reply it happens when the next answer of a master is about to be read by the client.
func (w *world) freezeAll(c *client, reply bool) {
	d := w.upTo(w.plan.most)
	if reply {
		c.freezeNext = d
		return
	}
	w.leapBy(d)
}

// leapBy lets d of true time pass at once. The world's lock is held.
func (w *world) leapBy(d time.Duration) {
	w.note(-1, -1, "all machines stand still for", "", int64(d))
	w.leaped.Add(int64(d))
	for _, c := range w.clients {
		c.jumped = time.Now()
		if w.plan.frozen {
			c.watch.miss(d)
		}
	}
}

// readNext lets a freeze happen that waited for an answer to be read.
func (c *client) readNext() {
	if d := c.freezeNext; d > 0 && c.w.faults {
		c.freezeNext = 0
		c.w.seen.reach(frozenBeforeReading, true)
		c.w.leapBy(d)
	}
}

// farthestTurn is by how much a wall clock is set in the kind that is about it.
const farthestTurn = 3 * time.Hour

// turn sets a client's wall clock, in the kind that is about it by hours, and now and then those of all clients.
func (w *world) turn(c *client, by time.Duration) {
	all := []*client{c}
	if w.plan.kind == setback {
		if hours := w.upTo(farthestTurn); by < 0 {
			by = -hours
		} else {
			by = hours
		}
		if w.random.IntN(2) == 0 {
			all = w.clients
		}
	}
	for _, c := range all {
		what := "sets its wall clock forward by"
		if by < 0 {
			what = "sets its wall clock back by"
		}
		w.note(c.index, -1, what, "", int64(by.Abs()))
		c.watch.turn(by)
		c.jumped = time.Now()
		c.turned = c.turned || by > 0
	}
}

// forgetAndTurn lets a majority of the masters lose their data, and soon sets all clients' wall clocks back: their
// guards rest then.
func (w *world) forgetAndTurn() {
	for _, s := range w.servers[:len(w.servers)/2+1] {
		w.note(-1, s.index, "loses all its keys", "", 0)
		s.state.Flush()
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
