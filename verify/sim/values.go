package sim

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock/admin"
)

// A holdOf identifies a hold of a name.
type holdOf struct {
	name  string
	token int64
}

// drawValues makes the holders in a third of the runs set values. It excludes runs in which masters are restored
// with older values, which they return until the next extension.
func (p *plan) drawValues(r *rand.Rand) {
	if chance := 0.5 * r.Float64(); r.IntN(3) == 0 && p.weights[restore] == 0 && p.kind != deployments &&
		!p.beyond && !p.readers {
		p.values = chance
	}
}

// showValue sets the value of a lock, with the probability plan.values, and makes a client inspect the name.
func (k *worker) showValue(b *belief) {
	w := k.c.w
	// Without values, draw no random number, so that runs without values do not change.
	if b.shared != nil || w.plan.values == 0 || !k.chance(w.plan.values) {
		return
	}
	of := holdOf{b.name, b.token}
	w.mu.Lock()
	w.valuesSet++
	number := w.valuesSet
	w.mu.Unlock()
	ctx, cancel := k.within(k.ctx, k.upTo(4*w.plan.timeout))
	defer cancel()
	err := k.call("SetValue", ctx, func() error {
		return b.lock.SetValue(ctx, fmt.Sprint(b.token, " ", number))
	})
	if err == nil {
		w.mu.Lock()
		w.shown[of] = number
		w.mu.Unlock()
	}
	if k.random.IntN(2) == 0 {
		k.sleep(k.upTo(w.plan.most), b.lock.Done())
	}
	k.lookAt(b.name)
}

// lookAt makes a client inspect a name. The reported value must be at least as new as the newest value that a quorum
// of the masters had when the inspection began. It must not be the value of another lease, or of an earlier holder
// of the same lease.
func (k *worker) lookAt(name string) {
	w := k.c.w
	other := w.clients[k.random.IntN(len(w.clients))]
	next := &worker{c: other, slot: k.slot, random: k.random, ctx: k.ctx}
	next.waitAwake()
	ctx, cancel := next.within(k.ctx, k.upTo(4*w.plan.timeout))
	defer cancel()
	began := w.now()
	w.mu.Lock()
	least := maps.Clone(w.shown)
	w.mu.Unlock()
	base, slot := scripts.CutSlot(name)
	h, err := other.now().Inspect(ctx, base)
	if slot.Of > 0 && err == nil {
		if len(h.Slots) != slot.Of {
			return
		}
		h = h.Slots[slot.Number-1]
	}
	next.waitAwake()
	if err != nil || h.ID == "" || h.Kept || w.behind(other) {
		return
	}
	var of, number int64
	if h.Value != "" {
		if n, err := fmt.Sscan(h.Value, &of, &number); n != 2 || err != nil {
			w.problem("%s: Inspect returned the malformed value %q", name, h.Value)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen.reach(valueShown, number > 0)
	for hold, newest := range least {
		if hold.name == name && w.leaseOf(hold) == h.ID && number < newest {
			w.problemLocked("%s: Inspect returned the value %q, but a quorum already had value number %d of token %d", name,
				h.Value, newest, hold.token)
		}
	}
	if lease := w.leaseOf(holdOf{name, of}); number > 0 && lease != "" && lease != h.ID {
		w.problemLocked("%s: Inspect returned the lease %s with the value %q of lease %s", name, h.ID, h.Value, lease)
	}
	w.checkSuccessor(name, h.ID, of, number, began)
}

// behind reports whether a client uses the former masters while another client already uses only the next ones. The
// former masters may have an outdated value, and leases that have ended.
func (w *simulation) behind(c *client) bool {
	last := int64(0)
	for _, o := range w.clients {
		last = max(last, admin.Of(o.now()).Configuration()[0].Epoch)
	}
	return last > 1 && admin.Of(c.now()).Configuration()[0].Epoch < last
}

// checkSuccessor reports a value that Inspect returned although a later hold of the same lease had begun before the
// inspection. of is the token in the value, and began the start of the inspection.
func (w *simulation) checkSuccessor(name, lease string, of, number int64, began time.Time) {
	for _, c := range w.clients {
		for _, b := range c.beliefs {
			if number > 0 && b.name == name && b.token > of && b.from.Before(began) &&
				w.leaseOf(holdOf{name, b.token}) == lease {
				w.problemLocked("%s: Inspect returned the value of token %d, but token %d held the lock", name, of, b.token)
			}
		}
	}
}

// leaseOf returns the id of the lease of a hold, or "" if the id is not known.
func (w *simulation) leaseOf(h holdOf) string {
	for _, c := range w.clients {
		if id := w.wins[winOf(c.index, h.name, h.token)]; id != "" {
			return id
		}
	}
	return ""
}
