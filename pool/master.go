package pool

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/pool/internal/fault"
	"github.com/redlock-go/redlock/pool/internal/pipe"
	"github.com/redlock-go/redlock/pool/internal/wire"
)

// A master is one configured server: its connection while it has one, and the reason while it has none.
type master struct {
	Master
	index    int
	cfg      config
	target   wire.Target
	watchers *watchers
	claims   *claims
	ctx      context.Context // the life of its goroutines
	cancel   context.CancelFunc
	owed     ledger
	gate     atomic.Pointer[gate]

	mu       sync.Mutex
	sess     *session // nil while there is no connection
	shutting error    // why there will be no connection any more; nil while there may be one
	lastID   uint64   // session numbers given out
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
	return &Error{Addr: m.name, Op: op, Err: cause, Unknown: unknown}
}

// explain makes what has ended a connection fit for people.
func (m *master) explain(err error) error {
	return fault.Down(fault.Lost(fault.Normal(fault.Scrub(err, m.cfg.password), m.cfg.timeout)))
}

func (m *master) send(c *scripts.Call, st Stamp, to Receiver) error {
	g := m.gate.Load()
	if g.err != nil {
		return g.err
	}
	if st.Session != 0 && st.Session != g.sess.id {
		text := fmt.Sprintf("session is %d, the call is stamped for %d", g.sess.id, st.Session)
		return m.fail(c.Script.Name, fault.New(text, ErrSession), false)
	}
	if err := g.sess.pipe.Send(c, st.Text, to); err != nil {
		return m.fail("send", err, false)
	}
	return nil
}

// run connects and serves until the master's life ends. It is the only goroutine that emits events of this master.
func (m *master) run() {
	pauses := wire.Pauses{Min: m.cfg.redialMin, Max: m.cfg.redialMax}
	for m.ctx.Err() == nil {
		c, g, err := m.connect()
		if err != nil {
			m.setDown(err)
		} else {
			began := time.Now()
			m.serve(c, g)
			m.claims.end(g.RunID, m)
			if pauses.Served(time.Since(began)) {
				continue
			}
		}
		pauses.Rest(m.ctx)
	}
}

func (m *master) connect() (c *wire.Conn, g greeting, failed *Error) {
	c, op, err := m.target.Connect(m.ctx, func(c *wire.Conn) (op string, err error) {
		g, op, err = m.cfg.greet(c)
		return op, err
	})
	if err != nil {
		return nil, g, &Error{Addr: m.name, Op: op, Err: err}
	}
	if other := m.claims.begin(g.RunID, m); other != nil {
		c.Close()
		err := fault.Refused(fmt.Sprintf("it is the same server as %s (run_id %s): one server would have two votes, and "+
			"its failure would cost both; name N different servers", other.name, g.RunID))
		return nil, g, &Error{Addr: m.name, Op: "info", Err: fault.Down(err)}
	}
	return c, g, nil
}

// serve is the life of one session. It returns when the connection has ended, all its goroutines have, and every
// request has been answered. The caller's goroutine is the reader.
func (m *master) serve(c *wire.Conn, g greeting) {
	m.mu.Lock()
	if m.shutting != nil {
		m.mu.Unlock()
		c.Close()
		return
	}
	m.lastID++
	s := &session{m: m, id: m.lastID, info: g.Info}
	s.pipe = pipe.New(c, g.loaded, pipe.Owner{
		Master: m.index, Limit: m.cfg.queueLimit, ErrorFunc: m.fail, ExplainFunc: m.explain,
	})
	m.sess = s
	m.mu.Unlock()

	var wg sync.WaitGroup
	wg.Go(func() { s.mind(m.cfg.clock.Since(g.asked)) })
	m.owed.begin()
	s.pay()
	op, err := s.pipe.Run()
	wg.Wait()
	m.mu.Lock()
	m.sess = nil
	m.mu.Unlock()
	m.owed.stop()
	m.setDown(&Error{Addr: m.name, Op: op, Err: err})
	s.pipe.Drain(err)
}

// setDown makes err what Send returns, and tells the watchers. After the end the reason stays what it was.
func (m *master) setDown(err *Error) {
	m.mu.Lock()
	if m.shutting != nil {
		err = m.gate.Load().err
	}
	m.gate.Store(&gate{err: err})
	m.mu.Unlock()
	m.watchers.emit(Event{Master: m.index, Err: err})
}

// shut begins the end, for the given reason: from here on Send fails, and the connection is closed.
func (m *master) shut(why error) {
	m.mu.Lock()
	if m.shutting == nil {
		m.shutting = why
		m.gate.Store(&gate{err: &Error{Addr: m.name, Op: "send", Err: why}})
	}
	s := m.sess
	m.mu.Unlock()
	m.owed.close()
	if s != nil {
		s.pipe.Kill("close", why)
	}
}

func (m *master) retired() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.shutting != nil
}

// claims are which master's connection has which run id.
type claims struct {
	mu sync.Mutex
	of map[string]*master
}

// begin books that the connection of m has this run id, or returns the master whose connection has it already.
func (c *claims) begin(runID string, m *master) (other *master) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if other := c.of[runID]; other != nil && other != m {
		return other
	}
	c.of[runID] = m
	return nil
}

func (c *claims) end(runID string, m *master) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of[runID] == m {
		delete(c.of, runID)
	}
}
