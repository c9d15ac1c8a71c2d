package transport

import "github.com/redlock-go/redlock/internal/transport/feed"

type (
	// Listener is notified of messages and of renewed subscriptions.
	Listener = feed.Listener
	// Subscription is one listener of one channel on all masters.
	Subscription = feed.Subscription
)

// Subscribe subscribes l to the channel on each master that can be reached, until the Subscription is closed. It never
// blocks: connections are made in the background, one per master for all channels and listeners, and are kept until
// there has been no listener for 10 s. The listeners of a channel are called in the order of their subscription. Each
// is notified by Resubscribed for each master on which its subscription becomes active.
//
// If the channel is longer than 128 KiB or the Transport is closed, the returned Subscription never becomes active, and
// [Subscription.Err] reports why. l must not be nil.
func (t *Transport) Subscribe(channel string, l Listener) *Subscription {
	return t.hub.Subscribe(channel, l)
}
