package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/redlock-go/redlock/redlock"
)

// leave closes the Locker of a client with a context that has ended or soon ends. Usually leave also makes a majority
// of the masters hang, so that no release is confirmed. The caller must hold simulation.mu.
func (w *simulation) leave(c *client) {
	if w.random.IntN(3) > 0 {
		d := w.upTo(w.plan.guard)
		for i, s := range w.servers {
			if i <= len(w.servers)/2 && !s.hung && !s.down {
				s.hang(d)
			}
		}
	}
	limit := w.upTo(20 * time.Millisecond)
	if w.random.IntN(2) == 0 {
		limit = 0
	}
	w.at(w.upTo(30*time.Millisecond), slotFaults, func() { c.restart(limit) })
}

// closeTime is how long Close may take: see [redlock.Locker.Close].
const closeTime = 2 * time.Second

// restart shuts the Locker down, with a context that ends after about d, and creates another Locker. If d is 0, the
// context has already ended. The caller must hold simulation.mu.
func (c *client) restart(d time.Duration) {
	w := c.w
	if c.asleep || c.closing || !w.faults {
		return
	}
	w.note(c.index, -1, "shuts its Locker down and creates another; the context of Shutdown ends in", "", int64(d))
	c.closing = true
	c.old = append(c.old, c.locker)
	file := c.file
	last, id := c.locker, fmt.Sprintf("%c%d-", 'A'+c.index, len(c.old)+1)
	end := time.Now()
	if d > 0 {
		end = w.instant(end.Add(d), slotFaults+c.index)
	}
	w.restarts.Go(func() {
		ctx, cancel := context.WithDeadline(context.Background(), end)
		defer cancel()
		err := last.Shutdown(ctx)
		if most := callGrace + closeTime; time.Since(end) > most {
			w.problem("client %d: Shutdown returned %v after the end of its context, want at most %v: %v", c.index,
				time.Since(end), most, err)
		}
		c.checkLeft(last)
		next, err := c.begin(id, file)
		if err != nil {
			w.problem("client %d: creation of the next Locker: %v", c.index, err)
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		c.locker, c.closing = next, false
	})
}

// checkLeft reports locks that a Locker still holds after its Close has returned, with or without an error.
func (c *client) checkLeft(l *redlock.Locker) {
	w := c.w
	w.mu.Lock()
	c.left[l] = true
	var list []*belief
	for _, b := range c.beliefs {
		if b.locker == l {
			list = append(list, b)
		}
	}
	w.mu.Unlock()
	for _, b := range list {
		b.checkClosed()
	}
}

// checkClosed reports a lock that is held although the Close of its Locker has returned.
func (b *belief) checkClosed() {
	w := b.c.w
	if err := b.lock.Err(); err == nil {
		w.problem("%s: client %d still holds the lock after Close of its Locker", b.name, b.client)
	}
}
