package pipe

import (
	"fmt"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/pool/internal/fault"
)

// reader is what the reader alone uses.
type reader struct {
	taken []request
	next  int // of taken
}

// read hands replies to their receivers until the connection ends or must end. It always waits in a read, also when
// nothing is outstanding, so the end of the connection is noticed at once.
func (p *Pipe) read() error {
	for {
		value, err := p.conn.Receive()
		if err != nil {
			return err
		}
		p.heard.Store(p.now())
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
			return nil // what the pool has asked for shows that the session must end: later replies do not count
		}
	}
}

// pop takes the oldest request whose reply is awaited.
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
	in.taken[in.next] = request{} // an answered Receiver is not kept alive
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

// deliver hands one reply on. An error ends the connection.
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
	case "MOVED", "ASK", "TRYAGAIN": // the slot of a bucket is on the move, or has moved
		return reply
	case "READONLY":
		return fault.Refused(fmt.Sprintf("it has become a replica (%v): it takes no locks, and may have lost those it had",
			reply))
	}
	return nil
}

// again deals with a server that does not know a script, which then caches the text that comes with EVAL. It reports
// whether the call is sent once more. A script of the kind Once is not: an acquire would run behind its own release.
// Its caller is told, and the next calls of it carry the text until one of them has been answered.
func (p *Pipe) again(r *request, reply redis.Error) bool {
	isOnce, unknown := r.call.Script.Once, fault.Code(reply) == "NOSCRIPT"
	resend := unknown && !isOnce && !r.eval
	p.mu.Lock()
	if isOnce && (unknown || reply == "") {
		p.byText = unknown
	}
	if resend {
		r.eval = true
		p.addLocked(*r) // also after the end: Drain answers it
	}
	p.mu.Unlock()
	p.wake.Signal()
	return resend
}
