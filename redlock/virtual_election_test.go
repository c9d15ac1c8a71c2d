package redlock_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// H145: an import needs votes, like an acquire: only masters that vote for this client count. Otherwise a handle that
// is delivered twice could be imported twice, the second time through a master that has lost the first import.

// H145.
func TestVirtualMastersInQuarantineImportNothing(t *testing.T) {
	virtual(t, 3, func(w *world) {
		a, b := w.locker(), w.locker()
		handle := w.export(w.take(a, "x", redlock.WithTTL(25*time.Second)))
		after(100 * time.Millisecond)
		for i := range 2 { // they come back with the exported lease, as it was in their last save
			w.masters.Master(i).Restart(true)
		}
		after(2 * time.Second)
		_, err := b.Import(w.Context(), handle, redlock.WithWaitLimit(5*time.Second))
		w.isError(err, redlock.ErrNoQuorum)
	})
}

// H63: a client that names three of the five masters of a deployment imports nothing, as it locks nothing. H145.
func TestVirtualAProgramWithOtherMastersImportsNothing(t *testing.T) {
	virtual(t, 5, func(w *world) {
		a := w.locker()
		p, err := pool.Open(w.urls(0, 1, 2), transport.WithClock(clock.Runtime()), pool.WithDialer(
			func(ctx context.Context, network, addr string) (net.Conn, error) {
				if "redis://"+addr == w.masters.URLs()[2] {
					return nil, errBlocked // so the deployment has a majority without the two that are left
				}
				return w.wire.dial(ctx, network, addr)
			}))
		if err != nil {
			t.Fatal(err)
		}
		w.Cleanup(func() { _ = p.Close() })
		handle := w.export(w.take(a, "x"))
		after(100 * time.Millisecond)
		_, err = w.over(p).Import(w.Context(), handle, redlock.WithWaitLimit(5*time.Second))
		w.isError(err, redlock.ErrNoQuorum)
	})
}

// A client that uses only the next masters too early imports nothing. H145.
func TestVirtualAProgramThatIsTooEarlyImportsNothing(t *testing.T) {
	virtual(t, 6, func(w *world) {
		old, next := []int{0, 1, 2}, []int{3, 4, 5}
		w.admittedApart(old, next)
		a := w.some(old)
		w.change(a, redlock.Configuration{Epoch: 1, Masters: w.urls(old...), Next: w.urls(next...)})
		early := w.some(next, redlock.WithConfiguration(redlock.Configuration{Epoch: 2, Masters: w.urls(next...)}))
		handle := w.export(w.take(a, "x"))
		after(100 * time.Millisecond)
		_, err := early.Import(w.Context(), handle, redlock.WithWaitLimit(5*time.Second))
		w.isError(err, redlock.ErrNoQuorum)
	})
}

// A master that an import did not reach still has the exported lease. It gets the imported one as soon as it is back.
func TestVirtualImportReplacesExportedLease(t *testing.T) {
	virtual(t, 3, func(w *world) {
		a, b := w.locker(), w.locker()
		handle := w.export(w.take(a, "x", redlock.WithTTL(29*time.Second)))
		after(100 * time.Millisecond)
		w.wire.block(2)
		w.masters.Master(2).CutConnections()
		after(10 * time.Millisecond)
		k, err := b.Import(w.Context(), handle, redlock.WithWaitLimit(5*time.Second), redlock.WithTTL(9*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		w.wire.block()
		after(5 * time.Second) // with the next extension, at the latest
		if on, n := k.HeldOn(); on != n {
			t.Errorf("it is on %d of %d masters", on, n)
		}
		if err := k.Unlock(w.Context()); err != nil {
			t.Error(err)
		}
		w.nothingLeft("x")
	})
}

// Lead returns if its context owns the name by a lock that has ended, since it can never lead again.
func TestVirtualLeadByALockThatHasEndedReturns(t *testing.T) {
	virtual(t, 3, func(w *world) {
		l := w.locker(quiet())
		k := w.take(l, "x")
		owned := context.WithoutCancel(k.Context(w.Context()))
		w.masters.Lose("x")
		<-k.Done()
		ctx, cancel := context.WithTimeout(owned, time.Minute)
		defer cancel()
		if err := l.Lead(ctx, "x", func(context.Context) error { return nil }); !errors.Is(err, redlock.ErrLost) ||
			ctx.Err() != nil {
			t.Errorf("%v, and its context ended with %v", err, ctx.Err())
		}
		_ = k.Unlock(w.Context())
	})
}

// A call that contends for a name goes before the calls that wait behind it, even if a lock that was won by an import
// is handed off meanwhile.
func TestVirtualImportedLockGoesToContender(t *testing.T) {
	virtual(t, 3, func(w *world) {
		other, l := w.locker(), w.locker()
		held := w.take(other, "x")
		many := redlock.WithHandoff(1000, time.Minute)
		first, second := w.call(w.Context(), l, "x", redlock.WithPriority(100)), (*call)(nil)
		after(time.Second)
		second = w.call(w.Context(), l, "x", many)
		after(time.Second)
		k, err := l.Import(w.Context(), w.export(held), many)
		if err != nil {
			t.Fatal(err)
		}
		if err := k.Unlock(w.Context()); err != nil {
			t.Error(err)
		}
		next, _ := first.gets(5 * time.Second)
		w.unlock(next)
		next, _ = second.gets(5 * time.Second)
		w.unlock(next)
	})
}
