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

// WithLogger sets where the Locker writes what an operator has to know; the default is [slog.Default] at the time of
// [New]. It warns of what is unwise about the configuration, of masters that are down or back without a vote, of locks
// that are lost, and, where no quorum has voted for a second, of each master that does not vote and why: then again
// after two seconds, four, and so on up to a minute. That a master votes again, and that a lock has lasted for its
// longest hold, is information. Each line has the owner ([WithOwner]), and none a password.
// Records go through the queue of the events of the Locker (see [Trace]), with the times at which they were made: a
// handler that blocks or panics delays or loses records, and never a lock. slog.DiscardHandler turns the log off.
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
	// quorumFunc says why no quorum votes. It reports false once the Locker is closed.
	quorumFunc func() (*round.Failure, bool)
	known      quorum.Set // masters that have voted, or not, before; for viewed alone

	mu     sync.Mutex
	alarm  *time.Timer   // runs while no quorum votes; nil: one does, or the Locker is closed
	since  time.Time     // when it was made
	pause  time.Duration // until it rings
	closed bool
}

// viewed tells of the masters whose state has changed. What a master is at first is told where it is down; else by the
// alarm, if by anything.
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

// watch sets the alarm where no quorum votes, and takes it back where one does.
func (j *journal) watch(view *admission.View) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch votes := view.Config.Rule.Won(view.Voting); {
	case j.alarm != nil && votes:
		j.alarm.Stop()
		j.alarm = nil
	case j.alarm == nil && !votes && !j.closed:
		j.since, j.pause = time.Now(), firstWarning
		j.alarm = time.AfterFunc(j.pause, j.ring)
	}
}

// ring says that no quorum votes, and sets the alarm for later.
func (j *journal) ring() {
	f, open := j.quorumFunc()
	if !open {
		return
	}
	j.mu.Lock()
	on, since := j.alarm != nil, j.since
	if on {
		j.pause = min(2*j.pause, longestSilent)
		j.alarm.Reset(j.pause)
	}
	j.mu.Unlock()
	if !on {
		return
	}
	why := joined(f.Masters)
	if errors.Is(f, ErrQuarantine) {
		why = append(why, mayAdmit)
	}
	j.Log(slog.LevelWarn, "redlock: no quorum of masters votes",
		slog.Duration("for", time.Since(since).Round(time.Millisecond)),
		slog.Int("voting", f.N-len(f.Masters)), slog.Int("needed", f.Quorum), slog.Any("masters", why))
}

// close ends the alarm.
func (j *journal) close() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.closed = true
	if j.alarm != nil {
		j.alarm.Stop()
		j.alarm = nil
	}
}
