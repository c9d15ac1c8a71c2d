// Package scripts holds what runs on the masters: five Lua scripts, how their arguments are encoded and how their
// replies are read. Each script's file says what its keys, arguments and replies are, and why it is safe to repeat.
//
// Four keys and a channel belong to a prefix P; see [Prefix]:
//
//	P:{name}:lock   hash, hold id -> depth: the lock itself, there while it is held
//	P:{name}:bar    string: the largest ballot accepted for the name; outlives the lock
//	P:{name}:free   channel: a message for each release
//	P:marker        string: what this master is admitted as; see [Marker]
//
// The package does no I/O.
package scripts
