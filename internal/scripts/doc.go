// Package scripts holds what runs on the masters: five Lua scripts, how their arguments are encoded and how their
// replies are read. Each script's file says what its keys, arguments and replies are, and why it is safe to repeat.
// Acquire and release begin with the text of common.lua. The package does no I/O.
//
// # Keys
//
// These belong to a prefix P; see [Prefix]:
//
//	P:{name}:lock     hash: grant id -> depth, token, ballot; there while the name is held
//	P:{name}:fence    string: the largest ballot that was accepted for the name, or told to be dead
//	P:{name}:queue    sorted set: waiter by rank; P:{name}:waiters: waiter by the time until which it counts
//	P:admission       string: by what this master may vote; see [Record]
//	P:inbox:<owner>   channel: hints for the waiters of one owner; see [Hint]
//
// What they say, for one name on one master:
//
//	        acquire: HSET, the fence becomes its last ballot
//	      .-----------------------------------------------.
//	      |                                               v
//	free, perhaps a fence                          held by one grant -- acquire of another: held; a ticket joins
//	      ^                                               |              the queue
//	      '-----------------------------------------------'
//	        release, or its time is over: the first waiter is told, and has one second
//
// # Why a late message does no harm
//
// A grant's id is used once, and each of its asks carries a ballot, which is the masters' time in microseconds. A
// master grants only ballots above its fence, and at most 15 s from its own time. A release deletes the grant; where
// an ask may still be under way, it also raises the fence to the ask's ballot. So whichever comes first, the ask
// does not stand afterwards. The fence expires 60 s after the later of the master's time and itself. By then every
// ballot that would be accepted is larger, so nothing is forgotten that still matters, whatever the TTL is.
//
// Depth is written as an absolute number, times never get shorter, an extension never creates. A message that comes
// twice finds what it would do already done, or a fence that refuses it.
//
// # Waiting
//
// A free name belongs to the first waiter that counts. Telling it lowers the time until which it counts to at most
// one second from now, and publishes a hint. Nobody else is granted the name during that second. If nobody hears the
// hint, the waiter is removed and the next one is told. One script drops at most 500 waiters that count no more, and
// tells or removes at most 8, so its work does not grow with the number of dead waiters: 1 ms at the most was seen
// behind 100 000.
//
// Ids of waiters are compared as texts, by Redis byte by byte and by Lua in the order of the server's locale. Both
// give the same order: an id begins with a time of 16 digits and a UUID.
//
// # What a name costs
//
// Bytes of memory on each master, Redis 7.0.15, a name of 12 bytes, as MEMORY USAGE tells them:
//
//	a held name     240   for as long as it is held: 168 the lock, 72 the fence
//	its fence        72   for 60 s after it was last acquired; about 130 with its place in the tables of all keys
//	a waiter        150   for 21 s after anybody has last asked for the name: in both sets, more in short queues
//
// So 5 000 new names a second keep 300 000 fences, or 40 MB. Nothing else is left behind.
package scripts
