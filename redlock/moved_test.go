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

// H143: while a master cannot begin the quarantine for the move of its slot, since its clock is wrong, an operator
// writes other numbers into its record. It begins the quarantine all the same, before it votes.
func TestOtherNumbersDoNotReplaceTheQuarantineOfAMove(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		clk := clock.Runtime()
		p, same := w.pool(transport.WithClock(clk)), redlock.WithClock(clk)
		l := w.over(p, same)
		w.masters.Master(0).SetClock(-time.Minute, 1)
		w.refuse("MOVED 1 10.0.0.2:7000", 0)
		w.unlock(w.take(l, "n"))
		w.refuse("", 0)
		after(time.Second)
		w.wantStates(l, "bvv")
		w.noError(l.Admin().RaiseMaxTTL(w.Context(), time.Minute))
		after(time.Second)
		w.wantStates(l, "bvv")
		w.wantStates(w.over(p, same), "bvv")
		w.masters.Master(0).SetClock(0, 1)
		after(5 * time.Second)
		w.wantStates(l, "qvv")
	})
}

// H143: the connection on which a move was noticed ends before the quarantine could begin. The next one begins it.
func TestMoveIsKeptUntilItsQuarantineBegins(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		clk := clock.Runtime()
		p, same := w.pool(transport.WithClock(clk)), redlock.WithClock(clk)
		l := w.over(p, same)
		first := w.masters.Master(0)
		first.SetClock(-time.Minute, 1)
		w.refuse("MOVED 1 10.0.0.2:7000", 0)
		w.unlock(w.take(l, "n"))
		w.refuse("", 0)
		after(time.Second)
		w.wantStates(l, "bvv")
		first.CutConnections()
		after(5 * time.Second)
		w.wantStates(l, "bvv")
		w.wantStates(w.over(p, same), "bvv")
		first.SetClock(0, 1)
		after(5 * time.Second)
		w.wantStates(l, "qvv")
	})
}
