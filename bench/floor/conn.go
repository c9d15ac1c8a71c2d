package floor

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/gomodule/redigo/redis"
)

// A round is one script sent to all masters. It wakes its caller once: with true at the quorum-th grant, with false
// where too many refuse for that.
type round struct {
	votes    atomic.Uint64 // the grants in the low half, all else in the high half
	quorum   uint32
	spare    uint32 // how many may refuse
	anyReply bool   // each counts as a grant
	wake     chan bool
}

func newRound(quorum, masters int, wake chan bool) *round {
	return &round{quorum: uint32(quorum), spare: uint32(masters - quorum), wake: wake}
}

func (r *round) vote(granted bool) {
	if granted || r.anyReply {
		if uint32(r.votes.Add(1)) == r.quorum {
			r.wake <- true
		}
	} else if uint32(r.votes.Add(1<<32)>>32) == r.spare+1 {
		r.wake <- false
	}
}

// A request is one script on its way to one master.
type request struct {
	args  []any
	round *round
}

// A conn is the one connection to a master, with its reader and its writer.
type conn struct {
	redis redis.Conn
	wake  chan struct{} // tells the writer that there is something to do

	mu     sync.Mutex
	queue  []request // guarded by mu: not yet written
	flight []*round  // guarded by mu: written or about to be, in order
	spare  []*round  // guarded by mu: the reader's last batch, for reuse
	broken bool      // guarded by mu: the reader has ended
}

func newConn(c redis.Conn) *conn { return &conn{redis: c, wake: make(chan struct{}, 1)} }

// enqueue leaves the request to the writer.
func (c *conn) enqueue(r request) {
	c.mu.Lock()
	broken := c.broken
	if !broken {
		c.queue = append(c.queue, r)
	}
	first := len(c.queue) == 1
	c.mu.Unlock()
	if broken {
		r.round.vote(false)
	} else if first {
		c.wakeWriter()
	}
}

// wakeWriter does nothing where the writer has been woken already: the channel is full then.
func (c *conn) wakeWriter() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// writeLoop sends all that has been queued since it last looked, with one flush. It ends after the reader.
func (c *conn) writeLoop() {
	var batch []request
	for {
		c.mu.Lock()
		batch, c.queue = c.queue, batch[:0]
		for _, r := range batch {
			c.flight = append(c.flight, r.round)
		}
		broken := c.broken
		c.mu.Unlock()
		if broken {
			return
		}
		if len(batch) == 0 {
			<-c.wake
			continue
		}
		var err error
		for _, r := range batch {
			err = errors.Join(err, c.redis.Send("EVALSHA", r.args...))
		}
		if errors.Join(err, c.redis.Flush()) != nil {
			_ = c.redis.Close() // the reader sees it
		}
		clear(batch)
	}
}

// readLoop hands each reply to the round that it belongs to, the oldest in flight. It ends with the connection; what
// is not answered then is refused.
func (c *conn) readLoop() {
	var batch []*round
	next := 0
	for {
		reply, err := c.redis.Receive()
		var refused redis.Error
		if err != nil && !errors.As(err, &refused) {
			break
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
		r.vote(reply == int64(1))
	}
	c.mu.Lock()
	c.broken = true
	for _, r := range c.queue {
		c.flight = append(c.flight, r.round)
	}
	lost := append(batch[next:], c.flight...)
	c.mu.Unlock()
	c.wakeWriter()
	for _, r := range lost {
		r.vote(false)
	}
}
