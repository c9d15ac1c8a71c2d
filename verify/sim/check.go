package sim

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	clients "github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/skew"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/admin"
	"github.com/redlock-go/redlock/verify/sim/trace"
)

// write writes to a resource that refuses tokens smaller than the largest it has seen. A write that the resource
// accepts must not come from an older hold than the previous write.
func (w *simulation) write(b *belief) {
	w.mu.Lock()
	defer w.mu.Unlock()
	last, any := w.written[b.name]
	if any && b.token < last.token {
		w.seen.reach(oldWriter, true)
		return
	}
	w.count.Writes++
	if b.shared != nil {
		w.writeShared(b, last, any)
		return
	}
	if any && b.from.Before(last.from) && !w.plan.beyond {
		w.problemLocked("%s: the resource accepted token %d of client %d, whose hold began before that of client %d with "+
			"token %d", b.name, b.token, b.client, last.client, last.token)
	}
	w.written[b.name] = b.span
}

// checkHolds reports holds of one name that overlap in true time, and tokens that do not increase.
func (w *simulation) checkHolds() {
	w.mu.Lock()
	defer w.mu.Unlock()
	problems := append(overlaps(w.spans, w.start, w.plan.beyond), inGap(w.spans)...)
	if w.plan.slots > 0 {
		problems = append(problems, tooMany(w.spans, w.start)...)
	}
	if w.plan.kinds {
		problems = append(problems, kindsMixed(w.spans, w.start)...)
	}
	for _, problem := range problems {
		w.problemLocked("%s", problem)
	}
}

// overlaps returns the violations among the spans: two spans of a name at the same time, or a token that is not
// larger than the tokens of all spans that began before. With faults that are not tolerated, spans may overlap, and
// a token must only be larger than the tokens of the spans that had begun before the call that acquired it.
func overlaps(list []span, start time.Time, beyond bool) (problems []string) {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.name, b.name), a.from.Compare(b.from), cmp.Compare(a.token, b.token))
	})
	var ends, wrote span // the span that ends last, of all spans and of the writers' spans
	for i, t := range list {
		if i == 0 || list[i-1].name != t.name {
			ends, wrote = t, span{}
			if !t.reads {
				wrote = t
			}
			continue
		}
		open := ends
		if t.reads {
			open = wrote
		}
		unaware := earlier(open.to, t.to).Before(later(open.unaware, t.unaware))
		if t.from.Before(open.to) && !beyond && !unaware {
			problems = append(problems, fmt.Sprintf("%s: two holders for %v: client %d with token %d since %v, "+
				"client %d with token %d since %v", t.name, earlier(open.to, t.to).Sub(t.from),
				open.client, open.token, open.from.Sub(start), t.client, t.token, t.from.Sub(start)))
		}
		for _, o := range list[:i] {
			if left := o.granted.Add(o.minimum).Sub(t.from); o.name == t.name && o.minimum > 0 && left > 0 && !beyond {
				problems = append(problems, fmt.Sprintf("%s: client %d has token %d, but the minimum hold of token %d lasts "+
					"another %v", t.name, t.client, t.token, o.token, left))
			}
			if o.name != t.name || beyond && !o.from.Before(t.asked) || t.to.Before(t.unaware) {
				continue
			}
			if t.token <= o.token && (!t.reads || !o.reads) {
				problems = append(problems, fmt.Sprintf("%s: client %d has token %d since %v, after token %d of client %d since %v",
					t.name, t.client, t.token, t.from.Sub(start), o.token, o.client, o.from.Sub(start)))
				break
			}
		}
		if t.to.After(ends.to) {
			ends = t
		}
		if t.to.After(wrote.to) && !t.reads {
			wrote = t
		}
	}
	return problems
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// settle checks the final state after the faults: nothing of ended leases remains, and a new lock can be acquired
// and reaches all masters.
func (w *simulation) settle() {
	p := &w.plan
	w.sleep(p.rest())
	w.mu.Lock()
	loose := w.loose
	w.mu.Unlock()
	if !loose {
		w.checkKeys("when every pending release is delivered", true)
	}
	if !w.bad() {
		w.mu.Lock()
		repeats := time.Until(w.repeats)
		if p.wrong != nil { // a deadline counts from the latest clock within the window
			w.setBack = max(w.setBack, skew.Window)
		}
		w.mu.Unlock()
		w.sleep(max(repeats, 0) + p.guard + p.guard/50 + 2*time.Millisecond + w.setBack)
		w.checkKeys("a TTL after the last message", false)
	}
	if !w.bad() {
		w.checkGuardTime()
	}
	if !w.bad() && !p.beyond && !p.rolling { // only an operator can resolve conflicting lists
		if p.kind == backups {
			w.mu.Lock()
			w.backup()
			w.mu.Unlock()
		}
		w.mu.Lock()
		w.releaseForced()
		w.mu.Unlock()
		w.sleep(p.heartbeat) // after a heartbeat, clients that were frozen know the masters' time again
		w.checkRepair()
	}
}

// checkKeys reports locks that are still on the masters. It must be called when nothing is held, so that all leases
// have ended. If relics is set, it ignores leases that were restored from a snapshot and may not have expired.
func (w *simulation) checkKeys(when string, relics bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.servers {
		for _, name := range w.plan.names {
			if id, left := s.holder(name); id != "" && (!relics || !s.relics[id]) && left > s.wrong.back {
				w.problemLocked("%s: the ended lease %s is still on master %d %s, for another %v", name, id, s.index, when, left)
			}
		}
	}
}

// longestWait is the maximum time in which a waiter acquires a free name without a notification: the longest pause
// between two attempts.
const longestWait = 6 * time.Second

// patience returns the maximum time until a free name can be acquired after the faults. admitted reports whether the
// operator has admitted all masters.
func (w *simulation) patience(admitted bool) time.Duration {
	late := time.Duration(0)
	if w.plan.wrong != nil { // a quarantine begins by the latest clock within the window
		late = skew.Window
	}
	if w.plan.kind == backups { // no master has lost data, so no quarantine is needed
		return leastQuarantine / 2
	}
	if admitted {
		return longestWait
	}
	return longestWait + w.quarantine() + w.plan.guard + late
}

// checkRepair reports a lock that cannot be acquired without faults, or that is not restored on a master that has
// lost it.
func (w *simulation) checkRepair() {
	p, c, name := &w.plan, w.clients[0], w.plan.names[0]
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	k := newWorker(c, 0, ctx)
	admitted := k.random.IntN(10) > 0 && w.plan.kind != setback && w.plan.kind != backups
	if admitted = admitted && !w.clocksWrong(); admitted { // nothing is held, so no quarantine is needed
		admitted = admin.Of(c.now()).Admit(ctx) == nil
	}
	if p.kinds { // until no master knows the name as any kind
		w.sleep(2 * scripts.FenceKept)
	}
	asked := time.Now()
	ttl := slices.Min(w.plan.guards) // after a loss of all data, the max TTL of any client may apply
	take := func() (lock *redlock.Lock, err error) {
		name, lock, err = acquire(ctx, c.now(), name, true, redlock.WithTTL(ttl))
		return lock, err
	}
	if s := c.now().RWLock(name); w.plan.readers && k.random.IntN(2) == 0 {
		take = func() (*redlock.Lock, error) { return s.RLock(ctx, redlock.WithTTL(ttl)) }
	} else if w.plan.readers {
		take = func() (*redlock.Lock, error) { return s.Lock(ctx, redlock.WithTTL(ttl)) }
	}
	lock, err := take()
	if err != nil {
		w.mu.Lock()
		apart := len(w.agreeing()) <= len(w.voters())/2 // no ballot is valid on a majority
		w.mu.Unlock()
		if !apart {
			w.problem("without faults, the name cannot be locked: %v", err)
		}
		return
	}
	if took := time.Since(asked); took > w.patience(admitted) {
		w.problem("without faults, it took %v to lock the free name, want at most %v", took, w.patience(admitted))
	}
	w.sleep(ttl + w.plan.rest())
	w.checkAll(name, lock, "a TTL after the last fault")
	w.mu.Lock()
	held := w.agreeing()
	s := held[w.random.IntN(len(held))]
	spare := p.wrong == nil || len(held) > len(w.voters())/2+1
	if spare {
		w.note(-1, s.index, "drops the lock", name, 0)
		s.State.Delete(s.clock.now(), prefix.Lock(name))
		s.lost(trace.Evict)
	}
	w.mu.Unlock()
	if len(held) > 2 && spare {
		w.sleep(ttl)
		w.checkAll(name, lock, "a TTL after a master dropped the lock")
	}
	_ = lock.Unlock(ctx) // checkKeys checks that it leaves nothing behind
	w.sleep(w.plan.rest())
	w.checkKeys("after its release", false)
}

// agreeing returns those of the voters whose clocks are so close to the voters' median clock that they accept ballots
// near the median.
func (w *simulation) agreeing() []*server {
	voters := w.voters()
	times := make([]int64, len(voters))
	for i, s := range voters {
		times[i] = s.clock.now()
	}
	slices.Sort(times)
	middle, bound := times[len(times)/2], (skew.Window * 2 / 3).Microseconds()
	return slices.DeleteFunc(slices.Clone(voters), func(s *server) bool {
		off := s.clock.now() - middle
		return off > bound || off < -bound
	})
}

// checkAll reports a lock that is not on all masters that agreeing returns.
func (w *simulation) checkAll(name string, lock *redlock.Lock, when string) {
	w.mu.Lock()
	on := 0
	voters := w.agreeing()
	for _, s := range voters {
		if id, _ := s.holder(name); id != "" {
			on++
		}
	}
	w.mu.Unlock()
	if on < len(voters) || lock.Err() != nil {
		known, _ := clients.HeldOn(lock)
		w.problem("%s: %s it is on %d of %d masters, want all; the holder knows %d; Err: %v", name, when, on,
			len(voters), known, lock.Err())
	}
}
