package redlock_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/redlock"
)

func (w *world) export(k *redlock.Lock) string {
	w.Helper()
	handle, err := k.Export()
	if err != nil {
		w.Fatal(err)
	}
	return handle
}

// Export ends every context of the hold before it returns, and with them the extensions and the release by Close. The
// masters keep the hold for the importer.
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

// Of several importers of one handle at most one wins, whether they import concurrently or one after the other.
func TestVirtualOfSeveralImportersOneWins(t *testing.T) {
	for seed := range uint64(40) {
		bubble(t, 5, func(w *world) {
			random := seeded(seed)
			lockers := []*redlock.Locker{w.locker(), w.locker(), w.locker()}
			w.each(func(_ int, m *memory.Master) { m.Delay(time.Duration(random.IntN(5000)) * time.Microsecond) })
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
						<-k.Done() // not released: no other client may get it meanwhile
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

// A handle whose validity has expired imports nothing and creates nothing, whether the name is free by then or held by
// another client.
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
		k := w.take(w.locker(redlock.WithOwner("next")), "a")
		_, err = l.Import(w.Context(), handle)
		w.isError(err, redlock.ErrLost)
		synctest.Wait()
		if id, on := w.holder("a"); id != "next" || on != 3 || k.Err() != nil {
			w.Errorf("held by %s on %d, %v", id, on, k.Err())
		}
	})
}

// An import restores the hold on masters that had lost it or never had it.
func TestVirtualAnImportRepairs(t *testing.T) {
	virtual(t, 5, func(w *world) {
		l := w.locker()
		k := w.take(l, "a")
		synctest.Wait()
		w.each(func(_ int, m *memory.Master) { m.Evict("a") }, 0, 3)
		next, err := w.locker(redlock.WithOwner("importer")).Import(w.Context(), w.export(k))
		if err != nil {
			w.Fatal(err)
		}
		after(4 * time.Second)
		if id, on := w.holder("a"); id != "importer" || on != 5 {
			w.Errorf("held by %s on %d", id, on)
		}
		if on, _ := next.HeldOn(); on != 5 {
			w.Errorf("held on %d", on)
		}
	})
}

// A failed import releases the shares that it took over, and leaves no keys.
func TestVirtualAnImportWithoutAMajorityLeavesNothing(t *testing.T) {
	virtual(t, 5, func(w *world) {
		l := w.locker()
		k := w.take(l, "a")
		synctest.Wait()
		w.each(func(_ int, m *memory.Master) { m.Evict("a") }, 0, 1, 2)
		_, err := l.Import(w.Context(), w.export(k))
		w.isError(err, redlock.ErrLost)
		after(time.Second)
		if n := w.on("a"); n != 0 {
			w.Errorf("still on %d masters", n)
		}
	})
}

// Late messages of the exporter, extensions and re-entries of any depth, do not change the imported hold.
func TestVirtualALateExtensionOfTheExporterChangesNothing(t *testing.T) {
	virtual(t, 3, func(w *world) {
		l := w.locker()
		k := w.take(l, "a")
		after(4 * time.Second)
		inner := w.takeWith(l, k.Context(w.Context()), "a")
		_ = inner.Unlock(w.Context())
		synctest.Wait()
		old := w.wire.sent("acquire", "extend")
		next, err := w.locker(redlock.WithOwner("importer")).Import(w.Context(), w.export(k))
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
			if now := pictureOf(m, "a"); labelOf(now.id) != "importer" || now.left != before.left || now.depth != 1 {
				w.Errorf("a late %s made %+v of %+v", s.script(), now, before)
			}
		}
		if err := next.Extend(w.Context()); err != nil {
			w.Error(err)
		}
	})
}

// A hold that was re-entered is not exported, and stays held.
func TestVirtualANestedLockIsNotExported(t *testing.T) {
	virtual(t, 3, func(w *world) {
		l := w.locker()
		k := w.take(l, "a")
		inner := w.takeWith(l, k.Context(w.Context()), "a")
		_, err := k.Export()
		w.isError(err, redlock.ErrInvalid)
		_, err = inner.Export()
		w.isError(err, redlock.ErrInvalid)
		if k.Err() != nil || inner.Err() != nil {
			w.Errorf("%v, %v", k.Err(), inner.Err())
		}
		_ = inner.Unlock(w.Context())
		w.export(k)
	})
}
