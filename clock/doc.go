// Package clock measures time for locks. The measured time includes the time for which the machine is suspended or
// frozen.
//
// A master expires a key according to the master's clock. That clock continues while the machine of the client is
// suspended or frozen for a migration, or while the process of the client is stopped. On Linux, Go's monotonic clock
// stops during a suspension (golang/go#24595), so a program that measures time only by this clock may trust a lock that
// the masters have long granted to another client. An [Instant] therefore has the readings of two clocks, and
// [Instant.Sub] returns the larger of the two differences:
//
//	reading            counts suspension   counts a frozen VM   survives a clock set back
//	CLOCK_BOOTTIME     yes                 no                   yes
//	wall clock         yes                 yes                  no
//
// A reading usually needs no system call. On many machines, Linux measures a suspension only in whole seconds, so this
// package adds one second to the wall clock for each suspension.
//
// If the wall clock is set forward, locks end early, which is safe. If it is set back, the difference of the boot clock
// is used. On systems other than Linux, Go's monotonic clock replaces the boot clock. On some of these systems, the
// monotonic clock stops during sleep; the wall clock then measures the sleep, unless it is set back during the sleep.
//
// If a virtual machine is paused and its clocks are not set afterwards, neither reading includes the pause. So package
// redlock compares the boot clock with the time of the masters, and adds the difference that a majority of the masters
// shows.
//
// The package does no I/O and starts no goroutine. All its functions are safe for concurrent use.
package clock
