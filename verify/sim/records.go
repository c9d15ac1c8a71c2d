package sim

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
)

// A recording is what the simulator knows about the admission record of one server in a run of the kind records.
type recording struct {
	texts   []string         // the records of the server, in the order of their appearance; "" for none
	read    map[int]readings // by client
	excused bool             // a quarantine may begin: the server may have lost data since it was last admitted
}

// readings describes what one client has certainly read.
type readings struct {
	last  int             // index of the latest of the server's texts
	texts map[string]bool // all that the client has read
}

// remembered is the number of replaced or lost records of a master that a client remembers.
const remembered = 8

// records chooses masters whose admission records vanish, come back, or get a TTL while the servers run.
func (p *plan) records(r *rand.Rand) {
	p.heartbeat, p.unlike = between(r, 100*time.Millisecond, 400*time.Millisecond), 0
	p.guard = max(p.guard, 2*p.heartbeat+4*p.timeout)
	p.length, p.every = between(r, 3*time.Second, 8*time.Second), between(r, 50*time.Millisecond, 150*time.Millisecond)
	p.idle = between(r, time.Millisecond, 10*time.Millisecond)
	p.dwell = between(r, 5*time.Millisecond, 200*time.Millisecond)
	p.masters, p.clients, p.names = pick(r, 3, 3, 3, 4, 5), pick(r, 2, 2, 3), p.names[:1]
	if r.IntN(2) == 0 { // quarantines end
		p.slowly(r, between(r, 2*time.Second, 40*time.Second))
		p.every = between(r, time.Second, 5*time.Second)
		p.idle, p.dwell = between(r, 10*time.Millisecond, time.Second), between(r, 10*time.Millisecond, 2*time.Second)
	}
	p.least, p.most = p.guard/2, p.guard
	p.toEnd, p.extend, p.hand, p.keep = 0.3+0.5*r.Float64(), 0.5*r.Float64(), 0, 0
	p.weights[recordTTL], p.weights[comeBack], p.weights[cutOff] = 2, 3, pick(r, 1, 3)
	p.weights[vanish], p.weights[flush], p.weights[crashEmpty] = pick(r, 0, 0, 1), pick(r, 0, 0, 1), pick(r, 0, 0, 1)
	p.weights[split] = 2 + r.IntN(4)
}

// record returns the admission record of the server, or "".
func (s *server) record() string {
	text, _ := s.State.Get(s.clock.now(), prefix.Admission())
	return text
}

// keep adds the present record to the texts, if it differs from the last one, and returns its index.
func (r *recording) keep(text string) int {
	if n := len(r.texts); n == 0 || r.texts[n-1] != text {
		r.texts = append(r.texts, text)
	}
	return len(r.texts) - 1
}

// sawRecord records that a client reads the record of a server, unless the reply is lost. It reports a quarantine that
// begins although the server has lost nothing.
func (w *simulation) sawRecord(n *conn, s *server, m *message) {
	if w.plan.kind != records {
		return
	}
	at, c := s.keep(s.record()), n.l.c.index
	if m.script != scripts.Admit {
		return
	}
	if m.code == int64(scripts.AdmitDone) {
		switch scripts.AdmitStep(m.words[wordStep]) {
		case scripts.AdmitStart:
			if !s.excused {
				w.problemLocked("client %d begins a quarantine of master %d, which has lost nothing", c, s.index)
			}
		case scripts.AdmitEnd, scripts.AdmitNow:
			s.excused = false
		case scripts.AdmitSettle:
			w.seen.reach(ttlRemoved, true)
		}
	}
	// Until a round trip later, messages that the client sent before it read the reply may arrive.
	w.at(2*(w.plan.latency+w.plan.jitter)+tick, n.slot, func() {
		if n.closed || n.dead || n.reset || n.l.upCut || n.l.downCut {
			return
		}
		for _, o := range n.l.conns {
			if len(o.upHeld) > 0 {
				return
			}
		}
		is := s.read[c]
		if is.texts == nil {
			is.texts = map[string]bool{}
		}
		is.last = max(is.last, at)
		is.texts[s.texts[at]] = true
		s.read[c] = is
	})
}

// makeRecord causes one fault of the record of a server that keeps running.
func (w *simulation) makeRecord(f fault, s *server) {
	now, key := s.clock.now(), prefix.Admission()
	if s.down || s.record() == "" {
		return
	}
	s.keep(s.record())
	switch f {
	case vanish:
		if w.mayForget(s) {
			w.note(-1, s.index, "loses its admission record", "", 0)
			s.State.Delete(now, key)
			s.forgotRecord()
		}
	case recordTTL:
		// A client reads each record every half a minute, or when it can reach the master again.
		ttl := 30*time.Second + 3*w.plan.guard + 4*w.plan.heartbeat + w.upTo(10*time.Second)
		if short := w.upTo(w.plan.guard); w.random.IntN(8) == 0 && w.mayForget(s) {
			ttl = short
			s.forgotRecord()
		}
		for _, o := range w.servers {
			if o == s || ttl > 30*time.Second && w.random.IntN(2) == 0 {
				w.note(-1, o.index, "has a TTL on its admission record:", "", int64(ttl))
				o.State.Expire(o.clock.now(), key, ttl.Milliseconds())
			}
		}
	case comeBack:
		w.comeBack(s)
	}
}

// comeBack replaces the record of a server by an earlier one of the same process. Usually the locks are lost, as with
// FLUSHALL and RESTORE. Only such records come back that every client knows to be old: it has read this record, and has
// since read a later one or has found none.
func (w *simulation) comeBack(s *server) {
	var old []string
	for i, text := range s.texts[max(0, len(s.texts)-1-remembered):] {
		r, err := scripts.ParseRecord(text)
		known := err == nil && r.Identity == s.Env.Identity() && r.Admitted
		i += max(0, len(s.texts)-1-remembered)
		for j := range w.clients {
			is := s.read[j]
			known = known && is.texts[text] && is.last > i && !slices.Contains(s.texts[is.last:], text)
		}
		if known {
			old = append(old, text)
		}
	}
	if len(old) == 0 || !w.mayForget(s) {
		return
	}
	w.note(-1, s.index, "has an earlier admission record again", "", 0)
	if w.random.IntN(4) > 0 {
		held := false
		for _, c := range w.clients {
			held = held || len(c.beliefs) > 0
		}
		id, _ := s.holder(w.plan.names[0])
		w.seen.reach(recordWithoutLock, id != "" && held)
		w.note(-1, s.index, "loses all its keys", "", 0)
		s.State.Flush()
		s.forget()
	}
	text := old[w.random.IntN(len(old))]
	s.State.Set(s.clock.now(), prefix.Admission(), text, 0)
	s.keep(text)
	s.forgotRecord()
}

// forgotRecord records that the server does not vote, as if it had lost its data.
func (s *server) forgotRecord() { s.forgot, s.excused = s.w.now(), true }
