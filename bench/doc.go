// Command bench measures the cost of a lock over a majority of masters. It compares the library with redsync and
// with package floor, a minimal lock, on the same machine, with the same masters, in the same run. README.md shows
// how to call the command, and -h lists the flags. Without -masters the command starts five servers, so redis-server
// or valkey-server must be in the PATH. On given masters it uses keys under a random prefix, and removes them at the
// end.
//
// # Method
//
// Absolute figures say more about the machine than about the library, so use the ratios. The contenders run in turn,
// in an order that rotates from round to round, and each round gives a ratio. The output shows the median over the
// rounds; the tables also show the smallest and the largest value. A ratio with a leading "~" is not significant,
// because it is above 1 in some rounds and below 1 in others. The default run does not start a round that would end
// after more than a minute.
//
// # The scenarios
//
// pairs: every goroutine locks a new name each time, so no client waits. Only with library/linger, each goroutine
// locks the same 16 names in turn. A contender is opened before its run and closed after the run. After the close,
// bench counts the keys that the contender has left on the masters, their bytes according to MEMORY USAGE, and their
// longest TTL. A warm-up takes a fifth of the duration. Allocations and the client's processor time are those of the
// whole process; the masters' processor time and commands come from INFO.
//
// contention: the clients are separate processes, which run the same program. They share the machine's clock, so the
// parent can order all their holds. A hold that begins before the previous hold has ended is a violation. The ideal
// is the same work with a sync.Mutex. A hand-off lasts from the start of an Unlock to the return of the Lock of a
// client that was already waiting. A wait is overtaken by each hold that was requested later and granted earlier.
//
// split: processes try to lock one free name at the same time; bench measures the time until the first of them holds
// the lock. It compares this time with that of processes that each lock their own name, and with locks that one
// process acquires one after the other ("alone").
//
// faults: one caller locks and unlocks while one or two of the masters are stopped (SIGSTOP), killed (SIGKILL), or
// slow (a proxy delays their replies by 50 ms). The time to detect the fault is part of the run. Each round measures
// healthy masters first; the ratio is relative to them. Peers are not measured with a hung master, because they would
// wait until the master resumes. All faults are measured again over a link with a round trip of 2 ms.
//
// After each round of a scenario, bench counts the keys of its locks that are still on a master.
package main
