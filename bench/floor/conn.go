package floor

import (
	"errors"
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
	redis  redis.Conn
	queue  chan request // to the writer; closed by Close
	flight chan *round  // from the writer to the reader: written or about to be, in order
}

// backlog is how much a connection holds for a master that hangs.
const backlog = 1 << 16

func newConn(c redis.Conn) *conn {
	return &conn{redis: c, queue: make(chan request, backlog), flight: make(chan *round, backlog)}
}

// enqueue leaves the request to the writer. A master that is too far behind refuses.
func (c *conn) enqueue(r request) {
	select {
	case c.queue <- r:
	default:
		r.round.vote(false)
	}
}

// writeLoop sends all that has been queued since it last looked, with one flush, until the queue is closed.
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
			_ = c.redis.Close() // the reader sees it
		}
	}
}

// readLoop hands each reply to the round that it belongs to, the oldest in flight. It ends with the connection; what
// is not answered then is refused.
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
