package redlockgocron

import (
	"fmt"
	"time"
)

// at returns the scheduled time of a run that starts now. It returns false if no scheduled time is within the splay of
// now; then the time is the next one.
func (l *Locker) at(now time.Time) (time.Time, bool) {
	at := l.schedule.Next(now.Add(-l.splay - 1))
	return at, at.Sub(now).Abs() <= l.splay
}

// offSchedule returns the error of a call at a time that is far from every scheduled time. next is the next one.
func (l *Locker) offSchedule(job string, now, next time.Time) error {
	at := next
	if last, ok := l.last(now); ok && (next.IsZero() || now.Sub(last) < next.Sub(now)) {
		at = last
	}
	return fmt.Errorf("%w: %s; if this comes at each run, start the job at a time of its schedule (gocron.WithStartAt), "+
		"with the same interval or crontab; if it comes once, this program was stopped, or its clock is wrong",
		ErrLate, l.distance(job, now, at))
}

// tooSlow returns the error of a call that got the lock of a run too late.
func (l *Locker) tooSlow(job string, now, at time.Time) error {
	return fmt.Errorf("%w: %s, once it had the lock: this program was stopped, or its clock was set meanwhile",
		ErrLate, l.distance(job, now, at))
}

// distance says how far from at, a scheduled time, the job would start now.
func (l *Locker) distance(job string, now, at time.Time) string {
	side := "after"
	if now.Before(at) {
		side = "before"
	}
	return fmt.Sprintf("job %q would start at %s, %v %s its time %s, more than the splay of %v (WithSplay)",
		job, stamp(now), now.Sub(at).Abs(), side, stamp(at), l.splay)
}

// last returns the last scheduled time that is not after now. A [Schedule] finds only later times, so last begins some
// time ago, twice as long each time. It returns false if there is none in a year.
func (l *Locker) last(now time.Time) (time.Time, bool) {
	const year = 366 * 24 * time.Hour
	for ago := l.splay + 1; ago < year; ago *= 2 {
		last, next := time.Time{}, l.schedule.Next(now.Add(-ago))
		for next.After(last) && !next.After(now) {
			last, next = next, l.schedule.Next(next)
		}
		if !last.IsZero() {
			return last, true
		}
	}
	return time.Time{}, false
}

// stamp returns t for an error.
func stamp(t time.Time) string { return t.Format(time.RFC3339Nano) }
