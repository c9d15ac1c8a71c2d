package sim

import (
	"context"
	"math/rand/v2"
	"net"
	"syscall"
	"time"

	"github.com/redlock-go/redlock/internal/memory"
)

// redialEvery is the minimum time between connections of a client to the same master.
const redialEvery = 21 * time.Millisecond

// A link is the network between one client and one master: both directions of each connection that the client makes.
type link struct {
	w      *simulation
	c      *client
	s      *server
	random *rand.Rand
	slot   int // distinguishes the arrival times on this link from those on all other links

	upCut, downCut bool             // messages to the master, or from the master, are held back
	refuse         bool             // the client cannot connect
	denied         bool             // the master refuses the client's acquires, as if its user lacked the permission
	slow           [2]time.Duration // additional delay of messages to the master and back
	conns          []*conn          // connections that may still deliver data
	asked          map[string]block // by lease: the ballots that have been sent
	generation     int              // number of dials
	dialAt         time.Time        // earliest time of the next connection
}

// A conn is one connection: the client's side, as its pool uses it, and the master's side. All fields are guarded by
// simulation.mu.
type conn struct {
	l    *link
	slot int // the slot of the link, plus the number of the connection
	nearEnd
	underWay
	farEnd
}

// nearEnd is the client's side of a connection.
type nearEnd struct {
	in     []byte
	closed bool          // closed by the client
	reset  bool          // closed by the master or the network
	paused bool          // the client is suspended, or has just woken up
	wake   chan struct{} // capacity 1; wakes Read
	resume chan struct{} // not nil while paused; closed at the end of the pause
}

// underWay is the data in flight on a connection.
type underWay struct {
	rest             string    // start of an incomplete command
	upLast, downLast time.Time // arrival of the last message in each direction
	upHeld           [][]command
	downHeld         [][]byte
	upFlight         int // messages in flight to the master
}

// farEnd is the master's side of a connection.
type farEnd struct {
	dead   bool // data that arrives is lost
	out    []byte
	client memory.Client
}

// at runs f after about d, at a time that is unique to slot and with simulation.mu held. It returns that time.
func (w *simulation) at(d time.Duration, slot int, f func()) time.Time {
	due := w.instant(time.Now().Add(d), slot)
	w.agenda.add(due, f)
	return due
}

// instant returns the first instant after t that belongs to slot.
func (w *simulation) instant(t time.Time, slot int) time.Time {
	return t.Truncate(tick).Add(tick + time.Duration(slot)*tickPart)
}

// latency chooses the delay of the next message; way is 0 to the master, and 1 from the master.
func (l *link) latency(way int) time.Duration {
	p := &l.w.plan
	d := p.latency + l.slow[way]
	if p.jitter > 0 {
		d += time.Duration(l.random.Int64N(int64(p.jitter)))
	}
	if p.spikes > 0 && l.random.Float64() < p.spikes && l.w.faults {
		d += time.Duration(l.random.Int64N(int64(p.spike)))
	}
	return d
}

var (
	errRefused     = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	errUnreachable = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.EHOSTUNREACH}
	errReset       = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
)

// dial implements the dialer of the client's pool.
func (c *client) dial(ctx context.Context, _, addr string) (net.Conn, error) {
	w := c.w
	w.mu.Lock()
	l := c.links[addr]
	wait := max(time.Until(l.dialAt), 0) + l.latency(0) + l.latency(1)
	l.generation++
	slot := l.slot + l.generation%slotsPerLink
	ready := make(chan struct{})
	w.at(wait, slot, func() { close(ready) })
	w.mu.Unlock()
	select {
	case <-ready:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	w.mu.Lock()
	for c.asleep {
		awake := c.awake
		w.mu.Unlock()
		select {
		case <-awake:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		w.mu.Lock()
	}
	defer w.mu.Unlock()
	l.dialAt = time.Now().Add(redialEvery)
	switch {
	case l.s.down:
		return nil, errRefused
	case l.refuse || l.upCut || l.downCut:
		return nil, errUnreachable
	}
	n := &conn{l: l, slot: slot}
	n.client.Reply = func(reply any) { n.out = memory.AppendReply(n.out, reply) }
	n.client.Message = func(reply any) { l.s.message(n, reply) }
	n.wake = make(chan struct{}, 1)
	l.conns = append(l.conns, n)
	w.count.Connections++
	return n, nil
}

// Read implements net.Conn.
func (n *conn) Read(b []byte) (int, error) {
	w := n.l.w
	w.mu.Lock()
	for {
		switch {
		case n.closed:
			w.mu.Unlock()
			return 0, net.ErrClosed
		case n.paused:
		case len(n.in) > 0:
			k := copy(b, n.in)
			n.in = n.in[k:]
			w.mu.Unlock()
			return k, nil
		case n.reset:
			w.mu.Unlock()
			return 0, errReset
		}
		w.mu.Unlock()
		<-n.wake
		w.mu.Lock()
	}
}

// Write implements net.Conn. It blocks only while the client is suspended.
func (n *conn) Write(b []byte) (int, error) {
	w := n.l.w
	w.mu.Lock()
	defer w.mu.Unlock()
	for n.paused && !n.closed {
		resume := n.resume
		w.mu.Unlock()
		<-resume
		w.mu.Lock()
	}
	if n.closed || n.reset {
		return 0, net.ErrClosed
	}
	commands, rest, err := memory.Parse(n.rest + string(b))
	if err != nil {
		return 0, err
	}
	if n.rest = rest; len(commands) > 0 {
		for _, c := range commands {
			n.l.ask(c)
		}
		n.send(commands)
	}
	return len(b), nil
}

// Close closes the connection. Data that was written before may still arrive.
func (n *conn) Close() error {
	w := n.l.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if n.closed {
		return nil
	}
	n.closed = true
	n.l.dialAt = time.Now().Add(redialEvery)
	if n.paused {
		n.unpause()
	}
	n.signal()
	n.forget()
	return nil
}

func (n *conn) signal() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// forget removes the connection from its link if it can no longer deliver data.
func (n *conn) forget() {
	if !n.closed || !n.dead && (n.upFlight > 0 || len(n.upHeld) > 0) {
		return
	}
	n.drop()
	for i, o := range n.l.conns {
		if o == n {
			n.l.conns = append(n.l.conns[:i:i], n.l.conns[i+1:]...)
			return
		}
	}
}

// send sends commands to the master, or holds them back while the link is cut.
func (n *conn) send(commands []command) {
	if n.dead {
		return
	}
	if n.l.upCut || len(n.upHeld) > 0 {
		n.upHeld = append(n.upHeld, commands)
		return
	}
	w := n.l.w
	due := w.instant(later(time.Now().Add(n.l.latency(0)), n.upLast), n.slot)
	n.upLast = due
	n.upFlight++
	w.agenda.add(due, func() {
		n.upFlight--
		if !n.dead {
			n.l.s.receive(n, commands)
			w.duplicate(n, commands)
		}
		n.forget()
	})
}

// flush sends the master's replies to the client, or holds them back while the link is cut.
func (n *conn) flush() {
	if len(n.out) == 0 {
		return
	}
	text := n.out
	n.out = nil
	if n.closed || n.dead {
		return
	}
	if n.l.downCut || len(n.downHeld) > 0 {
		n.downHeld = append(n.downHeld, text)
		return
	}
	w := n.l.w
	due := w.instant(later(time.Now().Add(n.l.latency(1)), n.downLast), n.slot+slotsDown)
	n.downLast = due
	w.agenda.add(due, func() {
		if !n.dead && !n.closed {
			n.l.c.readNext()
			n.in = append(n.in, text...)
			n.signal()
		}
	})
}

// open ends all cuts of the link; messages that were held back are sent now, in order.
func (l *link) open() {
	l.upCut, l.downCut, l.refuse, l.denied = false, false, false, false
	for _, n := range append([]*conn(nil), l.conns...) {
		up, down := n.upHeld, n.downHeld
		n.upHeld, n.downHeld = nil, nil
		for _, commands := range up {
			n.send(commands)
		}
		for _, text := range down {
			n.out = append(n.out, text...)
			n.flush()
		}
		n.forget()
	}
}

// cut ends a connection, as a broken network does. Data in flight to the client is lost; data in flight to the
// master is also lost, unless arrives is set.
func (n *conn) cut(arrives bool) {
	n.reset = true
	n.signal()
	if !arrives {
		n.drop()
	}
	n.forget()
}

// drop closes the master's side.
func (n *conn) drop() {
	n.dead = true
	n.l.s.Leave(&n.client)
}

func (n *conn) pause() {
	if !n.paused {
		n.paused, n.resume = true, make(chan struct{})
	}
}

func (n *conn) unpause() {
	if n.paused {
		n.paused = false
		close(n.resume)
		n.signal()
	}
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// The remaining methods of net.Conn. Deadlines have no effect, because the pool uses its own timeouts.
func (n *conn) LocalAddr() net.Addr              { return address("client") }
func (n *conn) RemoteAddr() net.Addr             { return address(n.l.s.addr) }
func (n *conn) SetDeadline(time.Time) error      { return nil }
func (n *conn) SetReadDeadline(time.Time) error  { return nil }
func (n *conn) SetWriteDeadline(time.Time) error { return nil }

type address string

func (a address) Network() string { return "tcp" }
func (a address) String() string  { return string(a) }

// A command is one command from a client.
type command = []string
