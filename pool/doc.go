// Package pool holds the connections to N independent Redis or Valkey masters, and sends scripts over them. It knows
// nothing of locks beyond "run this script on that master and hand me its reply"; who has won is decided elsewhere.
//
// # Rooms
//
//	pool                     masters by number, sessions, owed releases, events, checks
//	pool/internal/sentinel   where a master is, as its sentinels say; failovers as they announce them
//	pool/internal/feed       subscriptions: one more connection a master; its doc has the states of a channel
//	pool/internal/pipe       one connection in use: queue, writer, reader, watchdog, exactly one reply for each request
//	pool/internal/wire       making a connection, with redigo: dialling, logging in, bounds on what a server may send
//	pool/internal/fault      errors: sentinels, causes, texts without credentials
//
// # Goroutines
//
// A master has one connection for calls, whatever the number of callers. A call costs no goroutine, no timer and, in
// the steady state, no allocation here.
//
//	Send --> queue --> writer --> socket --> reader --> Receiver.Reply
//	(append)      (takes all of it,             (in the order of writing)
//	               flushes once)
//
//	goroutine    one per      lives            does
//	master.run   master       New .. Close     dials, shakes hands, is the reader while a session is up, backs off
//	feed.run     master       New .. Close     the same for the subscription connection, while there are listeners
//	pipe.write   connection   up .. down       writes batches
//	pipe.mind    connection   up .. down       watchdog and heartbeat, one timer
//	follow       master       New .. Close     hears its sentinels, where it has any
//	(watcher)    Watch        Watch .. stop    hands events on
//
// Each is joined by the one that started it, and run and the watchers by Close, so a Pool can live inside a
// testing/synctest bubble with a dialer that returns net.Pipe.
//
// # States of a master
//
//	                 +---------------- pause, doubling, with jitter <--------------+
//	                 v                                                             |
//	(New) --> connecting --> dial > TLS > AUTH, SELECT > INFO --> not fit --> refused (down)
//	                 ^            | fails: down, pause     | fit
//	                 |                                     v
//	                 |         SCRIPT LOAD, CONFIG GET > owed releases paid --> up (a new session)
//	                 |                                                             |
//	                 +----------- at once, if it has served for a while <-- down <-+
//
// Down is entered when: the connection ends; nothing was heard from the server for the timeout ([WithTimeout]) while a
// request was written or being written, time in the queue not counted; a heartbeat finds another identity
// ([Info.Identity]) or a server that is no longer fit; a script is answered by READONLY. While a master is down or refused Send fails at once with the last
// reason, and attempts to connect go on, so a master that is mended comes back by itself.
//
// A server is refused, with a sentence on what is wrong and what to do, when: its role is not master; it is a cluster
// node; it is loading; it has a memory limit and a policy that evicts keys (unless [AllowEviction]); its INFO may not
// be read, or has no identity or clock; another master of the Pool is the same server; it is behind Sentinel, and may
// go on while a replica is promoted (unless [AllowTwoHolders]; docs/stores.md).
//
// # Guarantees
//
//   - Each Send that returned nil gets exactly one Reply, also when the Pool is closed. A Send that failed gets none,
//     and nothing of it is ever written.
//   - Calls to one master are written and answered in the order of their Sends, except as [Pool.Send] says.
//   - A call is written only on the session that was up when it was sent, and a stamped one only on the session of its
//     stamp. Nothing is ever repeated on a second connection, owed releases excepted.
//   - Error.Unknown is true if and only if a byte of the call may have been written and its reply was not read. When it
//     is false the call has had no effect, except for what an error reply itself implies.
//   - What a server sends costs at most a megabyte for each connection; a *redis.Pool's connections are trusted.
//   - Every timeout matches [ErrTimeout]. Texts of errors contain no password, and neither do their chains.
//   - Pauses, heartbeats and timeouts are measured by monotonic time. Setting the wall clock changes none of them.
//
// # Locks
//
//	Pool.changeMu which masters there are, and their users; held before the others while one is added or ended
//	master.mu     its gate, and its end; held before Pipe.mu
//	Hub.mu        all that is about subscriptions; held before Pipe.mu
//	Pipe.mu       queue, inflight, and how the connection has ended; held for a few assignments
//	ledger.mu     what a master is owed
//	watchers.mu   the list of watchers, their queues, the last event of each master
//
// None is held while a Receiver, a listener, a handler or I/O runs, or another is taken, except as said above.
//
// # Rights
//
// [Pool.Check] tells which rights a user lacks, and the rule of ACL SETUSER that grants them; for keys that begin with
// prefix it is
//
//	~prefix:* resetchannels &prefix:* -@all +info +evalsha +eval +script|load +get +getrange +set +exists +hexists +hget
//	+hset +hdel +hlen +hscan +zadd +zrem +zcard +zrange +zrangebyscore +zrank +zscore +pttl +pexpire +time
//	+publish +subscribe +unsubscribe +ping
//
// INFO is in the category @dangerous, which is often taken away as a whole. Scripts run with the rights of the user,
// hence the commands inside them. A master behind Sentinel needs +config|get, a database other than 0 +select. Without
// +script|load scripts are sent in full where the server has not cached them, and acquire once on each connection.
// Without +publish, or without the channel, locks are released but nobody is told; a waiter without +subscribe,
// +unsubscribe and +ping does not hear it: both go by TTL and polling. With +config|get the pool reads
// repl-backlog-ttl ([Info.BacklogTTL]), and Check looks at persistence.
package pool
