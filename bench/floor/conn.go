package floor

import (
	"fmt"
	"sync"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/scripts"
)

// A round is one script sent to all masters. It wakes its caller once, at the quorum-th grant.
type round struct {
	f      *Floor
	votes  votes
	quorum uint32
	last   bool // any reply counts
	wake   chan struct{}
}

// A command is what is sent to every master alike, but for the argument at stamp, the master's
// admission record; 0: none.
type command struct {
	name  string
	args  []any
	stamp int
}

func callOf(c *scripts.Call) command { return command{"EVALSHA", c.Args, c.Stamp} }

// A request is one command of a round on its way to one master.
type request struct {
	command command
	round   *round
}

// A conn is the one connection to a master, with the goroutines that belong to it.
type conn struct {
	redis  redis.Conn
	record any // the admission record, boxed once, which each acquire carries
	fail   func(error)
	wake   chan struct{}
	done   chan struct{} // closed to end the writer

	mu      sync.Mutex // guards what follows, and in the direct form the writing side of redis
	queue   []request  // not yet written (queued form)
	flight  []*round   // written or about to be, in order
	spare   []*round   // the reader's last batch, for reuse
	scratch []any      // arguments with the record put in; belongs to whoever writes
	closed  bool
}

func newConn(c redis.Conn, record string, fail func(error)) *conn {
	return &conn{redis: c, record: record, fail: fail, wake: make(chan struct{}, 1), done: make(chan struct{})}
}

// sendDirect writes the command from the caller's goroutine.
func (c *conn) sendDirect(cmd command, r *round) {
	c.mu.Lock()
	c.flight = append(c.flight, r)
	c.write(cmd)
	err := c.redis.Flush()
	c.mu.Unlock()
	c.must(err)
}

// enqueue leaves the command to the writer goroutine. The channel is full where the writer has been woken already.
func (c *conn) enqueue(cmd command, r *round) {
	c.mu.Lock()
	c.queue = append(c.queue, request{cmd, r})
	first := len(c.queue) == 1
	c.mu.Unlock()
	if first {
		select {
		case c.wake <- struct{}{}:
		default:
		}
	}
}

// writeLoop sends all that has been queued since it last looked, with one flush.
func (c *conn) writeLoop() {
	var batch []request
	for {
		c.mu.Lock()
		batch, c.queue = c.queue, batch[:0]
		for _, r := range batch {
			c.flight = append(c.flight, r.round)
		}
		c.mu.Unlock()
		if len(batch) == 0 {
			select {
			case <-c.wake:
				continue
			case <-c.done:
				return
			}
		}
		for i := range batch {
			c.write(batch[i].command)
		}
		c.must(c.redis.Flush())
		clear(batch)
	}
}

func (c *conn) write(cmd command) {
	args := cmd.args
	if cmd.stamp > 0 {
		c.scratch = append(c.scratch[:0], args...)
		c.scratch[cmd.stamp] = c.record
		args = c.scratch
	}
	c.must(c.redis.Send(cmd.name, args...))
}

// readLoop hands each reply to the round that it belongs to. A reply belongs to the oldest round in flight.
func (c *conn) readLoop() {
	var batch []*round
	next := 0
	for {
		reply, err := c.redis.Receive()
		if err != nil {
			c.mu.Lock()
			closed := c.closed
			c.mu.Unlock()
			if closed {
				return
			}
			c.must(err)
		}
		if next == len(batch) {
			c.mu.Lock()
			batch, c.flight, c.spare = c.flight, c.spare[:0], batch[:0]
			c.mu.Unlock()
			next = 0
		}
		r := batch[next]
		batch[next] = nil
		next++
		r.vote(reply)
	}
}

func (c *conn) must(err error) {
	if err != nil {
		c.fail(fmt.Errorf("floor: %w", err))
	}
}
