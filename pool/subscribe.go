package pool

import "github.com/redlock-go/redlock/pool/internal/feed"

// Listener is told of messages and of gaps. Neither is complete nor certain: a message may have been repeated by a
// replica, so one that is to be believed must say itself who wrote it. Messages are lost when a connection ends, while
// a master is down, and where the user may not subscribe. A listener must do what is right without them.
//
// Calls for one master do not overlap, calls for different masters may. They must not block, since all listeners of
// that master wait meanwhile. They may call every method of the Pool and of a Subscription but [Pool.Close].
type Listener interface {
	// Message gets what somebody has published. It may come before the first Gap.
	Message(master int, channel, payload string)
	// Gap says that the subscription stands on the master from here on, for the first time or again after its
	// connection was lost: nobody knows what was published before, so the listener should look for itself.
	Gap(master int)
}

// A Subscription is one listener of one channel on all masters. All methods are safe for concurrent use.
type Subscription struct{ sub *feed.Subscription }

// Subscribe makes l hear what is published on the channel, on each master that can be reached, until the Subscription
// is closed. It never blocks: connections are made in the background, one a master for all channels and listeners, and
// are kept until there has been no listener for 10 s. The listeners of a channel are called in the order of their
// subscription; each is told by Gap of each master on which its subscription comes to stand.
//
// A channel longer than 128 KiB, or a closed Pool, gives a Subscription that never stands, and [Subscription.Err] says
// why. l must not be nil.
func (p *Pool) Subscribe(channel string, l Listener) *Subscription {
	return &Subscription{p.hub.Subscribe(channel, l)}
}

// StandingOn is the set of masters that have confirmed the subscription on a connection that is still there, as far as
// is known: bit i is master i. It is 0 after Close. It does not block.
func (s *Subscription) StandingOn() (set uint64) { return s.sub.StandingOn() }

// Err says why the subscription does not stand on a master, as an *[Error]; nil where it stands. It matches ErrClosed
// after Close of either; ErrDown with the cause while there is no connection; ErrConnecting while the first is being
// made or an answer is awaited; and a redis.Error where the master refuses, such as NOPERM. Refused subscriptions are
// tried again about twice a minute. It does not block.
func (s *Subscription) Err(master int) error { return s.sub.Err(master) }

// Close ends the subscription. It does not block, may be called more than once, and from the listener. It does not wait
// for the listener: of each master, one call may still be running, or about to begin, when Close has returned.
func (s *Subscription) Close() { s.sub.Close() }
