package pool

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/internal/jitter"
)

// retryRefused is how long a master that refuses a subscription is left alone.
const retryRefused = 30 * time.Second

// A feed is what one Pool hears from one master. Its goroutine exists only while it is needed: Subscribe starts it, and
// it ends when there has been no listener for a while.
type feed struct {
	hub  *hub
	m    *master
	wake chan struct{} // to awaitNeed

	// Guarded by hub.mu.
	running bool
	retired bool
	line    *line  // nil while there is no connection
	err     *Error // why the last connection ended, or was not made, until another has brought a reply to SUBSCRIBE
}

// A line is one subscription connection. It is read by the feed's goroutine, and written to and minded by one more
// each, like a session.
//
// redigo's PubSubConn is not used: it does not tell the confirmation of one command from that of another, shows a
// refused SUBSCRIBE like the end of the connection, and converts each message once more. So commands are sent as on any
// connection, and each reply is held against the oldest command that is outstanding.
type line struct {
	f    *feed
	m    *master
	link *link

	heard atomic.Int64 // when the last reply came, see master.since

	wake  chan struct{} // to the writer
	ended chan struct{} // closed with dead
	wg    sync.WaitGroup

	// Guarded by hub.mu.
	dead     bool
	reason   error      // why it is dead
	dirty    []*topic   // their legs may need a command
	inflight []*command // in the order of writing
	ping     bool       // the writer is to send one

	// What the master has refused; see refusedBy.
	suspects []*topic            // to be subscribed to one by one
	refused  map[*topic]struct{} // not to be asked for before retryAt
	alone    int                 // commands of suspects outstanding
	denials  int                 // of suspects, one after the other
	refusal  error
	retryAt  int64
	kept     int // channels that the user may not unsubscribe from

	list []*Subscription // reader only: whom to call
}

// wantLocked is told that somebody has subscribed.
func (f *feed) wantLocked(t *topic) {
	if f.retired {
		return
	}
	if !f.running {
		f.running = true
		f.hub.start(f)
		return
	}
	if f.line != nil {
		f.line.queueLocked(t)
	}
	nudge(f.wake)
}

func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it has been told already
	}
}

// run connects and serves until there has been no listener for a while, or ctx ends.
func (f *feed) run(ctx context.Context) {
	cfg := &f.m.cfg
	pause := cfg.redialMin
	for f.awaitNeed(ctx) {
		l, err := f.connect(ctx)
		if err == nil {
			began := time.Now()
			err = f.serve(l)
			if err == nil || time.Since(began) >= cfg.redialMax {
				pause = cfg.redialMin
				continue // it was not needed any more, or has served
			}
		} else {
			f.failed(err)
		}
		rest(ctx, pause-time.Duration(jitter.Int64N(int64(pause)/2+1)))
		pause = min(2*pause, cfg.redialMax)
	}
}

// awaitNeed waits until there is a listener. It reports false when there was none for long enough: the goroutine must
// end then, and the next Subscribe starts another.
func (f *feed) awaitNeed(ctx context.Context) bool {
	h := f.hub
	for {
		h.mu.Lock()
		left := f.m.cfg.subscriptionIdle - time.Since(h.idleSince)
		end := h.closed || f.retired || h.wanted == 0 && left <= 0
		if end {
			f.running, f.err = false, nil
		}
		wanted := h.wanted > 0
		h.mu.Unlock()
		if end || wanted {
			return !end
		}
		timer := time.NewTimer(left)
		select {
		case <-timer.C:
		case <-f.wake:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// connect dials and logs in. INFO is not asked for: a message says itself who wrote it, where that matters.
func (f *feed) connect(ctx context.Context) (*link, *Error) {
	m := f.m
	ctx, cancel := context.WithTimeout(ctx, m.cfg.dialTimeout)
	defer cancel()
	l, err := m.dial(ctx)
	if err != nil {
		return nil, m.connectError(ctx, "connect", err)
	}
	if l.buf != nil {
		l.buf.forMessages()
	}
	op, err := within(ctx, l, func() (string, error) { return m.login(l) })
	if err != nil {
		l.close()
		return nil, m.connectError(ctx, op, err)
	}
	return l, nil
}

func (f *feed) failed(err *Error) {
	f.hub.mu.Lock()
	defer f.hub.mu.Unlock()
	f.err = err
}

// errIdle ends a connection that nobody needs.
var errIdle = errors.New("pool: no subscription")

// serve is the life of one connection. It returns when all its goroutines have ended: nil where it was closed because
// nobody needed it.
func (f *feed) serve(l *link) *Error {
	h := f.hub
	ln := &line{f: f, m: f.m, link: l, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	h.mu.Lock()
	if h.closed || f.retired {
		h.mu.Unlock()
		l.close()
		return &Error{Addr: f.m.name, Op: "close", Err: ErrClosed}
	}
	f.line = ln
	for _, t := range h.topics {
		ln.queueLocked(t)
	}
	h.mu.Unlock()

	ln.wg.Go(ln.write)
	ln.wg.Go(ln.mind)
	ln.kill(ln.read())
	ln.wg.Wait()
	return f.hangUp()
}

// hangUp takes the connection away: nothing stands on the master any more.
func (f *feed) hangUp() *Error {
	h := f.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	reason := f.line.reason
	for _, t := range h.topics {
		t.legs[f.m.index] = leg{}
		h.dropLocked(t)
	}
	f.line = nil
	if errors.Is(reason, errIdle) {
		f.err = nil
		return nil
	}
	err := lost(normalise(scrub(reason, f.m.cfg.password), f.m.cfg.timeout))
	f.err = &Error{Addr: f.m.name, Op: "subscription", Err: downCause(err)}
	return f.err
}

// kill ends the connection; the first reason counts. It does not wait.
func (ln *line) kill(reason error) {
	h := ln.f.hub
	h.mu.Lock()
	if !ln.dead {
		ln.dead, ln.reason = true, reason
		close(ln.ended)
	}
	h.mu.Unlock()
	ln.link.close()
}

// mind is the connection's own clock. It ends a connection on which commands are outstanding and nothing was heard for
// a timeout, also one that is stuck in a write, and one that has had no listener for a while; it has heartbeats sent,
// and refused channels tried again. A connection with nothing outstanding is looked at once in a timeout: no command
// written after the look can be overdue before the next.
func (ln *line) mind() {
	beat := int64(ln.m.cfg.heartbeat)
	beatAt := ln.m.since() + beat
	timer := time.NewTimer(min(ln.m.cfg.timeout, ln.m.cfg.heartbeat, ln.m.cfg.subscriptionIdle))
	defer timer.Stop()
	for {
		select {
		case <-ln.ended:
			return
		case <-timer.C:
		}
		now := ln.m.since()
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
	cfg, h := &ln.m.cfg, ln.f.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	next = min(cfg.timeout, cfg.subscriptionIdle)
	if h.wanted == 0 {
		left := cfg.subscriptionIdle - time.Since(h.idleSince)
		if left <= 0 {
			return 0, errIdle
		}
		next = min(next, left)
	}
	if len(ln.inflight) > 0 {
		left := int64(cfg.timeout) - (now - max(ln.inflight[0].since, ln.heard.Load()))
		if left <= 0 {
			return 0, timeoutCause("no reply within %v", cfg.timeout)
		}
		next = min(next, time.Duration(left))
	} else if beat {
		ln.ping = true
		nudge(ln.wake)
	}
	if len(ln.refused) > 0 {
		if now >= ln.retryAt {
			ln.retryLocked(now)
		}
		next = min(next, time.Duration(ln.retryAt-now))
	}
	return next, nil
}

// read takes replies until the connection ends or must end.
func (ln *line) read() error {
	for {
		value, err := ln.link.receive()
		ln.heard.Store(ln.m.since())
		reply, isReply := errorReply(err)
		switch {
		case isReply:
			err = ln.refusedBy(reply)
		case err == nil:
			err = ln.take(value)
		}
		if err != nil {
			return err
		}
	}
}

// take handles what is no error: a message, a confirmation, or the answer to a PING, which has two forms.
func (ln *line) take(value any) error {
	if text, ok := value.(string); ok && text == "PONG" {
		return ln.answered(opPing)
	}
	parts, ok := value.([]any)
	if !ok || len(parts) < 2 {
		return unexpected("something that is no message")
	}
	kind, _ := parts[0].([]byte)
	channel, _ := parts[1].([]byte)
	switch string(kind) {
	case "message":
		if len(parts) != 3 {
			return unexpected("a message of another form")
		}
		payload, _ := parts[2].([]byte)
		ln.message(channel, payload)
		return nil
	case "subscribe":
		return ln.confirmed(opSubscribe, channel)
	case "unsubscribe":
		return ln.confirmed(opUnsubscribe, channel)
	case "pong":
		return ln.answered(opPing)
	}
	return unexpected("a reply of another kind")
}

func unexpected(what string) error {
	return fmt.Errorf("the server has sent what nothing asked for: %s", what)
}

// message calls the listeners of the channel. One that nobody listens to any more is no error: the master has not got
// the UNSUBSCRIBE yet.
func (ln *line) message(channel, payload []byte) {
	h := ln.f.hub
	h.mu.Lock()
	t := h.topics[string(channel)]
	if t == nil || t.first == nil {
		h.mu.Unlock()
		return
	}
	list := ln.list[:0]
	for s := t.first; s != nil; s = s.next {
		list = append(list, s)
	}
	h.mu.Unlock()
	text := string(payload)
	for _, s := range list {
		if !s.closed.Load() {
			s.listener.Message(ln.m.index, t.name, text)
		}
	}
	ln.keep(list)
}

// gap tells those who are on the list.
func (ln *line) gap(list []*Subscription) {
	for _, s := range list {
		if !s.closed.Load() {
			s.listener.Gap(ln.m.index)
		}
	}
	ln.keep(list)
}

// keep makes the list usable again, without keeping its listeners alive.
func (ln *line) keep(list []*Subscription) {
	clear(list)
	ln.list = list[:0]
}
