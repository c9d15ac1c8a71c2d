// Package waitqueue decides which call of one Locker contends for a name, and when it makes its attempts.
//
// The one rule of waiting is kept by the masters: a free name belongs to the first waiter that counts; once woken,
// it has one second to acquire the name. This package is the other half, in the client.
//
//	Lock ──► local queue ──► contender ──────► holder ──► (released)
//	         (by priority,    │      ▲            │
//	          then by call)   │tries │wake-ups,   │ handed off: to the first of the local queue,
//	                          ▼      │times       ▼ without the masters
//	                         waits ──┘          holder
//
// Of the calls of one Locker that wait for one name, one is the contender, the first by priority and time of call. The
// others wait in the local queue and cost the masters nothing. When the last lock of a lease is unlocked, the lease
// may be handed off to the first of them (see package lease); else it is released, and the first becomes the contender.
// A fair call in the local queue costs the masters a little: it subscribes to the inbox when it comes, and if it is
// first when the lease is released, it joins the masters' queues just before the release. A call of a name with readers
// (RWLock) never is in the local queue: each is a contender, and the masters keep the order.
//
// Calls that do not wait here make attempts of their own: TryLock, and those with a limit of attempts or a backoff of
// their own (acquire.go). While the Locker holds the name they send nothing.
// If their votes are split between callers of one instant, so that no lease has a majority, they try again for half a
// second: first the caller with the most votes, and the others after a random pause of two to four round trips more, in
// which their votes are rolled back.
//
// # When the contender tries again
//
// Each attempt goes to all masters that may vote; the votes are the replies. A contender that was refused waits until
// one of these comes first:
//
//   - the first wake-up of a master, which says that it is first there;
//   - if an attempt that a wake-up has caused was lost: wake-ups from a quorum, or 2 ms after the first, or twice the
//     spread of the last replies. This doubles, up to 1 s, with each such attempt in a row;
//   - the times left of a quorum of refusals have ended;
//   - a second since its attempt was decided if it is first or second in a queue, five seconds elsewhere;
//   - a subscription is made again, which counts as a wake-up from that master.
//
// Wake-ups are not trusted: they only cause an attempt. It joins the queues of the masters only while it is subscribed
// on a quorum of them, and only while a quorum of them can vote: a waiter that cannot win must not block others. A
// Locker subscribes when one of its calls has to wait. So the first contender that has to wait makes at least two
// attempts: one without a ticket, and one with it when the subscription is made. Without a quorum of voters it leaves
// the queues and tries without a ticket every second. That there is none is remembered for all names of the Locker.
//
// A waiter keeps its id, and so its place, for the whole call. Each attempt is for a new lease; the roll-back of a
// lost attempt puts the waiter back. A wake-up for a waiter that this Locker no longer has is answered by leaving the
// queue; not while it holds the name, since the release takes the waiter out.
//
// # Files
//
//	local.go    the local queue: which call contends, and which gets a lease that is handed off
//	contend.go  the loop of a call that waits, and when a contender tries again
//	acquire.go  calls that do not wait: how often they try
//	tickets.go  the places in the masters' queues
//	inbox.go    the subscription, and the wake-ups and messages about leases that come by it
package waitqueue
