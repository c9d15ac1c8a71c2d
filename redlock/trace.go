package redlock

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// join returns a Trace that calls all of the traces, one after the other, with the errors that users see. An event
// reaches all traces even if one panics. Each Do callback gets the context that the previous one returned.
func join(traces []*redlockinfo.Trace) *redlockinfo.Trace {
	all := &redlockinfo.Trace{}
	for _, t := range traces {
		if t == nil {
			continue
		}
		if first := all.Event; first == nil {
			all.Event = t.Event
		} else if t.Event != nil {
			all.Event = func(e redlockinfo.Event) {
				defer t.Event(e)
				first(e)
			}
		}
		if first := all.Do; first == nil {
			all.Do = t.Do
		} else if t.Do != nil {
			all.Do = func(ctx context.Context, name string) context.Context { return t.Do(first(ctx, name), name) }
		}
	}
	if each := all.Event; each != nil {
		all.Event = func(e redlockinfo.Event) {
			e.Err = public(e.Err)
			each(e)
		}
	}
	return all
}

// errUnfinished is the error of a call that panicked, or whose goroutine ended.
var errUnfinished = errors.New("redlock: the call did not return")

// A tracedCall is the event of a call, which is posted when the call ends. It is nil if there is no trace.
type tracedCall struct {
	redlockinfo.Event
	stats *client.Stats // allocated separately, because the lock keeps a reference
}

// set sets what is known about the lock.
func (t *tracedCall) set(token int64, held time.Duration) {
	if t != nil {
		t.Token, t.Held = token, held
	}
}

// rounds returns where the rounds of the call are recorded.
func (t *tracedCall) rounds() *client.Stats {
	if t == nil {
		return nil
	}
	return t.stats
}

// traced runs f and posts an event for the call. f sets what only f knows. Without a trace, traced just runs f.
func traced(ctx context.Context, c *client.Client, op redlockinfo.Op, name string, f func(*tracedCall) error) error {
	if c.Trace().Event == nil {
		return f(nil)
	}
	err := errUnfinished
	t := &tracedCall{
		Event: redlockinfo.Event{Kind: redlockinfo.KindCall, Time: time.Now(), Context: ctx, Op: op, Name: name},
		stats: &client.Stats{},
	}
	defer func() {
		t.Elapsed, t.Err = time.Since(t.Time), err
		t.Attempts, t.Place = t.stats.Rounds, t.stats.Place
		t.Votes = redlockinfo.Votes{Granted: t.stats.Granted, N: t.stats.N}
		if failed := (*client.Error)(nil); t.Attempts == 0 && errors.As(ofCall(err), &failed) {
			t.Votes = redlockinfo.Votes{Granted: failed.Failure.Granted, N: failed.Failure.N}
		}
		c.Post(t.Event)
	}()
	err = f(t)
	return err
}

// within returns the context in which a Do continues: the result of the Do callback, if there is one.
func within(ctx context.Context, c *client.Client, name string) context.Context {
	do := c.Trace().Do
	if do == nil {
		return ctx
	}
	next := ctx
	c.Guard(func() { next = do(ctx, name) })
	return cmp.Or(next, ctx)
}
