// Package feed receives messages that masters publish, over one connection per master for all channels.
//
// The Hub holds the open subscriptions, once for all masters. A Subscription that is opened or closed sends SUBSCRIBE
// or UNSUBSCRIBE to each master that is connected; a new connection begins with SUBSCRIBE for all that are open. A
// server answers the commands of a connection in their order, so the last command decides, regardless of how quickly a
// channel is closed and opened again. A refused SUBSCRIBE is sent again after 30 s. A connection without subscriptions
// is closed by its next heartbeat.
//
// The package does not use redigo's PubSubConn, which cannot match the confirmation of a command to that command, and
// reports a refused SUBSCRIBE like the end of the connection. The connection is a [pipe.Pipe], as for calls: a value
// that is not a message is the reply to the oldest command.
package feed
