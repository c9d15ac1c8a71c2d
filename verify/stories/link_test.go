package stories

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strconv"
	"time"
)

// The network of a story. Each message and each reply takes a millisecond plus a few nanoseconds that are unique to its
// link, so that all arrive at different instants and in the same order each time.

var (
	errCut     = errors.New("connection reset")
	errNoRoute = &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("no route to host")}
)

// The directions of a link.
const up, down = 0, 1

// A link is the network between one program and one master. Links and their connections are guarded by world.mu.
type link struct {
	p      *program
	master int
	delay  time.Duration // of each message, one way
	cut    bool          // no client can connect
	deaf   bool          // hints are dropped
	hold   [2]bool       // messages sent from now on are delayed, by direction
	conns  []*conn
	sent   [][]string // all commands
}

// A conn is one connection, as the program's pool uses it.
type conn struct {
	net.Conn // takes the program's deadlines; carries no data
	l        *link
	master   net.Conn // the master's side
	lanes    [2]lane
	rest     []byte     // an incomplete command
	pending  [][]string // at the master, without a reply
	in       []byte     // received but not read
	closed   bool       // closed by the program
	reset    bool       // closed by the network or the master
	wake     chan struct{}
}

// A lane is one direction of a connection.
type lane struct {
	c      *conn
	slot   int
	last   time.Time // arrival of the last message
	flying int
	held   []func()
}

// put calls arrive after the delay, or holds it.
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

// deliver calls everything held, in order.
func (n *lane) deliver() {
	held := n.held
	n.held = nil
	for _, arrive := range held {
		n.fly(arrive)
	}
}

// dial connects a client's pool.
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
			_, _ = c.master.Write(raw) // listen notices if the master has gone
		})
	}
}

// listen receives the master's replies, and sends them to the program.
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

// Close closes the connection. Data sent before may still arrive.
func (c *conn) Close() error {
	c.l.p.w.mu.Lock()
	defer c.l.p.w.mu.Unlock()
	c.closed = true
	c.signal()
	c.leaveLocked()
	return nil
}

// leaveLocked closes the master's side of a connection that the program has closed, when no data is in flight.
func (c *conn) leaveLocked() {
	if c.closed && c.lanes[up].flying+len(c.lanes[up].held)+len(c.pending) == 0 {
		_ = c.master.Close()
	}
}

// resetLocked ends a connection like a broken network: data in flight is lost.
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

// A wireError is an error reply of a master.
type wireError string

// parse parses one value of the Redis protocol like redigo, and returns its length in bytes; 0 if it is incomplete.
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

// texts converts value to a list of texts, or returns nil if it is something else.
func texts(value any) (list []string) {
	all, _ := value.([]any)
	for _, one := range all {
		if b, ok := one.([]byte); ok {
			list = append(list, string(b))
		}
	}
	return list
}
