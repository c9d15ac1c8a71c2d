package redlockgocron

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/redlock-go/redlock/redlock"
)

// ErrLate is returned by [Locker.Lock] if the clock of this program is too far from a scheduled time, because the job
// does not start at the times of its schedule ([gocron.WithStartAt]), the program was stopped, or its clock is wrong.
// The text has the job, both times, and the splay. Another program may have run the job.
var ErrLate = errors.New("redlockgocron: too early or too late for a run of the job")

// ErrRunning is returned by [Locker.Lock] while the previous run of the job, or of another job with the same Locker,
// continues in this program.
var ErrRunning = errors.New("redlockgocron: the previous run of the job is still under way")

// A Schedule has the times at which a job runs. [Every] returns one; the schedules of github.com/robfig/cron, which
// gocron uses for a CronJob, are others. All programs need the same times.
type Schedule interface {
	Next(time.Time) time.Time // the first time of the schedule after that time
}

// Every returns the schedule with all multiples of d since the zero time, such as each full minute. d must be positive:
// otherwise [NewLocker] fails.
func Every(d time.Duration) Schedule { return every(d) }

type every time.Duration

// Next implements Schedule.
func (d every) Next(t time.Time) time.Time { return t.Truncate(time.Duration(d)).Add(time.Duration(d)) }

// A Locker is the [gocron.Locker] of one job. Its methods are safe for concurrent use.
type Locker struct {
	locker       *redlock.Locker
	schedule     Schedule
	splay, apart time.Duration
	programs     int
	now          func() time.Time
	name         func(job string, at time.Time) string

	mu      sync.Mutex
	running bool
	lock    *redlock.Lock // of the current run
}

// An Option configures a [Locker].
type Option func(*Locker)

// WithSplay bounds how long before or after its scheduled time, by the clock of the program, a run may start. The
// default is 5 s, or two fifths of the time between two runs if that is less. The splay must be less than half of that
// time.
func WithSplay(d time.Duration) Option { return func(l *Locker) { l.splay = d } }

// WithApart sets the maximum difference between the clocks of two programs. The default is a second. If clocks differ
// by more, a job may run twice at a scheduled time.
func WithApart(d time.Duration) Option { return func(l *Locker) { l.apart = d } }

// WithPrograms lets up to k programs run the job at each scheduled time. The default is 1. All programs must give the
// same k: see [redlock.Locker.Semaphore].
func WithPrograms(k int) Option { return func(l *Locker) { l.programs = k } }

// WithName sets the function that names the lock of a run. The default is the name of the job, a slash, and the
// scheduled time in UTC. Runs whose names are equal exclude each other while one is under way, and for the minimum
// hold, but not afterwards. f must not block.
func WithName(f func(job string, at time.Time) string) Option { return func(l *Locker) { l.name = f } }

// WithClock sets the clock, which must be that of the scheduler ([gocron.WithClock]). The default is [time.Now].
func WithClock(now func() time.Time) Option { return func(l *Locker) { l.now = now } }

// NewLocker returns a Locker for a job that gocron runs at the times of s. It does not block, sends nothing, and needs
// no Close. An error matches [redlock.ErrInvalid].
//
// The minimum hold is twice the splay plus the difference of the clocks. With its drift of 1 % and 2 ms it must not
// exceed the max TTL of locker ([redlock.WithMaxTTL]), 30 s by default: otherwise NewLocker fails, and the text says
// which max TTL suffices. If the masters have a shorter max TTL than locker, each Lock may fail with
// [redlock.ErrTTLTooLong].
func NewLocker(locker *redlock.Locker, s Schedule, opts ...Option) (*Locker, error) {
	if err := checkGiven(locker, s, opts); err != nil {
		return nil, err
	}
	l := &Locker{locker: locker, schedule: s, apart: time.Second, programs: 1, now: time.Now, name: utcName}
	for _, o := range opts {
		o(l)
	}
	if err := l.check(); err != nil {
		return nil, err
	}
	return l, nil
}

func utcName(job string, at time.Time) string { return job + "/" + at.UTC().Format(time.RFC3339Nano) }

// Lock implements [gocron.Locker]: gocron calls it before each run. If it returns an error, gocron does not run the
// job, and passes the error to the listener of [gocron.AfterLockError]. The error is [ErrLate], [ErrRunning], or one of
// [redlock.Locker.Lock]: usually ErrHeld, because another program runs the job. Lock waits for up to half the splay, as
// all programs call at the same moment.
func (l *Locker) Lock(ctx context.Context, job string) (gocron.Lock, error) {
	l.mu.Lock()
	busy := l.running
	l.running = true
	l.mu.Unlock()
	if busy {
		return nil, fmt.Errorf("%w: job %q: each job needs a Locker of its own, and must end before its next time",
			ErrRunning, job)
	}
	lock, err := l.acquire(ctx, job)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running = err == nil; err != nil {
		return nil, err
	}
	l.lock = lock
	return &run{lock, l}, nil
}

// acquire acquires the lock of the run that starts now.
func (l *Locker) acquire(ctx context.Context, job string) (*redlock.Lock, error) {
	now := l.now()
	at, ok := l.at(now)
	if !ok {
		return nil, l.offSchedule(job, now, at)
	}
	lock, err := l.lockOf(ctx, l.name(job, at))
	if err != nil {
		return nil, err
	}
	now = l.now()
	if still, ok := l.at(now); !ok || !still.Equal(at) {
		_ = lock.Unlock(ctx) // the name stays locked, so no program runs the job this time
		return nil, l.tooSlow(job, now, at)
	}
	return lock, nil
}

// lockOf acquires the lock of the run with this name.
func (l *Locker) lockOf(ctx context.Context, name string) (*redlock.Lock, error) {
	opts := []redlock.LockOption{redlock.WithMinHold(l.minHold()), redlock.WithWaitLimit(l.splay / 2)}
	if l.programs > 1 {
		return l.locker.Semaphore(name, l.programs).Acquire(ctx, opts...)
	}
	return l.locker.Lock(ctx, name, opts...)
}

// A run is the lock of one run of the job.
type run struct {
	lock *redlock.Lock
	l    *Locker
}

// Unlock implements [gocron.Lock].
func (r *run) Unlock(ctx context.Context) error {
	r.l.mu.Lock()
	r.l.running, r.l.lock = false, nil
	r.l.mu.Unlock()
	return r.lock.Unlock(context.WithoutCancel(ctx)) // gocron cancels ctx at its shutdown
}

// Task returns the task of the job. Its context ends when the lock is lost, or when the scheduler shuts down. f should
// send the token of the lock with each write. An error of f is passed to the listener of
// [gocron.AfterJobRunsWithError].
//
// The task fails without a call of f if the Locker is not that of the job ([gocron.WithDistributedJobLocker]). Task
// panics if f is nil.
func (l *Locker) Task(f func(ctx context.Context, lock *redlock.Lock) error) gocron.Task {
	mustHave(f)
	return gocron.NewTask(func(ctx context.Context) error {
		l.mu.Lock()
		lock := l.lock
		l.mu.Unlock()
		if lock == nil {
			return errors.New("redlockgocron: the job has no lock: pass its Locker to gocron.WithDistributedJobLocker")
		}
		return f(lock.Context(ctx), lock)
	})
}
