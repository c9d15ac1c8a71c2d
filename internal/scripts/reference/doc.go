// Package reference is a pure model of one master: its keyspace, and the effects of the scripts of package scripts on
// it.
//
// The in-memory masters and the simulator use this package. Every function takes the master's time as an argument and
// does no I/O; a [State] has no lock and starts no goroutine. Each script has one function, with the lines of the
// script in the same order, so that the two can be read side by side. A test of package scripts runs the same
// operations on both, and compares every reply and the resulting keys.
//
// Beyond the scripts, the package models the behavior of Redis that scripts can observe. Keys have a type, and a wrong
// type is an error. Expiry times are whole milliseconds, and a key exists until the end of its last millisecond.
// Numbers are Lua's, 64-bit floating point. If a script fails, its earlier writes remain.
//
// The package does not model memory limits, replicas, or users' rights, except the right to publish. Arguments must be
// encoded by package scripts. If an argument should be a number and is not, the result is an error as on a real master,
// but with another text.
package reference
