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
// changes neither cross nor pile up. The end of the connection takes every channel back to off.
//
// redigo's PubSubConn is not used: it cannot tell the confirmation of one command from that of another, and shows a
// refused SUBSCRIBE like the end of the connection. The connection is a [pipe.Pipe] like that for calls: what is no
// message answers the oldest command.
package feed
