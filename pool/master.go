package pool

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redlock-go/redlock/internal/jitter"
	"github.com/redlock-go/redlock/internal/scripts"
)

// A master is one configured server: its connection while it has one, and the reason while it has none.
type master struct {
	Master
	pool  *Pool
	index int
	cfg   config
	base  time.Time // origin of the times of requests; a duration from it costs half a time.Now

	ctx    context.Context // the life of its goroutines
	cancel context.CancelFunc
	full   *Error // what Send returns when the queue is full

	mu       sync.Mutex
	sess     *session // nil while there is no connection
	down     *Error   // why Send fails; nil while it does not
	shutting error    // why it has no connection any more; nil while it may have one
	lastID   uint64   // session numbers given out
	debts    map[string]*debt
}

func newMaster(p *Pool, index int, named Master, cfg config) *master {
	m := &master{Master: named, pool: p, index: index, cfg: cfg, base: time.Now()}
	m.full = &Error{Addr: m.name, Op: "send", Err: newCause(
		fmt.Sprintf("queue is full: %d requests are outstanding", cfg.queueLimit), ErrQueueFull)}
	m.down = &Error{Addr: m.name, Op: "connect", Err: newCause(
		"first connection is still being made", ErrConnecting, ErrDown)}
	return m
}

// since is now as requests carry it: nanoseconds from the master's origin, never 0.
func (m *master) since() int64 { return int64(time.Since(m.base)) + 1 }

func (m *master) send(c *scripts.Call, st Stamp, to Receiver) *Error {
	m.mu.Lock()
	if m.down != nil {
		err := m.down
		m.mu.Unlock()
		return err
	}
	s := m.sess
	if st.Session != 0 && st.Session != s.id {
		m.mu.Unlock()
		return &Error{Addr: m.name, Op: c.Script.Name, Err: newCause(
			fmt.Sprintf("session is %d, the call is stamped for %d", s.id, st.Session), ErrSession)}
	}
	if s.outstanding.Add(1) > int64(m.cfg.queueLimit) {
		s.outstanding.Add(-1)
		m.mu.Unlock()
		return m.full
	}
	wake := s.queueLocked(request{call: c, to: to, text: st.Text, kind: kindCall})
	m.mu.Unlock()
	if wake {
		s.nudge()
	}
	return nil
}

// run connects and serves until ctx ends. It is the only goroutine that emits events of this master.
func (m *master) run(ctx context.Context) {
	pause := m.cfg.redialMin
	for ctx.Err() == nil {
		l, info, err := m.connect(ctx)
		if err == nil {
			if other := m.pool.claim(info.RunID, m); other != nil {
				l.close()
				err = m.sameServer(other, info)
			}
		}
		if err == nil {
			began := time.Now()
			m.serve(l, info)
			m.pool.unclaim(info.RunID, m)
			if time.Since(began) >= m.cfg.redialMax {
				pause = m.cfg.redialMin
				continue // a connection that has served is redialled at once
			}
		} else {
			m.setDown(err)
		}
		rest(ctx, pause-time.Duration(jitter.Int64N(int64(pause)/2+1)))
		pause = min(2*pause, m.cfg.redialMax)
	}
}

func (m *master) sameServer(other *master, info Info) *Error {
	return &Error{Addr: m.name, Op: "info", Err: downCause(refused(fmt.Sprintf("it is the same server as %s (run_id %s): one "+
		"server would have two votes, and its failure would cost both; name N different servers", other.name, info.RunID)))}
}

// rest waits for d or the end of ctx.
func rest(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// setDown makes err what Send returns, and tells the watchers. After Close the reason stays ErrClosed.
func (m *master) setDown(err *Error) {
	m.mu.Lock()
	if m.shutting != nil {
		err = m.closedErrorLocked()
	}
	m.down = err
	m.mu.Unlock()
	m.pool.watchers.emit(Event{Master: m.index, Err: err})
}

func (m *master) closedErrorLocked() *Error {
	return &Error{Addr: m.name, Op: "send", Err: m.shutting}
}

// shut begins the end, for the given reason: from here on Send fails, and the connection is closed.
func (m *master) shut(why error) {
	m.mu.Lock()
	if m.shutting == nil {
		m.shutting = why
	}
	m.down = m.closedErrorLocked()
	m.debts = nil
	s := m.sess
	m.mu.Unlock()
	if s != nil {
		s.kill(why, "close")
	}
}
