// Package waitqueue decides which call of one client contends for a name, and when that call makes its attempts.
//
// The masters enforce the one rule of waiting: a free name belongs to the first waiter in the queue whose entry has not
// expired. When that waiter is woken, it has one second to acquire the name. This package is the client's part of
// waiting.
//
//	Lock ──► local queue ──► contender ──────► holder ──► (released)
//	         (by priority,    │      ▲            │
//	          then by call)   │tries │wake-ups,   │ handed off: to the first of the local queue,
//	                          ▼      │times       ▼ without the masters
//	                         waits ──┘          holder
//
// Of the calls of one client that wait for one name, the first by priority and time of call is the contender. The
// others wait in the local queue and cost the masters nothing. After the last Unlock, the lease may be handed off to
// the first call in the local queue (see package lease). Otherwise the lease is released, and that call becomes the
// contender. A fair call in the local queue costs the masters a little: it subscribes to the inbox when it enters the
// local queue, and if it is first there when the lease is released, it joins the masters' queues just before the
// release. Calls of an RWLock are never in the local queue: each of them is a contender, and the masters keep the
// order. See [Shares].
//
// TryLock, and calls with a limit of tries, do not wait here, but make attempts of their own (try.go), or take the
// refusal of another such call as theirs (attempt.go). These calls send nothing while their own Locker holds the name.
// Those of an RWLock do neither: they always send.
// If simultaneous calls split the votes, so that no lease has a majority, each of them tries again for half a second.
// The call with the most votes tries first. The others first pause for two to four more round trips, at random, in
// which their votes are rolled back.
//
// # When the contender tries again
//
// Each attempt goes to all masters that may vote; the votes are the replies. A contender that was refused waits for the
// first of these events:
//
//   - the first wake-up of a master, which means that the contender is first in the queue of that master;
//   - if an attempt that a wake-up has caused was lost: wake-ups from a quorum, or the end of a delay after the first
//     wake-up. The delay is 2 ms or, if that is longer, twice the spread of the last replies. It doubles, up to 1 s,
//     with each further such attempt in a row;
//   - the TTLs in the refusals of a quorum have expired;
//   - a pause since its last attempt was decided has passed: a second if the contender is first or second in a queue,
//     otherwise five seconds;
//   - a master confirms the subscription again, which is treated as a wake-up from that master.
//
// Wake-ups are not trusted: they only cause an attempt. A contender joins the queues of the masters only while it is
// subscribed on a quorum of them, and only while a quorum of them can vote: a waiter that cannot win must not block
// others. A Locker subscribes when one of its calls has to wait. So the first contender that has to wait makes at least
// two attempts: one without a ticket, and one with a ticket when a quorum has confirmed the subscription. Without a
// quorum of voters a contender leaves the queues and tries without a ticket every second. Calls for other names then
// also try without a ticket.
//
// A waiter keeps its id, and so its place, for the whole call. Each attempt is for a new lease; the roll-back of a lost
// attempt puts the waiter back. If a wake-up is for a waiter that this Locker no longer has, the Locker removes the
// waiter from the queue, unless the Locker holds the name and the release of its lease will remove the waiter.
//
// A call that has won leaves the queues: a master that grants the lease removes the waiter, and one that has refused is
// told to.
//
// # How a waiter gets the lock
//
//	of this Locker    Hold.Unlock, successorLocked (package lease), Successor; Hold.handOff, finishHandoff, signal; the
//	                  waiter returns from sleep, and next finds that it is holding
//	not handed off    Hold.Unlock, ending.finish (package lease); Releasing, if the waiter is fair; Lease.release; Ended,
//	                  promoteLocked, signal; the waiter returns from sleep, and next finds that it is the contender;
//	                  prepare, Manager.Acquire
//	of another one    Hold.Unlock, ending.finish, Lease.release (package lease), release.lua, whose wake (common.lua)
//	                  publishes to the first waiter; package feed, Queue.Message, wakeUp, signal; the waiter returns
//	                  from sleep; next, untilAttemptLocked, prepare, Manager.Acquire
//
// # Files
//
//	contend.go  a call from its first attempt to its end: joins, contends, waits, starts to hold, leaves
//	pause.go    when a contender tries again
//	local.go    the local queue: which call contends, and which gets a lease that is handed off
//	levels.go   the order of the local queue
//	try.go      calls that do not wait: how often they try
//	attempt.go  attempts that such calls share
//	tickets.go  the places in the masters' queues
//	inbox.go    the subscription, and the wake-ups and messages about leases that arrive through it
//	shares.go   calls for the locks of readers and writers
//	linger.go   leases that linger
//	waiting.go  how many calls wait, and why
package waitqueue
