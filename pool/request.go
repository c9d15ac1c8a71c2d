package pool

import (
	"github.com/redlock-go/redlock/internal/scripts"
)

// A kind says what a request is for.
type kind uint8

const (
	kindCall kind = iota // of a caller; counted against the queue limit
	kindDebt             // pays a debt
	kindInfo             // heartbeat
	kindTime             // heartbeat of a server whose INFO has no clock
)

// A request is one command that is queued or in flight. It is passed by value.
type request struct {
	call  *scripts.Call // nil for a heartbeat
	to    Receiver
	text  string // of the stamp
	since int64  // when it, or an older one of its batch, was queued; see master.since
	kind  kind
	eval  bool  // NOSCRIPT was answered: send the text of the script
	many  uint8 // with how many, itself included, it is made by one run of a script; 0 alone, and behind the first
}

func (r *request) op() string {
	if r.call == nil {
		return "heartbeat"
	}
	return r.call.Script.Name
}

// arguments returns what follows the command's name. The slice is valid until the next call; it is either the call's
// own, which nobody changes, or a copy in scratch. Only the writer calls it.
func (s *session) arguments(r *request) []any {
	c := r.call
	if c.Stamp == 0 && !r.eval {
		return c.Args
	}
	s.scratch = append(s.scratch[:0], c.Args...)
	if c.Stamp > 0 {
		s.scratch[c.Stamp] = s.boxedStamp(r.text)
	}
	if r.eval {
		s.scratch[0] = c.Script.Text
	}
	return s.scratch
}

// boxedStamp is text as an argument. Boxing a string allocates; the text is the same for nearly all calls of a session.
func (s *session) boxedStamp(text string) any {
	if s.stamp == nil || s.stampText != text {
		s.stampText, s.stamp = text, text
	}
	return s.stamp
}

// put hands one request to redigo, or several that are made together.
func (s *session) put(list []request) error {
	r := &list[0]
	switch {
	case len(list) > 1:
		return s.putMany(list)
	case r.kind == kindInfo:
		return s.link.conn.Send("INFO")
	case r.kind == kindTime:
		return s.link.conn.Send("TIME")
	case r.eval:
		return s.link.conn.Send("EVAL", s.arguments(r)...)
	default:
		return s.link.conn.Send("EVALSHA", s.arguments(r)...)
	}
}
