// Package clock measures time for locks: no passing of time goes undetected.
//
// A master expires a key by its own clock, which continues while this machine is suspended, while its virtual machine
// is frozen for a migration, or while its process is stopped. Go's monotonic clock stops during a suspension on Linux
// (golang/go#24595), so a program that subtracts two of its readings may trust a lock that the masters have long
// granted to another client. An [Instant] therefore has two readings, and [Instant.Sub] returns the larger of the two
// differences:
//
//	reading            counts suspension   counts a frozen VM   survives a clock set back
//	CLOCK_BOOTTIME     yes                 no                   yes
//	wall clock         yes                 yes                  no
//
// A reading costs no system call: the boot clock is the monotonic clock plus the time that the machine was suspended,
// which is read again when the wall clock has moved. For a suspension, Linux moves both in one step. On many machines
// Linux knows the length of a suspension only to the second, so the wall clock counts one second more for each.
//
// A wall clock that is set forward makes locks end early, which is safe; if it is set back, the other reading counts.
// On systems other than Linux the first reading is Go's monotonic clock, which on some of them stops during sleep; the
// wall clock covers that, unless it is set back during the same sleep.
//
// Neither reading counts the pause of a virtual machine after which no clock is set. Package redlock compares the
// steady reading with the time of the masters, and adds the difference that a majority of them shows.
//
// The package does no I/O and starts no goroutine. It is safe for concurrent use.
package clock
