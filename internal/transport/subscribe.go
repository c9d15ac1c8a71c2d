package transport

import "github.com/redlock-go/redlock/internal/transport/feed"

type (
	// Listener is notified of messages and of renewed subscriptions.
	Listener = feed.Listener
	// Subscription is the listener of one channel on all masters.
	Subscription = feed.Subscription
)

// Subscribe subscribes l to the channel on each master that can be reached, until the Subscription is closed. It never
// blocks: connections are made in the background, one per master for all channels, and are kept until a heartbeat finds
// no subscription. l is notified by Resubscribed for each master on which its subscription becomes active. It must not
// be nil, and the channel must have no other open Subscription.
func (t *Transport) Subscribe(channel string, l Listener) *Subscription {
	return t.hub.Subscribe(channel, l)
}
