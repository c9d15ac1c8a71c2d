package redlock

import (
	"context"
	"errors"
	"math/bits"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
)

// maxReasks is how often the one contender that keeps its votes in a split asks again.
const maxReasks = 5

// A split is what k contenders at one instant make: each has some masters and none a quorum. If all gave up what they
// have and tried again, they would soon meet again. So one keeps: whoever was granted by the lead, which is the first
// master that answered in an order that follows from the name, and therefore the same for all. The others roll back
// and stand off for a moment, while it asks again, each time all masters with a new ballot and a new start. At most
// one contender is granted by one master, so at most one keeps where all hear the lead; where they do not, two may, and
// both give up after a few rounds. Safety does not rest on it.
//
// Where one hold, or a waiter for whom the name is kept, has it on so many masters that no quorum is left, nothing is
// split: it is held.

// keeps reports whether the attempt, which has failed with err, is to ask again with what it has.
func (a *attempt) keeps(ctx context.Context, err error) bool {
	a.split = false
	var e *LockError
	if a.mode != scripts.ModeAcquire || a.last == nil || !errors.As(err, &e) || e.Cause != nil || !errors.Is(e.Decision, ErrHeld) {
		return false
	}
	if a.last.heldByOne() || !a.last.complete(ctx, a.elapsed+leastLinger) || a.last.heldByOne() {
		return false
	}
	a.split = true
	return a.last.leads(a.name)
}

// heldByOne reports whether one other has, or is promised, the name on a majority of the masters that can vote. While
// some are down a holder may have it on fewer, and be taken for a split: that costs a few rounds. The other way round,
// every split would be taken for a hold, and all would wait.
func (r *round) heldByOne() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, set := range r.tally.rule.sets() {
		if set != 0 && r.mostHeldLocked(set) >= quorumOf(bits.OnesCount64(set&^r.tally.unable())) {
			return true
		}
	}
	return false
}

// heldByMost reports whether one other has, or is promised, the name on a majority of all masters of each set.
func (r *round) heldByMost() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, set := range r.tally.rule.sets() {
		if set != 0 && r.mostHeldLocked(set) < quorumOf(bits.OnesCount64(set)) {
			return false
		}
	}
	return true
}

// mostHeldLocked is the largest number of masters of a set that name the same holder.
func (r *round) mostHeldLocked(set uint64) (most int) {
	held := r.tally.set(scripts.Held) & set
	for rest := held; rest != 0; {
		holder, same := r.votes[popFirst(&rest)].Holder, 0
		for others := held; others != 0 && holder != ""; {
			if r.votes[popFirst(&others)].Holder == holder {
				same++
			}
		}
		most = max(most, same)
	}
	return most
}

// complete waits for the votes that are still to come, for a while, and reports whether ctx goes on.
func (r *round) complete(ctx context.Context, atMost time.Duration) bool {
	r.mu.Lock()
	if r.tally.in() == r.asked {
		r.mu.Unlock()
		return ctx.Err() == nil
	}
	if r.all == nil {
		r.all = make(chan struct{})
	}
	all := r.all
	r.mu.Unlock()
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case <-all:
	case <-timer.C:
	case <-ctx.Done():
	case <-r.l.closing:
		return false
	}
	return ctx.Err() == nil
}

// orderOf is the master at which the order of a name begins; it is the same in every process.
func orderOf(name string, n int) int {
	h := uint32(2166136261) // FNV-1a
	for i := range len(name) {
		h = (h ^ uint32(name[i])) * 16777619
	}
	return int(h % uint32(n))
}

// leads reports whether the lead, the first master that answered, has granted this round.
func (r *round) leads(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	order := r.of.order[:bits.OnesCount64(r.of.rule.first)] // whoever goes by both sets agrees with those who go by the first
	from := orderOf(name, len(order))
	for k := range order {
		switch v := &r.votes[order[(from+k)%len(order)]]; {
		case !v.in, v.Kind == scripts.Failed, v.Kind == scripts.Abstained, v.Kind == scripts.Refused:
		default:
			return v.Kind == scripts.Granted
		}
	}
	return false
}

// place is the last place that the masters give the caller in their queues, 0 where it is first or in none.
func (r *round) place() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := 0
	for i := range r.votes {
		if r.votes[i].Kind == scripts.Held {
			last = max(last, r.votes[i].Place)
		}
	}
	return last
}

// others is the set of masters where the name is free and other waiters are first.
func (r *round) others() (set uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.votes {
		if v := &r.votes[i]; v.Kind == scripts.Held && v.Holder == "" {
			set |= 1 << i
		}
	}
	return set
}
