package feed

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/redlock-go/redlock/internal/transport/fault"
)

// MaxChannel is the maximum length of a channel name in bytes.
const MaxChannel = 128 << 10

// A Listener is notified of messages and of renewed subscriptions. Notifications are neither complete nor reliable. A
// message may come from a replica, which repeats the messages of its master, so the payload must name the writer if the
// listener relies on that. Messages are lost when a connection ends, while a master is down, and if the user has no
// right to subscribe. A listener must work without messages.
//
// Calls for one master do not overlap; calls for different masters may overlap. No lock is held during a call. A method
// must not block, since all listeners of that master wait meanwhile. It may call every method of the pool and of a
// Subscription, except that it must not close the pool.
type Listener interface {
	// Message gets a published message. It may come before the first Resubscribed.
	Message(master int, channel, payload string)
	// Resubscribed reports that the subscription is active on the master from now on, for the first time or again after
	// a lost connection. Messages published before are lost, so the listener should check the state itself.
	Resubscribed(master int)
}

// A Hub holds the subscriptions of one pool. The zero value has no masters.
type Hub struct {
	mu    sync.Mutex // guards the fields below, and those of feeds; not held during calls of listeners or while waiting
	feeds []*feed    // by master
	// topics lists the listeners of each channel in the order of their subscription. A list is replaced, never changed.
	topics map[string][]*Subscription
	seq    uint64
}

// wanted reports whether there is a listener.
func (h *Hub) wanted() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.topics) > 0
}

// Add adds a master. The returned function runs its subscription connection until ctx ends.
func (h *Hub) Add(ctx context.Context, s Source) (run func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := &feed{hub: h, ctx: ctx, src: s, wake: make(chan struct{}, 1)}
	h.feeds = append(h.feeds, f)
	return f.run
}

// A Subscription is one listener of one channel on all masters. All methods are safe for concurrent use.
type Subscription struct {
	hub      *Hub
	channel  string
	listener Listener
	seq      uint64 // increases with each Subscription
	closed   atomic.Bool
	refusal  error // why the Subscription was refused
}

// Subscribe subscribes l to a channel on each master. It does not block.
func (h *Hub) Subscribe(channel string, l Listener) *Subscription {
	s := &Subscription{hub: h, channel: channel, listener: l}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(channel) > MaxChannel {
		s.refusal = fault.Invalid("the channel has %d bytes, the most is %d", len(channel), MaxChannel)
		s.closed.Store(true)
		return s
	}
	h.seq++
	s.seq = h.seq
	if h.topics == nil {
		h.topics = make(map[string][]*Subscription)
	}
	h.topics[channel] = append(slices.Clone(h.topics[channel]), s)
	for _, f := range h.feeds {
		f.changedLocked(channel)
	}
	return s
}

// Close ends the subscription. It does not block. It may be called more than once, and from the listener. It does not
// wait for the listener: for each master, one call may still be running, or about to begin, when Close has returned.
func (s *Subscription) Close() {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.closed.Swap(true) {
		return
	}
	left := slices.DeleteFunc(slices.Clone(h.topics[s.channel]), func(x *Subscription) bool { return x == s })
	if h.topics[s.channel] = left; len(left) > 0 {
		return
	}
	delete(h.topics, s.channel)
	for _, f := range h.feeds {
		f.changedLocked(s.channel)
	}
}

// Confirmed returns the set of masters that have confirmed the subscription on a connection that is still up, as far
// as is known: bit i is master i. It is 0 after Close. It does not block.
func (s *Subscription) Confirmed() (set uint64) {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, f := range h.feeds {
		if l := f.legs[s.channel]; l != nil && l.active && !s.closed.Load() {
			set |= 1 << i
		}
	}
	return set
}

// Err returns the error that explains why the subscription is not active on a master, or nil if it is active. The
// error matches ErrClosed after the Subscription or the pool is closed, ErrDown and its cause while there is no
// connection, and ErrConnecting while the first connection is being made or a reply is awaited. It wraps a
// redis.Error such as NOPERM if the master refuses the subscription. A refused subscription is retried about twice a
// minute. Err does not block.
func (s *Subscription) Err(master int) error {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.feeds[master]
	l := f.legs[s.channel]
	var cause error
	switch {
	case s.refusal != nil:
		cause = s.refusal
	case s.closed.Load():
		cause = fault.ErrClosed
	case f.ctx.Err() != nil:
		cause = context.Cause(f.ctx)
	case l != nil && l.active:
		return nil
	case l != nil && l.refused != nil:
		cause = l.refused
	case f.err != nil:
		return f.err
	default:
		cause = fault.New("the subscription is still being made", fault.ErrConnecting)
	}
	return f.src.Owner.ErrorFunc("subscribe", cause, false)
}
