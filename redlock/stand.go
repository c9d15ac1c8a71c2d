package redlock

import (
	"context"
	"errors"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/scripts"
)

// stand takes the lock of name by standing in line for it: first among the goroutines of this Locker, then, as the one
// that contends for them, in the queues of the masters. called is when the call began.
func (l *Locker) stand(ctx context.Context, name string, keys scripts.Keys, options *lockConfig, called clock.Instant) (*Lock, error) {
	if ctx.Err() != nil {
		return nil, &LockError{Op: "lock", Name: name, Cause: contextError(ctx)}
	}
	cfg := *options // a copy is who this call is in the line
	ln, p := l.lines.join(name, &cfg)
	if p != nil {
		if h, err := l.park(ctx, name, ln, p); h != nil || err != nil {
			if err != nil {
				return nil, err
			}
			return &h.first, nil
		}
	}
	h, err := l.contend(ctx, ln, name, keys, &cfg, called)
	if err != nil {
		return nil, err
	}
	return l.publish(h), nil
}

// park waits for the turn of p: a hold that is handed on, or nil to contend for one.
func (l *Locker) park(ctx context.Context, name string, ln *line, p *parked) (*hold, error) {
	var cause error
	came := false
	var h *hold
	select {
	case h = <-p.turn:
		if ctx.Err() == nil {
			return h, nil
		}
		cause, came = contextError(ctx), true
	case <-ctx.Done():
		cause = contextError(ctx)
	case <-l.closing:
		cause = ErrClosed
	}
	last := l.lines.why(ln)
	if !came && !l.lines.quit(ln, p) {
		h, came = <-p.turn, true
	}
	switch { // a turn that came at the same moment is the next one's
	case h != nil:
		over, cancel := context.WithCancel(ctx)
		cancel() // the caller's time is over: the release is sent, and not waited for
		_ = h.first.Unlock(over)
	case came:
		l.lines.resign(ln, p.cfg, nil)
	}
	if last != nil {
		return nil, withCause(last, cause)
	}
	rule := l.set.Load().rule
	return nil, &LockError{Op: "lock", Name: name, Decision: ErrHeld, Cause: cause, Quorum: rule.least(), N: rule.n()}
}

// contend takes the name from the masters: it tries, queues where it is refused, and tries again when it is woken. Its
// place in the queues is that of the time at which it was called. It ends the caller's part as a contender.
func (l *Locker) contend(ctx context.Context, ln *line, name string, keys scripts.Keys, cfg *lockConfig, called clock.Instant) (got *hold, err error) {
	var w *waiter
	var a *attempt // the one that is open; nil: none
	defer func() {
		switch {
		case w != nil && got != nil:
			w.win(got)
		case w != nil:
			w.leave(a)
		}
		l.lines.resign(ln, cfg, got) // also where a trace panics: the line would be blocked
	}()
	if cfg.fair {
		if _, err := l.guard.ready(ctx); err != nil {
			return nil, &LockError{Op: "lock", Name: name, Cause: err}
		}
	}
	if cfg.fair || l.inbox.ready() {
		w = l.inbox.enter(name, keys, cfg, called)
		w.inTurn = true
	}
	var backoff Backoff
	last := l.lines.why(ln) // what the masters said to whoever contended before
	for {
		queues := false
		if a != nil && a.offered && !a.dead {
			a.from = w.next(a)
		}
		if w != nil {
			w.begin()
			w.queuing = l.inbox.ready()
			queues = (w.queuing || cfg.fair) && l.inbox.date(w) // a fair call asks in turn even where it is not heard
			w.queuing = w.queuing && queues
		}
		if a != nil && !a.dead && (!queues || a.clouded()) {
			a.rollBack()
		}
		if a == nil || a.dead {
			h := l.newHold(name, keys, cfg, "")
			a = &attempt{l: l, name: name, op: "lock", mode: scripts.ModeAcquire, cfg: cfg, h: h, spare: cfg.spare()}
			if queues {
				a.w = w
			}
		}
		sent, err := a.known(ctx)
		if err == nil {
			return a.h, nil
		}
		var failed *LockError
		if !errors.As(err, &failed) || !worthAnother(err) {
			if failed != nil && failed.Cause != nil && failed.Decision == nil && last != nil {
				err = withCause(last, failed.Cause)
			}
			return nil, err
		}
		last = err
		l.lines.failed(ln, cfg, err)
		if a.last != nil {
			a.place = a.last.place()
			l.advance(keys, a.last.others())
		}
		if w == nil {
			w = l.inbox.enter(name, keys, cfg, called)
		}
		if backoff == nil {
			backoff = cfg.start()
		}
		if won, err := w.pause(ctx, a, failed, backoff, sent); won || err != nil {
			if won {
				return a.h, nil
			}
			return nil, err
		}
		w.inTurn = true
	}
}

// advance has masters of set on which the name is free give it to the first in their queue.
func (l *Locker) advance(keys scripts.Keys, set uint64) {
	if set == 0 {
		return
	}
	snap := l.guard.snap.Load()
	call := snap.fleet.AdvanceCall(keys)
	for set != 0 {
		_ = l.sendStamped(snap, popFirst(&set), call, discard{})
	}
}

// known is run, once more where too few masters were known by then: a program that has just started is not told that
// there is no quorum before each master has had its chance.
func (a *attempt) known(ctx context.Context) (sent bool, err error) {
	for range a.l.set.Load().n() {
		sent, err = a.run(ctx)
		if a.snap.connecting == 0 || !errors.Is(err, ErrNoQuorum) || errors.Is(err, ErrClosed) || ctx.Err() != nil {
			return sent, err
		}
		moved := a.l.guard.changes()
		if a.l.guard.snap.Load().connecting == a.snap.connecting {
			select {
			case <-moved:
			case <-ctx.Done():
				return sent, withCause(err, contextError(ctx))
			case <-a.l.closing:
				return sent, withCause(err, ErrClosed)
			}
		}
		h := a.l.newHold(a.name, a.h.id().Keys, a.cfg, "")
		*a = attempt{l: a.l, name: a.name, op: a.op, mode: a.mode, cfg: a.cfg, h: h, w: a.w, spare: a.spare}
	}
	return sent, err
}
