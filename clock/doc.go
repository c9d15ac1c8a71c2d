// Package clock measures time for locks. The measured time includes the time for which the machine is suspended or
// frozen.
//
// A master expires a key according to its own clock, which continues while this machine is suspended, while its
// virtual machine is frozen for a migration, or while its process is stopped. Go's monotonic clock stops during a
// suspension on Linux (golang/go#24595), so a program that subtracts two readings of it may trust a lock that the
// masters have long granted to another client. An [Instant] therefore has two readings, and [Instant.Sub] returns the
// larger of the two differences:
//
//	reading            counts suspension   counts a frozen VM   survives a clock set back
//	CLOCK_BOOTTIME     yes                 no                   yes
//	wall clock         yes                 yes                  no
//
// A reading needs no system call: the boot clock is the monotonic clock plus the time for which the machine was
// suspended, and that time is read again only when the wall clock has moved. After a suspension, Linux moves the boot
// clock and the wall clock in one step. On many machines Linux knows the length of a suspension only to the second,
// so this package adds one more second to the wall clock for each suspension.
//
// A wall clock that is set forward makes locks end early, which is safe; if it is set back, the difference of the
// other reading is used. On systems other than Linux the first reading is Go's monotonic clock, which on some systems
// stops during sleep. The wall clock includes the sleep, unless it is set back during that sleep.
//
// Neither reading includes the pause of a virtual machine if no clock is set afterwards. So package redlock compares
// the steady reading with the time of the masters, and adds the difference that a majority of the masters shows.
//
// The package does no I/O and starts no goroutine. It is safe for concurrent use.
package clock
