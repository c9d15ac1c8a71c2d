// Package transport connects to N independent Redis or Valkey masters and sends calls to them. The package knows
// nothing about locks: it sends a [frame.Call] to a master and delivers the reply. The packages that import transport
// decide what a reply means. Package pool is the public API of package transport.
//
// # Packages
//
//	internal/transport           masters by number, sessions, pending releases, events
//	internal/transport/sentinel  a master behind Sentinel: its URL, its address, its failovers
//	internal/transport/cluster   a master in a Redis Cluster: its URL, the node that owns a slot, whether the slot moves
//	internal/transport/feed      subscriptions, on a second connection per master
//	internal/transport/pipe      one connection in use: queue, writer, reader, watchdog, one reply for each request
//	internal/transport/wire      making a connection, with redigo: dialling, logging in, bounds on the data from a server
//	internal/transport/fault     errors: sentinels, causes, texts without credentials
//
// # Goroutines
//
// A master has one connection for calls, regardless of the number of callers. A call starts no goroutine and no timer
// and, in the steady state, allocates nothing in this package.
//
//	Send --> queue --> writer --> socket --> reader --> Receiver.Reply
//	(append)      (takes the whole queue,       (in the order of writing)
//	               flushes once)
//
// In package pipe, Pipe.Send queues a call; write waits for calls (await) and writes them at once (writeBatch,
// frame.Call.Append); read takes each reply (pop) and gives it to the Receiver (deliver).
//
//	goroutine    one per      lives            does
//	master.run   master       New .. Close     dials, shakes hands, reads replies while a session is up, backs off
//	feed.run     master       New .. Close     the same for the subscription connection, while there are subscriptions
//	pipe.write   connection   up .. down       writes batches
//	pipe.mind    connection   up .. down       watchdog and heartbeat, one timer
//	follow       master       New .. Close     behind Sentinel only: queries the sentinels and subscribes to them
//
// Close waits for the goroutines of the masters, and each of them waits for the goroutines that it has started. A
// Transport can therefore run inside a testing/synctest bubble, with a dialer that returns net.Pipe.
//
// # Sentinel and Cluster
//
// A master that a replica may replace has a failover: the rule by which it may vote. It asks an [Authority], which
// package sentinel or package cluster implements; schemes.go chooses by the scheme of the URL, and is the only
// file of this package that imports the two. Nothing else here knows which of them a master has.
//
// # States of a master
//
//	                 +---------------- pause, doubling, with jitter <--------------+
//	                 v                                                             |
//	(New) --> connecting --> dial > TLS > AUTH, SELECT > INFO --> not fit --> refused (down)
//	                 ^            | fails: down, pause     | fit
//	                 |                                     v
//	                 | SCRIPT LOAD, CONFIG GET (optional) > send pending releases --> up (a new session)
//	                 |                                                             |
//	                 +--------- immediately, after a long session <-------- down <-+
//
// An attempt to connect first waits for one of the few slots of its address in this process ([wire.Slots]), so that a
// storm of connections is made in order. After a timeout, the next attempt has more time ([wire.Redial]).
//
// A master goes down when:
//   - its connection ends;
//   - the server answers a call with READONLY, or a cluster node answers with MOVED, ASK or TRYAGAIN;
//   - a heartbeat finds another identity ([Info.Identity]) or an unfit server;
//   - the sentinels report another address for the master; or
//   - the server has sent nothing for the timeout ([Config]) while a request was being written or awaited its
//     reply. The time for which a request waits in the queue is not included.
//
// While a master is down or refused, Send fails immediately with the last reason. Attempts to connect continue, so a
// repaired master is used again without further action.
//
// Package pool lists the reasons for which a server is refused. The error names the problem and the fix.
//
// # Guarantees
//
//   - Each Send that returned nil gets exactly one Reply, even if the Transport is closed. A Send that failed gets no
//     Reply, and no part of its call is ever written.
//   - Calls to one master are written and answered in the order of their Sends; [Transport.Send] documents the one
//     exception.
//   - A call is written only on the session that was up at its Send, and a call with a [Condition] only on its
//     session. Only pending releases are resent on another connection.
//   - Error.Unknown is true if and only if a byte of the call may have been written and the reply was not read. If
//     Error.Unknown is false, the call had no effect, or the master answered the call with an error reply.
//   - Replies use at most a megabyte of memory per connection. Connections made by a *redis.Pool are trusted instead.
//   - Every timeout matches [fault.ErrTimeout]. Neither the text nor the chain of an error contains a password.
//   - Pauses, heartbeats and timeouts use monotonic time, so setting the wall clock does not affect them.
//
// # Locks
//
//	changeMu        the list of masters, their reference counts, the names of their sessions; taken first
//	nameMu          the clients that use the Transport
//	beats.mu        heartbeats of the sessions with one server; taken before watchers.mu and Pipe.mu
//	master.mu       the connState and the end of a master; taken before Pipe.mu
//	Hub.mu          all subscriptions; taken before Pipe.mu
//	Pipe.mu         queue, inflight, and how the connection has ended; held for a few assignments
//	pendingList.mu  the pending releases of a master
//	watchers.mu     the handlers of Watch, the last event of each master; held while a handler runs
//
// Except as listed above, no lock is held during I/O, while a Receiver or a listener runs, or while another lock is
// taken.
package transport
