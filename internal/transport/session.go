package transport

import (
	"fmt"
	"sync/atomic"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport/fault"
	"github.com/redlock-go/redlock/internal/transport/pipe"
	"github.com/redlock-go/redlock/internal/transport/wire"
)

// A session is one connection for calls, with the identity of the server.
type session struct {
	m        *master
	id       uint64
	addr     string // the dialled address
	pipe     *pipe.Pipe
	beating  atomic.Bool                   // a heartbeat is outstanding
	beats    int                           // heartbeats so far
	info     Info                          // after the handshake, reader only
	infoSent clock.Instant                 // when INFO was sent in the handshake
	lastInfo atomic.Pointer[clock.Instant] // when the last INFO that was answered was sent
	stop     stopping                      // as last read, if the master can be replaced by a replica; reader only
	byText   bool                          // the user has no right to load scripts
	name     atomic.Pointer[string]        // as last sent; nil if this package does not name the connection
}

// open reports whether Send may use s.
func (s *session) open() bool { return s.m.state.Load().sess == s }

// serve runs the session on the reader's goroutine. It returns when every request has been answered.
func (s *session) serve(c *wire.Conn) {
	m := s.m
	owner := m.owner()
	owner.BeatFunc = s.beat
	s.pipe = pipe.New(c, s.byText, owner)
	m.pending.begin()
	s.resend()
	op, err := s.pipe.Run(m.ctx, m.cfg.clock.Now().Sub(s.infoSent))
	m.moved = m.moved && !s.open() || leaving(err) // events of an open session have already reported a move
	m.pending.stop()
	m.setDown(op, err)
	s.pipe.Drain(err)
}

// resend queues pending releases, up to the window. After the first pass, whether or not all releases succeeded, it
// opens the session to Send.
func (s *session) resend() {
	m := s.m
	for r, ok := m.pending.next(); ok; r, ok = m.pending.next() {
		to := func(reply any, ended error) {
			refusal, _ := reply.(redis.Error)
			m.pending.finish(r, ended == nil && !fault.Transient(refusal))
			s.resend()
		}
		if !s.pipe.Queue(r.CallFunc(r.Leases, r.Ballot), to) {
			m.pending.finish(r, false) // the session has ended; the release stays pending
		}
	}
	if s.open() || !m.pending.idle() {
		return
	}
	m.mu.Lock()
	up := m.ctx.Err() == nil && s.pipe.Reason() == nil
	if up {
		m.state.Store(&connState{sess: s})
	}
	m.mu.Unlock()
	if up {
		s.rename()
		m.transport.watchers.emit(Event{Master: m.index, Session: s.id, Info: s.info})
	}
}

// beat queues a heartbeat, and the releases that are still pending.
func (s *session) beat() {
	if s.beating.Swap(true) {
		return
	}
	asked := s.m.cfg.clock.Now()
	if s.m.cfg.failover != nil {
		s.beats++
		for _, q := range s.stop.questions(s.m.cfg.tag, s.beats%settingsEvery == 0) {
			s.pipe.Queue(scripts.Command("heartbeat", q.Command...), func(reply any, ended error) {
				if ended != nil {
					return
				}
				if err := q.TakeFunc(reply); err != nil {
					s.pipe.Kill("heartbeat", err)
				}
			})
		}
	}
	s.pipe.Queue(scripts.HeartbeatCall(s.m.cfg.failover != nil), func(reply any, ended error) {
		if _, refused := reply.(redis.Error); refused && ended == nil {
			s.beatInFull() // INFO may be allowed, and its text or error says more
			return
		}
		s.take(asked, reply, ended, s.readHeartbeat)
	})
	if s.open() {
		s.m.pending.begin()
		s.resend()
	}
}

// beatInFull queues a heartbeat that reads all of INFO.
func (s *session) beatInFull() {
	asked := s.m.cfg.clock.Now()
	s.pipe.Queue(scripts.Command("heartbeat", "INFO"), func(reply any, ended error) {
		s.take(asked, reply, ended, s.m.cfg.readInfo)
	})
}

// take processes the reply to a heartbeat that was sent at asked.
func (s *session) take(
	asked clock.Instant, reply any, ended error, readFunc func(clock.Instant, any) (Info, map[string]string, error),
) {
	if ended != nil {
		return
	}
	info, fields, err := readFunc(asked, reply)
	if err == nil {
		err = s.judge(info, fields)
	}
	s.lastInfo.Store(&asked)
	if err != nil {
		s.pipe.Kill("heartbeat", err)
	}
}

// readHeartbeat parses the reply of the heartbeat script. Other fields of INFO do not change while the server runs, or
// prevent the script while the server loads.
func (s *session) readHeartbeat(asked clock.Instant, reply any) (Info, map[string]string, error) {
	text, err := redis.String(reply, nil)
	if err != nil {
		return Info{}, nil, err
	}
	fields, err := scripts.DecodeHeartbeat(text)
	i := infoOf(fields)
	i.Version, i.Valkey, i.Cluster = s.info.Version, s.info.Valkey, s.info.Cluster
	i.readAt(s.m.cfg.clock, asked)
	return i, fields, err
}

// judge processes the result of a heartbeat. An error ends the session: the server is another one, may have lost locks,
// or is no longer fit.
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
	if s.open() { // the session has not been reported before it is open
		s.m.transport.watchers.emit(Event{Master: s.m.index, Session: s.id, Info: info})
	}
	return nil
}
