package pool

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/pool/internal/fault"
	"github.com/redlock-go/redlock/pool/internal/pipe"
	"github.com/redlock-go/redlock/pool/internal/wire"
)

// A master is one configured server: its connection while it has one, and the reason while it has none.
type master struct {
	Master
	pool   *Pool
	index  int
	cfg    config
	ctx    context.Context // the life of its goroutines; its cause is why there is no connection any more
	cancel context.CancelCauseFunc
	owed   ledger
	users  int  // guarded by Pool.changeMu
	moved  bool // its slot was on the move since it was last up; for run alone

	mu   sync.Mutex // held while gate changes, and while ctx ends
	gate atomic.Pointer[gate]
}

// A gate is what Send meets: the session, or why there is none.
type gate struct {
	sess *session
	err  *Error
}

// errFirst is why Send fails before the first attempt to connect has ended.
var errFirst = fault.New("first connection is still being made", ErrConnecting, ErrDown)

// fail makes an error of this master.
func (m *master) fail(op string, cause error, unknown bool) error {
	return &Error{Addr: m.Name, Op: op, Err: cause, Unknown: unknown}
}

// owner is what the connections of m have in common.
func (m *master) owner() pipe.Owner {
	return pipe.Owner{
		Master: m.index, Limit: m.cfg.queueLimit, Timeout: m.cfg.timeout, Heartbeat: m.cfg.heartbeat,
		ErrorFunc:   m.fail,
		ExplainFunc: func(err error) error { return fault.Explain(err, m.cfg.Password, m.cfg.timeout) },
	}
}

// run connects and serves until the master's life ends. It is the only goroutine that emits events of this master.
func (m *master) run() {
	pauses := m.cfg.redial
	id := uint64(0)
	for m.ctx.Err() == nil {
		s := &session{m: m, id: id + 1}
		c, op, err := m.cfg.Connect(m.ctx, s.greet)
		if err == nil {
			op, err = m.claim(c, s)
		}
		if err != nil {
			m.moved = m.moved || leaving(err)
			m.setDown(op, err)
		} else {
			s.info.Moved = m.moved
			id++
			began := time.Now()
			s.serve(c)
			m.pool.claims.Delete(s.info.RunID)
			if pauses.Served(time.Since(began)) {
				continue
			}
		}
		pauses.Rest(m.ctx)
	}
}

// claim refuses a server that another master is connected to.
func (m *master) claim(c *wire.Conn, s *session) (op string, err error) {
	other, taken := m.pool.claims.LoadOrStore(s.info.RunID, m)
	if !taken {
		return "", nil
	}
	c.Close()
	return "info", fault.Down(fault.Refused(fmt.Sprintf("it is the same server as %s (run_id %s): one server would have "+
		"two votes, and its failure would cost both; name N different servers", other.(*master).Name, s.info.RunID)))
}

// setDown makes err what Send returns, and tells the watchers. After the end the reason stays what it was.
func (m *master) setDown(op string, err error) {
	m.mu.Lock()
	if m.ctx.Err() == nil {
		m.gate.Store(&gate{err: &Error{Addr: m.Name, Op: op, Err: err}})
	}
	failed := m.gate.Load().err
	m.mu.Unlock()
	m.pool.watchers.emit(Event{Master: m.index, Err: failed})
}

// end is the end of m for the given reason: from here on Send fails, and the connections are being closed.
func (m *master) end(why error) {
	m.mu.Lock()
	if m.ctx.Err() == nil {
		m.cancel(why)
		m.gate.Store(&gate{err: &Error{Addr: m.Name, Op: "send", Err: why}})
	}
	m.mu.Unlock()
	m.owed.close()
}
