// Package feed receives messages that masters publish, over one connection per master for all channels.
//
// A Hub holds the open subscriptions, which are the same on all masters. Opening a Subscription sends SUBSCRIBE to each
// connected master, and closing it sends UNSUBSCRIBE. A new connection begins with SUBSCRIBE for each open
// Subscription. A server executes the commands of a connection in order, so the last command for a channel decides,
// even if the channel is quickly closed and opened again. If a SUBSCRIBE is refused, a heartbeat sends it again after
// 30 s or more. If no subscription is left, the next heartbeat closes the connection.
//
// The package does not use redigo's PubSubConn, which does not match confirmations to commands, and reports a refused
// SUBSCRIBE as if the connection had ended. The connection is a [pipe.Pipe], as for calls. A value that is not a
// message is the reply to the oldest command.
package feed
