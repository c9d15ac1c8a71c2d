// Package feed hears what masters publish, over one connection a master for all channels and listeners.
//
// What is wanted stands in the Hub, once for all masters. The feed of each master makes its connection like it. Per
// channel and connection:
//
//	                 wanted                     confirmed: Gap
//	(off) ----------------------> SUBSCRIBE ------------------> standing --+ new listener: SUBSCRIBE again
//	  ^                               | refused                  |      ^  | confirmed: Gap to that one
//	  |                               v                          |      +--+
//	  |                      left alone for 30 s                 | no listener any more
//	  +------------------------ confirmed <----- UNSUBSCRIBE <---+
//
// At most one command of a channel is outstanding; what is wanted is looked at again when it is confirmed. So quick
// changes neither cross nor pile up. The end of the connection takes every channel back to off, and the next connection
// subscribes to all that is wanted then.
//
// A program has one channel for each Locker, so channels are few: each has a command of its own.
package feed

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/pool/internal/fault"
	"github.com/redlock-go/redlock/pool/internal/wire"
)

// MaxChannel bounds the name of a channel, in bytes.
const MaxChannel = 128 << 10

// A Listener is told of messages and of gaps. No lock is held meanwhile.
type Listener interface {
	Message(master int, channel, payload string)
	Gap(master int)
}

// A Source is one master, and how its connections are made and kept.
type Source struct {
	// DialFunc connects and logs in. Its errors are returned by Subscription.Err.
	DialFunc func(ctx context.Context) (*wire.Conn, error)
	// ExplainFunc makes what has ended a connection fit for people.
	ExplainFunc func(error) error

	Redial    wire.Pauses
	Timeout   time.Duration // a connection is dead that does not answer for so long
	Heartbeat time.Duration // a PING is sent so often
	Idle      time.Duration // the connection is kept so long without listeners
}

// A Hub is the subscriptions of one pool.
type Hub struct {
	start func(func()) // runs a goroutine that the pool waits for

	mu        sync.Mutex // guards what follows, of feeds and lines too; not held while a listener runs or anything waits
	feeds     []*feed    // by master
	topics    map[string]*topic
	idleSince time.Time // since when there is no topic
	seq       uint64
	closed    bool
}

// A topic is a channel that has listeners, in the order of their subscription. The list is replaced, never changed.
type topic struct {
	list []*Subscription
}

// newest is the seq of the last listener.
func (t *topic) newest() uint64 { return t.list[len(t.list)-1].seq }

// NewHub makes a Hub without masters.
func NewHub(start func(func())) *Hub {
	return &Hub{start: start, topics: make(map[string]*topic)}
}

// Add begins to hear one more master, of which everything is wanted that is wanted of the others.
func (h *Hub) Add(ctx context.Context, s Source) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := &feed{hub: h, ctx: ctx, src: s, master: len(h.feeds), wake: make(chan struct{}, 1)}
	h.feeds = append(h.feeds, f)
	f.changedLocked()
}

// Retire ends what is heard from a master.
func (h *Hub) Retire(master int) {
	h.mu.Lock()
	f := h.feeds[master]
	f.retired = true
	ln := f.line
	h.mu.Unlock()
	f.end(ln, fault.ErrRetired)
}

// Close begins the end: nothing is started any more, and every connection is closed.
func (h *Hub) Close() {
	h.mu.Lock()
	h.closed = true
	lines := make([]*line, len(h.feeds))
	for i, f := range h.feeds {
		lines[i] = f.line
	}
	feeds := h.feeds
	h.mu.Unlock()
	for i, f := range feeds {
		f.end(lines[i], fault.ErrClosed)
	}
}

// A Subscription is one listener of one channel on all masters.
type Subscription struct {
	hub      *Hub
	channel  string
	listener Listener
	seq      uint64 // grows with each Subscription
	refusal  error  // why it never was one
	closed   atomic.Bool
}

// Subscribe makes l hear a channel on each master. It does not block.
func (h *Hub) Subscribe(channel string, l Listener) *Subscription {
	s := &Subscription{hub: h, channel: channel, listener: l}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closed:
		s.refusal = fault.ErrClosed
		return s
	case len(channel) > MaxChannel:
		s.refusal = fault.Invalid("the channel has %d bytes, the most is %d", len(channel), MaxChannel)
		return s
	}
	h.seq++
	s.seq = h.seq
	t := h.topics[channel]
	if t == nil {
		t = &topic{}
		h.topics[channel] = t
	}
	t.list = append(t.list[:len(t.list):len(t.list)], s)
	for _, f := range h.feeds {
		f.changedLocked()
	}
	return s
}

// Close ends the subscription. It does not wait for the listener.
func (s *Subscription) Close() {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.closed.Swap(true) || s.refusal != nil {
		return
	}
	t := h.topics[s.channel]
	t.list = slices.DeleteFunc(slices.Clone(t.list), func(x *Subscription) bool { return x == s })
	if len(t.list) > 0 {
		return
	}
	delete(h.topics, s.channel)
	if len(h.topics) == 0 {
		h.idleSince = time.Now()
	}
	for _, f := range h.feeds {
		f.changedLocked()
	}
}

// StandingOn is the set of masters that have confirmed the channel on the present connection: bit i is master i.
func (s *Subscription) StandingOn() (set uint64) {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.refusal != nil || s.closed.Load() {
		return 0
	}
	for i, f := range h.feeds {
		if l := f.legLocked(s.channel); l != nil && l.standing {
			set |= 1 << i
		}
	}
	return set
}

// Err says why the subscription does not stand on a master; nil where it does.
func (s *Subscription) Err(master int) error {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.feeds[master]
	l := f.legLocked(s.channel)
	switch {
	case s.refusal != nil:
		return s.refusal
	case h.closed || s.closed.Load():
		return fault.ErrClosed
	case f.retired:
		return fault.ErrRetired
	case l != nil && l.standing:
		return nil
	case l != nil && l.refused != nil:
		return l.refused
	case f.err != nil:
		return f.err
	}
	return fault.New("the subscription is still being made", fault.ErrConnecting)
}

func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it has been told already
	}
}
