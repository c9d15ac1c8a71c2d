package integration

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	clients "github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/internal/history"
	"github.com/redlock-go/redlock/redlock"
)

// Other uses of locks: several names together, slots with a minimum hold, leaderships.

const (
	slotName   = "slot"
	leaderName = "leader"
)

// slotHold is how long a slot stays locked, even if it is unlocked immediately.
const slotHold = 300 * time.Millisecond

// several acquires all shared names together. The history contains a hold for each name.
func (w *workload) several(ctx context.Context, rnd *rand.Rand, id string) error {
	names := make([]string, sharedNames)
	for i := range names {
		names[i] = fmt.Sprint(sharedName, i)
	}
	rnd.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	bound, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	call := history.Stamp()
	locks, err := w.l.LockAll(bound, names)
	ret := history.Stamp()
	if err != nil {
		return unexplained(err)
	}
	of := func(name string) string { return id + "/" + name }
	for _, name := range names {
		k := locks.Of(name)
		on, _ := clients.HeldOn(k)
		err := w.rec.Put(history.Event{Op: history.Lock, Name: name, Hold: of(name), Call: call, Ret: ret, Token: k.Token(),
			Until: history.Until(k), On: on})
		if err != nil {
			return err
		}
	}
	mine, done := context.WithTimeout(locks.Context(ctx), time.Duration(rnd.IntN(4))*time.Millisecond)
	<-mine.Done()
	done()
	for _, name := range names {
		if err := w.rec.Look(locks.Of(name), of(name)); err != nil {
			return err
		}
		if err := w.rec.Put(history.Event{Op: history.Leave, Name: name, Hold: of(name), Call: history.Stamp()}); err != nil {
			return err
		}
	}
	over, cancelUnlock := context.WithTimeout(context.Background(), patience)
	defer cancelUnlock()
	var errs []error
	for _, name := range names { // one after the other, as the history records one call each
		_, err := w.rec.Call(history.Event{Op: history.Unlock, Name: name, Hold: of(name)}, func() (*redlock.Lock, error) {
			return nil, locks.Of(name).Unlock(over)
		})
		errs = append(errs, unexplained(err))
	}
	return errors.Join(errs...)
}

// slot acquires a name with a minimum hold and unlocks it immediately. No other client may get the name before the
// minimum hold has passed.
func (w *workload) slot(ctx context.Context, _ *rand.Rand, id string) error {
	bound, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	began := history.Stamp()
	lock, err := w.rec.Call(history.Event{Op: history.Lock, Name: slotName, Hold: id}, func() (*redlock.Lock, error) {
		return w.l.TryLock(bound, slotName, redlock.WithMinHold(slotHold))
	})
	if err != nil {
		pause(ctx, slotHold/10)
		return unexplained(err)
	}
	err = w.rec.Put(history.Event{Op: history.Kept, Name: slotName, Hold: id, Call: began,
		Ret: history.Stamp(), Until: began + int64(slotHold)})
	return errors.Join(err, w.unlock(lock, id))
}

// leader campaigns for a leadership and leads for a moment, again and again. In the history, a leadership is a hold
// that is valid until its context ends.
func (w *workload) leader(ctx context.Context, rnd *rand.Rand, id string) error {
	term, since := 0, history.Stamp() // the leadership was won after this time
	err := w.l.Lead(ctx, leaderName, func(lead context.Context, lock *redlock.Lock) error {
		term++
		hold := fmt.Sprint(id, "/", term)
		now := history.Stamp()
		if lead.Err() != nil {
			return nil
		}
		err := w.rec.Put(history.Event{Op: history.Lock, Name: leaderName, Hold: hold, Call: since, Ret: now,
			Token: lock.Token(), Until: now})
		for end := time.Now().Add(time.Duration(rnd.IntN(300)) * time.Millisecond); err == nil && time.Now().Before(end); {
			now := history.Stamp()
			if lead.Err() != nil {
				break
			}
			err = w.rec.Put(history.Event{Op: history.Alive, Name: leaderName, Hold: hold, Call: now,
				Ret: history.Stamp(), Until: now})
			pause(lead, 10*time.Millisecond)
		}
		since = history.Stamp()
		return err
	})
	return unexplained(err)
}
