// Package pool holds the connections to N independent Redis or Valkey masters, and sends scripts over them. It knows
// nothing of locks beyond "run this script on that master and hand me its reply when it comes"; who has won is decided
// elsewhere. It is the only package that speaks to a server, over redigo.
//
// # Goroutines
//
// A master has one connection, whatever the number of callers. A call costs no goroutine, no timer and, in the steady
// state, no allocation here.
//
//	Send ──► queue ──► writer ──► socket ──► reader ──► Receiver.Reply
//	(append)      (takes all of it,             (in the order of writing)
//	               flushes once)
//
//	goroutine   one per      lives              does
//	run         master       New .. Close       dials, shakes hands, is the reader while a session is up, backs off
//	write       session      up .. down         writes batches
//	mind        session      up .. down         watchdog and heartbeat, one timer
//	(watcher)   Watch        Watch .. stop      hands events on
//
//	feed.run    master       while there are  the same for the subscription connection: dials, is the reader, backs off
//	                         subscriptions    (and WithSubscriptionIdle longer)
//	line.write  its conn.    up .. down       SUBSCRIBE, UNSUBSCRIBE, PING
//	line.mind   its conn.    up .. down       watchdog, heartbeat, idle time, refused channels
//
// run joins write and mind; Close joins run and the watchers. Nothing is started by the package itself, so a Pool
// lives inside a testing/synctest bubble with a dialer that returns net.Pipe.
//
// Writers take whole queues, so the more callers there are the fewer system calls a call costs. Callers that write to
// an idle connection by themselves were tried and dropped: with five masters on two processors one round took 15 to
// 25 percent longer (the five writes then happen one after the other, on one processor), and nothing was gained at 64
// or 512 callers.
//
// When batches have more than one call the writer yields once before it takes the queue, which lets callers that are
// ready add to it: a fifth more rounds a second at 64 and at 512 callers on two processors, and it does not happen
// with one. redigo's own buffer of 4 KiB is emptied into one that is written once a batch.
//
// Acquires and releases that follow each other in a batch, and differ in the name, the hold and the ballot alone, are made
// by one run of a script, up to 32 of them: it costs a master a quarter less than as many runs. Each has the reply that it
// would have alone, and where the connection ends before, the outcome of each is unknown. A user who may not touch one of
// the names gets them one by one from then on.
//
// # States of a master
//
//	                 ┌──────────────── pause, doubling, with jitter ◄──────────────┐
//	                 ▼                                                             │
//	(New) ──► connecting ──► dial ► TLS ► AUTH ► SELECT ► INFO ──► not fit ──► refused (down)
//	                 ▲            │ fails: down, pause          │ fit
//	                 │                                          ▼
//	                 │                            SCRIPT LOAD ► debts paid ──► up (a new session)
//	                 │                                                             │
//	                 └─────────── at once, if it has served for a while ◄── down ◄─┘
//
// INFO is asked once more where it is older than [WithHeartbeat], or [WithTimeout] where that is longer, when the scripts are
// loaded: what the server was before says nothing of what it has forgotten since. The heartbeats count from when it was asked,
// and go on while debts are paid.
//
// Down is entered when: the connection ends; a request is overdue ([WithTimeout]), which covers a reply that does not
// come and a write that does not end; a heartbeat finds another identity (run id or replication id) or a server that
// is no longer fit; a script is answered by READONLY. While a master is down or refused Send fails at once with the
// last reason, and attempts to connect go on, so a master that is mended comes back by itself. Before the first
// attempt has ended the reason also matches [ErrConnecting].
//
// A server is refused, with a sentence on what is wrong and what to do, when: its role is not master; it is a cluster
// node; it is loading; it has a memory limit and a policy that evicts keys (unless [AllowEviction]); its INFO may not
// be read or has no identity; another master of the Pool turns out to be the same server.
//
// # Masters that come and go
//
// [Pool.Add] makes further masters known while calls are under way; each has a number of its own, which it keeps, and is
// heard by the subscriptions that there are. One that nobody uses any more is retired ([Pool.Release]): it has no
// connection, and its number is not given to another.
//
// # Guarantees
//
//   - Each Send that returned nil gets exactly one Reply, also when the Pool is closed. A Send that failed gets none,
//     and nothing of it is ever written.
//   - Calls to one master are written in the order of their Sends, and answered in that order, within a session. The
//     exception is a call that is answered by NOSCRIPT: it is sent once more as EVAL, behind what is queued by then,
//     and answered then.
//   - A call is written only on the session that was up when it was sent, and a stamped one only on the session of its
//     stamp. Nothing is ever repeated on a second connection, debts excepted.
//   - Error.Unknown is true if and only if a byte of the call may have been written and its reply was not read. When it
//     is false the call has had no effect, except for what an error reply itself implies.
//   - Send, Owe and Owed never wait for the network; the queue is bounded.
//   - What a server sends costs at most a megabyte for each connection, and the connection where it is no reply that is due;
//     a *redis.Pool's connections are trusted.
//   - Every timeout matches [ErrTimeout]. Texts of errors contain no password, and neither do their chains.
//   - Events of one master are told in order, with strictly increasing sessions.
//
// # Subscriptions
//
// [Pool.Subscribe] opens one more connection per master, for all channels and listeners. What is wanted stands in the
// hub, once for all masters; each feed makes its master's state like it. Per channel and connection:
//
//	                 wanted                     confirmed: Gap
//	(off) ──────────────────────► SUBSCRIBE ──────────────────► standing ──┐ new listener: SUBSCRIBE again
//	  ▲      up to 512 a command      │ refused                  │      ▲  │ confirmed: Gap to that one
//	  │                               ▼                          │      └──┘
//	  │             tried alone, then left for 30 s              │ no listener any more
//	  └──────────────────────── confirmed ◄───── UNSUBSCRIBE ◄───┘
//
// One command of a channel is outstanding at most, and what is wanted by then is looked at when it is confirmed: quick
// changes neither cross nor pile up. The end of the connection takes every channel back to off, and the next one
// subscribes to all that is wanted by then. Whether the master is up or down for Send has nothing to do with it.
//
// Messages are not complete. A connection counts as lost when commands are outstanding and nothing was heard for [WithTimeout];
// a PING each [WithHeartbeat] sees to it that there are commands.
//
// # Locks
//
//	master.mu     its session pointer, why Send fails, its debts, and of the session: queue, inflight and the flags that
//	              the type session lists. Held for a few assignments; never while a Receiver, a handler or I/O runs.
//	watchers.mu   the list of watchers, their queues, the last event of each master
//	Pool.claimMu  which master has which run id
//	Pool.changeMu which masters there are, and their users; held while one is added, and then before the others
//	hub.mu        all that is about subscriptions; never held while a listener runs
//
// None of them is taken while another is held, changeMu excepted.
//
// # Rights
//
// What an ACL user needs, for keys that begin with prefix (INFO is in the category @dangerous, which is often taken away
// as a whole):
//
//	ACL SETUSER lock on >password ~prefix:* resetchannels &prefix:* -@all +info +evalsha +eval +script|load +get +set +setrange +exists
//	    +hget +hset +hdel +hscan +zadd +zrem +zrange +zrank +pttl +pexpire +time +publish +subscribe +unsubscribe +ping
//
// Scripts run with the rights of the user, hence the commands inside them. A database other than 0 needs +select.
// Without +script|load everything works, and each script is sent in full once after a restart. Without +publish, or
// without the channel, locks are released but nobody is told; a waiter without +subscribe, +unsubscribe and +ping does
// not hear it: both go by TTL and polling. [Pool.Check] tells which of them are missing; its look at persistence needs
// +config|get.
package pool
