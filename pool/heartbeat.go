package pool

import (
	"fmt"

	"github.com/gomodule/redigo/redis"
)

// startBeatLocked queues a heartbeat, and payments of what is still owed. It reports whether the writer must be nudged.
func (s *session) startBeatLocked() (wake bool) {
	if s.beating {
		return false
	}
	s.beating = true
	s.beatStart = s.m.cfg.clock.Now()
	wake = s.queueLocked(request{kind: kindInfo})
	if s.noClock {
		wake = s.queueLocked(request{kind: kindTime}) || wake
	}
	if s.open && s.paying == 0 && len(s.toPay) == 0 {
		s.collectDebtsLocked()
		wake = s.payLocked() || wake
	}
	return wake
}

// beat books what a heartbeat brought. An error ends the session: the server is another, has forgotten, or is no
// longer fit.
func (s *session) beat(k kind, value any, reply redis.Error, isReply bool) error {
	var err error
	if isReply {
		err = reply
	}
	if k == kindInfo {
		text, err := redis.String(value, err)
		if err != nil {
			return fmt.Errorf("heartbeat: %w", s.m.infoError(err))
		}
		s.fresh = parseInfo(text)
		if s.noClock {
			return nil // its time comes with the next reply
		}
	} else if s.fresh.Time, err = parseTime(value, err); err != nil {
		return fmt.Errorf("heartbeat: TIME: %w", err)
	}
	return s.judge()
}

func (s *session) judge() error {
	m, info := s.m, s.fresh
	if info.Identity() != s.info.Identity() {
		return refused(fmt.Sprintf("its identity has changed from %s to %s on one connection: it may have forgotten locks",
			s.info.Identity(), info.Identity()))
	}
	if err := info.verdict(m.cfg.allowEviction); err != nil {
		return err
	}
	info.noClock = s.noClock
	m.mu.Lock()
	s.beating = false
	start, open := s.beatStart, s.open
	m.mu.Unlock()
	info.RTT = m.cfg.clock.Since(start)
	info.Read = start.Add(info.RTT / 2)
	s.info = info
	if open { // before that there is nothing to tell
		m.pool.watchers.emit(Event{Master: m.index, Session: s.id, Info: info})
	}
	return nil
}
