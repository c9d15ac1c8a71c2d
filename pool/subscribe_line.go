package pool

import (
	"errors"

	"github.com/gomodule/redigo/redis"
)

const (
	// subscribeBatch is how many channels one command names at most.
	subscribeBatch = 512
	// suspectWindow is how many channels are tried one by one at once, and how many refusals one after the other mean
	// that the user may subscribe to nothing.
	suspectWindow = 16
	// maxKept is how many channels may be left over on the master by a user without the right to UNSUBSCRIBE.
	maxKept = 4096
)

// An operation is what a command of a line does.
type operation uint8

const (
	opSubscribe operation = iota + 1
	opUnsubscribe
	opPing
)

func (o operation) String() string {
	switch o {
	case opSubscribe:
		return "SUBSCRIBE"
	case opUnsubscribe:
		return "UNSUBSCRIBE"
	default:
		return "PING"
	}
}

// A command is one that is outstanding. A master confirms its channels one by one, in their order, or refuses it as a
// whole by one reply.
type command struct {
	op     operation
	topics []*topic // not changed after it is made
	next   int      // the one whose confirmation is awaited; guarded by hub.mu
	since  int64    // when it was given to the writer
	alone  bool     // counted in line.alone
}

// queueLocked has the writer look at a topic, unless nothing is to be done for it now.
func (ln *line) queueLocked(t *topic) {
	l := &t.legs[ln.m.index]
	op := t.needLocked(ln.m.index)
	if op == 0 || l.queued || ln.dead {
		return
	}
	if op == opSubscribe && ln.denials >= suspectWindow {
		ln.refuseLocked(t)
		return
	}
	l.queued = true
	ln.dirty = append(ln.dirty, t)
	nudge(ln.wake)
}

// write is the writer: it makes commands of all that is to be done, flushes once, and looks again.
func (ln *line) write() {
	for {
		select {
		case <-ln.ended:
			return
		case <-ln.wake:
		}
		for batch := ln.commands(); len(batch) > 0; batch = ln.commands() {
			if err := ln.send(batch); err != nil {
				ln.kill(err)
				return
			}
		}
	}
}

func (ln *line) send(batch []*command) error {
	var args []any
	for _, c := range batch {
		args = args[:0]
		for _, t := range c.topics {
			args = append(args, t.name)
		}
		if err := ln.link.conn.Send(c.op.String(), args...); err != nil {
			return err
		}
	}
	return ln.link.flush()
}

// commands makes the commands that are due, which are outstanding from here on. It returns none on a dead line.
func (ln *line) commands() []*command {
	h := ln.f.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if ln.dead {
		return nil
	}
	from := len(ln.inflight)
	subscribe, unsubscribe := ln.sortLocked(ln.dirty)
	clear(ln.dirty)
	ln.dirty = ln.dirty[:0]
	if cap(ln.dirty) > 4*subscribeBatch {
		ln.dirty = nil
	}
	// Those that free something on the master go first.
	ln.addLocked(opUnsubscribe, unsubscribe, subscribeBatch)
	ln.addLocked(opSubscribe, subscribe, subscribeBatch)
	if ln.alone == 0 && len(ln.suspects) > 0 {
		n := min(len(ln.suspects), suspectWindow)
		subscribe, unsubscribe = ln.sortLocked(ln.suspects[:n])
		clear(ln.suspects[:n])
		ln.suspects = ln.suspects[n:]
		ln.addLocked(opUnsubscribe, unsubscribe, subscribeBatch)
		ln.addLocked(opSubscribe, subscribe, 1)
	}
	if ln.ping {
		ln.ping = false
		ln.inflight = append(ln.inflight, &command{op: opPing, since: ln.m.since()})
	}
	return append([]*command(nil), ln.inflight[from:]...)
}

// sortLocked takes topics out of a queue, and returns those that still need a command.
func (ln *line) sortLocked(queue []*topic) (subscribe, unsubscribe []*topic) {
	for _, t := range queue {
		t.legs[ln.m.index].queued = false
		switch t.needLocked(ln.m.index) {
		case opSubscribe:
			subscribe = append(subscribe, t)
		case opUnsubscribe:
			unsubscribe = append(unsubscribe, t)
		}
	}
	return subscribe, unsubscribe
}

// addLocked makes commands of at most most topics each.
func (ln *line) addLocked(op operation, topics []*topic, most int) {
	for _, t := range topics {
		l := &t.legs[ln.m.index]
		l.out = op
		if op == opSubscribe {
			l.asked = t.last.seq
		} else {
			l.standing, l.told = false, 0
		}
	}
	now := ln.m.since()
	for len(topics) > 0 {
		n := min(len(topics), most)
		c := &command{op: op, topics: topics[:n:n], since: now, alone: most == 1}
		if c.alone {
			ln.alone++
		}
		ln.inflight = append(ln.inflight, c)
		topics = topics[n:]
	}
}

// popLocked ends the oldest command that is outstanding.
func (ln *line) popLocked() {
	c := ln.inflight[0]
	ln.inflight[0] = nil
	ln.inflight = ln.inflight[1:]
	if !c.alone {
		return
	}
	ln.alone--
	if ln.alone == 0 && len(ln.suspects) > 0 {
		nudge(ln.wake)
	}
}

// answered books the reply to a PING.
func (ln *line) answered(op operation) error {
	h := ln.f.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(ln.inflight) == 0 || ln.inflight[0].op != op {
		return unexpected("the answer to " + op.String())
	}
	ln.popLocked()
	return nil
}

// confirmed books one channel of the oldest command. The listeners that it concerns are told; whether something else is
// wanted by now is looked at.
func (ln *line) confirmed(op operation, channel []byte) error {
	h, i := ln.f.hub, ln.m.index
	h.mu.Lock()
	if len(ln.inflight) == 0 || ln.inflight[0].op != op || ln.inflight[0].topics[ln.inflight[0].next].name != string(channel) {
		h.mu.Unlock()
		return unexpected("the answer to " + op.String())
	}
	c := ln.inflight[0]
	t := c.topics[c.next]
	if c.next++; c.next == len(c.topics) {
		ln.popLocked()
	}
	l := &t.legs[i]
	l.out = 0
	list := ln.list[:0]
	if op == opSubscribe {
		ln.f.err = nil
		l.standing = true
		list = t.untoldLocked(i, list)
		ln.allowedLocked()
	}
	ln.queueLocked(t)
	h.dropLocked(t)
	h.mu.Unlock()
	ln.gap(list)
	return nil
}

// refusedBy books an error reply, which concerns the oldest command as a whole. An error that may pass ends the
// connection, which is then made anew with growing pauses.
//
// Of several channels one may be the reason, so all become suspects, which are tried one by one, a few at a time. A
// channel that is refused by itself is left alone for retryRefused. When as many have been refused one after the other
// as are tried at once, nothing else is tried either, but a few of them after retryRefused: a user without any rights
// costs next to nothing, however many wait.
func (ln *line) refusedBy(reply redis.Error) error {
	h, i := ln.f.hub, ln.m.index
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(ln.inflight) == 0 {
		return reply
	}
	c := ln.inflight[0]
	switch {
	case c.op == opPing:
		ln.popLocked()
		return nil // it has answered
	case c.next > 0 || isTransient(reply):
		return reply
	case c.op == opUnsubscribe:
		// What comes on these channels is dropped. They end with the connection.
		if ln.kept += len(c.topics); ln.kept > maxKept {
			return errors.New("the user may not UNSUBSCRIBE: " + string(reply))
		}
	}
	ln.popLocked()
	for _, t := range c.topics {
		t.legs[i].out = 0
		if c.op == opUnsubscribe {
			ln.queueLocked(t)
		}
	}
	if c.op == opSubscribe {
		ln.deniedLocked(c.topics, scrub(reply, ln.m.cfg.password))
	}
	for _, t := range c.topics {
		h.dropLocked(t)
	}
	return nil
}

// deniedLocked books that the master refuses one channel, or some among many.
func (ln *line) deniedLocked(topics []*topic, why error) {
	ln.refusal, ln.f.err = why, nil
	if len(topics) > 1 && ln.denials < suspectWindow {
		for _, t := range topics {
			ln.suspectLocked(t)
		}
		return
	}
	for _, t := range topics {
		ln.refuseLocked(t)
	}
	if ln.denials++; ln.denials != suspectWindow {
		return
	}
	for _, t := range ln.suspects {
		t.legs[ln.m.index].queued = false
		ln.refuseLocked(t)
	}
	ln.suspects = nil
}

// suspectLocked has a topic tried by itself.
func (ln *line) suspectLocked(t *topic) {
	l := &t.legs[ln.m.index]
	if t.needLocked(ln.m.index) != opSubscribe || l.queued {
		return
	}
	l.queued = true
	ln.suspects = append(ln.suspects, t)
	nudge(ln.wake)
}

// refuseLocked leaves a topic alone for a while.
func (ln *line) refuseLocked(t *topic) {
	l := &t.legs[ln.m.index]
	if t.first == nil || l.refused {
		return
	}
	if ln.refused == nil {
		ln.refused = make(map[*topic]struct{})
	}
	if len(ln.refused) == 0 {
		ln.retryAt = ln.m.since() + int64(retryRefused)
	}
	l.refused = true
	ln.refused[t] = struct{}{}
}

// retryLocked tries some of the refused once more; which, is left to the map, so that each gets its turn.
func (ln *line) retryLocked(now int64) {
	ln.retryAt = now + int64(retryRefused)
	n := 0
	for t := range ln.refused {
		if n++; n > suspectWindow {
			return
		}
		ln.pardonLocked(t)
	}
}

// allowedLocked books that the master has confirmed a channel. If it was thought to refuse everything, all that waited
// because of that is tried.
func (ln *line) allowedLocked() {
	deaf := ln.denials >= suspectWindow
	ln.denials = 0
	if !deaf {
		return
	}
	for t := range ln.refused {
		ln.pardonLocked(t)
	}
}

func (ln *line) pardonLocked(t *topic) {
	delete(ln.refused, t)
	t.legs[ln.m.index].refused = false
	ln.suspectLocked(t)
}
