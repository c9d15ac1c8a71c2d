package pipe

import (
	"fmt"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/transport/fault"
)

// reader holds the fields that only the reader uses.
type reader struct {
	taken []request
	next  int // index into taken
}

// read hands replies to their receivers until the connection ends or must end. It always waits in a read, also when
// nothing is outstanding, so it notices the end of the connection immediately.
func (p *Pipe) read() error {
	for {
		value, err := p.conn.Receive()
		if err != nil {
			return err
		}
		p.lastRead.Store(p.now())
		if p.owner.PushFunc != nil && p.owner.PushFunc(value) {
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
			return nil // a call of the pool found that the session must end, so later replies are ignored
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

// deliver hands one reply to its receiver. An error ends the connection.
func (p *Pipe) deliver(r *request, value any) error {
	reply, refused := value.(redis.Error)
	if r.call.Script.SHA != "" && (refused || r.eval) && p.again(r, reply) {
		return nil
	}
	var err error
	if r.counted {
		p.outstanding.Add(-1)
		if refused {
			value, err = nil, p.owner.ErrorFunc(r.call.Script.Name, reply, false)
		}
	}
	r.to.Reply(p.owner.Master, value, err)
	switch fault.Code(reply) {
	case "MOVED", "ASK", "TRYAGAIN": // the slot of the bucket is being moved, or has moved
		return reply
	case "READONLY":
		return fault.Refused(fmt.Sprintf("it has become a replica (%v): it grants no locks, and may have lost those it had",
			reply))
	}
	return nil
}

// again handles the reply to a call of a script. If the server does not know the script, the call is sent again by
// EVAL with the script's text, which the server then caches. again reports whether the call is sent again. A script
// of the kind Once is not sent again, because an acquire could then run after its own release. Its Receiver gets
// NOSCRIPT, and later calls of the script contain the text until one of them has been answered.
func (p *Pipe) again(r *request, reply redis.Error) bool {
	isOnce, unknown := r.call.Script.Once, fault.Code(reply) == "NOSCRIPT"
	resend := unknown && !isOnce && !r.eval
	p.mu.Lock()
	if isOnce && (unknown || reply == "") {
		p.byText = unknown
	}
	if resend {
		r.eval = true
		p.addLocked(*r) // also if the connection has ended, since Drain then answers it
	}
	p.mu.Unlock()
	p.wake.Signal()
	return resend
}
