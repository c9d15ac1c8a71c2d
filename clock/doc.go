// Package clock measures time the way a lock has to: so that no time passes unseen.
//
// A master lets a key expire by its own clock, which runs on while this machine is suspended, while its virtual
// machine is frozen for a migration, or while its process is stopped. Go's monotonic clock stands still during a
// suspension on Linux (golang/go#24595), so a program that subtracts two of its readings believes in a lock that the
// masters have long given away. An [Instant] therefore carries two readings, and [Instant.Sub] takes the larger of
// the two differences:
//
//	reading            counts suspension   counts a frozen VM   survives a clock set back
//	CLOCK_BOOTTIME     yes                 no                   yes
//	wall clock         yes                 yes                  no
//
// A wall clock that is set forward makes locks end early, which is safe; one that is set back is outvoted by the other
// reading. On systems other than Linux the first reading is Go's own monotonic clock, which on some of them stops in
// sleep; the wall clock covers that, unless it is set back during the very sleep.
//
// Neither reading counts a virtual machine that is paused without any clock being set afterwards. Package redlock
// compares the steady reading with the time that the masters show, and counts what a majority of them has more.
//
// The package does no I/O and starts no goroutine. All of it may be used from several goroutines at once.
package clock
