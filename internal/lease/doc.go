// Package lease manages leases on the masters, from the attempt that wins a lease to its release.
//
//	        a quorum granted,                last Unlock: released
//	        validity left                    (or handed off: live, with the next owner)
//	trying ------------------> live ---------------------------------> ended
//	   |                        |  Export; Close, maximum hold: released
//	   | no quorum, too late,   |  validity expired,
//	   | the caller gave up     v  lost on too many masters
//	   v                      ended, and released when its holder unlocks
//	rolled back
//
// On the masters, a lease is one id, which is never used for another lease. After an import, some masters may still
// have the previous id. The type sent records which masters may have the lease. The type ownership is the state of one
// caller: token, depth, holds and terms. A lease that is handed off within the Locker gets a new ownership with the
// next token; on the masters nothing changes.
//
// # Rules
//
//   - A repair is queued with Lease.mu held, after a check that the lease has not ended. The state becomes ended under
//     the same mutex, and the release is queued later. So no repair follows the release of its lease. The acquire was
//     queued by the goroutine that made the lease live, and comes first.
//   - A master counts as having lost the lease if its last answer was "missing", or if its server was replaced or may
//     have lost data since the master last granted or confirmed the lease or was repaired. A restarted server may have
//     lost data, unless it is a durable master. The lease ends when the other masters are no quorum.
//   - A restarted master is sent an extension immediately, and counts as having the lease again when it confirms that
//     extension. If a majority restarts before the first of them has confirmed the lease, the lease ends, although all
//     its keys may still exist.
//   - A master that lacks the lease gets it back by a repair: see repairable.
//
// # An extension
//
//	Lease.Run, renewLocked             the Manager's timer: an extension is due, or the lease has expired
//	extendLocked, sendLocked           the round; scripts/extend.lua on each master
//	extension.OnVote, confirmedLocked  a quorum has confirmed: the validity begins anew
//	scheduleLocked                     the next one
//	repairLocked                       a master that answers "missing" gets a repair
//
// A lease that is live ends in three ways besides Unlock, Export and Close: its validity or its maximum hold is over
// (Run), votes show that too many masters have lost it (OnVote, goneLocked), or a View shows it
// (Manager.ViewChanged). All end it by endLocked, and then call finish without the mutex.
//
// # What proves that a master has not forgotten
//
// A master counts as having a lease only with evidence that it has not lost data since it got the lease.
// docs/protocol.md, "What each message must prove", lists the messages that make a master count, with the evidence for
// each. The evidence for a late vote is the Incarnation: it is compared when a vote is counted, when the lease begins,
// and with each new View.
//
// A repaired master has the lease, so its confirmation of the next extension is a vote like any other. A release or an
// inner unlock makes no master count. With the restart guard off there are no records, and only the session is
// compared: the operator has declared that a restarted master keeps its data.
//
// # Handoffs
//
// When the last hold of a lease is unlocked, the lease may pass to a call of the same Locker that waits for the name:
// the successor. The successor gets a new ownership with a larger token. The masters are not notified.
//
// The tokens are a range of ballots. An acquire carries the first and the last ballot of its range. A master grants it
// if the first is above the fence, and the last becomes the fence. The first is the token of the first ownership, and
// each later ownership gets the next one. No other lease can have a token of the range.
//
// The lease is handed off only if all of these are true (see Hold.successorLocked, and Queue.Successor in waitqueue):
//
//   - The range has tokens left. The call that won the lease has reserved one token for each of its Handoffs, more if
//     the lease may linger, or none if its first ballot had to be above the masters' present time (see
//     Ballots.Propose): the ballots of a name that changes hands fast would run ahead of the clock.
//   - The terms of the call that unlocks have Handoffs above 0, and a HandoffTime that is longer than the time since
//     the lease was won.
//   - No re-entry is under way, and no other client has requested the release. No holder has set a value, which other
//     clients would take for a value of the next holder.
//   - The first call in the local queue is not fair, has a TTL of at least that of the lease, and requires no more
//     validity than is left.
//
// Each reserved token puts the fence a microsecond further ahead of the clock. With 1000 tokens, another client's
// acquire within a millisecond is refused as stale, and repeated with a ballot above the fence.
//
// # Locks
//
// No goroutine waits, cancels a context or calls a function of the caller while it holds Lease.mu. The mutexes of the
// Manager's timers, of the ballots and of the local queue may be locked while Lease.mu is held. Lease.mu is never
// locked while one of those is held. One goroutine of the Manager extends all live leases and ends expired leases: see
// package due. The table in end.go lists the reasons for which leases end.
package lease
