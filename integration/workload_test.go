package integration

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/redlock-go/redlock/redlock"
)

// hang bounds what must end by itself.
const hang = 120 * time.Second

// patience is the deadline of each call of the workload: what waits longer has failed, for its user.
const patience = time.Second

// The names of the workload. Shared ones are fought for; an own one is used by one goroutine of one process, so that
// only the masters can stand in its way; a long one is held from beginning to end.
const (
	sharedNames = 2
	sharedName  = "shared-"
	ownName     = "own-"
	longName    = "long-"
)

// redlockEnded reports whether an error is that of a context.
func redlockEnded(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// workload is what one process does until its context ends: six goroutines lock, wait, re-enter, extend
// and unlock.
type workload struct {
	args workerArgs
	l    *redlock.Locker
	rec  *recorder
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

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// unexplained is err unless a fault of masters explains it.
func unexplained(err error) error {
	if err == nil || kindOf(err) != kindOther {
		return nil
	}
	return err
}

// lock takes a name with the usual patience. A nil lock without an error is one that could not be had.
func (w *workload) lock(ctx context.Context, name, id string, try bool) (*redlock.Lock, error) {
	bound, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	lock, err := w.rec.call(event{Op: opLock, Name: name, Hold: id}, func() (*redlock.Lock, error) {
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

// look writes that the lock is good, where it is.
func (w *workload) look(lock *redlock.Lock, id string) error {
	e := event{Op: opAlive, Name: lock.Name(), Hold: id, Call: stamp(), Until: until(lock)}
	e.Ret = stamp()
	e.On, _ = lock.HeldOn()
	if lock.Err() != nil || e.Until <= e.Call {
		return nil
	}
	return w.rec.put(e)
}

// unlock gives the lock back, whatever became of ctx.
func (w *workload) unlock(lock *redlock.Lock, id string) error {
	if err := w.look(lock, id); err != nil {
		return err
	}
	if err := w.rec.put(event{Op: opLeave, Name: lock.Name(), Hold: id, Call: stamp()}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err := w.rec.call(event{Op: opUnlock, Name: lock.Name(), Hold: id}, func() (*redlock.Lock, error) {
		return nil, lock.Unlock(ctx)
	})
	return unexplained(err)
}

// long holds a name of its own for as long as it can.
func (w *workload) long(ctx context.Context, _ *rand.Rand, id string) error {
	lock, err := w.lock(ctx, longName+w.args.ID, id, false)
	if lock == nil {
		return err
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for lock.Err() == nil && ctx.Err() == nil && err == nil {
		err = w.look(lock, id)
		select {
		case <-tick.C:
		case <-lock.Done():
		case <-ctx.Done():
		}
	}
	return errors.Join(err, w.unlock(lock, id))
}

// own takes a name that nobody else wants, for a moment.
func (w *workload) own(ctx context.Context, _ *rand.Rand, id string) error {
	lock, err := w.lock(ctx, ownName+w.args.ID, id, false)
	if lock == nil {
		return err
	}
	return w.unlock(lock, id)
}

// shared takes a name that others want as well, and does with it what a program may do.
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
		hold = scenarioTTL + scenarioTTL/4 // now and then a hold lives by being extended
	}
	mine, cancel := context.WithTimeout(lock.Context(ctx), hold)
	<-mine.Done()
	cancel()
	return errors.Join(err, w.unlock(lock, id))
}

// reenter locks the name once more and gives that back.
func (w *workload) reenter(ctx context.Context, outer *redlock.Lock, id string) error {
	bound, cancel := context.WithTimeout(outer.Context(ctx), patience)
	defer cancel()
	inner, err := w.rec.call(event{Op: opReenter, Name: outer.Name(), Hold: id}, func() (*redlock.Lock, error) {
		return w.l.Lock(bound, outer.Name())
	})
	if err != nil {
		return unexplained(err)
	}
	_, err = w.rec.call(event{Op: opInner, Name: outer.Name(), Hold: id}, func() (*redlock.Lock, error) {
		return nil, inner.Unlock(bound)
	})
	return unexplained(err)
}

func (w *workload) extend(ctx context.Context, lock *redlock.Lock, id string) error {
	bound, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, err := w.rec.call(event{Op: opExtend, Name: lock.Name(), Hold: id}, func() (*redlock.Lock, error) {
		if err := lock.Extend(bound); err != nil {
			return nil, err
		}
		return lock, nil
	})
	return unexplained(err)
}
