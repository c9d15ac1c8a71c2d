package redlock

import (
	"strconv"
	"testing"
	"time"
)

// A hold that ends after it was found to be due, and before the call is made, is not in the call (H22). No master is
// known here, so what is in the call has failed by the time that it is made.
func TestAHoldThatHasEndedIsNotExtendedWithOthers(t *testing.T) {
	l := farLocker(t)
	var holds []*hold
	for i := range manyMost {
		h := loneHold(l, strconv.Itoa(i)).h
		h.ttl, h.extend = time.Minute, true
		h.lease = lease{start: l.now(), ttl: h.ttl, drift: l.cfg.drift}
		holds = append(holds, h)
	}
	holds[3].end(ErrReleased)
	holds[5].running = true
	if !l.extendTogether(time.Minute, holds) {
		t.Fatal("they are not extended together")
	}
	for i, h := range holds {
		h.mu.Lock() // nobody has kept it
		if tried := h.failed == 1 && !h.running; tried != (i != 3 && i != 5) || i == 3 && h.running {
			t.Errorf("hold %d: %d failures, running %v", i, h.failed, h.running)
		}
		h.mu.Unlock()
	}
}
