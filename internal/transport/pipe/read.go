package pipe

import (
	"fmt"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/transport/fault"
)

// reader holds the fields that only the reader uses.
type reader struct {
	taken []request
	next  int // index in taken of the oldest unanswered request
}

// read passes replies to their Receivers until the connection ends or must end. It always waits in a read, even if no
// request is outstanding, so it notices the end of the connection immediately.
func (p *Pipe) read() error {
	for {
		value, err := p.conn.Receive()
		if err != nil {
			return err
		}
		p.lastRead.Store(p.now())
		if p.settings.PushFunc != nil && p.settings.PushFunc(value) {
			continue
		}
		r, ok := p.pop()
		if !ok {
			if reply, isReply := value.(redis.Error); isReply {
				return reply
			}
			return fmt.Errorf("a reply without a request: %.40v", value)
		}
		if err := p.deliver(&r, value); err != nil {
			p.Kill(r.call.Script.Name, err)
			return err
		}
		if !r.counted && p.Reason() != nil {
			return nil // a call that the pool made has ended the connection: ignore later replies
		}
	}
}

// pop removes and returns the oldest request whose reply is awaited.
func (p *Pipe) pop() (request, bool) {
	in := &p.in
	if in.next == len(in.taken) {
		p.mu.Lock()
		in.taken, p.inflight, in.next = p.inflight, in.taken[:0], 0
		if len(in.taken) > 0 {
			p.waiting.Store(in.taken[0].since)
		}
		p.mu.Unlock()
		if len(in.taken) == 0 {
			return request{}, false
		}
	}
	r := in.taken[in.next]
	in.taken[in.next] = request{} // do not keep an answered Receiver alive
	in.next++
	var waiting int64
	if in.next < len(in.taken) {
		waiting = in.taken[in.next].since
	}
	if waiting != r.since {
		p.waiting.Store(waiting)
	}
	return r, true
}

// deliver passes a reply to the Receiver of r. If deliver returns an error, the connection must end.
func (p *Pipe) deliver(r *request, value any) error {
	reply, refused := value.(redis.Error)
	isScript := r.call.Script.SHA != ""
	if isScript && (refused || r.eval) && p.retryWithText(r, reply) {
		return nil
	}
	var err error
	if r.counted {
		p.outstanding.Add(-1)
		if refused {
			value, err = nil, p.settings.ErrorFunc(r.call.Script.Name, reply, false)
		}
	}
	r.to.Reply(p.settings.Master, value, err)
	if !isScript { // the Receiver decides: the command may be optional
		return nil
	}
	switch {
	case refused && fault.Moves(reply):
		return reply
	case fault.Code(reply) == "READONLY":
		return fault.Refused(fmt.Sprintf("it has become a replica (%v): it grants no locks, and may have lost those it had",
			reply))
	}
	return nil
}

// retryWithText handles the reply to a call of a script. If the server does not know the script, retryWithText sends
// the call again by EVAL with the text of the script, which the server then caches, and returns true. A script with
// Once set, such as that of an acquire, is not sent again, because an acquire could then run after its own release.
// Instead, the Receiver gets NOSCRIPT, and later calls of the script contain its text until one of them has been
// answered.
func (p *Pipe) retryWithText(r *request, reply redis.Error) bool {
	isOnce, unknown := r.call.Script.Once, fault.Code(reply) == "NOSCRIPT"
	resend := unknown && !isOnce && !r.eval
	p.mu.Lock()
	if isOnce && (unknown || reply == "") {
		p.byText = unknown
	}
	if resend {
		r.eval = true
		p.queue = append(p.queue, *r) // even if the connection has ended: Drain then answers the request
	}
	p.mu.Unlock()
	p.wake.Signal()
	return resend
}
