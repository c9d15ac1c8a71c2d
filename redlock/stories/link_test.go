package stories

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync"
	"time"
)

// The network of a story. Each message and each answer takes a millisecond, and arrives at an instant of its own: a few
// nanoseconds that belong to its link keep it apart from all others. So the order of all arrivals is decided, and the
// same in each run.

const (
	oneWay = time.Millisecond
	tick   = time.Microsecond
)

var errCut = errors.New("connection reset")

// A link is the network between one program and one master, both ways.
type link struct {
	w      *world
	p      *program
	master int

	cut              bool          // nobody can connect
	holdUp, holdDown bool          // what is sent from now on stays in the network
	deaf             bool          // hints are lost
	delay            time.Duration // what each message takes, one way
	made             int
	conns            []*conn
	sent             []*message // all scripts, in order
}

// A message is one command on its way, and then its answer.
type message struct {
	args []string
	raw  []byte
}

// A conn is one connection of a link, as the program's pool uses it.
type conn struct {
	l    *link
	slot int
	nc   net.Conn // the master's end

	// Guarded by world.mu.
	rest             []byte // of a command that is not complete
	upLast, downLast time.Time
	upFlight         int
	upHeld           []*message
	downHeld         [][]byte
	pending          []*message // at the master, without an answer
	in               []byte
	closed, reset    bool // by the program; by the network or the master

	wake chan struct{}
	once sync.Once
}

// dial is the dialer of a program's pool.
func (p *program) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	w := p.w
	w.mu.Lock()
	l := p.links[addr]
	l.made++
	slot := ((p.number*8+l.master)*2)*2 + l.made%2
	wait := time.Until(instant(time.Now().Add(2*l.delay), slot))
	w.mu.Unlock()
	select {
	case <-time.After(wait):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if l.cut || p.dead {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("no route to host")}
	}
	nc, err := w.masters.Dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	c := &conn{l: l, slot: slot, nc: nc, wake: make(chan struct{}, 1)}
	l.conns = append(l.conns, c)
	w.wg.Go(c.listen)
	return c, nil
}

// instant is the first one after t that belongs to slot.
func instant(t time.Time, slot int) time.Time {
	return t.Truncate(tick).Add(tick + time.Duration(slot))
}

// due is when what is sent now arrives, after all that was sent before.
func (c *conn) due(last *time.Time, slot int) time.Duration {
	at := time.Now().Add(c.l.delay)
	if at.Before(*last) {
		at = *last
	}
	*last = instant(at, slot)
	return time.Until(*last)
}

// Write implements net.Conn: it puts commands on their way to the master.
func (c *conn) Write(b []byte) (int, error) {
	w := c.l.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.closed || c.reset {
		return 0, net.ErrClosed
	}
	c.rest = append(c.rest, b...)
	for {
		value, used := parse(c.rest)
		if used == 0 {
			return len(b), nil
		}
		m := &message{args: texts(value), raw: c.rest[:used:used]}
		c.rest = c.rest[used:]
		c.l.sent = append(c.l.sent, m)
		w.names.learn(c.l.p, m)
		if c.l.holdUp || len(c.upHeld) > 0 {
			c.upHeld = append(c.upHeld, m)
			continue
		}
		c.send(m)
	}
}

// send has one command arrive after the delay.
func (c *conn) send(m *message) {
	c.upFlight++
	time.AfterFunc(c.due(&c.upLast, c.slot), func() {
		c.l.w.mu.Lock()
		c.upFlight--
		if c.reset {
			c.l.w.mu.Unlock()
			return
		}
		c.pending = append(c.pending, m)
		c.l.w.mu.Unlock()
		_, _ = c.nc.Write(m.raw) // a master that has gone is seen by listen
	})
}

// listen takes the master's answers, and puts them on their way to the program.
func (c *conn) listen() {
	w, buf, chunk := c.l.w, []byte(nil), make([]byte, 4096)
	for {
		n, err := c.nc.Read(chunk)
		w.mu.Lock()
		if err != nil {
			c.resetLocked()
			w.mu.Unlock()
			return
		}
		buf = append(buf, chunk[:n]...)
		for {
			value, used := parse(buf)
			if used == 0 {
				break
			}
			c.answerLocked(value, buf[:used:used])
			buf = buf[used:]
		}
		c.leaveLocked()
		w.mu.Unlock()
	}
}

func (c *conn) answerLocked(value any, raw []byte) {
	w := c.l.w
	if hint := texts(value); len(hint) == 3 && hint[0] == "message" {
		w.log(entry{who: c.l.p.name, master: c.l.master, hint: true, what: w.hintWords(hint[2])})
		if c.l.deaf {
			return
		}
	} else if len(c.pending) > 0 {
		m := c.pending[0]
		c.pending = c.pending[1:]
		w.logMessage(c.l, m, value)
	}
	if c.closed || c.reset {
		return
	}
	if c.l.holdDown || len(c.downHeld) > 0 {
		c.downHeld = append(c.downHeld, raw)
		return
	}
	c.reply(raw)
}

// reply has one answer arrive after the delay.
func (c *conn) reply(raw []byte) {
	time.AfterFunc(c.due(&c.downLast, c.slot+2), func() {
		c.l.w.mu.Lock()
		defer c.l.w.mu.Unlock()
		if !c.reset {
			c.in = append(c.in, raw...)
			c.signal()
		}
	})
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	for {
		c.l.w.mu.Lock()
		n := copy(b, c.in)
		c.in = c.in[n:]
		closed, reset := c.closed, c.reset
		c.l.w.mu.Unlock()
		switch {
		case closed:
			return 0, net.ErrClosed
		case n > 0:
			return n, nil
		case reset:
			return 0, errCut
		}
		<-c.wake
	}
}

// Close implements net.Conn. What was sent before may still arrive.
func (c *conn) Close() error {
	c.l.w.mu.Lock()
	defer c.l.w.mu.Unlock()
	c.closed = true
	c.signal()
	c.leaveLocked()
	return nil
}

// leaveLocked ends the master's end of a connection that the program has closed, when nothing of it is under way.
func (c *conn) leaveLocked() {
	if c.closed && c.upFlight == 0 && len(c.upHeld) == 0 && len(c.pending) == 0 {
		c.once.Do(func() { _ = c.nc.Close() })
	}
}

// resetLocked ends a connection as a broken network does: what is on its way is lost.
func (c *conn) resetLocked() {
	c.reset, c.upHeld, c.downHeld, c.pending = true, nil, nil, nil
	c.once.Do(func() { _ = c.nc.Close() })
	c.signal()
}

func (c *conn) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// deliver has what was held arrive, in its order.
func (c *conn) deliver(up, down bool) {
	if up {
		held := c.upHeld
		c.upHeld = nil
		for _, m := range held {
			c.send(m)
		}
	}
	if down {
		held := c.downHeld
		c.downHeld = nil
		for _, raw := range held {
			c.reply(raw)
		}
	}
}

// The rest of net.Conn. The pool bounds every wait by itself.
func (c *conn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (c *conn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (c *conn) SetDeadline(time.Time) error      { return nil }
func (c *conn) SetReadDeadline(time.Time) error  { return nil }
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

// A wireError is an error that a master has answered.
type wireError string

// parse reads one value of the Redis protocol, as redigo would, and how many bytes it took; 0 where it is not complete.
func parse(b []byte) (value any, used int) {
	end := -1
	for i := range b {
		if i > 0 && b[i-1] == '\r' && b[i] == '\n' {
			end = i - 1
			break
		}
	}
	if end < 0 {
		return nil, 0
	}
	text, used := string(b[1:end]), end+2
	n, _ := strconv.ParseInt(text, 10, 64)
	switch b[0] {
	case '+':
		return text, used
	case '-':
		return wireError(text), used
	case ':':
		return n, used
	case '$':
		if n < 0 {
			return nil, used
		}
		if len(b) < used+int(n)+2 {
			return nil, 0
		}
		return b[used : used+int(n) : used+int(n)], used + int(n) + 2
	}
	list := []any{}
	for range n {
		one, size := parse(b[used:])
		if size == 0 {
			return nil, 0
		}
		list, used = append(list, one), used+size
	}
	return list, used
}

// texts is a list of texts; nil where value is something else.
func texts(value any) (list []string) {
	all, _ := value.([]any)
	for _, one := range all {
		if b, ok := one.([]byte); ok {
			list = append(list, string(b))
		}
	}
	return list
}
