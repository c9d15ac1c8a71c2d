package redlockgocron

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/redlock-go/redlock/redlock"
)

// longestTTL is the limit of every max TTL: see [redlock.WithMaxTTL].
const longestTTL = 24 * time.Hour

// An invalidError is a text that matches [redlock.ErrInvalid].
type invalidError string

func (e invalidError) Error() string { return string(e) }

func (e invalidError) Unwrap() error { return redlock.ErrInvalid }

func invalid(format string, args ...any) error {
	return invalidError(fmt.Sprintf("redlockgocron: "+format, args...))
}

// mustHave panics if f, the function of a task, is nil: Task returns no error.
func mustHave(f func(context.Context, *redlock.Lock) error) {
	if f == nil {
		panic(invalid("Task(nil): the function of the task is nil"))
	}
}

// checkGiven returns an error if an argument of NewLocker is nil.
func checkGiven(locker *redlock.Locker, s Schedule, opts []Option) error {
	switch {
	case locker == nil:
		return invalid("NewLocker: the redlock.Locker is nil: pass the one that redlock.Open returns")
	case s == nil:
		return invalid("NewLocker: the schedule is nil: pass Every(d), or a schedule of robfig/cron")
	case slices.ContainsFunc(opts, func(o Option) bool { return o == nil }):
		return invalid("NewLocker: an option is nil")
	}
	return nil
}

// check checks the settings, and sets the splay if none is given.
func (l *Locker) check() error {
	switch {
	case l.now == nil:
		return invalid("WithClock(nil): leave WithClock out for time.Now")
	case l.name == nil:
		return invalid("WithName(nil): leave WithName out for the default names")
	case l.apart < 0:
		return invalid("WithApart(%v) must not be negative", l.apart)
	case l.programs < 1:
		return invalid("WithPrograms(%d) must be at least 1", l.programs)
	}
	between, err := l.between()
	if err != nil {
		return err
	}
	if l.splay == 0 {
		l.splay = min(between*2/5, 5*time.Second)
	}
	if l.splay < 0 || 2*l.splay >= between {
		return invalid("WithSplay(%v) must be positive, and less than half of the time between two runs, %v", l.splay,
			between)
	}
	return l.checkLock()
}

// between returns the time between the next two runs.
func (l *Locker) between() (time.Duration, error) {
	if d, ok := l.schedule.(every); ok && d <= 0 {
		return 0, invalid("Every(%v): the time between two runs must be positive", time.Duration(d))
	}
	now := l.now()
	first := l.schedule.Next(now)
	if !first.After(now) {
		return 0, noTime(now, first)
	}
	second := l.schedule.Next(first)
	if !second.After(first) {
		return 0, noTime(first, second)
	}
	return second.Sub(first), nil
}

// noTime returns the error for a schedule whose next time after t is not after t.
func noTime(t, next time.Time) error {
	if next.IsZero() {
		return invalid("the schedule has no time after %s: does its crontab name a date that never comes?", stamp(t))
	}
	return invalid("the Next of the schedule must return a later time: after %s it returned %s", stamp(t), stamp(next))
}

// minHold returns how long the masters must keep the name of a run.
func (l *Locker) minHold() time.Duration {
	if l.apart > math.MaxInt64-2*l.splay {
		return math.MaxInt64
	}
	return 2*l.splay + l.apart
}

// checkLock returns an error if each call for a lock would be refused as invalid. It makes a call whose context has
// ended: the call checks its options, and sends nothing.
func (l *Locker) checkLock() error {
	const name = "redlockgocron.NewLocker" // only a redlockinfo.Trace sees it
	ended, end := context.WithCancel(context.Background())
	end()
	_, err := l.lockOf(ended, name)
	if !errors.Is(err, redlock.ErrInvalid) {
		return nil
	}
	reason := strings.TrimPrefix(err.Error(), "redlock: ")
	hold := l.minHold()
	if _, err := l.locker.TryLock(ended, name, redlock.WithMinHold(hold)); !errors.Is(err, redlock.ErrInvalid) {
		return invalid("WithPrograms(%d) and WithSplay(%v): %s", l.programs, l.splay, reason) // the hold is valid
	}
	advice := "shorten one of them"
	if ttl := maxTTLFor(hold); ttl > hold && ttl <= longestTTL {
		advice += fmt.Sprintf(", or raise the max TTL of the masters (redlock max-ttl --set %v URL...), and then give "+
			"redlock.WithMaxTTL(%v) to redlock.Open in all clients", ttl, ttl)
	}
	return invalid("%s; the minimum hold is twice the splay (WithSplay, %v) plus the difference of the clocks "+
		"(WithApart, %v): %s", reason, l.splay, l.apart, advice)
}

// maxTTLFor returns a max TTL, in whole seconds, that allows the minimum hold d and its drift ([redlock.WithMinHold]).
// It overflows for the longest durations.
func maxTTLFor(d time.Duration) time.Duration {
	return (d + d/100 + 3*time.Millisecond + time.Second).Truncate(time.Second)
}
