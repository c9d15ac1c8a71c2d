package sim

import "time"

// A lapse makes repairs dangerous. A master without the lock of the holder votes for another client, and then loses
// its data with this vote. Meanwhile a third master's reply to the holder's extension is late; or the holder reaches
// the forgetful master only after the loss, and no longer reaches the third master. The other client's messages to
// the third master are late, too, and arrive when the holder's lock has expired there.
type lapse struct {
	w                 *simulation
	holder, other     *link // links to the forgetful master
	holders3, others3 *link
	how               int
}

// Kinds of lapses.
const (
	lateReply = iota
	lateRound
	lapseKinds
)

// lapse starts a lapse of master s. The times of its steps depend on the timeout of the pool, because the pool ignores
// replies that arrive after the timeout.
func (w *simulation) lapse(s *server, c *client) {
	if w.lapsing || s.down || !w.mayForget(s) {
		return
	}
	w.lapsing = true
	third := w.servers[(s.index+1+w.random.IntN(len(w.servers)-1))%len(w.servers)]
	other := w.clients[(c.index+1)%len(w.clients)]
	if len(c.beliefs) == 0 {
		c, other = other, c
	}
	l := &lapse{w: w, holder: c.links[s.addr], other: other.links[s.addr], holders3: c.links[third.addr],
		others3: other.links[third.addr], how: w.random.IntN(lapseKinds)}
	w.note(c.index, s.index, "is cut off, before a lapse of the kind", "", int64(l.how))
	l.holder.sever()
	t := w.plan.timeout
	at := w.plan.most + w.upTo(t) // by this time, the lock of the holder has expired on s
	l.step(at, func() {
		l.holders3.downCut = l.how == lateReply
		l.holder.refuse = l.how == lateRound
	})
	const connects = 100 * time.Millisecond // maximum time to connect
	at += connects
	l.step(at, func() { l.holders3.upCut = true })
	asks := at + t/10 + w.upTo(t/4)
	limit := t // of the attempt of the other client
	if other.index == 1 {
		limit += w.plan.patience
	}
	l.step(asks, func() { l.others3.upCut = true })
	l.step(asks+t/15, l.forget)
	l.step(asks+t/15+connects+w.upTo(t/10), func() { l.holders3.pass(false, true) })
	l.step(asks+7*limit/10+w.upTo(limit/4), func() { l.others3.pass(true, false) })
	w.ending(asks+limit, func() {
		for _, one := range []*link{l.holder, l.holders3, l.others3} {
			one.open()
		}
		w.lapsing = false
	})
}

// step calls f after d, unless the faults have ended by then.
func (l *lapse) step(d time.Duration, f func()) {
	l.w.at(d, slotFaults, func() {
		if l.w.faults {
			f()
		}
	})
}

// forget makes the master lose its data, and lets the holder reach the master again.
func (l *lapse) forget() {
	s := l.holder.s
	l.w.note(l.other.c.index, s.index, "loses its data with the vote", "", 0)
	if s.down {
		return
	}
	l.holder.refuse = false
	s.State.Flush()
	s.forget()
	if l.w.random.IntN(2) == 0 {
		s.restart()
		clear(s.Loaded)
		s.disconnect(nil)
	}
}

// sever breaks the connections of a link. No client can connect until the link is opened.
func (l *link) sever() {
	l.refuse = true
	for _, n := range append([]*conn(nil), l.conns...) {
		n.cut(false)
	}
}

// pass opens the given directions of a link, and sends the messages that were held back.
func (l *link) pass(up, down bool) {
	upCut, downCut, refuse, denied := l.upCut && !up, l.downCut && !down, l.refuse, l.denied
	l.open()
	l.upCut, l.downCut, l.refuse, l.denied = upCut, downCut, refuse, denied
}
