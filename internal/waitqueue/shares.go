package waitqueue

import (
	"context"
	"time"

	"github.com/redlock-go/redlock/internal/lease"
	"github.com/redlock-go/redlock/internal/round"
)

// Shares are the locks of readers and writers. A Locker may have many of one name, so it has no table of them, and none
// waits for another: each call contends for itself, and the masters keep the order. The methods are otherwise those of
// the Queue.
type Shares struct{ *Queue }

// Lock is like [Queue.Lock]. The call has a nameQueue of its own, in which it is the contender and later the holder.
func (q Shares) Lock(ctx context.Context, c *Call) error {
	q.mu.Lock()
	q.calls++
	c.seq, c.names, c.state = q.calls, &c.own, acquiring
	c.own = nameQueue{contender: c, refusal: heldLocally}
	q.mu.Unlock()
	return q.contend(ctx, c)
}

// Try is like [Queue.Try]. The calls share no attempts.
func (q Shares) Try(ctx context.Context, a *lease.Attempt, h *lease.Hold, limit time.Duration) error {
	return q.try(ctx, limit, func() (*round.Round, error) {
		l, r, err := q.Manager.Acquire(ctx, a)
		if err == nil {
			err = q.Start(l, h, a.Terms)
		}
		return r, err
	})
}

// Start is like [Queue.Start].
func (Shares) Start(l *lease.Lease, h *lease.Hold, terms *lease.Terms) error {
	return h.Start(l, terms)
}
