// Package scripts holds what runs on the masters: seven Lua scripts, how their arguments are encoded and how their
// replies are read. Each script's file says what its keys, arguments and replies are, and why it is safe to repeat.
//
// These keys and channels belong to a prefix P; see [Prefix]:
//
//	P:{name}:lock   hash, hold id -> depth: the lock itself, there while it is held
//	P:{name}:bar    string: the largest ballot accepted for the name; outlives the lock
//	P:{name}:free   channel: a message for each release
//	P:{name}:queue  sorted set of those who wait
//	P:{name}:alive  hash, waiter -> until when it counts, and its offer: what a release may write for it
//	P:inbox:<id>    channel: what the waiters of a Locker are told; see [Notice]
//	P:marker        string: what this master is admitted as; see [Marker]
//
// # What they cost
//
// Microseconds of a master's one thread for each call, by its own account (INFO commandstats), calls pipelined, guard
// on; Redis 7.0.15 on a shared virtual machine with two cores, medians of four runs of BenchmarkServerCost. They sway by a third
// with what else the machine's host does; compare them with each other, and versions by instructions, which do not:
//
//	acquire of a free name             7.5   6.1 of sixteen in one run
//	acquire of a name held by another  9.3
//	release                            4.3   4.1 of sixteen in one run
//	release of what is not there       8.1
//	extend                             5.4
//	inspect                            4.8
//	to queue, and be given the name   33     BenchmarkHandOffCost
//
// An extension of 32 holds in one call takes three fifths of what as many calls take, besides what reading a command and writing
// a reply cost.
//
// An acquire of a free name makes seven calls: GET of the marker, GET of the bar, TIME, PTTL, HSET, PEXPIRE, and SETRANGE, or
// SET where the bar cannot be written over in place; acquire.lua says when. Each is needed. Both GETs could be one MGET, but
// the table that it answers with costs more instructions than the call that it saves, and it takes a key of another type for an
// absent one. What a call costs is not what its name suggests: SET with PX 11 000 instructions, SETRANGE 4 100, TIME 6 600,
// HSET and PEXPIRE of a new key some 14 000, GET, EXISTS and PTTL 2 500 each, ZRANGE of what is not there 4 300, which is why
// EXISTS is asked before it. TIME is what bounds the ballots; a run of many reads it once. A local alias for redis.call changes
// nothing that could be measured.
//
// Each key and argument of a call costs about 1 100 instructions. So an ordinary acquire has four arguments and an ordinary
// release three: what is usual the scripts know themselves. The two take 124 800 instructions of the server, of which two
// scripts that do nothing would take 25 000 (Redis 7.0.15, counted by callgrind, names that are taken again and again; 130 800
// with SET for the bar). Sixteen acquires in one run, and their releases in another, take 80 300 for each pair (87 800 with SET);
// two in one run gain nothing. A waiter that joins a queue of two, and is given the name by a release, costs 300 000. Tried for
// runs, for no gain: one EXISTS for all locks, whose list costs what it saves, and one protected call for all.
//
// The package does no I/O.
package scripts
