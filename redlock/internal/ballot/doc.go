// Package ballot keeps what a program knows of the masters' clocks, and proposes the numbers that acquires carry.
//
// A ballot is the masters' own time in microseconds, as this program reckons it, so ballots grow by themselves. It
// must be above the fence of the name on each master that shall accept it. Usually it is: a fence is an older ballot.
// Where a fence is ahead of the present time, the next ballot is one above it, and this is remembered for that name
// alone.
//
// An acquire carries a block of ballots, from first to last. The masters compare the first with their fence, and the
// last becomes the fence. The numbers of the block are the tokens of the grant: the first of the call that wins it, the
// others for handing it on; see package grant. A block that begins above the present time has one number.
//
// No function here reads a clock: the present instant is an argument. Counting makes the clock of a Locker, which also
// counts the time that this machine has missed, as the masters' clocks show it (leap.go).
package ballot
