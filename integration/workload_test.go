package integration

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/redlock-go/redlock/internal/history"
	"github.com/redlock-go/redlock/redlock"
)

// hang is the maximum time of operations that must end by themselves.
const hang = 120 * time.Second

// patience is the deadline of each call of the workload. A longer wait is a failure for the user.
const patience = time.Second

// The names of the workload. Several clients compete for a shared name. An own name is used by only one goroutine of
// one process, so only a fault of the masters can prevent its lock. A long name is held from the beginning to the end.
const (
	sharedNames = 2
	sharedName  = "shared-"
	ownName     = "own-"
	longName    = "long-"
)

// workload is the load of one process, which ends with its context. Six goroutines lock, wait, re-enter, extend and
// unlock.
type workload struct {
	args workerArgs
	l    *redlock.Locker
	rec  *history.Recorder
}

func (w *workload) run(ctx context.Context) error {
	loops := []func(ctx context.Context, rnd *rand.Rand, id string) error{
		w.long, w.own, w.shared, w.shared, w.slot, w.leader,
	}
	errs := make([]error, len(loops))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	for i, loop := range loops {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(w.args.Seed, uint64(i)))
			for turn := 0; ctx.Err() == nil && errs[i] == nil; turn++ {
				errs[i] = loop(ctx, rnd, fmt.Sprintf("%s.%d.%d", w.args.ID, i, turn))
				pause(ctx, time.Duration(1+rnd.IntN(4))*time.Millisecond)
			}
			if errs[i] != nil {
				cancel()
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// pause sleeps for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// unexplained returns err, or nil if a fault of the masters explains err.
func unexplained(err error) error {
	if err == nil || history.KindOf(err) != history.KindOther {
		return nil
	}
	return err
}

// lock acquires a name, with patience as its deadline. It returns a nil lock without an error if a fault of the
// masters explains the failure.
func (w *workload) lock(ctx context.Context, name, id string, try bool) (*redlock.Lock, error) {
	bound, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	lock, err := w.rec.Call(history.Event{Op: history.Lock, Name: name, Hold: id}, func() (*redlock.Lock, error) {
		if try {
			return w.l.TryLock(bound, name)
		}
		return w.l.Lock(bound, name)
	})
	if err != nil {
		return nil, unexplained(err)
	}
	return lock, nil
}

// unlock releases the lock, even if ctx has ended.
func (w *workload) unlock(lock *redlock.Lock, id string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return unexplained(w.rec.Unlock(lock, id, func() error { return lock.Unlock(ctx) }))
}

// long holds a name of this process for as long as it can.
func (w *workload) long(ctx context.Context, _ *rand.Rand, id string) error {
	lock, err := w.lock(ctx, longName+w.args.ID, id, false)
	if lock == nil {
		return err
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for lock.Err() == nil && ctx.Err() == nil && err == nil {
		err = w.rec.Look(lock, id)
		select {
		case <-tick.C:
		case <-lock.Done():
		case <-ctx.Done():
		}
	}
	return errors.Join(err, w.unlock(lock, id))
}

// own acquires and releases a name that no other client uses.
func (w *workload) own(ctx context.Context, _ *rand.Rand, id string) error {
	lock, err := w.lock(ctx, ownName+w.args.ID, id, false)
	if lock == nil {
		return err
	}
	return w.unlock(lock, id)
}

// shared acquires a name for which clients compete, and uses the lock in a random way.
func (w *workload) shared(ctx context.Context, rnd *rand.Rand, id string) error {
	if rnd.IntN(8) == 0 {
		return w.several(ctx, rnd, id)
	}
	name := fmt.Sprint(sharedName, rnd.IntN(sharedNames))
	lock, err := w.lock(ctx, name, id, rnd.IntN(5) == 0)
	if lock == nil {
		return err
	}
	if rnd.IntN(3) == 0 {
		err = w.reenter(ctx, lock, id)
	}
	if rnd.IntN(4) == 0 && err == nil {
		err = w.extend(ctx, lock, id)
	}
	hold := time.Duration(rnd.IntN(4)) * time.Millisecond
	if rnd.IntN(100) == 0 {
		hold = scenarioTTL + scenarioTTL/4 // sometimes hold longer than the TTL, by extending the lock
	}
	mine, cancel := context.WithTimeout(lock.Context(ctx), hold)
	<-mine.Done()
	cancel()
	return errors.Join(err, w.unlock(lock, id))
}

// reenter locks the name once more and releases the inner lock.
func (w *workload) reenter(ctx context.Context, outer *redlock.Lock, id string) error {
	bound, cancel := context.WithTimeout(outer.Context(ctx), patience)
	defer cancel()
	e := history.Event{Op: history.Reenter, Name: outer.Name(), Hold: id}
	inner, err := w.rec.Call(e, func() (*redlock.Lock, error) {
		return w.l.Lock(bound, outer.Name(), redlock.WithReentry())
	})
	if err != nil {
		return unexplained(err)
	}
	_, err = w.rec.Call(history.Event{Op: history.Inner, Name: outer.Name(), Hold: id}, func() (*redlock.Lock, error) {
		return nil, inner.Unlock(bound)
	})
	return unexplained(err)
}

func (w *workload) extend(ctx context.Context, lock *redlock.Lock, id string) error {
	bound, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, err := w.rec.Call(history.Event{Op: history.Extend, Name: lock.Name(), Hold: id}, func() (*redlock.Lock, error) {
		if err := lock.Extend(bound); err != nil {
			return nil, err
		}
		return lock, nil
	})
	return unexplained(err)
}
