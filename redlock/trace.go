package redlock

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// addTrace adds a Trace to those of a Locker. An event reaches all of them even if one panics.
func addTrace(c *client.Config, t *redlockinfo.Trace) {
	if t == nil {
		return
	}
	if t.Do != nil {
		c.Dos = append(c.Dos, t.Do)
	}
	if first := c.Event; first == nil {
		c.Event = t.Event
	} else if t.Event != nil {
		c.Event = func(e redlockinfo.Event) {
			defer t.Event(e)
			first(e)
		}
	}
}

// tracePublic makes the events have the errors that users see.
func tracePublic(c *client.Config) {
	if each := c.Event; each != nil {
		c.Event = func(e redlockinfo.Event) {
			e.Err = public(e.Err)
			each(e)
		}
	}
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
	if !c.Traced() {
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

// within returns the context in which a Do continues: each Do callback gets the result of the one before. One that
// panics or returns nil changes nothing.
func within(ctx context.Context, c *client.Client, name string) context.Context {
	for _, do := range c.Dos() {
		c.Guard(func() { ctx = cmp.Or(do(ctx, name), ctx) })
	}
	return ctx
}
