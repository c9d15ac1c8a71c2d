package transport

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/internal/transport/fault"
	"github.com/redlock-go/redlock/internal/transport/pipe"
	"github.com/redlock-go/redlock/internal/transport/wire"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// A master is one configured server, with its connection or the reason why there is none.
type master struct {
	Master
	transport   *Transport
	index       int
	cfg         Config
	beats       *beats          // shares heartbeats among the sessions with one server
	ctx         context.Context // cancelled when the master ends; the cause is the reason
	cancel      context.CancelCauseFunc
	pending     pendingList
	users       int      // number of references; see Retain; guarded by Transport.changeMu
	moves       uint64   // see Info.Moves; used by run only
	last        Info     // of the last attempt to connect that got one; used by run only
	quarantined sync.Map // maps a prefix to the moves that RecordQuarantine recorded

	mu    sync.Mutex // held while state changes, and while ctx is cancelled
	state atomic.Pointer[connState]
}

// A connState is the session that Send uses, or the reason why there is none.
type connState struct {
	sess *session
	err  *Error
}

// errFirst is returned by Send until the first attempt to connect has ended.
var errFirst = fault.New("first connection is still being established", fault.ErrConnecting, fault.ErrDown)

// failure returns an Error of this master.
func (m *master) failure(op string, cause error) *Error {
	return &Error{Addr: m.Name, User: m.cfg.UserName(), Op: op, Err: cause}
}

// server returns the run id of the server of the session, or "" if there is no session.
func (m *master) server() string {
	if s := m.state.Load().sess; s != nil {
		return s.server
	}
	return ""
}

// pipeSettings returns the settings that all connections of m share.
func (m *master) pipeSettings() pipe.Settings {
	return pipe.Settings{
		Master: m.index, Limit: m.cfg.QueueLimit, Timeout: m.cfg.Timeout, Heartbeat: m.cfg.Heartbeat,
		ErrorFunc: func(op string, cause error, unknown bool) error {
			e := m.failure(op, cause)
			e.Unknown = unknown
			return e
		},
		ExplainFunc: func(err error) error {
			_, password := m.cfg.Login()
			return fault.Explain(err, password, m.cfg.Timeout)
		},
	}
}

// run connects and serves until m ends.
func (m *master) run() {
	redial := m.cfg.Redial
	id := uint64(0)
	for m.ctx.Err() == nil {
		s := &session{m: m, id: id + 1, digest: m.cfg.failover.digestOf(nil)}
		conn, op, err := redial.Connect(m.ctx, &m.cfg.Target, s.greet)
		m.compare(&s.info)
		if err == nil {
			op, err = m.claim(conn, s)
		}
		began := time.Now()
		if err != nil {
			m.setDown(op, err)
		} else {
			s.server, s.info.Moves = s.info.RunID, m.moves
			id++
			redial.Known = true
			s.serve(conn)
			m.transport.claims.Delete(s.info.RunID)
		}
		redial.Rest(m.ctx, time.Since(began))
	}
	m.transport.watchers.emit(Event{Master: m.index, Err: m.state.Load().err}) // m may have ended while it was down
}

// compare counts a move if the server has evicted keys since the last attempt to connect, unless that is allowed. A
// server with a policy that evicts keys is refused, but its locks may be lost when the policy is right again. At the
// first attempt, the keys that such a server has evicted so far count.
func (m *master) compare(now *Info) {
	if now.RunID == "" { // the attempt has failed earlier
		return
	}
	evicted := now.Evicted != m.last.Evicted
	if now.RunID != m.last.RunID {
		evicted = now.evicts()
	}
	if evicted && now.Evicted > 0 && !m.cfg.AllowEviction {
		m.moves++
	}
	m.last = *now
}

// claim registers the server of s as m. If the server is already connected as another master, claim closes c and
// returns an error.
func (m *master) claim(conn *wire.Conn, s *session) (op string, err error) {
	other, taken := m.transport.claims.LoadOrStore(s.info.RunID, m)
	if !taken {
		return "", nil
	}
	conn.Close()
	return "info", fault.Down(refuse(redlockinfo.Finding{
		Severity: redlockinfo.Failure, About: "identity", NoVote: true,
		What: SameServer(other.(*master).Name, s.info.RunID), Risk: TwoVotes, Fix: StepDiffer,
	}))
}

// setDown makes Send return err, and notifies the watchers. After m has ended, the reason does not change. If err means
// that the hash slot of the keys is being moved, setDown counts a move, also for a node that is used as a plain master.
func (m *master) setDown(op string, err error) {
	if fault.Moves(err) {
		m.moves++
	}
	m.mu.Lock()
	if m.ctx.Err() == nil {
		m.state.Store(&connState{err: m.failure(op, err)})
	}
	failed := m.state.Load().err
	m.mu.Unlock()
	m.transport.watchers.emit(Event{Master: m.index, Err: failed})
}

// end ends m for the reason why. From then on, Send fails. end does not wait until the connections are closed.
func (m *master) end(why error) {
	m.mu.Lock()
	if m.ctx.Err() == nil {
		m.cancel(why)
		m.state.Store(&connState{err: m.failure("send", why)})
	}
	m.mu.Unlock()
	m.pending.close()
}
