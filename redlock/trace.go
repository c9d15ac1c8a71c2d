package redlock

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// join returns a Trace that calls all of the traces, one after the other. An event reaches all traces even if one
// panics. Each Do callback gets the context that the previous one returned.
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

// acquiring is traced for an f that acquires a lock. Its error is public.
func acquiring(
	ctx context.Context, c *client.Client, op redlockinfo.Op, name string, f func(*client.Stats) (*client.Lock, error),
) (k *client.Lock, err error) {
	err = traced(ctx, c, op, name, func(t *tracedCall) (err error) {
		if t == nil {
			k, err = f(nil)
		} else if k, err = f(t.stats); err == nil {
			t.Token = k.Token()
		}
		return public(err)
	})
	return k, err
}

// begin begins a call that acquires locks; see [client.Client.Begin].
func begin(ctx context.Context, c *client.Client, op redlockinfo.Op, name string) error {
	if ctx == nil {
		return client.Invalid("%s %.80q: the context is nil", op, name)
	}
	if err := c.Begin(ctx); err != nil {
		return traced(ctx, c, op, name, func(*tracedCall) error { return err })
	}
	return nil
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
