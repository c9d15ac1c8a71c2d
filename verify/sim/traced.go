package sim

import (
	"encoding/json"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/verify/sim/trace"
)

// traced passes one event to the checker of the specification's rules. The caller must hold w.mu.
func (w *simulation) traced(e *trace.Event) {
	e.At = w.since(w.start)
	if w.Setup.Trace != nil {
		if line, err := json.Marshal(e); err == nil {
			_, _ = w.Setup.Trace.Write(append(line, '\n'))
		}
	}
	if w.plan.beyond {
		return // the faults violate the assumptions of the specification
	}
	for _, problem := range w.rules.Check(e) {
		w.problemLocked("%s", problem)
	}
}

// lost traces a loss of data of the master, or a change of its incarnation; kind is the kind of the event.
func (s *server) lost(kind string) {
	if s.w.rules != nil {
		s.w.traced(&trace.Event{Kind: kind, Master: s.index})
	}
}

// executed traces a call of a script that the master has executed.
func (s *server) executed(n *conn, keys []string, m message) {
	now := s.clock.now()
	e := &trace.Event{Master: s.index, Clock: now, Name: keys[0], Lease: m.id, Reply: m.code, Unread: n.closed}
	e.Record, _ = s.State.Get(now, prefix.Admission())
	if r, err := scripts.ParseRecord(e.Record); err == nil {
		id := s.Env.Identity()
		freed := id == s.Env.RunID+"/0000000000000000000000000000000000000000/-1" && len(r.Identity) > len(s.Env.RunID) &&
			r.Identity[:len(s.Env.RunID)] == s.Env.RunID
		e.Own = r.Identity == id || freed
	}
	ms := func(i int) time.Duration { // the TTL of a lease, from the life of its key
		return max(0, time.Duration(number(word(m.words, i)))*time.Millisecond-scripts.FenceKept)
	}
	switch m.script {
	case scripts.Acquire:
		e.Kind, e.Stamp, e.First, e.Last, e.TTL = trace.Acquire, m.words[0], m.ballot, number(m.words[wordLast]), ms(wordTTL)
		switch modeOf(m.words) {
		case "repair":
			e.Kind, e.Previous = trace.Repair, word(m.words, wordRepairPrevious)
		case "import":
			e.Kind, e.Previous = trace.Import, word(m.words, wordWaiter)
		}
	case scripts.Extend:
		e.Kind, e.Stamp, e.TTL = trace.Extend, m.words[0], ms(wordTTL)
	case scripts.Release:
		e.Kind, e.Last, e.TTL, e.Ended = trace.Release, number(word(m.words, wordEndBallot)), ms(wordKeep), m.grants
	case scripts.Admit:
		e.Kind, e.Step = trace.Admit, m.words[wordStep]
	case scripts.Inspect:
		return
	default:
		e.Kind = trace.Shared
	}
	s.w.traced(e)
}
