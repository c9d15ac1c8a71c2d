package floor

import (
	"errors"
	"sync/atomic"

	"github.com/gomodule/redigo/redis"
)

// A round is one script sent to all masters. It sends one value on wake: true when a quorum has granted, or false when
// too many masters have refused.
type round struct {
	votes    atomic.Uint64 // number of grants in the low half, of other replies in the high half
	quorum   uint32
	spare    uint32 // number of masters that may refuse
	anyReply bool   // every vote counts as a grant
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

// A request is one script for one master.
type request struct {
	args  []any
	round *round
}

// A conn is the connection to one master, with its reader and its writer.
type conn struct {
	redis  redis.Conn
	queue  chan request // requests for the writer; closed by Close
	flight chan *round  // rounds that the writer has sent or is about to send, in order; for the reader
}

// backlog is the maximum number of requests that a connection queues, for example for a hung master.
const backlog = 1 << 16

func newConn(c redis.Conn) *conn {
	return &conn{redis: c, queue: make(chan request, backlog), flight: make(chan *round, backlog)}
}

// enqueue passes the request to the writer. If the queue is full, the request is treated as refused.
func (c *conn) enqueue(r request) {
	select {
	case c.queue <- r:
	default:
		r.round.vote(false)
	}
}

// writeLoop sends all queued requests with one flush, again and again until the queue is closed.
func (c *conn) writeLoop() {
	defer close(c.flight)
	for r := range c.queue {
		var err error
		for more := true; more; {
			c.flight <- r.round
			err = errors.Join(err, c.redis.Send("EVALSHA", r.args...))
			select {
			case r, more = <-c.queue:
			default:
				more = false
			}
		}
		if errors.Join(err, c.redis.Flush()) != nil {
			_ = c.redis.Close() // makes Receive in readLoop fail
		}
	}
}

// readLoop passes each reply to the oldest round in flight. After the end of the connection it treats every round
// without a reply as refused, until Close.
func (c *conn) readLoop() {
	for {
		reply, err := c.redis.Receive()
		var refused redis.Error
		if err != nil && !errors.As(err, &refused) {
			break
		}
		(<-c.flight).vote(reply == int64(1))
	}
	for r := range c.flight {
		r.vote(false)
	}
}
