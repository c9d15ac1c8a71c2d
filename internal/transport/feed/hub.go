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

// A Listener is notified of messages and of renewed subscriptions. No lock is held during its calls.
type Listener interface {
	Message(master int, channel, payload string)
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

// A Subscription is one listener of one channel on all masters.
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

// Close ends the subscription. It does not wait for the listener.
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

// Confirmed returns the set of masters that have confirmed the channel on the present connection: bit i is master i.
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

// Err returns why the subscription is not active on a master, or nil if it is.
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
