package walkthroughs

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/internal/scripts/reference"
)

// The network of a walkthrough. Each message and each reply takes a millisecond plus a few nanoseconds that are
// unique to its link. So all messages arrive at different instants, and in the same order in each run.

var (
	errCut     = errors.New("connection reset")
	errNoRoute = &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("no route to host")}
)

// The directions of a link.
const up, down = 0, 1

// A link is the network between one client and one master. Links and their connections are guarded by scenario.mu.
type link struct {
	p      *client
	master int
	delay  time.Duration // of each message, one way
	cut    bool          // the client cannot connect
	deaf   bool          // wake-ups are dropped
	hold   [2]bool       // by direction: messages sent from now on are delayed
	conns  []*conn
	sent   [][]string // all commands that were sent
}

// A conn is one connection, as the client's pool uses it.
type conn struct {
	net.Conn // for the methods that the pool does not use for data, such as SetDeadline
	l        *link
	master   net.Conn // the master's side
	lanes    [2]lane
	rest     string     // an incomplete command
	pending  [][]string // commands at the master without a reply
	in       []byte     // received but not read
	closed   bool       // closed by the client
	reset    bool       // closed by the network or the master
	wake     chan struct{}
}

// A lane is one direction of a connection.
type lane struct {
	c      *conn
	slot   int
	last   time.Time // arrival of the last message
	flying int       // number of messages in flight
	held   []func()  // messages that the network holds back
}

// put calls arrive after the delay of the link, or holds the message back if the direction is held.
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

// deliver sends all held messages, in order.
func (n *lane) deliver() {
	held := n.held
	n.held = nil
	for _, arrive := range held {
		n.fly(arrive)
	}
}

// dial implements the dialer of a client's pool.
func (p *client) dial(ctx context.Context, network, addr string) (net.Conn, error) {
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

// Write implements net.Conn. It sends commands to the master.
func (c *conn) Write(b []byte) (int, error) {
	w := c.l.p.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.closed || c.reset {
		return 0, net.ErrClosed
	}
	commands, rest, err := memory.Parse(c.rest + string(b))
	if err != nil {
		return 0, err
	}
	c.rest = rest
	for _, args := range commands {
		c.l.sent = append(c.l.sent, args)
		w.nameAll(c.l.p, args)
		c.lanes[up].put(up, func() {
			c.pending = append(c.pending, args)
			_, _ = c.master.Write(encoded(args)) // listen detects errors
		})
	}
	return len(b), nil
}

// encoded returns a command as an array of bulk strings.
func encoded(args []string) []byte {
	list := make([]any, len(args))
	for i, a := range args {
		list[i] = a
	}
	return memory.AppendReply(nil, list)
}

// listen receives the master's replies, and sends them to the client.
func (c *conn) listen() {
	w, replies := c.l.p.w, redis.NewConn(c.master, 0, 0)
	for {
		value, err := replies.Receive()
		if refusal := redis.Error(""); errors.As(err, &refusal) {
			value, err = refusal, nil
		}
		w.mu.Lock()
		if err != nil {
			c.resetLocked()
			w.mu.Unlock()
			return
		}
		c.answerLocked(value)
		c.leaveLocked()
		w.mu.Unlock()
	}
}

func (c *conn) answerLocked(value any) {
	if hint, err := redis.Strings(value, nil); err == nil && len(hint) == 3 && hint[0] == "message" {
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
			c.in = memory.AppendReply(c.in, plain(value))
			c.signal()
		})
	}
}

// plain converts a reply to the types that package memory writes.
func plain(value any) any {
	switch v := value.(type) {
	case []byte:
		return string(v)
	case redis.Error:
		return reference.Error(v)
	case []any:
		list := make([]any, len(v))
		for i, one := range v {
			list[i] = plain(one)
		}
		return list
	}
	return value
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

// leaveLocked closes the master's side of a connection if the client has closed it and no data is in flight.
func (c *conn) leaveLocked() {
	if c.closed && c.lanes[up].flying+len(c.lanes[up].held)+len(c.pending) == 0 {
		_ = c.master.Close()
	}
}

// resetLocked ends a connection as a broken network does. Data in flight is lost.
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
