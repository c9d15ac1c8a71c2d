package redlockgocron

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/go-co-op/gocron/v2"

	"github.com/redlock-go/redlock/redlock"
)

// ErrNotLeader is returned by [Elector.IsLeader] while this program is not the leader.
var ErrNotLeader = errors.New("redlockgocron: this program is not the leader")

// An Elector is a [gocron.Elector]: of all programs whose electors have the same name, the leader runs the jobs of its
// scheduler. Its methods are safe for concurrent use.
//
// When the leader changes, two programs may run a job for the same scheduled time: the next leader runs the job if its
// clock shows that time after the change. If that matters, use a [Locker]: gocron ignores it if it has an elector.
type Elector struct {
	locker *redlock.Locker
	name   string
	opts   []redlock.LockOption
	term   atomic.Pointer[redlock.Lock] // of the last leadership; nil once Run has noticed its end
}

// NewElector returns an Elector that leads while it holds the lock of name. opts are those of [redlock.Locker.Lead].
// The program must call Run; until then it is not the leader.
func NewElector(locker *redlock.Locker, name string, opts ...redlock.LockOption) *Elector {
	return &Elector{locker: locker, name: name, opts: opts}
}

// Run campaigns for the leadership until ctx ends, and then gives it up. It returns the error of [redlock.Locker.Lead],
// usually that of ctx, or [redlock.ErrInvalid] if the Elector has no Locker. End ctx after the scheduler has shut down:
// until then its jobs run.
func (e *Elector) Run(ctx context.Context) error {
	if e.locker == nil {
		return invalid("NewElector(nil, %q): the redlock.Locker is nil: pass the one that redlock.Open returns", e.name)
	}
	return e.locker.Lead(ctx, e.name, func(ctx context.Context, lock *redlock.Lock) error {
		e.term.Store(lock)
		defer e.term.Store(nil)
		<-ctx.Done()
		return context.Cause(ctx)
	}, e.opts...)
}

// IsLeader implements [gocron.Elector]: nil if this program leads, otherwise [ErrNotLeader]. It does not block. A job
// that has begun continues if the leadership is lost.
func (e *Elector) IsLeader(context.Context) error {
	if e.leadership() == nil {
		return ErrNotLeader
	}
	return nil
}

// leadership returns the lock of the leadership, or nil if this program does not lead.
func (e *Elector) leadership() *redlock.Lock {
	if term := e.term.Load(); term != nil && term.Err() == nil {
		return term
	}
	return nil
}

// Task returns the task of a job that only the leader runs. Its context ends when the leadership is lost, or when the
// scheduler shuts down. f should send the token of the lock, which is that of the leadership, with each write. If the
// leadership was lost since gocron called IsLeader, the task fails with [ErrNotLeader] without a call of f. Task panics
// if f is nil.
func (e *Elector) Task(f func(ctx context.Context, lock *redlock.Lock) error) gocron.Task {
	mustHave(f)
	return gocron.NewTask(func(ctx context.Context) error {
		lock := e.leadership()
		if lock == nil {
			return ErrNotLeader
		}
		return f(lock.Context(ctx), lock)
	})
}
