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

// A request is one command, which must not be executed before due.
type request struct {
	due  time.Time
	args []string
}

// An answer is an encoded reply, which must not be written before due.
type answer struct {
	due  time.Time
	text []byte
}

// serve starts the goroutines of a new connection. If the master is closed or stopped, serve returns an error, and the
// caller must close the connection.
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
	var due time.Time
	if d := c.m.faults.delay; d > 0 {
		due = time.Now().Add(d)
	}
	c.out.put(answer{due: due, text: AppendReply(nil, reply)})
}

// read queues commands until the client closes the connection or a fault cuts it. If the client closes the connection,
// the queued commands are still executed, as on a real server.
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
			var due time.Time
			c.m.mu.Lock()
			if d := c.m.faults.delay; d > 0 {
				due = time.Now().Add(d)
			}
			c.m.mu.Unlock()
			c.in.put(request{due: due, args: args})
		}
	}
}

// execute executes the queued commands in order. It returns when the connection is cut or, if the client has
// disconnected, after the last command.
func (c *conn) execute() {
	defer c.out.close()
	var batch []request
	for {
		var ok bool
		if batch, ok = c.in.take(batch); !ok {
			return
		}
		for _, r := range batch {
			if !c.until(r.due) || !c.work(r.args[0]) || !c.executeOne(r.args) {
				return
			}
		}
	}
}

// work simulates the execution time of EVAL and EVALSHA (see ScriptTime): it waits until the master has worked for that
// time on this script, after all earlier scripts. It reports whether the connection is still open.
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

// executeOne waits until the master does not hang, executes one command, and reports whether the connection is still
// open.
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

// commandLocked executes one command, or injects a fault, and reports whether the connection is still open.
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

// write writes the queued replies in order, and combines replies that are due into one write. It returns after the last
// reply, or when the connection is cut, and closes the connection.
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
			if len(buf) > 0 && a.due.After(time.Now()) {
				_, _ = c.nc.Write(buf)
				buf = buf[:0]
			}
			if !c.until(a.due) {
				return
			}
			buf = append(buf, a.text...)
		}
		// A write error means that the client no longer reads. The client's commands are still executed.
		_, _ = c.nc.Write(buf)
	}
}

// until sleeps until due, and reports whether the connection is still open. A zero due has passed.
func (c *conn) until(due time.Time) bool {
	if due.IsZero() {
		return true
	}
	d := time.Until(due)
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
	wake chan struct{} // contains a value if there may be new items

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

// close closes the queue: when it is empty, take returns false.
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

// take waits until there are items, and returns all of them. It returns false if the queue is closed and empty. spent
// is the slice that an earlier take returned, whose memory the queue reuses.
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
