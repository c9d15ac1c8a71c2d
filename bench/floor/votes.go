package floor

import (
	"fmt"
	"sync/atomic"
)

// votes counts the grants of a round in its low half and all else in its high half.
type votes struct{ n atomic.Uint64 }

// vote counts one reply. The scripts answer 1 where they did what was asked, SET answers OK.
func (r *round) vote(reply any) {
	n, isNumber := reply.(int64)
	if isNumber && n == 1 || reply == "OK" || r.last {
		if uint32(r.votes.n.Add(1)) == r.quorum {
			r.wake <- struct{}{}
		}
		return
	}
	if refused := uint32(r.votes.n.Add(1<<32) >> 32); refused == uint32(len(r.f.conns))-r.quorum+1 {
		r.f.fail(fmt.Errorf("floor: no majority; the last of the refusals is %v", reply))
	}
}
