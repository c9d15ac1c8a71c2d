package waitqueue

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/lease"
	"github.com/redlock-go/redlock/internal/scripts"
)

// calls returns the calls in their order, and checks the links and the counts.
func (w levels) calls() (list []*Call) {
	for v := w.top; v != nil; v = v.lower {
		n, before := len(list), (*Call)(nil)
		for c := v.first; c != nil; c = c.next {
			if c.prev != before || c.Priority != v.priority {
				panic("a call is linked to the wrong place")
			}
			list, before = append(list, c), c
		}
		if v.last != before || len(list)-n != v.n || v.n == 0 {
			panic("a level does not match its calls")
		}
	}
	return list
}

// H101: a hundred thousand calls for one name may end at one instant. Each of them joins and leaves the local queue in
// a time that does not depend on the others. When each of them searched all others, that took seconds, in which no call
// of the Locker for any name went on, and no lock was extended.
func TestManyCallsLeaveTheLocalQueue(t *testing.T) {
	const many, limit = 200_000, 10 * time.Second // with a search it takes a minute
	r := rand.New(rand.NewPCG(1, 1))
	for _, order := range []string{"from the front", "from the back", "at random", "one after the other, by hand-off"} {
		q, began := idleQueue(), time.Now()
		recordHold(q, &lease.Lease{Name: "n"})
		calls := make([]*Call, many)
		for i := range calls {
			calls[i] = &Call{Name: "n", Keys: &scripts.Keys{}, Priority: i % 2, Terms: terms(), Hold: &lease.Hold{}}
			q.join(calls[i])
		}
		switch order {
		case "from the back":
			slices.Reverse(calls)
		case "at random":
			r.Shuffle(many, func(i, j int) { calls[i], calls[j] = calls[j], calls[i] })
		}
		for i, c := range calls {
			if order == "one after the other, by hand-off" {
				q.Successor("n", 9*time.Second, 10*time.Second).OnHandoff()
			} else {
				q.leave(c)
			}
			if time.Since(began) > limit {
				t.Fatalf("%s: after %v only %d of %d calls have left", order, limit, i, many)
			}
		}
		if w := q.Waiting(); w.Held != 0 {
			t.Errorf("%s: %d calls still wait", order, w.Held)
		}
	}
}
