package feed

import (
	"context"
	"sync"
)

// A Listener is notified of messages and of new and renewed subscriptions. Messages are neither complete nor reliable.
// A message may come from a replica, which repeats the messages of its master, so the payload must name the writer if
// the listener needs to know the writer. Messages are lost when a connection ends, while a master is down, and if the
// user has no right to subscribe. A listener must work without messages.
//
// Calls for one master do not overlap; calls for different masters may overlap. No lock is held during a call. A method
// must not block, because the other listeners of that master wait until it returns. It may call every method of the
// pool and of a Subscription, except the Close method of the pool.
type Listener interface {
	// Message gets a published message. Message may be called before the first Resubscribed.
	Message(master int, payload string)
	// Resubscribed reports that the subscription is active on the master from now on, for the first time or again after a
	// lost connection. Messages published earlier may be lost, so the listener should check the state itself.
	Resubscribed(master int)
}

// A Hub holds the subscriptions of one pool. The zero value has no masters.
type Hub struct {
	mu    sync.Mutex               // guards the fields below, and fields of feeds; not held while a listener runs
	feeds []*feed                  // by master
	open  map[string]*Subscription // by channel
}

// wanted reports whether there is a subscription.
func (h *Hub) wanted() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.open) > 0
}

// Add adds a master. The returned function runs its subscription connection until ctx ends.
func (h *Hub) Add(ctx context.Context, source Source) (run func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := &feed{hub: h, ctx: ctx, src: source, wake: make(chan struct{}, 1)}
	h.feeds = append(h.feeds, f)
	return f.run
}

// A Subscription delivers the messages of one channel on all masters to a listener. All methods are safe for concurrent
// use.
type Subscription struct {
	hub       *Hub
	channel   string
	listener  Listener
	confirmed uint64 // see Confirmed; guarded by hub.mu
}

// Subscribe subscribes l to a channel on each master. It does not block. There must be no other open Subscription of
// the channel.
func (h *Hub) Subscribe(channel string, l Listener) *Subscription {
	s := &Subscription{hub: h, channel: channel, listener: l}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open == nil {
		h.open = make(map[string]*Subscription)
	}
	h.open[channel] = s
	for _, f := range h.feeds {
		f.subscribeLocked(s)
	}
	return s
}

// openLocked reports whether s has not been closed.
func (s *Subscription) openLocked() bool { return s.hub.open[s.channel] == s }

// Close ends the subscription. Close does not block, may be called more than once, and may be called by the listener.
// It does not wait for the listener: after Close has returned, one call for each master may still be running or about
// to begin.
func (s *Subscription) Close() {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if !s.openLocked() {
		return
	}
	delete(h.open, s.channel)
	s.confirmed = 0
	for _, f := range h.feeds {
		f.unsubscribeLocked(s)
	}
}

// Confirmed returns the set of masters that have confirmed the subscription on a connection that is still up, as far as
// is known. Bit i of the set is master i. After Close, the set is empty. Confirmed does not block.
func (s *Subscription) Confirmed() (set uint64) {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	return s.confirmed
}
