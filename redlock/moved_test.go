package redlock_test

import (
	"testing"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/redlock"
)

// H143: the slot of a bucket was moved, and the quarantine that this costs is over. A Locker that is made later over
// the same connections begins no other.
func TestMoveOfSlotCostsOneQuarantine(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		clk := clock.Runtime()
		p, same := w.pool(transport.WithClock(clk)), redlock.WithClock(clk)
		l := w.over(p, same)
		w.refuse("MOVED 1 10.0.0.2:7000", 0)
		w.unlock(w.take(l, "n"))
		w.refuse("", 0)
		after(time.Second)
		w.wantStates(l, "qvv")
		after(time.Second)
		w.wantStates(w.over(p, same), "qvv")
		after(time.Minute)
		w.wantStates(l, "vvv")
		other := w.over(p, same)
		after(time.Second)
		w.wantStates(other, "vvv")
		w.wantStates(l, "vvv")
	})
}

// movedWithWrongClock returns a Locker over a pool whose first master has reported a move of its slot. The master
// cannot begin the quarantine yet, since its clock is wrong. start makes another Locker over the pool.
func (w *cluster) movedWithWrongClock() (l *redlock.Locker, start func() *redlock.Locker) {
	w.Helper()
	clk := clock.Runtime()
	p := w.pool(transport.WithClock(clk))
	start = func() *redlock.Locker { return w.over(p, redlock.WithClock(clk)) }
	l = start()
	w.masters.Master(0).SetClock(-time.Minute, 1)
	w.refuse("MOVED 1 10.0.0.2:7000", 0)
	w.unlock(w.take(l, "n"))
	w.refuse("", 0)
	after(time.Second)
	w.wantStates(l, "bvv")
	return l, start
}

// H143: while a master cannot begin the quarantine for the move of its slot, since its clock is wrong, an operator
// writes other numbers into its record, and the connection on which the move was noticed ends. It begins the quarantine
// all the same, before it votes.
func TestOtherNumbersDoNotReplaceQuarantineOfMove(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l, start := w.movedWithWrongClock()
		w.noError(l.Admin().RaiseMaxTTL(w.Context(), time.Minute))
		after(time.Second)
		w.wantStates(l, "bvv")
		w.wantStates(start(), "bvv")
		w.masters.Master(0).CutConnections()
		after(5 * time.Second)
		w.wantStates(l, "bvv")
		w.masters.Master(0).SetClock(0, 1)
		after(5 * time.Second)
		w.wantStates(l, "qvv")
	})
}
