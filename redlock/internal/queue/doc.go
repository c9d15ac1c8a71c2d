// Package queue decides who of this process asks for a name, and when it asks again.
//
// The one rule of waiting is kept by the masters: a free name belongs to the first waiter that counts; once told, it
// has one second to ask. This package is the other half, in the program.
//
//	Lock ──► local queue ──► contender ──────► holder ──► (released)
//	         (by priority,    │      ▲            │
//	          then by call)   │asks  │hints,      │ handed on: to the first of the local queue,
//	                          ▼      │times       ▼ without the masters
//	                         parked ─┘          holder
//
// Of the goroutines of one Locker that want one name, one is the contender, the first by priority and time of call.
// The others stand in the local queue and cost the masters nothing. When the last lock of a grant is unlocked, the
// grant may be handed on to the first of them; else it is released, and the first becomes the contender.
//
// A contender asks with a complete round; the votes are the replies. Refused, it is parked until one of these comes
// first:
//
//   - hints from a quorum of masters, which say that it is first on them;
//   - a little after the first hint: 2 ms, or twice the spread of the last round, doubled with each lost
//     round up to 1 s;
//   - the times left of a quorum of refusals are over;
//   - a second since its ask was decided if it is first or second in a queue, five seconds elsewhere;
//   - a subscription stands anew, which counts as a hint from that master.
//
// Hints are not believed: they only make it ask. It joins the queues of the masters only while it hears a quorum of
// them, and only while a quorum of them can vote: who cannot win must not stand in front of others. Without a quorum
// of voters it leaves the queues and asks without a ticket every second. That there is none is remembered for the
// whole program.
//
// A waiter keeps its id, and so its place, for the whole call. Each ask is a new grant; the roll-back of a lost ask
// puts the waiter back. A hint for a waiter that this process no longer has is answered by leaving the queue.
package queue
