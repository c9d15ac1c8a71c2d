package stories

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strconv"
	"time"
)

// The network of a story. Each message and each answer takes a millisecond, and arrives at an instant of its own: a few
// nanoseconds that belong to its link keep it apart from all others. So all arrive in the same order each time.

var (
	errCut     = errors.New("connection reset")
	errNoRoute = &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("no route to host")}
)

// The two ways of a link.
const up, down = 0, 1

// A link is the network between one program and one master. Links and what is below them are guarded by world.mu.
type link struct {
	p      *program
	master int
	delay  time.Duration // of each message, one way
	cut    bool          // nobody can connect
	deaf   bool          // hints are lost
	hold   [2]bool       // what is sent from now on stays in the network
	conns  []*conn
	sent   [][]string // all commands
}

// A conn is one connection, as the program's pool uses it.
type conn struct {
	net.Conn // the program's deadlines are for this pipe, which carries nothing
	l        *link
	master   net.Conn // the master's end
	lanes    [2]lane
	rest     []byte     // of a command that is not complete
	pending  [][]string // at the master, without an answer
	in       []byte     // arrived, and not read
	closed   bool       // by the program
	reset    bool       // by the network or the master
	wake     chan struct{}
}

// A lane is one direction of a connection.
type lane struct {
	c      *conn
	slot   int
	last   time.Time // when the last message arrives
	flying int
	held   []func()
}

// put has something arrive after the delay, or holds it.
func (n *lane) put(way int, arrive func()) {
	if n.c.l.hold[way] || len(n.held) > 0 {
		n.held = append(n.held, arrive)
		return
	}
	n.fly(arrive)
}

func (n *lane) fly(arrive func()) {
	at := time.Now().Add(n.c.l.delay)
	if at.Before(n.last) {
		at = n.last
	}
	n.last = at.Truncate(time.Microsecond).Add(time.Microsecond + time.Duration(n.slot))
	n.flying++
	time.AfterFunc(time.Until(n.last), func() {
		w := n.c.l.p.w
		w.mu.Lock()
		defer w.mu.Unlock()
		n.flying--
		if !n.c.reset {
			arrive()
		}
	})
}

// deliver has what was held arrive, in its order.
func (n *lane) deliver() {
	held := n.held
	n.held = nil
	for _, arrive := range held {
		n.fly(arrive)
	}
}

// dial is the dialer of a program's pool.
func (p *program) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	w := p.w
	w.mu.Lock()
	l := p.link(addr)
	c := &conn{l: l, wake: make(chan struct{}, 1)}
	c.Conn, _ = net.Pipe()
	for way := range c.lanes {
		c.lanes[way] = lane{c: c, slot: ((p.number*8+l.master)*2+way)*2 + len(l.conns)%2}
	}
	l.conns = append(l.conns, c)
	ready := make(chan struct{})
	c.lanes[up].fly(func() { c.lanes[down].fly(func() { close(ready) }) })
	w.mu.Unlock()
	select {
	case <-ready:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if l.cut {
		return nil, errNoRoute
	}
	var err error
	if c.master, err = w.masters.Dial(ctx, network, addr); err != nil {
		return nil, err
	}
	w.wg.Go(c.listen)
	return c, nil
}

// Write implements net.Conn: it puts commands on their way to the master.
func (c *conn) Write(b []byte) (int, error) {
	w := c.l.p.w
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
		args, raw := texts(value), bytes.Clone(c.rest[:used])
		c.rest = c.rest[used:]
		c.l.sent = append(c.l.sent, args)
		w.nameAll(c.l.p, args)
		c.lanes[up].put(up, func() {
			c.pending = append(c.pending, args)
			_, _ = c.master.Write(raw) // that the master has gone is seen by listen
		})
	}
}

// listen takes the master's answers, and puts them on their way to the program.
func (c *conn) listen() {
	w, buf, chunk := c.l.p.w, []byte(nil), make([]byte, 4096)
	for {
		n, err := c.master.Read(chunk)
		w.mu.Lock()
		if err != nil {
			c.resetLocked()
			w.mu.Unlock()
			return
		}
		buf = append(buf, chunk[:n]...)
		for value, used := parse(buf); used > 0; value, used = parse(buf) {
			c.answerLocked(value, bytes.Clone(buf[:used]))
			buf = buf[used:]
		}
		c.leaveLocked()
		w.mu.Unlock()
	}
}

func (c *conn) answerLocked(value any, raw []byte) {
	if hint := texts(value); len(hint) == 3 && hint[0] == "message" {
		c.l.p.w.logHint(c.l, hint[2])
		if c.l.deaf {
			return
		}
	} else if len(c.pending) > 0 {
		c.l.p.w.logMessage(c.l, c.pending[0], value)
		c.pending = c.pending[1:]
	}
	if !c.closed && !c.reset {
		c.lanes[down].put(down, func() {
			c.in = append(c.in, raw...)
			c.signal()
		})
	}
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	for {
		c.l.p.w.mu.Lock()
		n, closed, reset := copy(b, c.in), c.closed, c.reset
		c.in = c.in[n:]
		c.l.p.w.mu.Unlock()
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
	c.l.p.w.mu.Lock()
	defer c.l.p.w.mu.Unlock()
	c.closed = true
	c.signal()
	c.leaveLocked()
	return nil
}

// leaveLocked ends the master's end of a connection that the program has closed, when nothing of it is under way.
func (c *conn) leaveLocked() {
	if c.closed && c.lanes[up].flying+len(c.lanes[up].held)+len(c.pending) == 0 {
		_ = c.master.Close()
	}
}

// resetLocked ends a connection as a broken network does: what is on its way is lost.
func (c *conn) resetLocked() {
	c.reset, c.pending = true, nil
	if c.master != nil {
		_ = c.master.Close()
	}
	c.signal()
}

func (c *conn) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// A wireError is an error that a master has answered.
type wireError string

// parse reads one value of the Redis protocol, as redigo would, and how many bytes it took; 0 where it is not complete.
func parse(b []byte) (value any, used int) {
	head, _, complete := bytes.Cut(b, []byte("\r\n"))
	if !complete {
		return nil, 0
	}
	text, used := string(head[1:]), len(head)+2
	n, _ := strconv.ParseInt(text, 10, 64)
	switch head[0] {
	case '+':
		return text, used
	case '-':
		return wireError(text), used
	case ':':
		return n, used
	case '$':
		end := used + int(n)
		switch {
		case n < 0:
			return nil, used
		case len(b) < end+2:
			return nil, 0
		}
		return bytes.Clone(b[used:end]), end + 2
	}
	list := make([]any, max(n, 0))
	for i := range list {
		one, size := parse(b[used:])
		if size == 0 {
			return nil, 0
		}
		list[i], used = one, used+size
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
