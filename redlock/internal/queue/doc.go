// Package queue decides which call of one Locker asks for a name, and when it asks again.
//
// The one rule of waiting is kept by the masters: a free name belongs to the first waiter that counts; once told, it
// has one second to ask. This package is the other half, in the program.
//
//	Lock ──► local queue ──► contender ──────► holder ──► (released)
//	         (by priority,    │      ▲            │
//	          then by call)   │asks  │hints,      │ handed on: to the first of the local queue,
//	                          ▼      │times       ▼ without the masters
//	                         waits ──┘          holder
//
// Of the calls of one Locker that wait for one name, one is the contender, the first by priority and time of call. The
// others stand in the local queue and cost the masters nothing. When the last lock of a grant is unlocked, the grant
// may be handed on to the first of them (see package grant); else it is released, and the first becomes the contender.
// A fair call in the local queue costs the masters a little: it subscribes to the inbox when it comes, and if it is
// first when the grant is released, it joins the masters' queues just before the release. A call of a name with readers
// (Locker.Shared) never stands in the local queue: each is a contender, and the masters keep the order.
//
// Calls that do not wait here ask by themselves: TryLock, and those with a bound of the tries or a backoff of their own
// (ask.go). While the Locker holds the name they do not ask the masters.
// If their votes are split between callers of one instant, so that no lease has a majority, they ask again for half a
// second: first the caller with the most votes, and the others after a random pause of two to four round trips more, in
// which their votes are rolled back.
//
// # When the contender asks again
//
// Each ask goes to all masters that may vote; the votes are the replies. A contender that was refused waits until one
// of these comes first:
//
//   - hints from a quorum of masters, which say that it is first on them;
//   - a little after the first hint: 2 ms, or twice the spread of the last replies. It doubles, up to 1 s, with each
//     ask in a row that a hint has caused in vain;
//   - the times left of a quorum of refusals are over;
//   - a second since its ask was decided if it is first or second in a queue, five seconds elsewhere;
//   - a subscription stands anew, which counts as a hint from that master.
//
// Hints are not believed: they only make it ask. It joins the queues of the masters only while it hears a quorum of
// them, and only while a quorum of them can vote: a waiter that cannot win must not block others. A Locker subscribes
// when one of its calls has to wait. So the first contender that has to wait asks at least twice: without a ticket, and
// once more with one when the subscription stands. Without a quorum of voters it leaves the queues and asks without a
// ticket every second. That there is none is remembered for all names of the Locker.
//
// A waiter keeps its id, and so its place, for the whole call. Each ask is a new grant; the roll-back of a lost ask
// puts the waiter back. A hint for a waiter that this Locker no longer has is answered by leaving the queue.
//
// # Files
//
//	local.go    the local queue: who contends, who gets a grant that is handed on
//	contend.go  the contender: when it asks again
//	ask.go      one ask, and what its errors mean to those who wait
//	tickets.go  the places in the masters' queues
//	inbox.go    the subscription, and the hints that come by it
package queue
