package redlock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/redlock"
)

// With the context of a lock that has ended, in any way, the name cannot be locked.
func TestVirtualTheContextOfAnEndedLockOwnsNothing(t *testing.T) {
	virtual(t, 3, func(w *world) {
		l := w.locker()
		for name, end := range map[string]func(k *redlock.Lock){
			"released": func(k *redlock.Lock) { _ = k.Unlock(w.Context()) },
			"exported": func(k *redlock.Lock) { w.export(k) },
			"lost":     func(k *redlock.Lock) { w.masters.Lose("lost"); _ = k.Extend(w.Context()) },
		} {
			k := w.take(l, name)
			ctx := context.WithoutCancel(k.Context(w.Context())) // not ended, and still of that lock
			end(k)
			got, err := l.TryLock(ctx, name)
			if got != nil || err == nil {
				w.Errorf("%s: locked with its context", name)
			}
			w.isError(err, k.Err())
			if _, err := l.TryLock(ctx, name+" other"); err != nil {
				w.Errorf("%s: another name: %v", name, err)
			}
		}
	})
}

// One context owns several names, and each is re-entered separately.
func TestVirtualOneContextOwnsSeveralNames(t *testing.T) {
	virtual(t, 3, func(w *world) {
		l := w.locker()
		ctx := w.Context()
		var locks []*redlock.Lock
		for _, name := range []string{"a", "b", "c"} {
			k := w.takeWith(l, ctx, name)
			locks, ctx = append(locks, k), k.Context(ctx)
		}
		for i, name := range []string{"a", "b", "c"} {
			inner := w.takeWith(l, ctx, name)
			if inner.Token() != locks[i].Token() {
				w.Errorf("%s: token %d, the hold's is %d", name, inner.Token(), locks[i].Token())
			}
			_ = inner.Unlock(w.Context())
		}
		_ = locks[1].Unlock(w.Context())
		w.isError(context.Cause(ctx), redlock.ErrReleased) // the innermost context is also of that lock
		if locks[0].Err() != nil || locks[2].Err() != nil {
			w.Errorf("%v, %v", locks[0].Err(), locks[2].Err())
		}
	})
}

// k locks need k unlocks, in any order.
func TestVirtualKLocksNeedKUnlocksInAnyOrder(t *testing.T) {
	virtual(t, 3, func(w *world) {
		l := w.locker()
		for seed := range uint64(20) {
			random := seeded(seed)
			locks := []*redlock.Lock{w.take(l, "a")}
			ctx := locks[0].Context(w.Context())
			for range 4 {
				locks = append(locks, w.takeWith(l, ctx, "a"))
			}
			for i, j := range random.Perm(len(locks)) {
				synctest.Wait()
				w.each(func(m int, one *memory.Master) {
					if _, depth, _ := one.Holds("a"); depth != 5-i {
						w.Errorf("seed %d: depth %d on master %d with %d unlocked", seed, depth, m, i)
					}
				})
				if err := locks[j].Unlock(w.Context()); err != nil {
					w.Errorf("seed %d: %v", seed, err)
				}
				w.isError(locks[j].Unlock(w.Context()), redlock.ErrReleased)
			}
			synctest.Wait()
			if n := w.on("a"); n != 0 {
				w.Errorf("seed %d: still on %d", seed, n)
			}
		}
	})
}

// Do returns the error of the function first, joined with the loss of the lock; a panic releases the lock.
func TestVirtualDoReleasesWhateverTheBodyDoes(t *testing.T) {
	virtual(t, 3, func(w *world) {
		l := w.locker()
		errWork := errors.New("the work failed")
		do := func(f func(ctx context.Context) error) error { return l.Do(w.Context(), "a", f) }
		if err := do(func(ctx context.Context) error {
			return l.Do(ctx, "a", func(context.Context) error { return nil })
		}); err != nil {
			w.Error(err)
		}
		err := do(func(context.Context) error { return errWork })
		w.isError(err, errWork)
		w.notError(err, redlock.ErrLost)
		err = do(func(ctx context.Context) error {
			w.masters.Lose("a")
			<-ctx.Done()
			return errors.Join(errWork, context.Cause(ctx))
		})
		w.isError(err, errWork, redlock.ErrLost)
		err = do(func(context.Context) error { w.masters.Lose("a"); return nil })
		w.isError(err, redlock.ErrLost)
		func() {
			defer func() {
				if r := recover(); r != "help" {
					w.Errorf("recovered %v", r)
				}
			}()
			_ = do(func(context.Context) error { panic("help") })
		}()
		synctest.Wait()
		if n := w.on("a"); n != 0 {
			w.Errorf("still on %d after the panic", n)
		}
	})
}

func deadContext() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
