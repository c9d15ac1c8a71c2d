package pool

import (
	"fmt"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/scripts"
)

// groupLocked finds the requests of a batch that one run of a script can make together: it costs a master less than
// as many runs do. Their order stays, and each has its own answer.
func (s *session) groupLocked(batch []request) {
	for from := 0; from < len(batch); {
		s.group.Reset()
		first, to := &batch[from], from
		for to < len(batch) && batch[to].eval == first.eval && batch[to].text == first.text &&
			batch[to].kind == kindCall && s.group.Add(batch[to].call) {
			to++
		}
		if n := to - from; n > 1 {
			first.many = uint8(n)
		}
		from = max(to, from+1)
	}
}

// putMany hands redigo the one run of several requests.
func (s *session) putMany(list []request) error {
	s.group.Reset()
	for i := range list {
		s.group.Add(list[i].call)
	}
	s.scratch = s.group.AppendArgs(s.scratch[:0], s.boxedStamp(list[0].text))
	s.group.Reset()
	if !list[0].eval {
		return s.link.conn.Send("EVALSHA", s.scratch...)
	}
	s.scratch[0] = scripts.Many.Text
	return s.link.conn.Send("EVAL", s.scratch...)
}

// deliverMany hands on the replies of first and of those that were made together with it. An error ends the session.
func (s *session) deliverMany(first request, value any, reply redis.Error, isReply bool) error {
	list := append(s.list[:0], first)
	list[0].many = 0
	for range first.many - 1 {
		r, _ := s.pop() // they were taken together
		list = append(list, r)
	}
	s.list = list
	defer clear(list)
	if isReply {
		return s.undone(list, reply)
	}
	values, ok := value.([]any)
	if !ok || len(values) != len(list) {
		err := fmt.Errorf("what should be %d replies is %.40v", len(list), value)
		s.answer(list, &Error{Addr: s.m.name, Op: first.op(), Err: downCause(lost(err))}, true)
		return err
	}
	var end error
	for i := range list {
		one, isReply := values[i].(redis.Error)
		if err := s.deliver(&list[i], values[i], one, isReply); err != nil {
			end = err
		}
	}
	return end
}

// undone deals with an error reply for all: none of them has been run.
func (s *session) undone(list []request, reply redis.Error) error {
	switch replyCode(reply) {
	case "NOSCRIPT":
		if !list[0].eval {
			s.again(list...)
			return nil
		}
	case "NOPERM": // a user whose rights tell names, or scripts, apart: each request hears of its own
		s.m.mu.Lock()
		s.apart = true
		wake := false
		for _, r := range list {
			wake = s.queueLocked(r) || wake
		}
		s.m.mu.Unlock()
		if wake {
			s.nudge()
		}
		return nil
	}
	var end error
	for i := range list {
		if err := s.deliver(&list[i], nil, reply, true); err != nil {
			end = err
		}
	}
	return end
}
