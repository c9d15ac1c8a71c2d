package sim

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/scripts/reference"
	"github.com/redlock-go/redlock/redlock"
)

// A dying is a client with many waiters, each with its own Locker. All waiters end together: the client dies or, in
// runs of the kind quitting, ends its calls.
type dying struct {
	c       *client
	lockers []*redlock.Locker
	calls   sync.WaitGroup
	stop    context.CancelFunc
	once    sync.Once // calls end
	died    time.Time // guarded by simulation.mu
}

// startDying starts the dying client, if the plan has one.
func (w *simulation) startDying() error {
	if w.plan.waiters == 0 {
		return nil
	}
	w.plan.guards = append(w.plan.guards, w.plan.guard)
	c, err := newClient(w, len(w.clients))
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	d := &dying{c: c, stop: stop}
	priority := -5
	if w.plan.silent || w.plan.kind == quitting {
		priority = 5
	}
	for i := range w.plan.waiters {
		l, err := c.begin(fmt.Sprintf(deadLabel+"%d", i), c.file)
		if err != nil {
			stop()
			return err
		}
		d.lockers = append(d.lockers, l)
		d.calls.Go(func() { w.always(ctx, l, priority) })
		w.sleep(tick)
	}
	w.dying = d
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.plan.kind == quitting {
		w.at(500*time.Millisecond+w.upTo(time.Second), slotFaults, d.quit)
	} else {
		w.at(500*time.Millisecond+w.upTo(time.Second), slotFaults, d.die)
	}
	return nil
}

// always acquires and releases a lock repeatedly, until ctx ends.
func (w *simulation) always(ctx context.Context, l *redlock.Locker, priority int) {
	for ctx.Err() == nil {
		if _, lock, err := acquire(ctx, l, w.plan.names[0], true, redlock.WithPriority(priority)); err == nil {
			_ = lock.Unlock(ctx)
		}
	}
}

// die partitions the client away forever. Either its connections end, or (if the plan is silent) the masters do not
// notice the partition and continue to write to the connections. The client continues to run, without effect on other
// clients.
func (d *dying) die() {
	w := d.c.w
	d.died = w.now()
	w.note(d.c.index, -1, "dies, with this many waiters:", "", int64(w.plan.waiters))
	for _, l := range d.c.inOrder {
		l.upCut, l.downCut, l.refuse = true, true, true
		for _, n := range append([]*conn(nil), l.conns...) {
			n.upHeld, n.downHeld = nil, nil
			if !w.plan.silent {
				n.cut(false)
			}
		}
	}
	w.restarts.Go(func() { d.once.Do(d.end) })
}

// quit ends all calls of the client while only connections with subscriptions are open, so the calls cannot remove
// themselves from the queues of the masters.
func (d *dying) quit() {
	w := d.c.w
	d.died = w.now()
	w.note(d.c.index, -1, "has calls that end without a message:", "", int64(w.plan.waiters))
	for _, l := range d.c.inOrder {
		l.refuse = true
		for _, n := range append([]*conn(nil), l.conns...) {
			if n.client.Channels() == 0 {
				n.cut(false)
			}
		}
		w.at(300*time.Millisecond, slotFaults, l.open)
	}
	w.at(5*time.Millisecond, slotFaults, d.stop)
}

// checkBuried reports dead waiters that are still queued on a master, or that have delayed all other clients for too
// long.
func (w *simulation) checkBuried() {
	d := w.dying
	if d == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.servers {
		if n := s.dead(); n > 0 && w.plan.kind != quitting {
			w.problemLocked("master %d still has %d of %d dead waiters in its queues", s.index, n, w.plan.waiters)
		}
	}
	most := longestWait
	if w.plan.silent {
		most += time.Duration(w.plan.waiters) * 2 * scripts.ToldCounts
	}
	if gap := longestGap(w.spans, d.died); gap > most {
		w.problemLocked("no client had the name for %v, want at most %v: %d dead waiters were queued", gap, most,
			w.plan.waiters)
	}
}

// longestGap returns the longest time after start in which no span of list lasted.
func longestGap(list []span, start time.Time) (gap time.Duration) {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b span) int { return a.from.Compare(b.from) })
	for _, t := range list {
		gap = max(gap, t.from.Sub(start))
		start = later(start, t.to)
	}
	return gap
}

// endDying stops the dying client, if the run has one.
func (w *simulation) endDying() {
	if d := w.dying; d != nil {
		d.once.Do(d.end)
	}
}

// end ends the calls of the client, and closes its Lockers and its pool.
func (d *dying) end() {
	d.stop()
	d.calls.Wait()
	for _, l := range append(d.lockers, d.c.now()) {
		_ = l.Close()
	}
	if err := d.c.pool.Close(); err != nil {
		d.c.w.problem("close of the dead client's pool: %v", err)
	}
}

// deadLabel is part of the id of each waiter of the dying client.
const deadLabel = "dead"

// dead returns the number of dead waiters in the sorted sets of the server.
func (s *server) dead() (n int) {
	now := s.clock.now()
	for _, key := range s.State.Keys(now) {
		v := s.State.Look(now, key)
		if v.Type != reference.SortedSet {
			continue
		}
		for _, f := range v.Fields {
			if strings.Contains(f.Name, deadLabel) {
				n++
			}
		}
	}
	return n
}
