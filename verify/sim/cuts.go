package sim

// separate cuts the link of client c to master s, and sometimes other links of the client, in the given directions.
func (w *simulation) separate(c *client, s *server, f fault, up, down bool) {
	if 4*w.cut() > len(w.clients)*len(w.servers) {
		return // if more links than a quarter are cut, clients acquire too few locks
	}
	d, alone := w.upTo(w.plan.guard), w.random.IntN(2) == 0
	if f == stall {
		d, alone = w.upTo(8*w.plan.timeout), true
	}
	for _, o := range w.servers {
		if o != s && (alone || w.random.IntN(3) > 0) {
			continue
		}
		l := c.links[o.addr]
		l.upCut, l.downCut = l.upCut || up, l.downCut || down
		l.refuse = f != stall
		w.note(c.index, o.index, separated[f], "", int64(d))
		w.ending(d, l.open)
	}
}

// cut returns the number of links that are cut.
func (w *simulation) cut() (n int) {
	for _, c := range w.clients {
		for _, l := range c.inOrder {
			if l.upCut || l.downCut {
				n++
			}
		}
	}
	return n
}

var separated = map[fault]string{
	stall: "has its messages delayed for", split: "is cut off for",
	splitUp: "cannot send for", splitDown: "cannot receive for",
}

// cutOff breaks the connections of client c, or of all clients, to master s.
func (w *simulation) cutOff(c *client, s *server) {
	arrives := w.random.IntN(2) == 0
	all := w.random.IntN(3) == 0
	for _, o := range w.clients {
		if !all && o != c {
			continue
		}
		w.note(o.index, s.index, "loses its connections", "", 0)
		for _, n := range append([]*conn(nil), o.links[s.addr].conns...) {
			n.cut(arrives)
		}
	}
}
