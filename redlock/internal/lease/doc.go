// Package lease manages what the masters have granted, from the attempt that wins a lease to its release.
//
//	        a quorum granted,                last Unlock: released
//	        validity left                    (or handed off: live, with the next owner)
//	trying ------------------> live ---------------------------------> ended
//	   |                        |  Export, Close
//	   | no quorum, too late,   |  validity expired, maximum hold,
//	   | the caller gave up     v  lost on too many masters
//	   v                      ended, and released when its holder unlocks
//	rolled back
//
// A lease is one id on the masters (after an import, also the id that it replaces); an id is never used twice. The
// type sent records what the masters have been sent, and may therefore hold. The type ownership is what a caller
// holds: token, depth, holds, terms. A lease that is handed off within the Locker gets a new ownership with the next
// token; for the masters nothing changes.
//
// # Rules
//
//   - Validity is TTL - (now - start) - drift, after the Redis documentation on distributed locks. It is computed
//     again at each check, and the elapsed time is the larger of what the boot clock and the wall clock say. The end
//     is never stored.
//   - A lost attempt is rolled back on each master that granted it, or has not refused it yet; see Lease.undo.
//   - A repair is queued with mu held and the state checked under mu. The state becomes ended under mu, and the release
//     is queued after that. So no repair follows the release of its lease. Attempts have ended by then: a lease that is
//     trying has one owner.
//   - A release carries a ballot only if an acquire may still be on its way to the master over another connection.
//     Over one connection the acquire arrives first.
//   - A master has lost the lease if its last answer was "missing", or if the server at its address has changed, or
//     may have forgotten, since it last granted or confirmed the lease or was repaired. When the others are no quorum,
//     the lease ends. A server that was restarted may have forgotten, unless it is a durable master.
//   - A master that was restarted is sent an extension immediately, and has the lease again when it confirms it. If a
//     majority has restarted before the first of them has confirmed, the lease ends, although every key may be there.
//   - A master that lacks the lease gets it back by a repair, after a round in which a majority has confirmed the
//     lease. In a joint configuration a majority of one set repairs only masters that vote, and a majority of both
//     sets also those in quarantine.
//
// # What proves that a master has not forgotten
//
// A master counts as one that has a lease only with evidence that it has not lost data since. Each message that makes
// a master count carries this evidence:
//
//	message           why the master counts then       what proves that it has forgotten nothing since
//	acquire, import   it votes for the lease           it votes by the record that the round expects, and the script
//	                                                   compares; the vote's round began after that record was read
//	extension         it confirms the lease            the lease itself is there: an extension never creates it
//	downgrade         it has the reader's share        the writer's share, or that of an earlier round, is there,
//	                                                   under the record that the round expects
//	repair            it is given the lease            session and record are those of the round in which a majority
//	                                                   has confirmed the lease: a master that has restarted or was
//	                                                   flushed since then has others, and rejects the repair
//	inner unlock      it confirms the new depth        as for an extension; the validity stays as it was
//	late vote         as for its message               the server at the address has not changed since the round began
//	                                                   (Incarnation, compared when a vote is counted, when the lease
//	                                                   begins, and with each new View)
//	admission: end    it votes from now on             the script compares identity, record and clock: the quarantine is
//	                                                   this server's, and has lasted since it may have forgotten
//	admission: now    it votes from now on             an operator says that it has nothing to remember, or it is a
//	                                                   durable master; the script compares identity and record
//	admission: the    it goes on as before             the script compares identity and record; none of these steps
//	other steps                                        makes a master vote that did not
//
// A repaired master has the lease, so its confirmation of the next extension is a vote like any other. A release makes
// no master count. With the restart guard off there are no records, and only the session is compared: according to the
// operator a master that restarts keeps its data, and an extension is sent to it immediately.
//
// A lock with a TTL below the pool's timeout is given to no master in quarantine: it could expire on the other masters
// while an acquire of another client, which the repaired master has granted and forgotten, can still win. For the same
// reason an acquire that takes longer than the timeout fails, regardless of its validity. All clients of a deployment
// need the same timeout.
//
// # Handoffs
//
// When the last hold of a lease is unlocked, the lease may pass to a call of the same Locker that waits for the name:
// the successor. The masters are not notified. The successor has an ownership of its own, with its own terms and a
// larger token.
//
// The tokens are a range of ballots. An acquire carries the first and the last ballot of its range. A master grants it
// if the first is above the fence, and the last becomes the fence. The first is the token of the first ownership, and
// each ownership that follows takes the next one. No other lease can have a token of the range.
//
// All these must be true, else the lease is released (Hold.successorLocked, and Queue.Successor in waitqueue):
//
//   - The range has tokens left. The call that won the lease has reserved as many as its Handoffs. It has reserved none
//     if its ballot had to begin above the masters' present time (ballot.Propose): a name that changes hands fast
//     would run ahead of the clock.
//   - The call that hands the lease off has Handoffs above 0, and the lease was won less than its HandoffTime ago.
//   - No re-entry is under way, and no holder has set a value, which would be shown as that of the next holder.
//   - The first call of the local queue is not fair. Its TTL is at least that of the lease, and it requires no more
//     validity than is left.
//
// Each reserved token puts the fence a microsecond further ahead of the clock. With 1000, the maximum, the fence is a
// millisecond ahead; another client's acquire within that time is refused as stale, and repeated above the fence.
//
// # Locks
//
// Lease.mu is not held while anything waits, while a context is cancelled, or while a function of the caller runs. The
// locks of the Manager's timers, of the ballots and of the local queue may be taken while it is held, and it is never
// taken while one of them is held. One goroutine of the Manager extends all live leases, and ends those that have
// expired (package due), with a reason from the table in end.go.
package lease
