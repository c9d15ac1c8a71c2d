// Package feed receives messages that masters publish, over one connection per master for all channels and listeners.
//
// The Hub holds the desired subscriptions, once for all masters. The feed of each master makes the subscriptions of
// its connection agree with them. The states of a channel on one connection are:
//
//	                 wanted                     confirmed: Resubscribed
//	(off) ----------------------> SUBSCRIBE ------------------> active ----+ new listener: SUBSCRIBE again
//	  ^                               | refused                  |      ^  | confirmed: Resubscribed to that one
//	  |                               v                          |      +--+
//	  |                      retried after 30 s                  | no listener any more
//	  +------------------------ confirmed <----- UNSUBSCRIBE <---+
//
// At most one command of a channel is outstanding. When it is confirmed, the feed compares the channel with the desired
// state again, so quick changes neither overtake each other nor pile up. When the connection ends, every channel goes
// back to off.
//
// The package does not use redigo's PubSubConn, which cannot match the confirmation of a command to that command, and
// reports a refused SUBSCRIBE like the end of the connection. The connection is a [pipe.Pipe], as for calls: a value
// that is not a message is the reply to the oldest command.
package feed
