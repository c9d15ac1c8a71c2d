// Package ballot estimates the masters' clocks, and proposes the ballots that acquires carry.
//
// A ballot is the masters' time in microseconds, as estimated by this client, so ballots increase by themselves. It
// must be above the fence of the name on each master that is to accept it. Usually it is, because a fence is an older
// ballot. If a fence is ahead of the present time, the next ballot is one above it, and this is stored for that name
// alone.
//
// An acquire carries a range of ballots, from first to last. The masters compare the first with their fence, and the
// last becomes the fence. The numbers of the range are the tokens of the lease: the first is for the call that wins it,
// the others for local hand-offs; see package lease. A range that begins above the present time has one number.
//
// No function here reads a clock: the present instant is an argument. Counting returns the clock of a Locker, which
// also counts time that this machine has missed, as shown by the masters' clocks (leap.go).
package ballot
