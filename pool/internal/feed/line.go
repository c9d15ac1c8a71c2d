package feed

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/pool/internal/fault"
	"github.com/redlock-go/redlock/pool/internal/wire"
)

// retryRefused is how long a channel is left alone that the master refuses.
const retryRefused = 30 * time.Second

// The commands of a line.
const (
	opSubscribe   = "SUBSCRIBE"
	opUnsubscribe = "UNSUBSCRIBE"
	opPing        = "PING"
)

// A line is one subscription connection. The feed's goroutine reads it; two more write to it and watch the time.
//
// redigo's PubSubConn is not used: it cannot tell the confirmation of one command from that of another, and shows a
// refused SUBSCRIBE like the end of the connection. Here each reply is held against the oldest outstanding command.
type line struct {
	f     *feed
	conn  *wire.Conn
	base  time.Time    // origin of the times
	heard atomic.Int64 // when the last reply came
	wake  chan struct{}
	ended chan struct{} // closed with reason

	// Guarded by hub.mu.
	reason   error           // why it has ended
	legs     map[string]*leg // by channel; those that are off are not there
	inflight []command       // in the order of writing
	ping     bool            // the writer is to send one
	retryAt  int64           // when refused channels are tried again; 0 for never
}

// A leg is one channel on one connection.
type leg struct {
	channel  string
	standing bool   // SUBSCRIBE is confirmed, UNSUBSCRIBE is not sent
	out      string // the command that is outstanding; "" for none
	refused  error  // why it is left alone
	// The listeners up to seq told have been told by Gap; those up to asked will be when out is confirmed.
	told, asked uint64
}

// A command is one that is outstanding.
type command struct {
	op    string
	leg   *leg // nil for PING
	since int64
}

func newLine(f *feed, c *wire.Conn) *line {
	return &line{f: f, conn: c, base: time.Now(), wake: make(chan struct{}, 1), ended: make(chan struct{}),
		legs: make(map[string]*leg)}
}

func (ln *line) now() int64 { return int64(time.Since(ln.base)) + 1 }

// run returns when the connection and its goroutines have ended.
func (ln *line) run() {
	var wg sync.WaitGroup
	wg.Go(ln.write)
	wg.Go(ln.mind)
	ln.kill(ln.read())
	wg.Wait()
}

// kill ends the connection; the first reason counts. It does not wait.
func (ln *line) kill(reason error) {
	h := ln.f.hub
	h.mu.Lock()
	if ln.reason == nil {
		ln.reason = reason
		close(ln.ended)
	}
	h.mu.Unlock()
	ln.conn.Close()
}

// write makes commands of all that is to be done, flushes once, and looks again.
func (ln *line) write() {
	for {
		select {
		case <-ln.ended:
			return
		case <-ln.wake:
		}
		if err := ln.send(ln.take()); err != nil {
			ln.kill(err)
			return
		}
	}
}

// take makes the commands that bring the legs nearer to what is wanted. They are outstanding from here on.
func (ln *line) take() (batch []command) {
	h := ln.f.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if ln.reason != nil {
		return nil
	}
	for channel := range h.topics {
		if ln.legs[channel] == nil {
			ln.legs[channel] = &leg{channel: channel}
		}
	}
	now := ln.now()
	for channel, l := range ln.legs {
		if l.out == "" {
			ln.orderLocked(l, h.topics[channel])
			if l.out != "" {
				batch = append(batch, command{l.out, l, now})
			}
		}
	}
	if ln.ping {
		ln.ping = false
		batch = append(batch, command{op: opPing, since: now})
	}
	ln.inflight = append(ln.inflight, batch...)
	return batch
}

// orderLocked chooses the command of a leg, where it needs one. A standing channel with a new listener is subscribed to
// once more. That changes nothing on the master, and its confirmation lets the one goroutine that calls listeners tell
// the new one.
func (ln *line) orderLocked(l *leg, t *topic) {
	switch {
	case t == nil && !l.standing:
		delete(ln.legs, l.channel)
	case t == nil:
		l.out, l.standing = opUnsubscribe, false
	case l.refused == nil && (!l.standing || l.told < t.newest()):
		l.out, l.asked = opSubscribe, t.newest()
	}
}

func (ln *line) send(batch []command) error {
	for _, c := range batch {
		var args []any
		if c.leg != nil {
			args = []any{c.leg.channel}
		}
		if err := ln.conn.Send(c.op, args...); err != nil {
			return err
		}
	}
	return ln.conn.Flush()
}

// mind ends a connection on which commands are outstanding and nothing was heard for a timeout, also one that is stuck
// in a write, and one that has had no listener for a while. It sends heartbeats, and has refused channels tried again.
func (ln *line) mind() {
	beat := int64(ln.f.src.Heartbeat)
	beatAt := ln.now() + beat
	timer := time.NewTimer(min(ln.f.src.Timeout, ln.f.src.Heartbeat, ln.f.src.Idle))
	defer timer.Stop()
	for {
		select {
		case <-ln.ended:
			return
		case <-timer.C:
		}
		now := ln.now()
		due := now >= beatAt
		if due {
			beatAt = now + beat
		}
		next, end := ln.look(now, due)
		if end != nil {
			ln.kill(end)
			return
		}
		timer.Reset(min(next, time.Duration(beatAt-now)))
	}
}

// look returns how long nothing can become due, or why the connection must end.
func (ln *line) look(now int64, beat bool) (next time.Duration, end error) {
	src, h := &ln.f.src, ln.f.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	next = min(src.Timeout, src.Idle)
	if len(h.topics) == 0 {
		left := src.Idle - time.Since(h.idleSince)
		if left <= 0 {
			return 0, errIdle
		}
		next = min(next, left)
	}
	if len(ln.inflight) > 0 {
		left := src.Timeout - time.Duration(now-max(ln.inflight[0].since, ln.heard.Load()))
		if left <= 0 {
			return 0, fault.Timeout("no reply within %v", src.Timeout)
		}
		next = min(next, left)
	} else if beat {
		ln.ping = true
		nudge(ln.wake)
	}
	if ln.retryAt != 0 && now >= ln.retryAt {
		ln.retryAt = 0
		for _, l := range ln.legs {
			l.refused = nil
		}
		nudge(ln.wake)
	}
	if ln.retryAt != 0 {
		next = min(next, time.Duration(ln.retryAt-now))
	}
	return next, nil
}

// read takes replies until the connection ends or must end.
func (ln *line) read() error {
	for {
		value, err := ln.conn.Receive()
		ln.heard.Store(ln.now())
		if err == nil {
			err = ln.handle(value)
		}
		if err != nil {
			return err
		}
	}
}

// handle takes an error reply, a message, a confirmation, or the answer to a PING, which has two forms.
func (ln *line) handle(value any) error {
	switch v := value.(type) {
	case redis.Error:
		return ln.refusedBy(v)
	case string:
		if v == "PONG" {
			return ln.confirmed(opPing, "")
		}
	case []any:
		if len(v) < 2 {
			break
		}
		kind, _ := v[0].([]byte)
		channel, _ := v[1].([]byte)
		switch string(kind) {
		case "message":
			if len(v) == 3 {
				payload, _ := v[2].([]byte)
				ln.message(channel, payload)
				return nil
			}
		case "subscribe":
			return ln.confirmed(opSubscribe, string(channel))
		case "unsubscribe":
			return ln.confirmed(opUnsubscribe, string(channel))
		case "pong":
			return ln.confirmed(opPing, "")
		}
	}
	return fmt.Errorf("the server has sent what nothing asked for: %.40q", value)
}

// message calls the listeners of the channel. It may have none any more: the master has not got the UNSUBSCRIBE yet.
func (ln *line) message(channel, payload []byte) {
	h := ln.f.hub
	h.mu.Lock()
	var list []*Subscription
	if t := h.topics[string(channel)]; t != nil {
		list = t.list
	}
	h.mu.Unlock()
	text := string(payload)
	for _, s := range list {
		if !s.closed.Load() {
			s.listener.Message(ln.f.master, s.channel, text)
		}
	}
}

// confirmed books the answer to the oldest command, tells the listeners that it concerns, and has the writer look at
// what is wanted now.
func (ln *line) confirmed(op, channel string) error {
	h := ln.f.hub
	h.mu.Lock()
	if len(ln.inflight) == 0 || ln.inflight[0].op != op || op != opPing && ln.inflight[0].leg.channel != channel {
		h.mu.Unlock()
		return fmt.Errorf("the server has answered %s, which nothing asked for", op)
	}
	l := ln.popLocked()
	var list []*Subscription
	if op == opSubscribe {
		ln.f.err, l.standing = nil, true
		list = l.untoldLocked(h.topics[channel])
	}
	h.mu.Unlock()
	for _, s := range list {
		if !s.closed.Load() {
			s.listener.Gap(ln.f.master)
		}
	}
	return nil
}

// popLocked ends the oldest command, and returns its leg.
func (ln *line) popLocked() *leg {
	l := ln.inflight[0].leg
	ln.inflight = ln.inflight[1:]
	if l != nil {
		l.out = ""
		nudge(ln.wake)
	}
	return l
}

// untoldLocked lists the listeners that a confirmation concerns, and books them as told.
func (l *leg) untoldLocked(t *topic) (list []*Subscription) {
	if t != nil {
		for _, s := range t.list {
			if l.told < s.seq && s.seq <= l.asked {
				list = append(list, s)
			}
		}
	}
	l.told = l.asked
	return list
}

// refusedBy takes an error reply, which concerns the oldest command. An error that may pass ends the connection, which
// is then made anew with growing pauses. A channel that is refused is left alone for a while. A user who may not
// UNSUBSCRIBE goes on getting messages, which are dropped; one who may not PING has answered all the same.
func (ln *line) refusedBy(reply redis.Error) error {
	ln.f.hub.mu.Lock()
	defer ln.f.hub.mu.Unlock()
	if len(ln.inflight) == 0 || ln.inflight[0].op != opPing && fault.Transient(reply) {
		return reply
	}
	op := ln.inflight[0].op
	if l := ln.popLocked(); op == opSubscribe {
		ln.f.err, l.refused = nil, reply
		if ln.retryAt == 0 {
			ln.retryAt = ln.now() + int64(retryRefused)
		}
	}
	return nil
}
