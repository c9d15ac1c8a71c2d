package client

import (
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/dispatch"
	"github.com/redlock-go/redlock/internal/lease"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/round"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// events sends log records and trace events through one queue. It implements lease.Events.
type events struct {
	*dispatch.Queue
	event       func(redlockinfo.Event) // nil: there is no trace
	clock       *clock.Clock
	addr        func(master int) string
	unconfirmed atomic.Uint64 // number of releases that no quorum confirmed in time
}

// post queues v if there is a trace. If v has no time, post sets the present time.
func (e *events) post(v redlockinfo.Event) {
	if f := e.event; f != nil {
		if v.Time.IsZero() {
			v.Time = time.Now()
		}
		var slot scripts.Slot
		v.Name, slot = scripts.CutSlot(v.Name)
		v.Slot = slot.Number
		e.Post(func() { f(v) })
	}
}

// Traced reports whether a callback of the options gets the events.
func (c *Client) Traced() bool { return c.cfg.Event != nil }

// Dos returns the Do callbacks that the options have set.
func (c *Client) Dos() []DoFunc { return c.cfg.Dos }

// Post posts an event.
func (c *Client) Post(v redlockinfo.Event) { c.events.post(v) }

// Guard calls a callback of the user, and counts its panic.
func (c *Client) Guard(f func()) { c.events.Guard(f) }

// Log queues a log record.
func (c *Client) Log(level slog.Level, text string, attrs ...slog.Attr) {
	c.events.Log(level, text, attrs...)
}

// master posts the state of a master.
func (e *events) master(m *redlockinfo.Master) {
	e.post(redlockinfo.Event{Kind: redlockinfo.KindMaster, Master: m.Addr, State: m.State, Left: m.Left, Err: m.Err})
}

// vote implements round.Sender.OnVote.
func (e *events) vote(r *round.Round, i int, v *round.Vote, _ bool) {
	e.post(redlockinfo.Event{
		Kind: redlockinfo.KindVote, Time: r.At(v), Op: r.Op, Master: e.addr(i),
		Vote: redlockinfo.Vote(v.Outcome.String()), Elapsed: v.After, Err: v.Err,
	})
}

// describe posts an event about a lease or one of its holds. info returns the details.
func (e *events) describe(kind redlockinfo.Kind, l *lease.Lease, info func() lease.Info, err error) {
	if e.event == nil {
		return
	}
	i := info()
	if i.Kept > 0 && !errors.Is(err, lease.ErrExported) { // no minimum hold: an exported lock is still held
		i.Left = i.Kept
	}
	e.post(redlockinfo.Event{
		Kind: kind, Name: l.Name, ID: l.ID, Token: i.Token, Left: i.Left, Held: i.Held, Err: err,
	})
}

// Attempted implements lease.Events.
func (e *events) Attempted(l *lease.Lease, r *round.Round, ballot int64, err error) {
	if e.event != nil {
		count := r.Tally()
		e.post(redlockinfo.Event{
			Kind: redlockinfo.KindAttempt, Name: l.Name, ID: l.ID, Token: ballot, Elapsed: e.clock.Now().Sub(r.Start),
			Votes: redlockinfo.Votes{Granted: count.Of(quorum.Granted).Len(), N: count.Rule.N()},
			Err:   failed(r.Op, l.Name, err),
		})
	}
}

// NotSent implements lease.Events.
func (e *events) NotSent(op redlockinfo.Op, name string, f *round.Failure) {
	if e.event != nil {
		e.post(redlockinfo.Event{
			Kind: redlockinfo.KindAttempt, Name: name, Votes: redlockinfo.Votes{N: f.N},
			Err: failed(op, name, f),
		})
	}
}

const (
	hintLongHold = "if its work has ended, an Unlock is missing; WithMaxHold limits the hold, and stops this warning"
	hintOwnHold  = "if the holder waits for this call, pass the context of its lock to the call: see ErrReentry"
)

// logLock logs a record about a lock, with the time for which it has been held.
func (e *events) logLock(level slog.Level, text string, l *lease.Lease, more ...slog.Attr) {
	i := l.Info()
	e.Log(level, text, append([]slog.Attr{
		slog.String("lock", l.PublicName()), slog.Int64("token", i.Token), seconds("held", i.Held),
	}, more...)...)
}

// ownHold logs that a call of this client waits for a lock of this client, possibly of the same goroutine.
func (e *events) ownHold(l *lease.Lease) {
	e.logLock(slog.LevelWarn, "redlock: call without a deadline waits for a lock of this Locker", l,
		slog.String("reason", "held already"), slog.String("hint", hintOwnHold))
}

// Acquired implements lease.Events.
func (e *events) Acquired(h *lease.Hold) {
	e.describe(redlockinfo.KindAcquired, h.Lease(), h.Info, nil)
}

// Extended implements lease.Events.
func (e *events) Extended(l *lease.Lease, err error) {
	if l.HeldLong() {
		e.logLock(slog.LevelWarn, "redlock: lock held for long without a max hold", l, slog.String("hint", hintLongHold))
	}
	e.describe(redlockinfo.KindExtended, l, l.Info, failed(redlockinfo.OpExtend, l.Name, err))
}

// Repaired implements lease.Events.
func (e *events) Repaired(l *lease.Lease, i int) {
	e.post(redlockinfo.Event{Kind: redlockinfo.KindRepaired, Name: l.Name, ID: l.ID, Master: e.addr(i)})
}

// Lost implements lease.Events.
func (e *events) Lost(l *lease.Lease, cause error) {
	if errors.Is(cause, lease.ErrMaxHold) { // requested by WithMaxHold
		e.logLock(slog.LevelInfo, "redlock: lock reached its max hold, releasing it", l)
	} else {
		e.logLock(slog.LevelWarn, "redlock: lock was lost", l,
			// The message says that the lock was lost.
			slog.String("reason", strings.TrimPrefix(cause.Error(), lease.ErrLost.Error()+": ")))
	}
	e.describe(redlockinfo.KindLost, l, l.Info, cause)
}

// Released implements lease.Events.
func (e *events) Released(h *lease.Hold, err error) {
	if err != nil && !errors.Is(err, lease.ErrLost) && !errors.Is(err, lease.ErrExported) &&
		!errors.Is(err, lease.ErrClosed) {
		e.unconfirmed.Add(1)
	}
	e.describe(redlockinfo.KindReleased, h.Lease(), h.Info, failed(redlockinfo.OpUnlock, h.Lease().Name, err))
}
