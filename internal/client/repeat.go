package client

import (
	"context"
	"math"
	"time"

	"github.com/redlock-go/redlock/internal/jitter"
	"github.com/redlock-go/redlock/internal/lease"
	"github.com/redlock-go/redlock/internal/round"
	"github.com/redlock-go/redlock/internal/transport/fault"
	"github.com/redlock-go/redlock/internal/waitqueue"
)

// Default pauses before a retry.
const (
	shortestPause = 10 * time.Millisecond // before the first retry; each later pause is longer by half
	longestPause  = 250 * time.Millisecond
	randomPause   = 20 * time.Millisecond // each pause is longer by a random part of this
)

// defaultPause returns the pause before retry n (from 1).
func defaultPause(n int) time.Duration {
	growing := min(float64(shortestPause)*math.Pow(1.5, float64(n-1)), float64(longestPause))
	return time.Duration(growing + jitter.Float64()*float64(randomPause))
}

// repeat calls try until try succeeds, ctx ends, or the tries are used up. For a request that does not wait, it calls
// try only once.
func (c *Client) repeat(ctx context.Context, r *Request, try func() error) error {
	var last error
	for n := 1; ; n++ {
		changed := c.monitor.Changed()
		err := waitqueue.WithLastFailure(last, try())
		last = err
		if err == nil || !r.Wait || n == r.Settings.Tries || !round.Waitable(err) {
			return failed(r.Op, r.Name, err)
		}
		delay := r.Settings.Poll(n)
		if view := c.monitor.View(); view.Config.Rule.Won(view.Voting) {
			changed = nil // a quorum votes, so wait for the full pause
		}
		select {
		case <-time.After(delay):
			continue
		case <-changed:
			continue
		case <-ctx.Done():
			err = fault.ContextError(ctx)
		case <-c.closing:
			err = lease.ErrClosed
		}
		if f, ok := round.AsFailure(last); ok { // add the reason why the call does not try again
			err = f.Ended(err)
		}
		return failed(r.Op, r.Name, err)
	}
}
