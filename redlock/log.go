package redlock

import (
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/redlock-go/redlock/redlock/internal/admission"
	"github.com/redlock-go/redlock/redlock/internal/dispatch"
	"github.com/redlock-go/redlock/redlock/internal/quorum"
	"github.com/redlock-go/redlock/redlock/internal/round"
)

// WithLogger sets the logger for what an operator needs to know; the default is [slog.Default] at the time of [New].
// The Locker warns of risks of the configuration, of masters that are down or back without a vote, and of lost locks.
// If no quorum has voted for a second, it warns of each master that does not vote and why: then again after two
// seconds, four, and so on up to a minute. At level Info it logs that a master votes again, and that a lock has reached
// its maximum hold. Each record has the owner ([WithOwner]), and none a password. Records go through the event queue of
// the Locker (see [redlockinfo.Trace]) and keep their original times: a handler that blocks or panics delays or loses
// records, but never a lock. slog.DiscardHandler turns the log off.
func WithLogger(log *slog.Logger) Option { return lockerOption(func(c *config) { c.log = log }) }

// The pauses between two warnings that no quorum votes.
const (
	firstWarning  = time.Second
	longestSilent = time.Minute
)

// A journal writes the log of one Locker.
type journal struct {
	*dispatch.Queue
	addr func(master int) string
	// quorumFunc returns why no majority can grant a lock. It reports false if one can, or the Locker is closed.
	quorumFunc func() (*round.Failure, bool)
	able       func(*admission.View) quorum.Set // masters that can grant a lock
	known      quorum.Set                       // masters whose first state was seen; used by viewed only

	mu     sync.Mutex
	alarm  *time.Timer   // runs while no quorum votes; nil if one does, or the Locker is closed
	since  time.Time     // when the alarm was set first
	pause  time.Duration // until the alarm rings
	closed bool
}

// viewed logs the masters whose state has changed. It logs the first state of a master only if the master is down; the
// alarm covers other first states.
func (j *journal) viewed(last, next *admission.View) {
	for i := range (next.Config.Rule.All() | next.Config.Follow.All()).All() {
		now := &next.Masters[i]
		if i < len(last.Masters) && last.Masters[i].Phase == now.Phase || now.Phase == admission.Connecting {
			continue
		}
		master := slog.String("master", j.addr(i))
		switch known := j.known.Has(i); {
		case now.Phase == admission.Down:
			j.Log(slog.LevelWarn, "redlock: master is down", master, slog.Any("error", now.Err))
		case known && now.Phase == admission.Voting:
			j.Log(slog.LevelInfo, "redlock: master votes", master)
		case known:
			j.Log(slog.LevelWarn, "redlock: master does not vote", master, slog.Any("error", now.Err))
		}
		j.known |= quorum.One(i)
	}
	j.watch(next)
}

// watch sets the alarm if no quorum votes, and stops it if one does.
func (j *journal) watch(view *admission.View) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch votes := view.Config.Rule.Won(j.able(view)); {
	case j.alarm != nil && votes:
		j.alarm.Stop()
		j.alarm = nil
	case j.alarm == nil && !votes && !j.closed:
		j.since, j.pause = time.Now(), firstWarning
		j.alarm = time.AfterFunc(j.pause, j.ring)
	}
}

// ring logs that no quorum votes, and sets the alarm again.
func (j *journal) ring() {
	f, bad := j.quorumFunc()
	j.mu.Lock()
	if !bad {
		j.alarm = nil
		j.mu.Unlock()
		return
	}
	on, since := j.alarm != nil, j.since
	if on {
		j.pause = min(2*j.pause, longestSilent)
		j.alarm.Reset(j.pause)
	}
	j.mu.Unlock()
	if !on {
		return
	}
	attrs := []slog.Attr{
		slog.Duration("for", time.Since(since).Round(time.Millisecond)),
		slog.Int("voting", f.N-len(f.Masters)), slog.Int("needed", f.Quorum), slog.Any("masters", joined(f.Masters)),
	}
	if errors.Is(f, errQuarantine) {
		//mutant:hint-in-log drop
		attrs = append(attrs, slog.String("hint", mayAdmit))
	}
	j.Log(slog.LevelWarn, "redlock: no quorum of masters votes", attrs...)
}

// close stops the alarm.
func (j *journal) close() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.closed = true
	if j.alarm != nil {
		j.alarm.Stop()
		j.alarm = nil
	}
}
