package sim

import (
	"math/rand/v2"
	"time"

	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
)

// durables chooses durable masters that restart with their data, and whose append-only files are sometimes off before.
func (p *plan) durables(r *rand.Rand) {
	p.masters, p.clients, p.names = pick(r, 1, 3, 3, 3, 4, 5), pick(r, 2, 2, 3), p.names[:1]
	p.heartbeat, p.busy, p.values = between(r, 100*time.Millisecond, 300*time.Millisecond), pick(r, 1, 1, 2), 0
	p.guard = between(r, 600*time.Millisecond, 3*time.Second)
	p.least, p.most, p.length = p.guard/2, p.guard, between(r, 4*time.Second, 8*time.Second)
	p.idle, p.dwell = between(r, time.Millisecond, 10*time.Millisecond), between(r, 5*time.Millisecond, p.guard)
	p.toEnd, p.extend, p.hand, p.keep = 0.3+0.5*r.Float64(), r.Float64(), 0, 0
	p.every = between(r, 50*time.Millisecond, 200*time.Millisecond)
	p.weights[fileOff], p.weights[crashFull], p.weights[cutOff] = 3, pick(r, 0, 1, 2), pick(r, 0, 1)
	p.weights[split] = pick(r, 0, 0, 4)
}

// switchFile switches the append-only file of a master off. After a while, the master crashes and restarts from its old
// file; or the file is switched on, and the master crashes before or after the file is complete. Each client must see
// the switch at a heartbeat before the master crashes. A client that is cut off does not see it, so its locks must have
// ended.
func (w *simulation) switchFile(s *server) {
	if s.down || s.fileOff {
		return
	}
	p := &w.plan
	d := p.heartbeat + 4*p.timeout + 100*time.Millisecond + w.upTo(p.heartbeat)
	if p.weights[split] > 0 {
		d += p.guard * 21 / 20
	}
	w.note(-1, s.index, "has its append-only file switched off for", "", int64(d))
	s.SetAppendOnly("no")
	s.fileOff = true
	w.calmFrom = later(w.calmFrom, time.Now().Add(d+2*p.guard))
	on := func() {
		s.SetAppendOnly("yes")
		s.fileOff = false
	}
	w.at(d, slotFaults, func() {
		then := w.random.IntN(6)
		if then == 0 {
			w.oldFile(s)
			return
		}
		dials := w.dials(s)
		if then < 3 {
			w.note(-1, s.index, "has its append-only file switched on", "", 0)
			s.SetAppendOnly("rewriting")
		}
		w.at(w.upTo(p.guard), slotFaults, func() {
			if then == 1 || then == 2 && w.dials(s) != dials { // a client that has connected does not know that the file is old
				w.note(-1, s.index, "has a complete append-only file", "", 0)
				on()
				return
			}
			w.oldFile(s)
		})
	})
}

// dials returns how often clients have begun to connect to s.
func (w *simulation) dials(s *server) (n int) {
	for _, c := range w.clients {
		n += c.links[s.addr].generation
	}
	return n
}

// oldFile makes a master crash and restart from its append-only file, which lacks the last writes.
func (w *simulation) oldFile(s *server) {
	w.note(-1, s.index, "crashes, and will be back with an old file", "", 0)
	for _, c := range w.clients {
		w.seen.reach(restartedOldFile, len(c.beliefs) > 0)
	}
	s.down, s.mute = true, 0
	s.disconnect(nil)
	w.at(w.upTo(w.plan.guard/4), slotFaults, func() {
		s.down, s.fileOff = false, false
		s.restart()
		clear(s.Loaded)
		s.Reload()
		s.restored()
		s.forget()
	})
}

// sawDurable detects a grant of a durable master within a quarantine of its restart.
func (w *simulation) sawDurable(s *server, m *message) {
	w.seen.reach(
		votedAfterCrash,
		w.plan.kind == durables && m.script == scripts.Acquire && m.code == int64(quorum.Granted) &&
			w.since(s.forgot) < leastQuarantine,
	)
}
