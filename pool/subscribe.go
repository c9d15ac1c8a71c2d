package pool

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
)

// maxChannel is the length of the longest channel that is subscribed to, in bytes: twice that of the longest name.
const maxChannel = 128 << 10

// Listener is told of messages and of gaps. Neither is complete nor certain: a message that came may have been repeated by a
// replica, so one that is to be believed must say itself who wrote it. Messages are lost when a connection ends, while a
// master is down, and where the user may not subscribe. A listener must do what is right without them.
//
// The methods are called by the goroutine that reads the master's subscription connection: calls for one master do not
// overlap, calls for different masters may. They must not block, since all listeners of that master wait meanwhile.
// They may call every method of the Pool and of a Subscription but [Pool.Close]; no lock of the Pool is held.
type Listener interface {
	// Message gets what somebody has published. It may come before the first Gap, where another listener of the same
	// channel was there earlier.
	Message(master int, channel, payload string)
	// Gap says that the subscription stands on the master from here on, for the first time or again after its
	// connection was lost: nobody knows what was published before, so the listener should look for itself. After a
	// connection was lost all listeners are told within moments of each other.
	Gap(master int)
}

// A Subscription is one listener of one channel on all masters; made by [Pool.Subscribe]. All methods are safe for
// concurrent use.
type Subscription struct {
	hub      *hub
	listener Listener
	closed   atomic.Bool
	refusal  error // why it never was one

	topic      *topic
	seq        uint64        // grows with each Subscription
	prev, next *Subscription // of the topic, guarded by hub.mu
}

// Subscribe makes l hear what is published on the channel, on each master that can be reached, until the Subscription
// is closed. It never blocks and does no I/O: connections are made in the background, one a master for all channels
// and listeners, and are kept until there has been no listener for a while ([WithSubscriptionIdle]). A master that is
// down is redialled with the same pauses as any connection ([WithRedial]), for as long as there are listeners.
//
// Of each master on which the subscription comes to stand, l is told by Gap, also when the channel has other listeners
// already. The listeners of a channel are called in the order of their subscription.
//
// It returns no error: a channel longer than 128 KiB, or a closed Pool, gives a Subscription that never stands, and
// [Subscription.Err] says why. l must not be nil.
func (p *Pool) Subscribe(channel string, l Listener) *Subscription {
	h := &p.hub
	s := &Subscription{hub: h, listener: l}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closed:
		s.refusal = ErrClosed
		return s
	case len(channel) > maxChannel:
		s.refusal = invalid("the channel has %d bytes, the most is %d", len(channel), maxChannel)
		return s
	}
	t := h.topics[channel]
	if t == nil {
		t = &topic{name: channel, legs: make([]leg, len(h.feeds))}
		h.topics[channel] = t
	}
	if t.first == nil {
		h.wanted++
	}
	h.seq++
	s.seq = h.seq
	t.addLocked(s)
	for _, f := range h.feeds {
		f.wantLocked(t)
	}
	return s
}

// Standing is the number of masters that have confirmed the subscription on a connection that has not ended since, as
// far as is known. It is 0 after Close. It does not block.
func (s *Subscription) Standing() int { return bits.OnesCount64(s.StandingOn()) }

// StandingOn is the set of those masters: bit i is master i. It does not block.
func (s *Subscription) StandingOn() (set uint64) {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.topic == nil || s.closed.Load() {
		return 0
	}
	for i := range s.topic.legs {
		if s.topic.legs[i].standing {
			set |= 1 << i
		}
	}
	return set
}

// Err says why the subscription does not stand on a master, as an *[Error]; nil where it stands. It matches ErrClosed
// after Close of either; ErrDown with the cause, while there is no connection, or the next one has not been answered yet;
// ErrConnecting, while the first is being made or the master's word is awaited; and a redis.Error where the master refuses, such as NOPERM for a user without the
// right to the channel. Refused subscriptions are tried again about twice a minute. It does not block.
func (s *Subscription) Err(master int) error {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.feeds[master]
	err := s.refusal
	switch {
	case err != nil:
	case h.closed || s.closed.Load():
		err = ErrClosed
	case f.retired:
		err = ErrRetired
	case s.topic.legs[master].standing:
		return nil
	case s.topic.legs[master].refused:
		err = f.line.refusal
	case f.err != nil:
		return f.err
	default:
		err = newCause("the subscription is still being made", ErrConnecting)
	}
	return &Error{Addr: f.m.name, Op: opSubscribe.String(), Err: err}
}

// Close ends the subscription; the last one of a channel unsubscribes from it in the background. It does not block, may
// be called more than once, and from the listener. It does not wait for the listener: of each master, one call that was
// being made when Close was called may still be running when it has returned, or be at its very beginning.
func (s *Subscription) Close() {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.closed.Swap(true) || s.topic == nil {
		return
	}
	t := s.topic
	t.removeLocked(s)
	if t.first != nil {
		return
	}
	h.wanted--
	if h.wanted == 0 {
		h.idleSince = time.Now()
	}
	for _, f := range h.feeds {
		if f.line != nil {
			f.line.queueLocked(t)
		}
	}
	h.dropLocked(t)
}

// A hub is the subscriptions of one Pool. What is wanted stands in topics and is the same for all masters; what each
// master knows of it stands in the legs, and its feed makes the one like the other.
//
// One lock is enough: it is held for a map lookup and a few assignments a message. It is never held while a listener
// runs or while anything waits.
type hub struct {
	start func(f *feed) // runs f.run in a goroutine that Close joins

	mu        sync.Mutex // guards what follows, and of feeds, lines, topics and Subscriptions what is said there
	feeds     []*feed    // by master
	topics    map[string]*topic
	wanted    int       // topics that have a listener
	idleSince time.Time // since when wanted is 0
	seq       uint64
	closed    bool
}

// A topic is one channel: its listeners, in the order of their subscription, and where it stands on each master. It is
// in hub.topics while it has a listener or a leg that is not over. Guarded by hub.mu, except name.
type topic struct {
	name        string
	first, last *Subscription
	legs        []leg // by master
}

// A leg is one channel on the present connection to one master. At most one command of it is outstanding: what is
// wanted then is looked at when that one is confirmed. So commands of a channel cannot cross, and listeners that
// come and go cannot pile them up.
type leg struct {
	standing bool      // SUBSCRIBE is confirmed, UNSUBSCRIBE is not sent
	out      operation // outstanding; 0 for none
	queued   bool      // in line.dirty or line.suspects
	refused  bool      // in line.refused
	// The listeners up to this seq have been told by Gap; those up to asked will be when out is confirmed.
	told, asked uint64
}

func (t *topic) addLocked(s *Subscription) {
	s.topic = t
	s.prev = t.last
	if t.last == nil {
		t.first = s
	} else {
		t.last.next = s
	}
	t.last = s
}

func (t *topic) removeLocked(s *Subscription) {
	if s.prev == nil {
		t.first = s.next
	} else {
		s.prev.next = s.next
	}
	if s.next == nil {
		t.last = s.prev
	} else {
		s.next.prev = s.prev
	}
	s.prev, s.next = nil, nil
}

// needLocked is the command that brings leg i nearer to what is wanted, or 0. A standing channel is subscribed to once
// more when it has got a new listener: it changes nothing on the master, and its confirmation, which the reader gets,
// makes the listener's Gap come from the one goroutine that calls listeners.
func (t *topic) needLocked(i int) operation {
	l := &t.legs[i]
	switch {
	case l.out != 0:
	case t.first == nil && l.standing:
		return opUnsubscribe
	case t.first != nil && !l.refused && (!l.standing || l.told < t.last.seq):
		return opSubscribe
	}
	return 0
}

// untoldLocked appends those that the confirmation of leg i concerns, and books them as told.
func (t *topic) untoldLocked(i int, list []*Subscription) []*Subscription {
	l := &t.legs[i]
	s := t.first
	if l.told > 0 { // the new ones are few, and at the end
		s = t.last
		for s != nil && s.prev != nil && s.prev.seq > l.told {
			s = s.prev
		}
	}
	for ; s != nil && s.seq <= l.asked; s = s.next {
		if s.seq > l.told {
			list = append(list, s)
		}
	}
	l.told = l.asked
	return list
}

// dropLocked forgets a topic that nobody listens to, once no master has, or may have, a subscription to it.
func (h *hub) dropLocked(t *topic) {
	if t.first != nil {
		return
	}
	for i := range t.legs {
		if t.legs[i].standing || t.legs[i].out != 0 {
			return
		}
	}
	for i, f := range h.feeds {
		if t.legs[i].refused {
			delete(f.line.refused, t)
			t.legs[i].refused = false
		}
	}
	if h.topics[t.name] == t {
		delete(h.topics, t.name)
	}
}

func (h *hub) init(start func(f *feed)) {
	h.start = start
	h.topics = make(map[string]*topic)
}

// add begins to hear one more master, from which all that is wanted is wanted.
func (h *hub) add(m *master) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := &feed{hub: h, m: m, wake: make(chan struct{}, 1)}
	h.feeds = append(h.feeds, f)
	for _, t := range h.topics {
		t.legs = append(t.legs, leg{})
		if t.first != nil {
			f.wantLocked(t)
		}
	}
}

// retire ends what is heard from a master.
func (h *hub) retire(i int) {
	h.mu.Lock()
	f := h.feeds[i]
	f.retired = true
	ln := f.line
	h.mu.Unlock()
	if ln != nil {
		ln.kill(ErrRetired)
	}
	nudge(f.wake)
}

// shut begins the end: nothing is started any more, and every connection is closed.
func (h *hub) shut() {
	h.mu.Lock()
	h.closed = true
	var lines []*line
	for _, f := range h.feeds {
		if f.line != nil {
			lines = append(lines, f.line)
		}
	}
	h.mu.Unlock()
	for _, ln := range lines {
		ln.kill(ErrClosed)
	}
}
