// Package transport holds the connections to N independent Redis or Valkey masters, and sends calls over them. It
// knows nothing of locks and their scripts: it sends a [frame.Call] to a master and returns the reply. The packages
// above it decide what a vote means. Package pool is its public API.
//
// # Packages
//
//	internal/transport           masters by number, sessions, pending releases, events, checks
//	internal/transport/sentinel  the address of a master behind Sentinel, and its failovers
//	internal/transport/feed      subscriptions: one more connection per master; its doc lists the states of a channel
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
//	(append)      (takes all of it,             (in the order of writing)
//	               flushes once)
//
//	goroutine    one per      lives            does
//	master.run   master       New .. Close     dials, shakes hands, is the reader while a session is up, backs off
//	feed.run     master       New .. Close     the same for the subscription connection, while there are subscriptions
//	pipe.write   connection   up .. down       writes batches
//	pipe.mind    connection   up .. down       watchdog and heartbeat, one timer
//	follow       master       New .. Close     queries its sentinels and subscribes to them, if it has any
//
// Close waits until the goroutines of the masters have ended, and each of these waits for the goroutines that it has
// started. So a Transport can live inside a testing/synctest bubble with a dialer that returns net.Pipe.
//
// # States of a master
//
//	                 +---------------- pause, doubling, with jitter <--------------+
//	                 v                                                             |
//	(New) --> connecting --> dial > TLS > AUTH, SELECT > INFO --> not fit --> refused (down)
//	                 ^            | fails: down, pause     | fit
//	                 |                                     v
//	                 |         SCRIPT LOAD, CONFIG GET > send pending releases --> up (a new session)
//	                 |                                                             |
//	                 +----------- at once, if it has served for a while <-- down <-+
//
// A master goes down when its connection ends, when a script is answered with READONLY, when a heartbeat finds another
// identity ([Info.Identity]) or an unfit server, or when the server has sent nothing for the timeout ([WithTimeout])
// while a request was written or being written; time in the queue is not included. While a master is down or refused,
// Send fails immediately with the last reason. Attempts to connect continue, so a master that has been fixed is used
// again without further action.
//
// A server is refused, with an error that names the problem and the fix, if:
//   - its role is not master;
//   - it is a cluster node, but its master was not given as a cluster, or the reverse;
//   - it is loading;
//   - it has a memory limit and a policy that evicts keys (unless [AllowEviction]);
//   - the user has no right to INFO, or INFO contains no identity or no clock;
//   - another master of the Transport is the same server; or
//   - it is behind Sentinel or in a cluster, and may keep accepting writes while a replica is promoted (unless
//     [AllowTwoHolders]; docs/guide.md).
//
// # Guarantees
//
//   - Each Send that returned nil gets exactly one Reply, also when the Transport is closed. A Send that failed gets
//     no Reply, and no part of its call is ever written.
//   - Calls to one master are written and answered in the order of their Sends, except as [Transport.Send] says.
//   - A call is written only on the session that was up when it was sent, and a stamped call only on the session of
//     its stamp. Only pending releases are ever sent again on another connection.
//   - Error.Unknown is true if and only if a byte of the call may have been written and its reply was not read. When it
//     is false the call has had no effect, except for what an error reply itself implies.
//   - Replies of a server use at most a megabyte of memory per connection; connections of a *redis.Pool are trusted.
//   - Every timeout matches [ErrTimeout]. Errors contain no password, in their texts or their chains.
//   - Pauses, heartbeats and timeouts are measured by monotonic time. Setting the wall clock changes none of them.
//
// # Locks
//
//	changeMu        the list of masters, their users, the names of their sessions; taken before the other locks
//	beats.mu        heartbeats of the sessions with one server; held before watchers.mu and Pipe.mu
//	master.mu       its connState, and its end; held before Pipe.mu
//	Hub.mu          everything about subscriptions; held before Pipe.mu
//	Pipe.mu         queue, inflight, and how the connection has ended; held for a few assignments
//	pendingList.mu  the pending releases of a master
//	watchers.mu     the handlers of Watch, the last event of each master; held while a handler runs
//
// No lock is held while a Receiver or a listener runs, during I/O, or while another lock is taken, except as listed
// above.
package transport
