package transport

import "github.com/redlock-go/redlock/internal/transport/feed"

// Listener is notified of messages and of renewed subscriptions. Notifications are neither complete nor reliable. A
// message may have been repeated by a replica, so it must name its writer if the listener relies on it. Messages are
// lost when a connection ends, while a master is down, and if the user has no right to subscribe. A listener must work
// without them.
//
// Calls for one master do not overlap, calls for different masters may. They must not block, since all listeners of
// that master wait meanwhile. They may call every method of the Transport and of a Subscription except
// [Transport.Close].
type Listener interface {
	// Message gets a published message. It may come before the first Resubscribed.
	Message(master int, channel, payload string)
	// Resubscribed reports that the subscription is active on the master from now on, for the first time or again after
	// a lost connection. Messages published before are lost, so the listener should check the state itself.
	Resubscribed(master int)
}

// A Subscription is one listener of one channel on all masters. All methods are safe for concurrent use.
type Subscription struct{ sub *feed.Subscription }

// Subscribe subscribes l to the channel on each master that can be reached, until the Subscription is closed. It never
// blocks: connections are made in the background, one per master for all channels and listeners, and are kept until
// there has been no listener for 10 s. The listeners of a channel are called in the order of their subscription. Each
// is notified by Resubscribed for each master on which its subscription becomes active.
//
// If the channel is longer than 128 KiB or the Transport is closed, the returned Subscription never becomes active, and
// [Subscription.Err] reports why. l must not be nil.
func (t *Transport) Subscribe(channel string, l Listener) *Subscription {
	return &Subscription{t.hub.Subscribe(channel, l)}
}

// Confirmed returns the set of masters that have confirmed the subscription on a connection that is still up, as far
// as is known: bit i is master i. It is 0 after Close. It does not block.
func (s *Subscription) Confirmed() (set uint64) { return s.sub.Confirmed() }

// Err returns why the subscription is not active on a master, as an *[Error], or nil if it is. The error matches
// ErrClosed after the Subscription or the Transport is closed, ErrDown and its cause while there is no connection, and
// ErrConnecting while the first connection is being made or a reply is awaited. It is a redis.Error such as NOPERM if
// the master refuses. Refused subscriptions are retried about twice a minute. Err does not block.
func (s *Subscription) Err(master int) error { return s.sub.Err(master) }

// Close ends the subscription. It does not block. It may be called more than once, and from the listener. It does not
// wait for the listener: for each master, one call may still be running, or about to begin, when Close has returned.
func (s *Subscription) Close() { s.sub.Close() }
