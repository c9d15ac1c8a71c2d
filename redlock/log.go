package redlock

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/redlock/internal/admission"
	"github.com/redlock-go/redlock/redlock/internal/dispatch"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// WithLogger sets the logger for what an operator needs to know; the default is [slog.Default] at the time of [New].
// The Locker warns of risks of the configuration, of masters that grant no locks, and of lost locks. If no lock can be
// acquired for a second, it warns with the reason of each master: then again after two seconds, four, and so on up to a
// minute. It warns once of a lock that has been held for an hour without [WithMaxHold], except by [Locker.Lead], and of
// a call that has waited for a second for a lock of its own Locker with a context that never ends. At level Info it
// logs that a master grants locks again, that locks can be acquired again, and that a lock has reached its max hold.
//
// The message of a record is constant, and its attributes are data: owner ([WithOwner]), master, state, reason, lock,
// token, and times in seconds (left, held, for). Advice is in the attribute hint. No record contains a password.
// Records go through the event queue of the Locker (see [redlockinfo.Trace]) and keep their original times: a handler
// that blocks or panics delays or loses records, but never a lock. slog.DiscardHandler turns the log off.
func WithLogger(log *slog.Logger) Option { return lockerOption(func(c *config) { c.log = log }) }

// The pauses between two warnings that no lock can be acquired, and between two checks whether that has changed.
const (
	firstWarning  = time.Second
	longestSilent = time.Minute
	checkPause    = time.Second
)

// A journal writes the log of one Locker.
type journal struct {
	*dispatch.Queue
	shortage func() []slog.Attr // why no lock can be acquired; nil if one can, or the Locker is closed

	known      quorum.Set // masters whose first state was seen; only changed uses known and poolClosed
	poolClosed bool

	mu     sync.Mutex
	alarm  *time.Timer   // runs while no lock can be acquired; nil if one can, or the Locker is closed
	since  time.Time     // when the alarm was first set
	due    time.Time     // time of the next warning
	pause  time.Duration // before the next warning
	warned bool
	closed bool
}

// A trouble is the state of a master that grants no locks, in the attribute "masters" of a record.
type trouble struct {
	Master string  `json:"master"`
	State  string  `json:"state"`
	Reason string  `json:"reason"`
	Left   float64 `json:"left,omitempty"` // the rest of a quarantine, in seconds
}

// String returns the trouble for log handlers that write text.
func (t trouble) String() string {
	if t.Left > 0 {
		return fmt.Sprintf("%s %s (%vs left): %s", t.Master, t.State, t.Left, t.Reason)
	}
	return fmt.Sprintf("%s %s: %s", t.Master, t.State, t.Reason)
}

// troubles are the masters that grant no locks.
type troubles []trouble

// String returns the troubles for log handlers that write text.
func (t troubles) String() string {
	texts := make([]string, len(t))
	for i, one := range t {
		texts[i] = one.String()
	}
	return strings.Join(texts, "; ")
}

// troubleOf returns the trouble of a master that does not vote.
func troubleOf(m *redlockinfo.Master) trouble {
	t := trouble{Master: m.Addr, State: m.State, Left: inSeconds(m.Left), Reason: "it has not answered yet"}
	if m.Err != nil {
		_, t.Reason = addressed(m.Err)
	}
	return t
}

// inSeconds returns a time in seconds with three decimals.
func inSeconds(d time.Duration) float64 { return math.Round(d.Seconds()*1000) / 1000 }

// seconds returns the attribute of a time.
func seconds(key string, d time.Duration) slog.Attr { return slog.Float64(key, inSeconds(d)) }

// master logs a record about one master.
func (j *journal) master(level slog.Level, text string, m *redlockinfo.Master) {
	attrs := []slog.Attr{slog.String("master", m.Addr), slog.String("state", m.State)}
	if level > slog.LevelInfo {
		attrs = append(attrs, slog.String("reason", troubleOf(m).Reason))
	}
	if m.Left > 0 {
		attrs = append(attrs, seconds("left", m.Left))
	}
	j.Log(level, text, attrs...)
}

// health logs that a voting master starts or stops failing.
func (j *journal) health(m *redlockinfo.Master) {
	if m.Err == nil {
		j.master(slog.LevelInfo, "redlock: master grants locks again", m)
		return
	}
	j.master(slog.LevelWarn, "redlock: master is failing", m)
}

// changed logs that the state of master i has changed; m describes the state now. It logs the first state of a master
// only if the master is down; the alarm covers other first states.
func (j *journal) changed(i int, before, now *admission.State, m *redlockinfo.Master) {
	clock := clockChanged(before, now)
	if clock {
		j.health(m)
	}
	if before.Phase == now.Phase || now.Phase == admission.Connecting {
		return
	}
	switch known := j.known.Has(i); {
	case errors.Is(now.Err, transport.ErrClosed): // the states of the masters no longer matter
		if !j.poolClosed {
			j.poolClosed = true
			j.Log(slog.LevelError, "redlock: pool was closed before its Locker",
				slog.String("hint", "locks can no longer be extended or released: close the Locker first, then the pool"))
		}
	case now.Phase == admission.Down:
		j.master(slog.LevelWarn, "redlock: master is down", m)
	case clock: // the master begins to vote with a wrong clock, which was logged
	case known && now.Phase == admission.Voting:
		j.master(slog.LevelInfo, "redlock: master votes", m)
	case known:
		j.master(slog.LevelWarn, "redlock: master does not vote", m)
	}
	j.known |= quorum.One(i)
}

// clockChanged reports whether a master that votes gets a wrong clock, or has it corrected.
func clockChanged(before, now *admission.State) bool {
	wasOff := before.Phase == admission.Voting && before.ClockOff
	return now.Phase == admission.Voting && now.ClockOff != wasOff
}

// watch sets the alarm if no lock can be acquired, and stops it if one can.
func (j *journal) watch() {
	short := j.shortage() != nil
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.alarm != nil && !short:
		j.recoveredLocked()
	case short:
		j.alarmLocked()
	}
}

// starved sets the alarm, because a call has begun to wait without a quorum. It does not count the waiting calls: in an
// outage each of them calls starved.
func (j *journal) starved() {
	//mutant:starved-counts -> j.shortage(); j.mu.Lock()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.alarmLocked()
}

// alarmLocked sets the alarm unless it is set.
func (j *journal) alarmLocked() {
	if j.alarm == nil && !j.closed {
		j.since, j.pause, j.warned = time.Now(), firstWarning, false
		j.due = j.since.Add(j.pause)
		j.alarm = time.AfterFunc(j.pause, j.ring)
	}
}

// recoveredLocked stops the alarm, and logs that locks can be acquired again if it was logged that they cannot.
func (j *journal) recoveredLocked() {
	j.alarm.Stop()
	j.alarm = nil
	if j.warned {
		j.Log(slog.LevelInfo, "redlock: locks can be acquired again", seconds("for", time.Since(j.since)))
	}
}

// ring logs that no lock can be acquired if that is due, and sets the alarm again.
func (j *journal) ring() {
	shortage := j.shortage()
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.alarm == nil:
		return
	case shortage == nil:
		j.recoveredLocked()
		return
	}
	j.alarm.Reset(checkPause)
	if time.Now().Before(j.due) {
		return
	}
	j.pause, j.warned = min(2*j.pause, longestSilent), true
	j.due = j.due.Add(j.pause)
	j.Log(slog.LevelWarn, "redlock: no lock can be acquired",
		append([]slog.Attr{seconds("for", time.Since(j.since))}, shortage...)...)
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
