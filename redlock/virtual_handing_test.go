package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlocktest"
)

func (w *world) export(k *redlock.Lock) string {
	w.Helper()
	handle, err := k.Export()
	if err != nil {
		w.Fatal(err)
	}
	return handle
}

// Export ends every context of the hold before it returns, and with them extending, and release by Close; the masters
// keep the hold for whoever imports it.
func TestVirtualExportEndsEveryContextFirst(t *testing.T) {
	virtual(t, 3, func(w *world) {
		l := w.locker()
		k := w.take(l, "a")
		contexts := []context.Context{k.Context(w.Context()), k.Context(context.WithoutCancel(w.Context()))}
		contexts = append(contexts, k.Context(contexts[0]))
		handle := w.export(k)
		for i, ctx := range contexts {
			if ctx.Err() == nil {
				w.Errorf("context %d goes on", i)
			}
			w.isError(context.Cause(ctx), redlock.ErrExported)
		}
		_, err := l.TryLock(contexts[0], "a")
		if err == nil {
			w.Error("re-entered with the context of a lock that was handed on")
		}
		synctest.Wait() // the acquire has been written to the slowest master too
		w.wire.clear()
		after(5 * time.Second)
		w.isError(k.Unlock(w.Context()), redlock.ErrExported)
		if err := l.Close(w.Context()); err != nil {
			w.Error(err)
		}
		if sent := w.wire.sent("acquire", "extend", "release"); len(sent) != 0 || w.on("a") != 3 {
			w.Errorf("%d messages after the export, the first %q; on %d masters", len(sent), sent[0].args, w.on("a"))
		}
		next, err := w.locker().Import(w.Context(), handle)
		if err != nil {
			w.Fatal(err)
		}
		if next.Token() <= k.Token() || next.Remaining() < 9*time.Second {
			w.Errorf("token %d after %d, %v left", next.Token(), k.Token(), next.Remaining())
		}
		after(time.Minute)
		if err := next.Unlock(w.Context()); err != nil {
			w.Error(err)
		}
	})
}

// Of several importers of one handle at most one wins, whether they come together or one after the other.
func TestVirtualOfSeveralImportersOneWins(t *testing.T) {
	for seed := range uint64(40) {
		virtual(t, 5, func(w *world) {
			random := seeded(seed)
			lockers := []*redlock.Locker{w.locker(), w.locker(), w.locker()}
			w.each(func(_ int, m *redlocktest.Master) { m.Delay(time.Duration(random.IntN(5000)) * time.Microsecond) })
			handle := w.export(w.take(w.locker(), "a"))
			ctx, cancel := context.WithTimeout(w.Context(), 30*time.Second)
			defer cancel()
			var won atomic.Int32
			var tokens sync.Map
			var all sync.WaitGroup
			for _, l := range lockers {
				all.Go(func() {
					k, err := l.Import(ctx, handle, redlock.WithExtension(false))
					if err == nil {
						won.Add(1)
						tokens.Store(k.Token(), true)
						<-k.Done() // not given back: nobody else may get it meanwhile
					}
				})
			}
			all.Wait()
			if n := won.Load(); n > 1 {
				w.Errorf("seed %d: %d importers won", seed, n)
			}
			w.delay(0)
			after(time.Second)
		})
	}
}

// One importer alone wins; a second one later imports nothing.
func TestVirtualAHandleIsImportedOnce(t *testing.T) {
	virtual(t, 5, func(w *world) {
		l := w.locker()
		handle := w.export(w.take(l, "a"))
		k, err := l.Import(w.Context(), handle)
		if err != nil {
			w.Fatal(err)
		}
		_, err = w.locker().Import(w.Context(), handle, redlock.WithTries(3))
		w.isError(err, redlock.ErrLost)
		if err := k.Unlock(w.Context()); err != nil {
			w.Error(err)
		}
		_, err = l.Import(w.Context(), handle)
		w.isError(err, redlock.ErrLost)
	})
}

// A handle whose validity is over imports nothing and creates nothing, whether the name is free by then or another's.
func TestVirtualAnExpiredHandleImportsNothing(t *testing.T) {
	virtual(t, 3, func(w *world) {
		l := w.locker()
		handle := w.export(w.take(l, "a"))
		after(11 * time.Second)
		_, err := l.Import(w.Context(), handle)
		w.isError(err, redlock.ErrLost)
		synctest.Wait()
		if n := w.on("a"); n != 0 {
			w.Errorf("the import created the lock on %d masters", n)
		}
		after(time.Millisecond) // for a larger ballot than that of the import
		k := w.take(w.locker(redlock.WithID("next")), "a")
		_, err = l.Import(w.Context(), handle)
		w.isError(err, redlock.ErrLost)
		synctest.Wait()
		if id, on := w.masters.Holder("a"); id != "next:1" || on != 3 || k.Err() != nil {
			w.Errorf("held by %s on %d, %v", id, on, k.Err())
		}
	})
}

// An import gives masters that had lost the hold, or never had it, their part.
func TestVirtualAnImportHeals(t *testing.T) {
	virtual(t, 5, func(w *world) {
		l := w.locker()
		k := w.take(l, "a")
		synctest.Wait()
		w.each(func(_ int, m *redlocktest.Master) { m.Evict("a") }, 0, 3)
		next, err := w.locker(redlock.WithID("importer")).Import(w.Context(), w.export(k))
		if err != nil {
			w.Fatal(err)
		}
		after(4 * time.Second)
		if id, on := w.masters.Holder("a"); id != "importer:1" || on != 5 {
			w.Errorf("held by %s on %d", id, on)
		}
		if on, _ := next.HeldOn(); on != 5 {
			w.Errorf("held on %d", on)
		}
	})
}

// A failed import releases what it took over, and leaves nothing behind.
func TestVirtualAnImportWithoutAMajorityLeavesNothing(t *testing.T) {
	virtual(t, 5, func(w *world) {
		l := w.locker()
		k := w.take(l, "a")
		synctest.Wait()
		w.each(func(_ int, m *redlocktest.Master) { m.Evict("a") }, 0, 1, 2)
		_, err := l.Import(w.Context(), w.export(k))
		w.isError(err, redlock.ErrLost)
		after(time.Second)
		if n := w.on("a"); n != 0 {
			w.Errorf("still on %d masters", n)
		}
	})
}

// Late messages of the exporter, extensions and re-entries of any depth, change nothing of the hold that was imported.
func TestVirtualALateExtensionOfTheExporterChangesNothing(t *testing.T) {
	virtual(t, 3, func(w *world) {
		l := w.locker()
		k := w.take(l, "a")
		after(4 * time.Second)
		inner := w.takeWith(l, k.Context(w.Context()), "a")
		_ = inner.Unlock(w.Context())
		synctest.Wait()
		old := w.wire.sent("acquire", "extend")
		next, err := w.locker(redlock.WithID("importer")).Import(w.Context(), w.export(k))
		if err != nil {
			w.Fatal(err)
		}
		after(time.Second)
		for _, s := range old {
			m := w.masters.Master(s.master)
			before := pictureOf(m, "a")
			if reply := fmt.Sprint(w.replay(s)); reply == "1" {
				w.Errorf("a late %s was granted", s.script())
			}
			if now := pictureOf(m, "a"); now.id != "importer:1" || now.left != before.left || now.depth != 1 {
				w.Errorf("a late %s made %+v of %+v", s.script(), now, before)
			}
		}
		if err := next.Extend(w.Context()); err != nil {
			w.Error(err)
		}
	})
}

// A hold that is locked twice is not exported, and goes on.
func TestVirtualANestedHoldIsNotExported(t *testing.T) {
	virtual(t, 3, func(w *world) {
		l := w.locker()
		k := w.take(l, "a")
		inner := w.takeWith(l, k.Context(w.Context()), "a")
		_, err := k.Export()
		w.isError(err, redlock.ErrInvalidOption)
		_, err = inner.Export()
		w.isError(err, redlock.ErrInvalidOption)
		if k.Err() != nil || inner.Err() != nil {
			w.Errorf("%v, %v", k.Err(), inner.Err())
		}
		_ = inner.Unlock(w.Context())
		w.export(k)
	})
}

// With the context of a lock that has ended the name cannot be locked, however it ended.
func TestVirtualTheContextOfAnEndedLockOwnsNothing(t *testing.T) {
	virtual(t, 3, func(w *world) {
		l := w.locker()
		for name, end := range map[string]func(k *redlock.Lock){
			"released": func(k *redlock.Lock) { _ = k.Unlock(w.Context()) },
			"exported": func(k *redlock.Lock) { w.export(k) },
			"lost":     func(k *redlock.Lock) { w.masters.Lose("lost"); _ = k.Extend(w.Context()) },
		} {
			k := w.take(l, name)
			ctx := context.WithoutCancel(k.Context(w.Context())) // alive, and still of that lock
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

// WithoutReentry makes a second lock of the same name in one context an error, at once, and leaves other names.
func TestVirtualWithoutReentryASecondLockIsAnError(t *testing.T) {
	virtual(t, 3, func(w *world) {
		l := w.locker(redlock.WithoutReentry())
		k := w.take(l, "a")
		ctx := k.Context(w.Context())
		start := time.Now()
		_, err := l.Lock(ctx, "a")
		w.isError(err, redlock.ErrReentry)
		if took := time.Since(start); took != 0 {
			w.Errorf("it took %v", took)
		}
		w.takeWith(l, ctx, "b")
		if k.Err() != nil {
			w.Error(k.Err())
		}
	})
}

// One context owns several names, and each is re-entered by itself.
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

// k locks need k unlocks, in whatever order.
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
				w.each(func(m int, one *redlocktest.Master) {
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

// Do: the body's error comes first, a lost lock is joined to it, and a panic releases.
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

// The functions of a Trace are called outside of all locks: they may call every method of the lock and the Locker that
// does not wait, and none of it deadlocks.
func TestVirtualTraceFunctionsAreCalledOutsideLocks(t *testing.T) {
	virtual(t, 5, func(w *world) {
		var l atomic.Pointer[redlock.Locker]
		var k atomic.Pointer[redlock.Lock]
		seen := map[string]int{}
		var mu sync.Mutex
		see := func(what string) {
			mu.Lock()
			seen[what]++
			mu.Unlock()
			if l := l.Load(); l != nil {
				l.Masters()
			}
			if k := k.Load(); k != nil {
				k.HeldOn()
				k.Until()
				k.Done()
				_, _ = k.Err(), k.Token()
				k.Context(w.Context())
				if what == "healed" || what == "lost" { // an extension would tell of itself for ever
					_ = k.Extend(deadContext()) // sends, and does not wait
				}
			}
		}
		hold := func(what string) func(redlock.HoldInfo) { return func(redlock.HoldInfo) { see(what) } }
		made := w.locker(redlock.WithoutReentry(), redlock.WithTrace(&redlock.Trace{
			Attempt: func(redlock.AttemptInfo) { see("attempt") }, Acquired: hold("acquired"), Released: hold("released"),
			Extended: hold("extended"), Lost: hold("lost"), Healed: func(redlock.HealInfo) { see("healed") },
			Master: func(redlock.MasterInfo) { see("master") }, Warning: func(string) { see("warning") },
		}))
		l.Store(made)
		k.Store(w.take(made, "a"))
		after(4 * time.Second)
		w.masters.Master(0).Evict("a")
		after(4 * time.Second)
		w.masters.Lose("a")
		after(4 * time.Second)
		k.Store(w.take(made, "a"))
		_ = k.Load().Unlock(w.Context())
		mu.Lock()
		defer mu.Unlock()
		for _, what := range []string{"attempt", "acquired", "released", "extended", "lost", "healed", "master"} {
			if seen[what] == 0 {
				w.Errorf("%s was never told: %v", what, seen)
			}
		}
	})
}

func deadContext() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
