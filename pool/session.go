package pool

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/pool/internal/fault"
	"github.com/redlock-go/redlock/pool/internal/pipe"
)

// A session is one connection that has passed the handshake: who the server is, what is paid to it, and when the
// connection must end.
type session struct {
	m         *master
	id        uint64
	pipe      *pipe.Pipe
	open      atomic.Bool // Send has been let in
	beating   atomic.Bool // a heartbeat is outstanding
	info      Info        // reader only
}

// pay queues payments of what is owed, up to the window. Once what was owed at the beginning is paid, or its payment
// has failed, Send is let in.
func (s *session) pay() {
	m := s.m
	for p, ok := m.owed.next(); ok; p, ok = m.owed.next() {
		if !s.pipe.Queue(p.CallFunc(p.Grants, p.Ballot), &paying{s, p}) {
			m.owed.paid(p, false) // the session has ended; it stays owed
		}
	}
	if s.open.Load() || !m.owed.settled() {
		return
	}
	m.mu.Lock()
	up := m.shutting == nil && s.pipe.Reason() == nil
	if up {
		s.open.Store(true)
		m.gate.Store(&gate{sess: s})
	}
	m.mu.Unlock()
	if up {
		m.watchers.emit(Event{Master: m.index, Session: s.id, Info: s.info})
	}
}

// paying is the Receiver of a payment.
type paying struct {
	s *session
	p payment
}

func (y *paying) Reply(_ int, _ any, err error) {
	y.s.m.owed.paid(y.p, err == nil || Answered(err) && !Transient(err))
	y.s.pay()
}

// mind ends a session whose oldest request is overdue, also one that is stuck in a write, and starts heartbeats. Its
// timer and its times are monotonic. known is for how long it has been known who the server is.
func (s *session) mind(known time.Duration) {
	cfg := &s.m.cfg
	first := max(cfg.heartbeat-known, 0)
	beatAt := time.Now().Add(first)
	timer := time.NewTimer(min(cfg.timeout, first))
	defer timer.Stop()
	for {
		select {
		case <-s.pipe.Ended():
			return
		case <-timer.C:
		}
		left := s.pipe.Left(cfg.timeout)
		if left <= 0 {
			s.pipe.Kill("watchdog", fault.Timeout("no reply within %v", cfg.timeout))
			return
		}
		now := time.Now()
		if !now.Before(beatAt) {
			beatAt = now.Add(cfg.heartbeat)
			s.beat()
			left = s.pipe.Left(cfg.timeout)
		}
		timer.Reset(min(left, beatAt.Sub(now)))
	}
}

// beat queues a heartbeat, and payments of what is still owed.
func (s *session) beat() {
	if s.beating.Swap(true) {
		return
	}
	s.pipe.Queue(askInfo, &beat{s: s, asked: s.m.cfg.clock.Now()})
	if s.open.Load() {
		s.m.owed.begin()
		s.pay()
	}
}

var askInfo = pipe.Command("heartbeat", "INFO")

// A beat is the Receiver of one heartbeat.
type beat struct {
	s     *session
	asked clock.Instant
}

func (b *beat) Reply(_ int, value any, failed error) {
	var refused error
	if failed != nil {
		reply, ok := answerOf(failed)
		if !ok {
			return // the session has ended
		}
		refused = reply
	}
	info, _, err := b.s.m.cfg.readInfo(b.asked, value, refused)
	if err == nil {
		err = b.s.judge(info)
	}
	if err != nil {
		b.s.pipe.Kill("heartbeat", err)
	}
}

// judge books a heartbeat. An error ends the session: the server is another, may have lost locks, or is no longer fit.
func (s *session) judge(info Info) error {
	if info.Identity() != s.info.Identity() && !info.freedFrom(s.info) {
		return fault.Refused(fmt.Sprintf("its identity has changed from %s to %s on one connection: it may have lost locks",
			s.info.Identity(), info.Identity()))
	}
	if err := info.verdict(s.m.cfg.allowEviction); err != nil {
		return err
	}
	info.BacklogTTL, info.BacklogKnown = s.info.BacklogTTL, s.info.BacklogKnown
	s.info = info
	s.beating.Store(false)
	if s.open.Load() { // before that there is nothing to tell
		s.m.watchers.emit(Event{Master: s.m.index, Session: s.id, Info: info})
	}
	return nil
}
