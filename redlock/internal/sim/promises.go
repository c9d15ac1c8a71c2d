package sim

import (
	"time"

	"github.com/redlock-go/redlock/redlock"
)

// lossGrace is how late a program may be told of a loss by the lock's context, while it runs: the library looks at the
// clocks every tenth of a second.
const lossGrace = 150 * time.Millisecond

// checkGiven reports a call that has succeeded with no validity left when it returned. It is made at the instant at
// which the call has returned, and nothing freezes within an instant.
func (w *world) checkGiven(what string, lock *redlock.Lock, err error) {
	if err != nil {
		return
	}
	if left := lock.Remaining(); left <= 0 && lock.Err() == nil {
		w.problem("%s: %s has succeeded with %v of validity left", lock.Name(), what, left)
	}
}

// checkErr reports a lock that says that it is held when its validity is over.
func (b *belief) checkErr() {
	w := b.c.w
	if err := b.ctx.Err(); err != nil && b.lock.Err() != nil {
		return
	}
	if left := b.lock.Remaining(); left < 0 {
		w.problem("%s: Err of the lock or its context is nil with %v of validity left", b.name, left)
	}
}

// checkTold reports a loss that the program has been told of too late, or not yet. Late is counted from the end of the
// validity, or from when the clocks went on after a freeze. If the masters' clocks have leapt compared with those of the
// client, it has perhaps only just learnt that the validity is over. The world's lock is held.
func (b *belief) checkTold(left time.Duration) {
	w := b.c.w
	late := min(-left, time.Since(b.c.jumped))
	if late <= lossGrace || b.c.asleep || w.plan.beyond || w.plan.kind == paused {
		return
	}
	w.problemLocked("%s: client %d is told of its loss %v too late", b.name, b.client, late)
}
