package redlock_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// Export ends every context of the hold before it returns, and stops the extensions. Close does not release an
// exported lock: the masters keep it for the importer.
func TestExportEndsContextsFirst(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l := w.locker()
		k := must(l.Lock(w.Context(), "a"))(w)
		contexts := []context.Context{k.Context(w.Context()), k.Context(context.WithoutCancel(w.Context()))}
		contexts = append(contexts, k.Context(contexts[0]))
		handle := must(k.Export())(w)
		for i, ctx := range contexts {
			if ctx.Err() == nil {
				w.Errorf("context %d has not ended", i)
			}
			w.isError(context.Cause(ctx), redlock.ErrExported)
		}
		synctest.Wait() // the acquire has been written to the slowest master too
		w.wire.clear()
		after(5 * time.Second)
		w.isError(k.Unlock(w.Context()), redlock.ErrExported)
		w.noError(l.Close())
		if sent := w.wire.sent("acquire", "extend", "release"); len(sent) != 0 || w.on("a") != 3 {
			w.Errorf("%d messages after the export, the first %q; on %d masters", len(sent), sent[0].args, w.on("a"))
		}
		next := must(w.locker().Import(w.Context(), handle))(w)
		if next.Token() <= k.Token() || next.Remaining() < 9*time.Second {
			w.Errorf("token %d, want more than %d; valid for %v", next.Token(), k.Token(), next.Remaining())
		}
		after(time.Minute)
		w.noError(next.Unlock(w.Context()))
	})
}

// If several clients import one handle, concurrently or one after the other, at most one of them wins.
func TestOneImporterWins(t *testing.T) {
	for seed := range uint64(40) {
		bubble(t, 5, func(w *cluster) {
			random := seeded(seed)
			lockers := []*redlock.Locker{w.locker(), w.locker(), w.locker()}
			w.each(func(_ int, m *memory.Master) { m.Delay(time.Duration(random.IntN(5000)) * time.Microsecond) })
			k := must(w.locker().Lock(w.Context(), "a"))(w)
			handle := must(k.Export())(w)
			ctx := w.withTimeout(30 * time.Second)
			var won atomic.Int32
			var all sync.WaitGroup
			for _, l := range lockers {
				all.Go(func() {
					k, err := l.Import(ctx, handle, redlock.WithExtension(false))
					if err == nil {
						won.Add(1)
						<-k.Done() // the lock is not released, so no other client may get it
					}
				})
			}
			all.Wait()
			if n := won.Load(); n > 1 {
				w.Errorf("seed %d: %d importers won, want at most 1", seed, n)
			}
			w.delay(0)
			after(time.Second)
		})
	}
}

// The import of a handle whose validity has expired fails and creates no keys, whether the name is free or held by
// another client by then.
func TestExpiredHandleImportsNothing(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l := w.locker()
		exported := must(l.Lock(w.Context(), "a"))(w)
		handle := must(exported.Export())(w)
		after(11 * time.Second)
		w.isError(errOf(l.Import(w.Context(), handle)), redlock.ErrLost)
		w.wantOn("a", 0)
		after(time.Millisecond) // for a larger ballot than that of the import
		k := must(w.locker(redlock.WithLabel("next")).Lock(w.Context(), "a"))(w)
		synctest.Wait() // all masters have the lock before the import raises their fences
		w.isError(errOf(l.Import(w.Context(), handle)), redlock.ErrLost)
		synctest.Wait()
		if id, on := w.holder("a"); id != "next" || on != 3 || k.Err() != nil {
			w.Errorf("%q holds the name on %d masters, want \"next\" on 3; the lock ended with %v", id, on, k.Err())
		}
	})
}

// A failed import releases the shares that it took over, so that no master has a lock of the name.
func TestImportWithoutMajorityLeavesNothing(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		l := w.locker()
		k := must(l.Lock(w.Context(), "a"))(w)
		synctest.Wait()
		w.evict("a", 0, 1, 2)
		w.isError(errOf(l.Import(w.Context(), must(k.Export())(w))), redlock.ErrLost)
		after(time.Second)
		w.wantOn("a", 0)
	})
}

// Late messages of the exporter (extensions, and re-entries of any depth) do not change the imported hold.
func TestLateExtensionOfExporter(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l := w.locker()
		k := must(l.Lock(w.Context(), "a"))(w)
		after(4 * time.Second)
		inner := must(l.Lock(k.Context(w.Context()), "a", redlock.WithReentry()))(w)
		_ = inner.Unlock(w.Context())
		synctest.Wait()
		old := w.wire.sent("acquire", "extend")
		next := must(w.locker(redlock.WithLabel("importer")).Import(w.Context(), must(k.Export())(w)))(w)
		after(time.Second)
		for _, s := range old {
			m := w.masters.Master(s.master)
			before := pictureOf(m, "a")
			if reply := fmt.Sprint(w.replay(s)); reply == "1" {
				w.Errorf("a late %s was granted", s.script())
			}
			if now := pictureOf(m, "a"); labelOf(now.id) != "importer" || now.left != before.left || now.depth != 1 {
				w.Errorf("a late %s left the state %+v, and it was %+v before", s.script(), now, before)
			}
		}
		w.noError(next.Extend(w.Context()))
	})
}

// A lock that was re-entered cannot be exported, and stays held.
func TestNestedLockIsNotExported(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l := w.locker()
		k := must(l.Lock(w.Context(), "a"))(w)
		inner := must(l.Lock(k.Context(w.Context()), "a", redlock.WithReentry()))(w)
		w.isError(errOf(k.Export()), redlock.ErrInvalid)
		w.isError(errOf(inner.Export()), redlock.ErrInvalid)
		if k.Err() != nil || inner.Err() != nil {
			w.Errorf("after a failed export the errors of the locks are %v and %v", k.Err(), inner.Err())
		}
		_ = inner.Unlock(w.Context())
		must(k.Export())(w)
	})
}

// H145: like an acquire, an import needs votes, and only masters that vote for this client can give them. Otherwise
// a handle that is delivered twice could be imported twice, the second time through a master that has lost the first
// import.
func TestMastersInQuarantineImportNothing(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		a, b := w.locker(), w.locker()
		k := must(a.Lock(w.Context(), "x", redlock.WithTTL(25*time.Second)))(w)
		handle := must(k.Export())(w)
		after(100 * time.Millisecond)
		for i := range 2 { // each restarts with its data, and so with the exported lease
			w.masters.Master(i).Restart(true)
		}
		after(2 * time.Second)
		w.isError(errOf(b.Import(w.Context(), handle, redlock.WithWaitLimit(5*time.Second))), redlock.ErrNoQuorum)
	})
}

// H63, H145: a client that lists three of the five masters of a deployment can neither import nor acquire locks.
func TestClientWithOtherMastersImportsNothing(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		a := w.locker()
		p, err := pool.Open(w.urls(0, 1, 2), transport.WithClock(clock.Runtime()), pool.WithDialer(
			func(ctx context.Context, network, addr string) (net.Conn, error) {
				if "redis://"+addr == w.masters.URLs()[2] {
					return nil, errBlocked // so masters 2, 3 and 4 are a majority without this client
				}
				return w.wire.dial(ctx, network, addr)
			}))
		w.must(err)
		w.Cleanup(func() { _ = p.Close() })
		k := must(a.Lock(w.Context(), "x"))(w)
		handle := must(k.Export())(w)
		after(100 * time.Millisecond)
		w.isError(errOf(w.readyLocker(p).Import(w.Context(), handle, redlock.WithWaitLimit(5*time.Second))),
			redlock.ErrNoQuorum)
	})
}

// An import restores the lock on masters that have lost it. A master that the import did not reach still has the
// exported lease, and gets the imported lease as soon as the master is back.
func TestImportReplacesExportedLease(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		a, b := w.locker(), w.locker()
		exported := must(a.Lock(w.Context(), "x", redlock.WithTTL(29*time.Second)))(w)
		handle := must(exported.Export())(w)
		after(100 * time.Millisecond)
		w.masters.Master(0).Evict("x")
		w.wire.block(2)
		w.masters.Master(2).CutConnections()
		after(10 * time.Millisecond)
		k := must(b.Import(w.Context(), handle, redlock.WithWaitLimit(5*time.Second), redlock.WithTTL(9*time.Second)))(w)
		w.wire.block()
		after(5 * time.Second) // with the next extension, at the latest
		w.wantHeld(k, w.masters.N())
		w.noError(k.Unlock(w.Context()))
		w.nothingLeft("x")
	})
}

// A waiting call that sends the attempts for its Locker gets the lock before the calls that wait behind it, even if a
// lock that was acquired by an import is handed off in the meantime.
func TestImportedLockGoesToContender(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		other, l := w.locker(), w.locker()
		held := must(other.Lock(w.Context(), "x"))(w)
		many := redlock.WithHandoff(1000, time.Minute)
		first, second := w.goLock(w.Context(), l, "x", redlock.WithPriority(100)), (*call)(nil)
		after(time.Second)
		second = w.goLock(w.Context(), l, "x", many)
		after(time.Second)
		w.noError(must(l.Import(w.Context(), must(held.Export())(w), many))(w).Unlock(w.Context()))
		w.noError(first.mustLock(5 * time.Second).Unlock(w.Context()))
		w.noError(second.mustLock(5 * time.Second).Unlock(w.Context()))
	})
}

// Two clients import one handle at the same time, as for a job that was delivered twice, while one of three masters is
// down. Each client gets the share of one master. Both give up when the exported lock must have expired, and then
// another client gets the name.
func TestTwoImportsOfOneHandleEnd(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		giver, a, b, other := w.peer("client"), w.peer("client"), w.peer("client"), w.peer("client")
		text := must(must(giver.Lock(w.Context(), "x"))(w).Export())(w)
		w.masters.Master(2).Stop()
		after(time.Second)
		a.lateTo(1, 2*time.Millisecond)
		b.lateTo(0, 2*time.Millisecond)
		ctx := w.withTimeout(10 * time.Minute)
		began := time.Now()
		var took [2]time.Duration
		var errs [2]error
		var wg sync.WaitGroup
		for i, f := range []*peer{a, b} {
			wg.Go(func() {
				_, errs[i] = f.Import(ctx, text)
				took[i] = time.Since(began)
			})
		}
		waiting := w.goLock(ctx, other, "x")
		wg.Wait()
		if errs[0] != nil && errs[1] != nil && took[0] > time.Minute && took[1] > time.Minute {
			w.Errorf("with two of three masters up the imports ended after %v: %v; and %v: %v", took[0], errs[0],
				took[1], errs[1])
		}
		w.noError(waiting.mustLock(10 * time.Minute).Unlock(w.Context()))
	})
}

// H02: the last message of a hold before its export is a repair. If the repair is still in transit when the new owner
// has imported and released the lock, the master refuses it like every late message, even if the clock of the new
// owner, and so its ballots, are behind.
func TestLateRepairOfExportedLeaseIsRefused(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		behind := newShiftClock(1)
		c, d := w.peer("client"), w.peer("client", redlock.WithClock(behind.clock()))
		behind.jump(-10*time.Millisecond, 0)
		lock := must(c.Lock(w.Context(), "x"))(w)
		after(20 * time.Millisecond)
		w.masters.Master(2).Evict("x")
		w.delay(time.Millisecond)
		go func() { _ = lock.Extend(w.Context()) }()
		after(1500 * time.Microsecond)
		w.masters.Master(2).Delay(50 * time.Millisecond)
		after(time.Millisecond) // the extension was confirmed, and the repair has left
		handle := must(lock.Export())(w)
		w.delay(0)
		w.noError(must(d.Import(w.Context(), handle))(w).Unlock(w.Context()))
		after(100 * time.Millisecond)
		w.wantOn("x", 0)
	})
}
