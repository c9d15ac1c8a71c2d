// Command bench measures the cost of a lock over a majority of masters and compares it with redsync and with a simple
// floor, on the same machine, with the same masters, in the same run. README.md shows how to call it, and -h lists the
// flags. Without -masters it starts five servers, for which redis-server or valkey-server must be in the PATH. On your
// own masters it uses keys under a random prefix, and removes them at the end.
//
// # Method
//
// Absolute figures say more about the machine than about the program, so use the ratios: the contenders run in turn, in
// an order that rotates from round to round, and each round gives a ratio. The output shows the median over the rounds;
// the tables also show the smallest and the largest value. A ratio with a leading "~" is not significant: the rounds
// are on both sides of 1. The default run starts no round that would take it beyond a minute.
//
// # The scenarios
//
// pairs: every goroutine locks a new name each time, so no client waits; only for library/linger it locks the same 16
// names in turn. A contender is opened for its run and closed after it.
// Then its leftovers on the masters are counted: keys, bytes by MEMORY USAGE, and how long they are kept. A warm-up
// takes a fifth of the duration. Allocations and the client's processor time are those of the whole process; the
// masters' processor time and commands come from INFO.
//
// contention: the clients are separate processes, for which the program starts itself. They share the machine's clock,
// so the parent can order all their holds; a hold that begins before the one before has ended is a violation. The ideal
// is the same work on a sync.Mutex. A hand-over is the time from the start of an Unlock to the return of the Lock of
// another client that was waiting then. A wait is overtaken by each hold that was requested later and granted earlier.
//
// split: processes compete for one free name at the same time, and the time until the first has it is measured. It is
// compared with processes that each lock their own name, and with locks that one process takes one after the other
// ("alone").
//
// faults: one caller works while one or two of the masters are stopped (SIGSTOP), killed (SIGKILL), or 50 ms away (a
// proxy with a delay); the time to detect the fault is part of the run. Each round measures healthy masters first, and
// the ratio is relative to those. Peers are not measured with a hung master, because they would wait until it resumes.
// Everything is measured again over a link with a round trip of 2 ms.
//
// After each round of a scenario the keys of its locks that are still on a master are counted.
package main
