package sim

import (
	"time"

	"github.com/redlock-go/redlock/redlock"
)

// lossGrace is the maximum time from the end of the validity until the lock's context ends in a running client. The
// library checks the clocks every tenth of a second.
const lossGrace = 150 * time.Millisecond

// checkGiven reports a call that succeeded without remaining validity. It must run at the instant at which the call
// returns; no freeze can happen within one instant.
func (w *simulation) checkGiven(what string, lock *redlock.Lock, err error) {
	if err != nil {
		return
	}
	if left := lock.Remaining(); left <= 0 && lock.Err() == nil {
		w.problem("%s: %s succeeded with %v of validity left", lock.Name(), what, left)
	}
}

// checkErr reports a lock whose Err is nil after its validity has expired.
func (b *belief) checkErr() {
	w := b.c.w
	if err := b.ctx.Err(); err != nil && b.lock.Err() != nil {
		return
	}
	if left := b.lock.Remaining(); left < 0 {
		w.problem("%s: Err of the lock or its context is nil with %v of validity left", b.name, left)
	}
}

// checkNotified reports a loss of which the client was notified too late, or not yet. left is the remaining validity.
// Delays are measured from the end of the validity or from the last jump of the client's clocks, if that was later. The
// caller must hold simulation.mu.
func (b *belief) checkNotified(left time.Duration) {
	w := b.c.w
	late := min(-left, time.Since(b.c.jumped))
	if late <= lossGrace || b.c.asleep || w.plan.beyond || w.plan.kind == paused {
		return
	}
	w.problemLocked("%s: client %d was notified of the loss after %v, want at most %v", b.name, b.client, late, lossGrace)
}
