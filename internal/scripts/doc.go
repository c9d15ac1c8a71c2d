// Package scripts holds what runs on the masters: five Lua scripts, and three for locks with readers; how their
// arguments are encoded and how their replies are read. Each script's file says what its keys, arguments and replies
// are, and why it is safe to repeat. A script begins with its common case; the functions that only its other cases need
// are in common.lua and included after that. The package does no I/O.
//
// # Keys
//
// These belong to a prefix P; see [Prefix]:
//
//	P:{name}          hash with one field: <lease id> = "depth token ballot"; there while the name is held
//	P:{name}:fence    string: the largest ballot that was accepted for the name, or that a release has ended
//	P:{name}:reads    string: of a lock with readers, the largest ballot of a reader that was accepted
//	P:{name}:queue    sorted set: waiter by rank; P:{name}:waiters: waiter by the time until which it counts
//	P:admission       string: by what this master may vote; see [Record]
//	P:inbox:<owner>   channel: hints for the waiters of one owner; see [Hint]
//
// What they say, for one name on one master:
//
//	        acquire: HSET, the fence becomes its last ballot
//	      .-----------------------------------------------.
//	      |                                               v
//	free, perhaps a fence                          held by one lease -- acquire of another: held; a ticket joins
//	      ^                                               |              the queue
//	      '-----------------------------------------------'
//	        release, or expiry: the first waiter is woken, and has one second
//
// # Why a late message does no harm
//
// A grant's id is used once, and each of its asks carries a ballot, which is the masters' time in microseconds. A
// master grants only ballots above its fence, less than 15 s behind its own time and at most 15 s ahead of it (a single
// one may follow a fence that is itself ahead). A release deletes the grant; where an ask may still be under way, it
// also raises the fence to the ask's ballot. So whichever comes first, the ask does not stand afterwards. The fence
// expires 60 s after the latest ballot that the master accepts, or after itself if it is later. By then every ballot
// that would be accepted is larger, so nothing is forgotten that still matters, whatever the TTL is.
//
// Depth is written as an absolute number, times never get shorter, an extension never creates. A message that comes
// twice finds what it would do already done, or a fence that refuses it.
//
// # Waiting
//
// A free name belongs to the first waiter that counts. Telling it lowers the time until which it counts to at most
// one second from now, and publishes a hint. During that second nobody is granted the name who comes after it. If
// nobody hears the hint, the waiter is removed and the next one is told. One script drops at most 500 waiters that
// count no more, and tells or removes at most 8, so its work does not grow with the number of dead waiters: 1 ms at the
// most was seen behind 100 000.
//
// Ids of waiters are compared as texts, by Redis byte by byte and by Lua in the order of the server's locale. Both
// give the same order: an id begins with a time of 16 digits and a UUID.
//
// # Readers and writers
//
// A name has plain locks, or readers and writers. Of the latter the lock is a sorted set: grant id by the time at which
// its share ends, in the master's time. With one time for all, a reader that extends would keep dead readers' shares,
// too. A script for the one kind finds a value of the wrong type where the other kind is held, and changes nothing: so
// a name that is used as both is refused, and no script of a plain lock knows of readers.
//
// Why no writer holds a name beside anybody. On one master:
//
//	a writer is granted only where no share counts; a reader only where no writer's does
//	a share counts until its end, or until its release; an extension prolongs one that counts, and creates none
//
// So no writer's share ever counts there together with another; the one exception, a downgrade, ends the writer's
// share in the script that begins the reader's. Two holders of whom one is a writer have each a quorum of masters,
// and two quorums share a master. Each was granted there, extended or repaired, at a moment from which its share
// counted for the TTL, and its validity is counted from an earlier moment, less the drift: while both were valid both
// shares would have counted there at once. Two readers may well share masters; nothing is claimed of them. The
// admission record and the quarantine protect shares as they protect plain locks.
//
// Why tokens grow. A token is the first ballot of the ask that won. There are two fences on each master. The one is
// that of plain locks: writers raise it, and every ballot must be above it. The other is raised by readers, and only
// a writer's ballot must be above it. Take a writer and a grant that was won before it was asked for or granted on
// the master that their quorums share: the fence there that the earlier one has raised is below the writer's ballot.
// So a writer's token is larger than those of all before it, and a reader's larger than those of all writers before
// it. Two readers do not refuse each other's ballots, in whatever order these come; so their tokens are in no order.
//
// Why a late message does no harm. A writer's ask that comes after its own end finds a fence that is high enough, as
// that of a plain lock does. A reader has raised only the readers' fence, which refuses no reader. So a release that
// an ask may follow raises the fence of all to the reader's ballot: its ask is refused when it comes. That may refuse
// another reader that asks just then; it asks again at once, with a larger ballot. A reader's ask that a network
// delivered twice over one connection, the second time behind the release, would take a share for nobody, until its
// end: writers wait that long, and nothing else happens. TCP does not do that, and the program never sends an ask
// twice.
//
// Who is let in. The queue is that of plain locks. A free name belongs to the first waiter. Where readers hold the
// name, a reader is let in unless another waiter comes before it; a writer in front keeps out all that come after it,
// so readers do not starve writers. A reader that is let in tells the next waiter if that is a reader, and so on; the
// last reader that leaves tells the writer. A waiting writer is not told in vain while readers hold the name: it is
// only seen whether anybody hears it, by a message that is no hint, so a writer that has died in front keeps nobody
// out. One that hangs there keeps later readers out until 8 s after it has last asked.
//
// # What a name costs
//
// Bytes of memory on each master, Redis 7.0.15, a name of 12 bytes, as MEMORY USAGE tells them:
//
//	a held name     240   for as long as it is held: 168 the lock, 72 the fence
//	its fence        72   for 75 s after it was last acquired; about 130 with its place in the tables of all keys
//	a waiter        150   for 21 s after anybody has last asked for the name: in both sets, more in short queues
//
// So 5 000 new names a second keep 375 000 fences, or 50 MB.
package scripts
