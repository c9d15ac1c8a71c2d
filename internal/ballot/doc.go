// Package ballot estimates the masters' clocks, and proposes the ballots that acquires carry.
//
// A ballot is the masters' time in microseconds, as estimated by this client, so ballots increase with time. A master
// accepts a ballot only if it is above the fence of the name. Usually it is, because the fence is an older ballot. If a
// fence is ahead of the present time, the next ballot is one above the fence, and this fence is stored for that name
// only.
//
// An acquire carries a range of ballots, from first to last. The masters compare the first with their fence, and the
// last becomes the fence. The ballots of the range are the tokens of the lease: the first is for the call that wins the
// lease, and the others are for local hand-offs and for lingering leases (see package lease). A range that begins above
// the present time has only one ballot.
//
// No function here reads a clock: the present instant is an argument. Counting returns the clock of a Locker, which
// also includes the time that both clocks of this machine have missed (leap.go).
package ballot
