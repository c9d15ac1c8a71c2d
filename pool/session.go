package pool

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/scripts"
)

// A session is one connection that has passed the handshake. A request lives in exactly one of three lists, which
// pass it on in order:
//
//	queue     sent, not taken by a writer            guarded by m.mu
//	inflight  taken: a byte may have been written    guarded by m.mu
//	taken     fetched by the reader, reply awaited   reader only
//
// The lists die with the session, so a request is only ever written on the session that was up when it was sent.
type session struct {
	m    *master
	link *link
	id   uint64
	// noClock: the INFO of this server has no clock, TIME is asked for it.
	noClock bool

	outstanding atomic.Int64 // of kindCall, in all three lists

	// Guarded by m.mu.
	open       bool // Send has been let in
	dead       bool
	reason     error // why it is dead, when someone has said
	reasonOp   string
	queue      []request
	queueSince int64 // of the oldest in queue
	inflight   []request
	idle       bool // the writer sleeps and has not been woken
	unbegun    int  // after a write failed: how many at the end of inflight were not begun
	writeErr   error
	toPay      []string // names of debts to be paid, in this order
	paying     int      // payments outstanding
	beating    bool     // a heartbeat is outstanding
	beatStart  clock.Instant
	apart      bool // this user may not run several calls as one

	wake  chan struct{} // to the writer, after idle or dead
	ended chan struct{} // closed with dead
	wg    sync.WaitGroup

	// since of taken[next]; 0 while the reader awaits none of taken.
	waiting atomic.Int64

	// Reader only.
	taken []request
	next  int
	list  []request // made together, for as long as their reply is handed on
	info  Info
	fresh Info // of the heartbeat under way

	// Writer only.
	spare     []request
	busy      bool // the last batch was long
	group     scripts.Group
	scratch   []any
	stampText string
	stamp     any
}

// serve is the life of one session. It returns when the connection has ended, all its goroutines have, and every
// request has been answered. The caller's goroutine is the reader.
func (m *master) serve(l *link, info Info) {
	m.mu.Lock()
	if m.shutting != nil {
		m.mu.Unlock()
		l.close()
		return
	}
	m.lastID++
	s := &session{m: m, link: l, id: m.lastID, info: info, noClock: info.noClock,
		wake: make(chan struct{}, 1), ended: make(chan struct{})}
	m.sess = s
	s.collectDebtsLocked()
	s.payLocked()
	m.mu.Unlock()

	s.wg.Go(s.write)
	s.wg.Go(func() { s.mind(m.cfg.clock.Since(info.asked)) })
	s.openWhenPaid()
	err := s.read()
	s.finish(err)
}

// openWhenPaid lets Send in once the debts that there were at the beginning are paid, or have failed.
func (s *session) openWhenPaid() {
	m := s.m
	m.mu.Lock()
	if s.open || s.dead || m.shutting != nil || s.paying > 0 || len(s.toPay) > 0 {
		m.mu.Unlock()
		return
	}
	s.open = true
	m.down = nil
	m.mu.Unlock()
	m.pool.watchers.emit(Event{Master: m.index, Session: s.id, Info: s.info})
}

// kill ends the session; err is the reason, unless another was first. It does not wait.
func (s *session) kill(err error, op string) {
	s.m.mu.Lock()
	s.killLocked(err, op)
	s.m.mu.Unlock()
	s.link.close()
}

// killLocked marks the end. The caller closes the link after unlocking.
func (s *session) killLocked(err error, op string) {
	if s.reason == nil && err != nil {
		s.reason, s.reasonOp = err, op
	}
	if s.dead {
		return
	}
	s.dead = true
	if s.m.down == nil { // from here on Send fails; finish finds better words
		s.m.down = &Error{Addr: s.m.name, Op: op, Err: downCause(lost(err))}
	}
	close(s.ended)
	s.nudge()
}

func lost(err error) error {
	switch {
	case err == nil, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("connection lost: the server closed it")
	case errors.Is(err, ErrTimeout), errors.Is(err, ErrClosed), errors.Is(err, ErrRetired), errors.Is(err, ErrRefused):
		return err
	}
	return fmt.Errorf("connection lost: %w", err)
}

// finish joins everything, answers everything outstanding, and leaves the master down.
func (s *session) finish(readErr error) {
	m := s.m
	s.kill(nil, "read")
	s.wg.Wait()
	m.mu.Lock()
	m.sess = nil
	begun := append(append([]request(nil), s.taken[s.next:]...), s.inflight...)
	queue := s.queue
	unknown := max(0, len(begun)-s.unbegun) // a server may have answered what was not begun
	s.stopPayingLocked()
	err := s.endedBy(readErr)
	m.mu.Unlock()

	m.setDown(err)
	s.answer(begun[:unknown], err, true)
	s.answer(begun[unknown:], err, false)
	s.answer(queue, err, false)
}

// endedBy picks the error that tells most. When the writer's error closed the connection, the reader only hears that
// it is closed.
func (s *session) endedBy(readErr error) *Error {
	err, op := s.reason, s.reasonOp
	if err == nil {
		err, op = readErr, "read"
		if s.writeErr != nil && (readErr == nil || errors.Is(readErr, net.ErrClosed)) {
			err, op = s.writeErr, "write"
		}
	}
	err = lost(normalise(scrub(err, s.m.cfg.password), s.m.cfg.timeout))
	return &Error{Addr: s.m.name, Op: op, Err: downCause(err)}
}

func (s *session) answer(list []request, why *Error, unknown bool) {
	for i := range list {
		r := &list[i]
		if r.kind == kindCall {
			r.to.Reply(s.m.index, nil, &Error{Addr: s.m.name, Op: r.op(), Err: why.Err, Unknown: unknown})
		}
	}
}

// read hands replies to their receivers until the connection ends or must end. It always waits in a read, also when
// nothing is outstanding, so the end of the connection is noticed at once.
func (s *session) read() error {
	for {
		value, err := s.link.receive()
		reply, isReply := errorReply(err)
		if err != nil && !isReply {
			return err
		}
		r, ok := s.pop()
		switch {
		case !ok && isReply:
			return reply
		case !ok:
			return fmt.Errorf("a reply without a request: %.40v", value)
		case r.many > 0:
			if err := s.deliverMany(r, value, reply, isReply); err != nil {
				s.kill(err, r.op())
				return err
			}
		case isReply && replyCode(reply) == "NOSCRIPT" && r.call != nil && !r.eval:
			s.again(r)
		default:
			if err := s.deliver(&r, value, reply, isReply); err != nil {
				s.kill(err, r.op())
				return err
			}
		}
	}
}

// pop takes the oldest request whose reply is awaited.
func (s *session) pop() (request, bool) {
	if s.next == len(s.taken) {
		s.m.mu.Lock()
		s.taken, s.inflight, s.next = s.inflight, s.taken[:0], 0
		if len(s.taken) > 0 {
			s.waiting.Store(s.taken[0].since)
		}
		s.m.mu.Unlock()
		if len(s.taken) == 0 {
			return request{}, false
		}
	}
	r := s.taken[s.next]
	s.taken[s.next] = request{} // an answered Receiver is not kept alive
	s.next++
	var waiting int64
	if s.next < len(s.taken) {
		waiting = s.taken[s.next].since
	}
	if waiting != r.since {
		s.waiting.Store(waiting)
	}
	return r, true
}

// again queues requests once more, with the text of their script.
func (s *session) again(list ...request) {
	wake := false
	s.m.mu.Lock()
	for _, r := range list {
		r.eval = true
		wake = s.queueLocked(r) || wake
	}
	s.m.mu.Unlock()
	if wake {
		s.nudge()
	}
}

// deliver hands one reply on. An error ends the session.
func (s *session) deliver(r *request, value any, reply redis.Error, isReply bool) error {
	switch r.kind {
	case kindInfo, kindTime:
		return s.beat(r.kind, value, reply, isReply)
	case kindDebt:
		s.paid(r, reply, isReply)
		s.openWhenPaid()
	case kindCall:
		s.outstanding.Add(-1)
		if isReply {
			r.to.Reply(s.m.index, nil, &Error{Addr: s.m.name, Op: r.op(), Err: reply})
		} else {
			r.to.Reply(s.m.index, value, nil)
		}
	}
	if isReply && replyCode(reply) == "READONLY" {
		return refused(fmt.Sprintf("it has become a replica (%v): it takes no locks, and may have forgotten those it had", reply))
	}
	return nil
}

// mind is the session's own clock: it ends a session whose oldest request is overdue, also one that is stuck in a
// write, and it starts heartbeats. A session with nothing outstanding is looked at once in a timeout: no request sent
// after the look can be overdue before the next. known is for how long it has been known who the server is.
func (s *session) mind(known time.Duration) {
	m := s.m
	timeout := int64(m.cfg.timeout)
	first := int64(max(m.cfg.heartbeat-known, 0))
	beatAt := m.since() + first
	timer := time.NewTimer(time.Duration(min(timeout, first)))
	defer timer.Stop()
	for {
		select {
		case <-s.ended:
			return
		case <-timer.C:
		}
		m.mu.Lock()
		now := m.since()
		oldest := s.oldestLocked()
		if oldest != 0 && now-oldest >= timeout {
			s.killLocked(timeoutCause("no reply within %v", m.cfg.timeout), "watchdog")
			m.mu.Unlock()
			s.link.close()
			return
		}
		wake := false
		if now >= beatAt {
			beatAt = now + int64(m.cfg.heartbeat)
			wake = s.startBeatLocked()
		}
		m.mu.Unlock()
		if wake {
			s.nudge()
		}
		if oldest == 0 {
			oldest = now
		}
		timer.Reset(time.Duration(min(oldest+timeout, beatAt) - now))
	}
}

// oldestLocked is the time of the oldest request that is outstanding, 0 when there is none.
func (s *session) oldestLocked() int64 {
	switch {
	case s.waiting.Load() != 0:
		return s.waiting.Load()
	case len(s.inflight) > 0:
		return s.inflight[0].since
	case len(s.queue) > 0:
		return s.queueSince
	}
	return 0
}
