package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/redlock-go/redlock/internal/frame"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock"
)

// semaphoreName is the name in runs with slots.
const semaphoreName = "s"

// drawSlots turns some runs of older kinds into runs with a semaphore.
func (p *plan) drawSlots(r *rand.Rand) {
	if p.kind > mixture || p.kind == oldness || r.IntN(12) > 0 {
		return
	}
	p.semaphore(r)
}

// drawJumpSlots turns some runs of the kind jumps into runs with a semaphore.
func (p *plan) drawJumpSlots(r *rand.Rand) {
	if !p.readers && r.IntN(3) == 0 {
		p.semaphore(r)
	}
}

// semaphore chooses a semaphore of two or three slots, without retry policies. In half of the runs, some calls use its
// name as a plain lock, or as a semaphore of another size.
func (p *plan) semaphore(r *rand.Rand) {
	p.slots = pick(r, 2, 2, 3)
	p.names = slotsOf(p.slots)
	clients := max(p.clients, pick(r, 3, 4))
	p.busy, p.retry = max(p.busy, 2), 0
	if p.move == nil { // a change of the masters has its times for each client
		p.clients = clients
	}
	if p.kinds = r.IntN(2) == 0; p.kinds {
		p.names = append(append(p.names, semaphoreName), slotsOf(p.slots-1)...)
	}
}

// slotsOf returns the names of the slots of a semaphore.
func slotsOf(size int) (names []string) {
	for i := range size {
		names = append(names, scripts.Slot{Number: i + 1, Of: size}.Name(semaphoreName))
	}
	return names
}

// acquire acquires the lock of a name, or a slot of its semaphore. It returns the name of the lock.
func acquire(
	ctx context.Context, l *redlock.Locker, name string, wait bool, opts ...redlock.LockOption,
) (string, *redlock.Lock, error) {
	base, slot := scripts.CutSlot(name)
	call := func(ctx context.Context, opts ...redlock.LockOption) (*redlock.Lock, error) {
		return l.TryLock(ctx, name, opts...)
	}
	switch s := l.Semaphore(base, slot.Of); {
	case slot.Of > 0 && wait:
		call = s.Acquire
	case slot.Of > 0:
		call = s.TryAcquire
	case wait:
		call = func(ctx context.Context, opts ...redlock.LockOption) (*redlock.Lock, error) {
			return l.Lock(ctx, name, opts...)
		}
	}
	lock, err := call(ctx, opts...)
	if err == nil && slot.Of > 0 {
		name = scripts.Slot{Number: lock.Slot(), Of: slot.Of}.Name(base)
	}
	return name, lock, err
}

// sawSlots detects that all slots of a semaphore are held.
func (w *simulation) sawSlots(name string) {
	_, slot := scripts.CutSlot(name)
	w.mu.Lock()
	defer w.mu.Unlock()
	held := map[string]bool{name: true}
	for _, c := range w.clients {
		for _, b := range c.beliefs {
			if _, other := scripts.CutSlot(b.name); other.Of == slot.Of {
				held[b.name] = true
			}
		}
	}
	w.seen.reach(allSlotsHeld, slot.Of > 1 && len(held) == slot.Of)
}

// tooMany returns the violations among the spans of a semaphore: more holders at one time than it has slots. It counts
// all holders of a size, so it does not rely on the numbers of their slots.
func tooMany(list []span, start time.Time) (problems []string) {
	for i, t := range list {
		base, slot := scripts.CutSlot(t.name)
		if slot.Of == 0 {
			continue
		}
		holders := 1
		for j, o := range list {
			name, other := scripts.CutSlot(o.name)
			begun := o.from.Before(t.from) || o.from.Equal(t.from) && j < i
			if name == base && other.Of == slot.Of && begun && t.from.Before(o.to) && t.from.Before(t.to) {
				holders++
			}
		}
		if holders > slot.Of {
			problems = append(problems, fmt.Sprintf("%s: %d holders of the %d slots, since %v", base, holders, slot.Of,
				t.from.Sub(start)))
		}
	}
	return problems
}

// kindsMixed returns the violations among the spans of one name that is used as more than one kind, or as semaphores of
// several sizes: two spans at the same time.
func kindsMixed(list []span, start time.Time) (problems []string) {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b span) int { return a.from.Compare(b.from) })
	for i, t := range list {
		base, slot := scripts.CutSlot(t.name)
		for _, o := range list[:i] {
			name, other := scripts.CutSlot(o.name)
			unaware := earlier(o.to, t.to).Before(later(o.unaware, t.unaware))
			if name == base && slot.Of != other.Of && t.from.Before(o.to) && !unaware {
				problems = append(problems, fmt.Sprintf("%s: held as slot %s and as slot %s (0/0: a plain lock) for %v, since %v",
					base, other, slot, earlier(o.to, t.to).Sub(t.from), t.from.Sub(start)))
			}
		}
	}
	return problems
}

// plainOf returns the script of a plain lock that has the arguments and the replies of this script of a slot, or the
// script itself.
func plainOf(one *frame.Script) *frame.Script {
	switch one {
	case scripts.SlotAcquire:
		return scripts.Acquire
	case scripts.SlotExtend:
		return scripts.Extend
	}
	return one
}

// acquires reports whether the script with this SHA is an acquire.
func acquires(sha string) bool {
	return sha == scripts.Acquire.SHA || sha == scripts.SlotAcquire.SHA || sha == scripts.SharedAcquire.SHA
}

// winOf returns the win of a token of a name, of which an event shows the number of the slot but not the size.
func winOf(client int, name string, token int64) win {
	base, slot := scripts.CutSlot(name)
	return win{client, base, slot.Number, token}
}
