package clock

import (
	"sync"
	"sync/atomic"
	"time"
)

// precision bounds the error of the boot clock. It is less than the drift that a lock allows for.
const precision = int64(100 * time.Microsecond)

// unmeasured bounds how much longer a suspension may last than Linux measures. If no other clock runs during a
// suspension, Linux measures it by a clock that shows whole seconds (timekeeping_suspend in kernel/time/timekeeping.c:
// "each can add ~1 second drift error"). The boot clock and the wall clock are then both behind by up to a second.
const unmeasured = int64(time.Second)

// A system reads the clocks of this machine. Reading the boot clock needs a system call, which costs more than all
// other computations for a lock; reading the other clocks does not. So a system stores the suspended time, which is the
// boot clock minus the monotonic clock, and reads the boot clock again only if the wall clock has moved against the
// monotonic clock: after a suspension, Linux sets the boot clock and the wall clock forward by the same time, in one
// step (__timekeeping_inject_sleeptime in kernel/time/timekeeping.c). A system misses a suspension only if, before the
// next reading, the wall clock is set back by the length of the suspension, to within precision.
//
// After each suspension, a system adds the constant unmeasured to its readings of the wall clock, so that a lock ends
// too early rather than too late. The readings of the boot clock are not changed, because minimum holds and ballots use
// them, and for these too much time is as wrong as too little.
type system struct {
	read func() (monotonic, wall int64) // without a system call
	boot func() (now int64, ok bool)    // ok is false if there is no boot clock

	suspended atomic.Int64 // never decreases
	unsure    atomic.Int64 // the sum of unmeasured for all suspensions since the first reading
	skew      atomic.Int64 // wall clock minus monotonic clock at the last update of suspended; 0 before the first
	mu        sync.Mutex   // held during updateSuspended
}

var machine = system{read: goTime(), boot: readBoot}

// goTime returns a function that reads both clocks of [time.Now]. The first monotonic reading is at least 1.
func goTime() func() (monotonic, wall int64) {
	origin := time.Now()
	return func() (int64, int64) {
		now := time.Now()
		return int64(now.Sub(origin)) + 1, now.UnixNano()
	}
}

func (s *system) now() Instant {
	monotonic, wall := s.read()
	if s.hasMoved(wall - monotonic) {
		s.updateSuspended()
	}
	return Instant{boot: monotonic + s.suspended.Load(), wall: wall + s.unsure.Load()}
}

// hasMoved reports whether the wall clock has moved against the monotonic clock since the boot clock was read.
func (s *system) hasMoved(skew int64) bool {
	moved := skew - s.skew.Load()
	return moved > precision || moved < -precision
}

// updateSuspended reads the boot clock between two readings of the monotonic clock. If these two readings differ by
// more than precision, because the thread was preempted, updateSuspended tries again.
func (s *system) updateSuspended() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range 10 {
		before, wall := s.read()
		boot, ok := s.boot()
		after, _ := s.read()
		if ok && after-before > precision {
			continue
		}
		if ok {
			s.recordSuspended(boot - before)
		}
		s.skew.Store(wall - before) // stored last: a goroutine that loads the new skew also loads the new suspended time
		return
	}
}

// recordSuspended records that the boot clock is ahead of the monotonic clock by total. The caller must hold s.mu.
func (s *system) recordSuspended(total int64) {
	last := s.suspended.Load()
	s.suspended.Store(max(last, total))
	if s.skew.Load() != 0 && total-last > precision {
		s.unsure.Add(unmeasured)
	}
}
