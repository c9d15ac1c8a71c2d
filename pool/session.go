package pool

import (
	"fmt"
	"sync/atomic"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/pool/internal/fault"
	"github.com/redlock-go/redlock/pool/internal/pipe"
	"github.com/redlock-go/redlock/pool/internal/wire"
)

// A session is one connection for calls: who the server is, and what is paid to it.
type session struct {
	m       *master
	id      uint64
	addr    string // that was dialled
	pipe    *pipe.Pipe
	beating atomic.Bool                   // a heartbeat is outstanding
	info    Info                          // after the handshake, reader only
	asked   clock.Instant                 // when INFO was asked in the handshake
	heard   atomic.Pointer[clock.Instant] // when INFO was asked last that was answered
	stop    stopping                      // as read last, where others may replace the master; reader only
	byText  bool                          // the user may not load scripts
}

// open reports whether Send has been let in.
func (s *session) open() bool { return s.m.gate.Load().sess == s }

// serve is the life of the session. It returns when every request has been answered. The caller is the reader.
func (s *session) serve(c *wire.Conn) {
	m := s.m
	owner := m.owner()
	owner.BeatFunc = s.beat
	s.pipe = pipe.New(c, s.byText, owner)
	m.owed.begin()
	s.pay()
	op, err := s.pipe.Run(m.ctx, m.cfg.clock.Since(s.asked))
	m.moved = m.moved && !s.open() || leaving(err) // what a session that was open has said is known
	m.owed.stop()
	m.setDown(op, err)
	s.pipe.Drain(err)
}

// pay queues payments of what is owed, up to the window. After those of the beginning, paid or not, Send is let in.
func (s *session) pay() {
	m := s.m
	for r, ok := m.owed.next(); ok; r, ok = m.owed.next() {
		to := func(reply any, ended error) {
			refusal, _ := reply.(redis.Error)
			m.owed.paid(r, ended == nil && !fault.Transient(refusal))
			s.pay()
		}
		if !s.pipe.Queue(r.CallFunc(r.Grants, r.Ballot), to) {
			m.owed.paid(r, false) // the session has ended; it stays owed
		}
	}
	if s.open() || !m.owed.settled() {
		return
	}
	m.mu.Lock()
	up := m.ctx.Err() == nil && s.pipe.Reason() == nil
	if up {
		m.gate.Store(&gate{sess: s})
	}
	m.mu.Unlock()
	if up {
		m.pool.watchers.emit(Event{Master: m.index, Session: s.id, Info: s.info})
	}
}

// beat queues a heartbeat, and payments of what is still owed.
func (s *session) beat() {
	if s.beating.Swap(true) {
		return
	}
	asked := s.m.cfg.clock.Now()
	if s.m.cfg.failover != nil {
		for _, q := range s.stop.questions(s.m.cfg.tag) {
			words := make([]string, len(q.Command))
			for i, w := range q.Command {
				words[i] = fmt.Sprint(w)
			}
			s.pipe.Queue(scripts.Command("heartbeat", words...), func(reply any, ended error) {
				if ended != nil {
					return
				}
				if err := q.TakeFunc(reply); err != nil {
					s.pipe.Kill("heartbeat", err)
				}
			})
		}
	}
	s.pipe.Queue(scripts.Command("heartbeat", "INFO"), func(reply any, ended error) {
		if ended != nil {
			return
		}
		info, fields, err := s.m.cfg.readInfo(asked, reply)
		if err == nil {
			err = s.judge(info, fields)
		}
		s.heard.Store(&asked)
		if err != nil {
			s.pipe.Kill("heartbeat", err)
		}
	})
	if s.open() {
		s.m.owed.begin()
		s.pay()
	}
}

// judge books a heartbeat. An error ends the session: the server is another, may have lost locks, or is no longer fit.
func (s *session) judge(info Info, fields map[string]string) error {
	if info.Identity() != s.info.Identity() && !info.freedFrom(s.info) {
		return fault.Refused(fmt.Sprintf("its identity has changed from %s to %s on one connection: it may have lost locks",
			s.info.Identity(), info.Identity()))
	}
	if err := info.verdict(&s.m.cfg); err != nil {
		return err
	}
	if err := s.m.cfg.failover.verdict(&s.stop, &info, fields); err != nil {
		return err
	}
	info.Moved = s.info.Moved
	info.BacklogTTL, info.BacklogKnown = s.info.BacklogTTL, s.info.BacklogKnown
	s.info = info
	s.beating.Store(false)
	if s.open() { // before that there is nothing to tell
		s.m.pool.watchers.emit(Event{Master: s.m.index, Session: s.id, Info: info})
	}
	return nil
}
