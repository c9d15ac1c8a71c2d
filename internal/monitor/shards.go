package monitor

import (
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/admission"
	"github.com/redlock-go/redlock/internal/scripts"
)

// Shards is what the Monitors of all shards of a Locker share. The zero Shards is ready for use. All Monitors must be
// created with [New] before the first of them runs.
type Shards struct {
	monitors []*Monitor
	steps    atomic.Uint64 // number of steps sent so far, in all shards
	sought   atomic.Uint64 // all records that were read before the step of this number are read again
}

// others returns what the records of all shards but that of m show.
func (s *Shards) others(m *Monitor) (list []admission.Evidence) {
	for _, other := range s.monitors {
		if other != m {
			list = append(list, other.view.Load().Evidence)
		}
	}
	return list
}

// seek makes all Monitors read the records again that were read before the step of this number.
func (s *Shards) seek(number uint64) {
	for last := s.sought.Load(); last < number; last = s.sought.Load() {
		if s.sought.CompareAndSwap(last, number) {
			s.reevaluate(nil)
			return
		}
	}
}

// learned makes the other Monitors judge their masters again if the evidence of m has changed in a way for which one of
// them may wait.
func (s *Shards) learned(m *Monitor, last, next *admission.Evidence) {
	sought := s.sought.Load()
	crossed := func(last, next uint64) bool { return (last < sought) != (next < sought) }
	if last.Other != next.Other || crossed(last.Proven, next.Proven) || crossed(last.Named, next.Named) ||
		crossed(last.Looked, next.Looked) {
		s.reevaluate(m)
	}
}

// reevaluate makes all Monitors but m judge their masters again.
func (s *Shards) reevaluate(m *Monitor) {
	for _, other := range s.monitors {
		if other != m {
			other.enqueue(func() {})
		}
	}
}

// soughtPause is the shortest time between two reads of a record that another shard seeks.
const soughtPause = admission.Look / 10

// readSought reads the records again that were read before the step that is sought, and returns the longest time until
// the next call.
func (m *Monitor) readSought(now clock.Instant) time.Duration {
	sought, idle := m.settings.Shards.sought.Load(), never
	for i := range m.config.All().All() {
		f, t := &m.facts[i], &m.tracks[i]
		if !f.Up || !f.Read || f.Asked >= sought || t.inFlight {
			continue
		}
		left := max(t.pauseLeft(now), soughtPause-now.Sub(t.sentAt))
		if left <= 0 {
			m.sendStep(i, scripts.AdmitRequest{Step: scripts.AdmitRead}, nil)
			continue
		}
		idle = min(idle, left)
	}
	return idle
}
