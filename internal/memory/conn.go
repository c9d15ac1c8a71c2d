package memory

import (
	"net"
	"strings"
	"sync"
	"time"

	"github.com/redlock-go/redlock/internal/heartbeat"
)

// A conn is the master's side of one client connection.
type conn struct {
	m    *Master
	nc   net.Conn
	dead chan struct{} // closed, under m.mu, when the connection is cut

	in  queue[request]
	out queue[answer]

	client *Client // guarded by m.mu
}

// A request is one command, not to be executed before at. An answer is the bytes of a reply, not to be written before
// at.
type request struct {
	at   time.Time
	args []string
}

type answer struct {
	at   time.Time
	text []byte
}

// serve starts to serve a connection. If it returns an error, the caller must close the connection.
func (m *Master) serve(nc net.Conn) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.closed:
		return errClosed
	case m.faults.down:
		return errDown
	}
	c := &conn{m: m, nc: nc, dead: make(chan struct{})}
	c.client = &Client{Reply: c.answerLocked, Message: c.answerLocked}
	c.in.init()
	c.out.init()
	m.conns[c] = struct{}{}
	m.server.Connections = len(m.conns)
	m.set.wg.Go(c.read)
	m.set.wg.Go(c.execute)
	m.set.wg.Go(c.write)
	return nil
}

// cutLocked ends the connection; pending commands and replies are dropped.
func (c *conn) cutLocked() {
	if _, there := c.m.conns[c]; !there {
		return
	}
	delete(c.m.conns, c)
	c.m.server.Connections = len(c.m.conns)
	c.m.server.Leave(c.client)
	close(c.dead)
	_ = c.nc.Close()
}

// answerLocked queues a reply.
func (c *conn) answerLocked(reply any) {
	var at time.Time
	if d := c.m.faults.delay; d > 0 {
		at = time.Now().Add(d)
	}
	c.out.put(answer{at: at, text: AppendReply(nil, reply)})
}

// read queues commands until the client closes the connection or it is cut. Queued commands are still executed after
// the client has closed the connection, because their bytes have already been sent.
func (c *conn) read() {
	defer c.in.close()
	for chunk, rest := make([]byte, 4096), ""; ; {
		n, err := c.nc.Read(chunk)
		if err != nil {
			return
		}
		var commands [][]string
		if commands, rest, err = Parse(rest + string(chunk[:n])); err != nil {
			return
		}
		for _, args := range commands {
			var at time.Time
			c.m.mu.Lock()
			if d := c.m.faults.delay; d > 0 {
				at = time.Now().Add(d)
			}
			c.m.mu.Unlock()
			c.in.put(request{at: at, args: args})
		}
	}
}

// execute executes the commands in order. It ends after the last command of a client that has disconnected, or when the
// connection is cut.
func (c *conn) execute() {
	defer c.out.close()
	var batch []request
	for {
		var ok bool
		if batch, ok = c.in.take(batch); !ok {
			return
		}
		for _, r := range batch {
			if !c.until(r.at) || !c.work(r.args[0]) || !c.executeOne(r.args) {
				return
			}
		}
	}
}

// work waits for the time that a script takes on the master, and reports whether the connection is still open.
func (c *conn) work(command string) bool {
	c.m.mu.Lock()
	f := &c.m.faults
	if f.work == 0 || command != "EVALSHA" && command != "EVAL" {
		c.m.mu.Unlock()
		return true
	}
	if now := time.Now(); f.busy.Before(now) {
		f.busy = now
	}
	f.busy = f.busy.Add(f.work)
	done := f.busy
	c.m.mu.Unlock()
	return c.until(done)
}

// executeOne waits while the master hangs, executes one command, and reports whether the connection is still open.
func (c *conn) executeOne(args []string) bool {
	for {
		c.m.mu.Lock()
		hung := c.m.faults.hung
		if hung == nil {
			break
		}
		c.m.mu.Unlock()
		select {
		case <-hung:
		case <-c.dead:
			return false
		}
	}
	defer c.m.mu.Unlock()
	select {
	case <-c.dead:
		return false
	default:
	}
	return c.commandLocked(args)
}

// commandLocked executes one command, with the injected faults, and reports whether the connection is still open.
func (c *conn) commandLocked(args []string) bool {
	m := c.m
	if !IsScript(args[0]) {
		if m.server.Execute(c.client, args) {
			m.counts[strings.ToUpper(args[0])]++
		}
		return true
	}
	script, keys, argv, failed := m.server.Find(args)
	if failed != "" {
		m.counts[strings.ToUpper(args[0])]++
		c.answerLocked(failed)
		return true
	}
	if script == heartbeat.Script { // the injected faults affect only the scripts of locks
		m.counts[script.Name]++
		c.answerLocked(m.server.Eval(script, keys, argv))
		return true
	}
	if m.faults.noEffect > 0 {
		m.faults.noEffect--
		c.cutLocked()
		return false
	}
	reply := m.server.Eval(script, keys, argv)
	m.counts[script.Name]++
	if m.faults.noReply > 0 {
		m.faults.noReply--
		c.cutLocked()
		return false
	}
	c.answerLocked(reply)
	return true
}

// write writes the replies in order, and combines those that are due. When there are no more, it closes the
// connection.
func (c *conn) write() {
	defer func() {
		c.m.mu.Lock()
		defer c.m.mu.Unlock()
		c.cutLocked()
	}()
	var batch []answer
	var buf []byte
	for {
		var ok bool
		if batch, ok = c.out.take(batch); !ok {
			return
		}
		buf = buf[:0]
		for _, a := range batch {
			if len(buf) > 0 && a.at.After(time.Now()) {
				_, _ = c.nc.Write(buf)
				buf = buf[:0]
			}
			if !c.until(a.at) {
				return
			}
			buf = append(buf, a.text...)
		}
		// An error means that the client no longer reads. Its commands are still executed.
		_, _ = c.nc.Write(buf)
	}
}

// until waits until a point in time and reports whether the connection is still open.
func (c *conn) until(at time.Time) bool {
	if at.IsZero() {
		return true
	}
	d := time.Until(at)
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-c.dead:
		return false
	}
}

// A queue passes items from any number of goroutines to one. It is unbounded.
type queue[T any] struct {
	wake chan struct{} // holds a token if there may be new items

	mu     sync.Mutex
	items  []T
	closed bool
}

func (q *queue[T]) init() { q.wake = make(chan struct{}, 1) }

func (q *queue[T]) put(item T) {
	q.mu.Lock()
	q.items = append(q.items, item)
	q.mu.Unlock()
	q.signal()
}

// close makes take return false once the queue is empty.
func (q *queue[T]) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.signal()
}

func (q *queue[T]) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// take waits for items and returns all of them. spent is a slice from an earlier take, to be reused.
func (q *queue[T]) take(spent []T) (items []T, ok bool) {
	clear(spent)
	for {
		q.mu.Lock()
		if len(q.items) > 0 {
			items, q.items = q.items, spent[:0]
			q.mu.Unlock()
			return items, true
		}
		closed := q.closed
		q.mu.Unlock()
		if closed {
			return nil, false
		}
		<-q.wake
	}
}
