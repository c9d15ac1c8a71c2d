// Package reference is one master as a pure machine: its keyspace, and what the scripts of package scripts do to it.
//
// It is what the in-memory masters, the simulations and the model checks decide by. Every function takes the master's
// time as an argument and does no I/O; a [State] has no lock and starts no goroutine. One function stands for each
// script, in the order of the script's lines, so that the two can be read side by side. A test of package scripts gives
// both the same operations, and compares every reply and the keys that are left.
//
// What is kept of Redis beyond the scripts is what they can notice: keys have a type, a wrong one is an error; expiry
// has whole milliseconds, and a key is there through the whole of its last one; numbers are Lua's, 64-bit floating
// point; what a script has written before it fails stays written.
//
// What is not: memory limits, replicas, users' rights but the one to publish. Arguments must be what package scripts
// encodes. A number that is none gives an error here as it does there, with another text.
package reference
