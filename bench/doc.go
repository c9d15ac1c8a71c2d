// Command bench measures what a lock over a majority of masters costs: on the machine that it runs on, beside redsync
// and beside a plain floor, on the same masters in the same run. README.md shows how to call it, and -h lists the
// flags. Without -masters it starts five servers, so a redis-server or valkey-server must be in the PATH; masters of
// yours get keys under a random prefix, which are removed at the end.
//
// # How it measures
//
// Absolute figures say more about the machine than about the program. Look at the ratios: the contenders take turns,
// in an order that rotates from round to round, and each round gives a ratio. What is printed is the median over the
// rounds; the tables show the smallest and the largest too. A ratio with "~" before it compares nothing: the rounds
// lie on both sides of 1. The default run begins no round that would take it beyond a minute.
//
// # The scenarios
//
// pairs: every goroutine has names of its own, so nobody waits. A contender is opened for its run and closed after it,
// and what it leaves on the masters is counted then: keys, bytes by MEMORY USAGE, and for how long they are kept. A
// run is warmed up by a fifth of its duration. Allocations and the client's processor time are those of the whole
// process; the masters' processor time and commands are theirs by INFO.
//
// contention: the clients are processes of their own: the program starts itself. They share the machine's clock, so
// the parent can put all their holds in one order; a hold that begins before the one before has ended is a violation.
// The ideal is the same work on a sync.Mutex. A hand-over is the time from the beginning of an Unlock to the return of
// the Lock of another that was waiting then. A wait is overtaken by each hold that was asked for later and given
// earlier.
//
// split: processes want one free name at one instant, and the time until the first has it is taken: beside processes
// that each want a name of their own, and beside locks that one process takes one after the other ("alone").
//
// faults: one caller works while one or two of the masters are stopped (SIGSTOP), killed (SIGKILL), or 50 ms away (a
// proxy with a delay); the time it takes to notice is part of the run. Each round measures healthy masters first, and
// the ratio is to those. Peers take no part where a master hangs: they would wait for as long as it does. All is
// measured again over a link of 2 ms round trip.
//
// After each round of a scenario the keys of its locks that are still on a master are counted.
package main
