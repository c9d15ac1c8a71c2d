// Package scripts contains the Lua scripts that run on the masters, five for plain locks and three for readers-writer
// locks, encodes their arguments, and decodes their replies. The file of each script documents the keys, arguments and
// replies, and why the script is safe to repeat. A script begins with its common case; functions that only the other
// cases need are in common.lua and included after the common case. Several scripts include now.lua, stamp.lua and
// record.lua. The package does no I/O.
//
// # Keys
//
// For a prefix P, see [Prefix]:
//
//	P:{name}          hash with one field, while the name is held: <lease id> = "depth token ballot", and then
//	                  " version value" if the holder has set a value
//	P:{name}:fence    string: the largest ballot that was accepted for the name, or that a release has ended
//	P:{name}:reads    string: the largest ballot that was accepted from a reader, for a readers-writer lock
//	P:{name}:queue    sorted set: waiters by rank; P:{name}:waiters: by the time until which a waiter counts
//	P:admission       string: the record that admits this master to vote; see [Record]
//	P:inbox:<owner>   channel: wake-ups for the waiters of one owner; see [WakeUp]
//
// The states of one name on one master:
//
//	        acquire: HSET, the fence becomes its last ballot
//	      .-----------------------------------------------.
//	      |                                               v
//	free, perhaps a fence                          held by one lease -- acquire of another: held; a ticket joins
//	      ^                                               |              the queue
//	      '-----------------------------------------------'
//	        release, or expiry: the first waiter is woken, and has one second
//
// # Late messages
//
// The id of a lease is never reused, and each acquire of it contains a ballot, which is the masters' time in
// microseconds. A master grants only ballots above its fence, less than 15 s behind its own time and at most 15 s ahead
// of it (one ballot may follow a fence that is itself ahead). A release deletes the lease. If an acquire may still be
// in flight, the release also raises the fence to the ballot of that acquire. In either order, the acquire does not
// hold the name afterwards. The fence expires 60 s after the latest ballot that the master accepts, or after the fence
// itself if that is later. By then every acceptable ballot is larger, so no TTL needs a longer fence.
//
// Depth is written as an absolute number, and an extension neither shortens a TTL nor creates a key. A value replaces
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
// A name has plain locks, or readers and writers. A readers-writer lock is a sorted set of lease ids, scored by the
// expiry of their shares in the master's time. With one expiry for the whole key, a reader's extension would also
// extend the shares of dead readers. A script that runs on a lock of the other kind finds a value of the wrong type,
// and changes nothing. So a name cannot be used as both, and no script of a plain lock depends on readers.
//
// Why no writer holds a name together with another holder. On one master:
//
//	a writer's share is granted only if no other share counts, a reader's only if no writer's share counts
//	a share counts, that is, is valid, until its expiry or its release; an extension prolongs only such a share
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
//
// # Memory per name
//
// Bytes of memory on each master, Redis 7.0.15, a name of 12 bytes, as MEMORY USAGE reports them:
//
//	a held name     240   while it is held: 168 the lock, 72 the fence
//	its fence        72   for 75 s after the last acquire; about 130 with its place in the tables of all keys
//	a value         220 more for one of 100 bytes, 1340 for one of 1000
//	a waiter        150   for 21 s after the last acquire by any waiter: in both sets, more in short queues
package scripts
