package redlocktest

import (
	"bufio"
	"net"
	"sync"
	"time"
)

// A conn is one client's connection, as the master has it.
type conn struct {
	m    *Master
	nc   net.Conn
	dead chan struct{} // closed, under m.mu, when the connection is cut

	in  queue[request]
	out queue[answer]

	channels map[string]struct{} // subscriptions; guarded by m.mu
}

// A request is one command, to be executed not before at. An answer's bytes are written not before at.
type request struct {
	at   time.Time
	args []string
}

type answer struct {
	at   time.Time
	text []byte
}

// serve takes a connection over, or returns why not; it is then the caller's to close.
func (m *Master) serve(nc net.Conn) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.closed:
		return errClosed
	case m.faults.down:
		return errDown
	}
	c := &conn{m: m, nc: nc, dead: make(chan struct{}), channels: map[string]struct{}{}}
	c.in.init()
	c.out.init()
	m.conns[c] = struct{}{}
	m.set.wg.Go(c.read)
	m.set.wg.Go(c.execute)
	m.set.wg.Go(c.write)
	return nil
}

// cutLocked ends the connection; nothing that waits on it is executed or written any more.
func (c *conn) cutLocked() {
	if _, there := c.m.conns[c]; !there {
		return
	}
	delete(c.m.conns, c)
	for channel := range c.channels {
		c.unsubscribeLocked(channel)
	}
	close(c.dead)
	_ = c.nc.Close()
}

func (c *conn) subscribeLocked(channel string) {
	if c.m.subs[channel] == nil {
		c.m.subs[channel] = map[*conn]struct{}{}
	}
	c.m.subs[channel][c] = struct{}{}
	c.channels[channel] = struct{}{}
}

func (c *conn) unsubscribeLocked(channel string) {
	delete(c.channels, channel)
	delete(c.m.subs[channel], c)
	if len(c.m.subs[channel]) == 0 {
		delete(c.m.subs, channel)
	}
}

// answerLocked queues a reply.
func (c *conn) answerLocked(reply any) {
	var at time.Time
	if d := c.m.faults.delay(); d > 0 {
		at = time.Now().Add(d)
	}
	c.out.put(answer{at: at, text: appendReply(nil, reply)})
}

// read queues commands until the client closes the connection or it is cut. What was queued is still executed: the
// client's end says nothing about the bytes that it has sent.
func (c *conn) read() {
	defer c.in.close()
	r := bufio.NewReader(c.nc)
	for {
		args, err := readCommand(r)
		if err != nil {
			return
		}
		var at time.Time
		c.m.mu.Lock()
		if d := c.m.faults.delay(); d > 0 {
			at = time.Now().Add(d)
		}
		c.m.mu.Unlock()
		c.in.put(request{at: at, args: args})
	}
}

// execute takes the commands in order. It ends after the last one of a client that has gone, or when the connection is
// cut.
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

// work waits until the master has spent the time that a script takes, and reports whether the connection is still there.
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

// executeOne waits while the master hangs, executes one command, and reports whether the connection is still there.
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

// write writes the answers in order, as many at once as are due, and then closes the connection.
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
		// An error means that the client does not listen any more. Its commands are executed all the same.
		_, _ = c.nc.Write(buf)
	}
}

// until waits for a moment and reports whether the connection is still there.
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

// A queue hands items from any number of goroutines to one. It has no bound.
type queue[T any] struct {
	wake chan struct{} // one token where there may be something new

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

// close lets take return false once the queue is empty.
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

// take waits for items and returns all there are. spent is a slice from an earlier take, to be used again.
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
