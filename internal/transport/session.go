package transport

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/frame"
	"github.com/redlock-go/redlock/internal/heartbeat"
	"github.com/redlock-go/redlock/internal/transport/fault"
	"github.com/redlock-go/redlock/internal/transport/pipe"
	"github.com/redlock-go/redlock/internal/transport/wire"
)

// A session is one connection for calls, with the identity of the server.
type session struct {
	m        *master
	id       uint64
	addr     string // the dialled address
	local    string // the address of this end of the connection; "" if it is not known
	server   string // the run id of the server
	pipe     *pipe.Pipe
	info     Info                          // after the handshake, guarded by beats.mu
	lastInfo atomic.Pointer[clock.Instant] // when the latest answered INFO or heartbeat was sent
	byText   bool                          // whether SCRIPT LOAD was refused
	name     string                        // the client name last sent, or ""; after the handshake, guarded by changeMu

	// Guarded by master.beats.mu after the handshake.
	beating bool          // whether a heartbeat sent by this session is outstanding
	sent    clock.Instant // when the session last sent a heartbeat
	leader  *session      // the session that decided to send the last heartbeat of this session
	byOther bool          // whether another session decided to send the heartbeat that was judged last
	digest  string        // digest of the server when its place was last read; see authority
	stop    Stopping      // the settings last read, if the master can be replaced by a replica
}

// open reports whether Send may use s.
func (s *session) open() bool { return s.m.state.Load().sess == s }

// age returns the time since the latest answered INFO or heartbeat was sent.
func (s *session) age() time.Duration { return s.m.cfg.Clock.Now().Sub(*s.lastInfo.Load()) }

// serve runs the session, and reads replies on the calling goroutine. It returns after every request has been answered.
func (s *session) serve(conn *wire.Conn) {
	m := s.m
	settings := m.pipeSettings()
	settings.BeatFunc = s.beat
	s.pipe = pipe.New(conn, s.byText, settings)
	m.pending.begin()
	s.resend()
	op, err := s.pipe.Run(m.ctx, s.age())
	m.beats.leave(s)
	m.pending.stop()
	m.setDown(op, err)
	s.pipe.Drain(err)
}

// resend queues pending releases, up to the window. When the first pass is complete, even if releases have failed,
// resend opens the session to Send.
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
		m.beats.mu.Lock()
		m.beats.sessions = append(m.beats.sessions, s)
		m.transport.watchers.emit(Event{Master: m.index, Session: s.id, Info: s.info})
		m.beats.mu.Unlock()
	}
}

// A heard is the reply to a heartbeat that was sent at asked.
type heard struct {
	asked  clock.Instant
	info   Info
	fields map[string]string
	digest string // see authority
}

// knows reports whether h shows that the server has not changed since s last read its place.
func (s *session) knows(h heard) bool {
	return h.digest != "" && h.digest == s.digest
}

// beat queues a heartbeat on the session whose turn it is, unless a recent heartbeat of another session is enough. If s
// is open, beat also queues the pending releases. It returns the time until its next call.
func (s *session) beat() (next time.Duration) {
	b := s.m.beats
	b.mu.Lock()
	if next = s.covered(); next <= 0 {
		next = s.m.cfg.Heartbeat
		b.next(s).send("", s)
	}
	b.mu.Unlock()
	if s.open() {
		s.m.pending.begin()
		s.resend()
	}
	return next
}

// send queues a heartbeat of s that leader has decided to send, unless a heartbeat of s is outstanding. If digest is
// not "", the reply to an earlier heartbeat has shown that the digest of the server is now digest, and send also reads
// its place. The caller must hold beats.mu.
func (s *session) send(digest string, leader *session) {
	if s.beating {
		return
	}
	asked := s.m.cfg.Clock.Now()
	s.beating, s.sent, s.leader = true, asked, leader
	by := s.m.cfg.failover
	if s.ask(by.dueQuestions(&s.stop)); digest != "" {
		s.ask(by.placeQuestions(&s.stop))
	}
	s.ask(s.info.questions())
	s.queue(by.call(s.digest), func(reply any) {
		if _, refused := reply.(redis.Error); refused {
			s.sendInFull() // INFO may be allowed, and its reply is more specific
			return
		}
		if digest != "" {
			s.digest = digest
		}
		s.handleReply(asked, reply, s.readHeartbeat, digest != "")
	})
}

// queue queues a command of a heartbeat. If the command is answered, handleFunc is called with beats.mu held.
func (s *session) queue(c *frame.Call, handleFunc func(reply any)) {
	s.pipe.Queue(c, func(reply any, ended error) {
		if ended == nil {
			s.m.beats.mu.Lock()
			defer s.m.beats.mu.Unlock()
			handleFunc(reply)
		}
	})
}

// ask queues questions of a heartbeat. If a TakeFunc returns an error, the session ends.
func (s *session) ask(list []wire.Question) {
	for _, q := range list {
		s.queue(frame.Command("heartbeat", q.Command...), func(reply any) {
			if err := q.TakeFunc(reply); err != nil {
				s.pipe.Kill("heartbeat", err)
			}
		})
	}
}

// sendInFull queues a heartbeat that reads all of INFO, because the server has refused the script.
func (s *session) sendInFull() {
	asked := s.m.cfg.Clock.Now()
	s.ask(s.m.cfg.failover.placeQuestions(&s.stop))
	read := func(asked clock.Instant, reply any) (Info, map[string]string, error) {
		info, fields, err := s.m.cfg.ReadInfo(asked, reply)
		info.Refused = true
		return info, fields, err
	}
	s.queue(frame.Command("heartbeat", "INFO"), func(reply any) { s.handleReply(asked, reply, read, true) })
}

// handleReply processes the reply to a heartbeat that s sent at asked, for all sessions with the server. place reports
// whether the place was read together with the heartbeat. If it was not read, and the digest of the server has changed,
// handleReply sends another heartbeat together with the questions about the place.
func (s *session) handleReply(
	asked clock.Instant, reply any, readFunc func(clock.Instant, any) (Info, map[string]string, error), place bool,
) {
	info, fields, err := readFunc(asked, reply)
	if err != nil {
		s.lastInfo.Store(&asked)
		s.pipe.Kill("heartbeat", err)
		return
	}
	info.Fsync, info.NoFsync, info.age = s.info.Fsync, s.info.NoFsync, s.info.age
	h := heard{asked, info, fields, s.m.cfg.failover.digestOf(fields)}
	s.beating = false
	if place && h.digest != s.digest {
		s.digest = "" // the server has changed again, perhaps after its place was read, which must be read once more
	}
	if place || s.knows(h) {
		s.byOther = s != s.leader
		s.judge(h)
	} else {
		s.send(h.digest, s.leader)
	}
	s.m.beats.spread(s, h)
}

// readHeartbeat parses the reply of the heartbeat script. The script omits the fields of INFO that do not change while
// the server runs, and the loading state, because a loading server refuses scripts.
func (s *session) readHeartbeat(asked clock.Instant, reply any) (Info, map[string]string, error) {
	text, err := redis.String(reply, nil)
	if err != nil {
		return Info{}, nil, err
	}
	fields, err := heartbeat.Decode(text)
	info := infoOf(fields)
	info.Product, info.Version, info.Valkey, info.Cluster = s.info.Product, s.info.Version, s.info.Valkey, s.info.Cluster
	if info.RunID == heartbeat.Unchanged {
		info.RunID, info.ReplID2, info.SecondOffset = s.info.RunID, s.info.ReplID2, s.info.SecondOffset
	}
	info.readAt(s.m.cfg.Clock, asked)
	return info, fields, err
}

// judge processes a heartbeat. It ends the session if the server has been replaced, may have lost locks, or is no
// longer fit.
func (s *session) judge(h heard) {
	s.lastInfo.Store(&h.asked)
	info := h.info
	if err := s.accept(&info, h.fields); err != nil {
		s.pipe.Kill("heartbeat", err)
		return
	}
	info.Moves, info.Started, info.SetBack, info.Evicted = s.info.Moves, s.info.Started, s.info.SetBack, s.info.Evicted
	info.BacklogTTL = s.info.BacklogTTL
	info.Persistence = info.Persistence.after(s.info.Persistence)
	s.info = info
	if s.open() { // watchers are notified of a session only once it is open
		s.m.transport.watchers.emit(Event{Master: s.m.index, Session: s.id, Info: info})
	}
}

// accept returns the reason why the session must end, or nil. It sets info.Late.
func (s *session) accept(info *Info, fields map[string]string) error {
	if info.Identity() != s.info.Identity() && !info.freedFrom(s.info) {
		return fault.Refused(fmt.Sprintf("its identity has changed from %s to %s on one connection: it may have lost locks",
			s.info.Identity(), info.Identity()))
	}
	if err := info.verdict(&s.m.cfg); err != nil {
		return err
	}
	return s.m.cfg.failover.verdict(&s.stop, info, fields)
}
