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

// dying is a client with many waiters, each with its own Locker, that dies with all of them.
type dying struct {
	c       *client
	lockers []*redlock.Locker
	calls   sync.WaitGroup
	stop    context.CancelFunc
	once    sync.Once // calls end
	died    time.Time // guarded by simulation.mu
}

// startDying starts the dying client, if there is one.
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

// always acquires and releases a lock again and again.
func (w *simulation) always(ctx context.Context, l *redlock.Locker, priority int) {
	for ctx.Err() == nil {
		if lock, err := l.Lock(ctx, w.plan.names[0], redlock.WithPriority(priority)); err == nil {
			_ = lock.Unlock(ctx)
		}
	}
}

// die partitions the client away forever. Either its connections end, or the masters do not notice and keep writing
// to them. The client continues to run, without effect on other clients.
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

// quit ends all calls while no connection can send, although subscriptions stay open. So the waiters remain in the
// queues of the masters.
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

// checkBuried reports dead waiters that masters still keep, or that have blocked all other clients for too long.
func (w *simulation) checkBuried() {
	d := w.dying
	if d == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.servers {
		if n := s.dead(); n > 0 && w.plan.kind != quitting {
			w.problemLocked("master %d still keeps %d of %d waiters long after they have died", s.index, n, w.plan.waiters)
		}
	}
	most := longestWait
	if w.plan.silent {
		most += time.Duration(w.plan.waiters) * 2 * scripts.ToldCounts
	}
	if gap := longestGap(w.spans, d.died); gap > most {
		w.problemLocked("no client had the name for %v behind %d waiters that had gone", gap, w.plan.waiters)
	}
}

// longestGap returns the longest time after from in which no span of list was held.
func longestGap(list []span, from time.Time) (gap time.Duration) {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b span) int { return a.from.Compare(b.from) })
	for _, t := range list {
		gap = max(gap, t.from.Sub(from))
		from = later(from, t.to)
	}
	return gap
}

// endDying stops the dying client, if there was one.
func (w *simulation) endDying() {
	if d := w.dying; d != nil {
		d.once.Do(d.end)
	}
}

// end stops the Lockers of the client, which can no longer reach a master.
func (d *dying) end() {
	d.stop()
	d.calls.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, l := range append(d.lockers, d.c.now()) {
		_ = l.Close(ctx)
	}
	if err := d.c.pool.Close(); err != nil {
		d.c.w.problem("the client that has died: %v", err)
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
