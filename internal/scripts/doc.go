// Package scripts contains the Lua scripts that run on the masters, encodes their arguments, and decodes their replies.
// Three are for plain locks, three for readers-writer locks, and two for slots of semaphores; inspect serves all, and
// admit the admission records. The file of each script documents the keys, arguments and replies, and why the script is
// safe to repeat. acquire and release begin with their common case, and include the functions that only the other cases
// need (common.lua) after that. The package does no I/O.
//
// docs/protocol.md describes the keys, their fields, the two deadlines of a lease, the window of ballots, and the
// calls; what follows argues about the scripts.
//
// # States
//
// A plain lock that was released, and for which no client waits, has the field fence alone, or no key. So HLEN, and
// HGET of the fence, decide the common case of an acquire, and HDEL and HLEN that of a release. A hash without a fence,
// or with more fields than a lock has, belongs to another program. It may be large, so no script reads it.
//
// The states of one name on one master:
//
//	        acquire: HSET of the lease, and of the fence, which becomes its last ballot
//	      .-----------------------------------------------.
//	      |                                               v
//	free: a fence or no key                        held by one lease -- acquire of another: held; a ticket joins
//	      ^                                               |              the queue
//	      '-----------------------------------------------'
//	        release: HDEL, or expiry by both clocks: the first waiter is woken, and has one second
//
// An expired lease counts as absent, and the next acquire deletes it. A full master refuses the new until of an
// extension, and extends the lease by its own clock alone.
//
// # Late messages
//
// The id of a lease is never reused, and each acquire of it contains a ballot, which is the masters' time in
// microseconds. A master grants only ballots above its fence, less than 15 s behind its own time and at most 15 s ahead
// of it (one ballot may follow a fence that is itself ahead). A release deletes the lease. If an acquire may still be
// in flight, the release also raises the fence to the ballot of that acquire. In either order, the acquire does not
// hold the name afterwards. The hash, and so the fence, lives for at least 60 s after the latest ballot that the master
// accepts, or after the fence itself if that is later. By then every acceptable ballot is larger, so no TTL needs a
// longer fence. No script shortens the life of a hash to less than that, and a release leaves it as it is.
//
// Depth is written as an absolute number, and an extension neither shortens a TTL nor creates a lease. A value replaces
// only a value with a smaller version, and is deleted with its lease. So the second delivery of a message changes
// nothing, or is refused by a fence.
//
// # Waiting
//
// A waiter counts until 20 s after its last acquire. A free name is reserved for the first waiter that counts. To wake
// this waiter, a script publishes a wake-up, and lets the waiter count for at most one more second. During that second
// no client behind this waiter is granted the name. If no client receives the wake-up, the script removes the waiter
// and wakes the next waiter. One script drops at most 500 waiters that no longer count, and wakes or removes at most 8,
// so its work does not grow with the number of dead waiters: with 100 000 dead waiters it took at most 1 ms.
//
// Ids of waiters are compared as texts, by Redis byte by byte and by Lua in the order of the server's locale. Both give
// the same order, because an id begins with a time of 16 digits and a UUID.
//
// # Readers and writers
//
// A name has plain locks, or readers and writers. The field kind, which the first acquire writes, says which. A script
// of another kind changes nothing, and answers with the kind of the name, until the hash expires: after the TTL of the
// last lease plus 75 s.
//
// The shares of a readers-writer lock are leases in a sorted set, and each has its own deadline, the score. With one
// TTL for all of them, a reader's extension would also extend the shares of dead readers. The score is the later
// deadline by two clocks: this master's time plus the TTL, and until. A share has expired for a request if both this
// master's time and the time of the request, as above, are above the score. The set lives at least as long as the hash:
// a clock that jumps must not expire the shares before the fence that ballots may follow.
//
// Why no writer holds a name together with another holder. On one master:
//
//	a writer's share is granted only if no other share counts, a reader's only if no writer's share counts
//	a share counts, that is, is valid, until it expires by both clocks or is released; an extension prolongs only
//	such a share
//
// So no writer's share ever counts on a master together with another. The one exception, a downgrade, ends the writer's
// share in the script that begins the reader's. If one of two holders is a writer, each has a quorum of masters, and
// the two quorums share a master. Both were granted, extended or repaired there, and from that moment each share
// counted for the TTL. The validity of a holder is measured from an earlier moment, minus the drift. So while both were
// valid, both shares would have counted on that master. Two readers may share masters, and need no such guarantee. The
// admission record and the quarantine protect shares as they protect plain locks.
//
// Why tokens grow. A token is the first ballot of the acquire that won. Each master has two fences. Writers raise the
// fence of plain locks, and every ballot must be above it. Readers raise the readers' fence, and only a writer's ballot
// must be above it. If a lease was won before a writer's, or granted before it on the master that the two quorums
// share, it has raised a fence on that master, and the writer's ballot is above that fence. So a writer's token is
// larger than all earlier tokens, and a reader's is larger than those of all earlier writers. Readers do not refuse
// each other's ballots in any order, so the tokens of two readers are not ordered.
//
// Late messages. A writer's acquire that arrives after its own release is refused by the fence, as for a plain lock. A
// reader raises only the readers' fence, which refuses no reader. So if an acquire may follow a release, the release
// raises the common fence to the reader's ballot, and the fence refuses that acquire. It may also refuse a concurrent
// acquire of another reader, which retries immediately with a larger ballot. TCP delivers no acquire twice, and the
// client sends none twice. A second delivery after the release would keep a share without a holder until its expiry.
//
// Order. The queue is the same as for plain locks. A free name belongs to the first waiter. While readers hold the
// name, a reader is admitted unless another waiter comes before it. If the first waiter is a writer, no later waiter is
// admitted, so readers do not starve writers. An admitted reader wakes the next waiter if that is a reader, and so on;
// the last reader that leaves wakes the writer. A waiting writer is not woken while readers hold the name. Instead, the
// scripts send a probe, which only tests whether the writer's client still listens, so a dead writer at the front
// blocks no client. A hung writer at the front blocks later readers until 8 s after its last acquire.
package scripts
