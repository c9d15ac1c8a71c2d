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

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/internal/frame"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// Single schedules that once broke a guarantee, each written out step by step.

// forAMinute are the options of a client with a longer max TTL than the default.
var forAMinute = []redlock.Option{
	redlock.WithMaxTTL(time.Minute), redlock.WithTTL(time.Minute), redlock.WithExtension(false),
}

// The last Unlock ends the hold, even if a re-entry is in progress, because no caller would be left to unlock it
// later.
func TestUnlockDuringReentry(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		c := w.peer("client")
		lock := must(c.Lock(w.Context(), "x"))(w)
		w.delay(5 * time.Millisecond)
		ctx := lock.Context(w.Context())
		inner := w.goLock(ctx, c, "x", redlock.WithReentry())
		after(2 * time.Millisecond)
		w.noError(lock.Unlock(w.Context()))
		if err := inner.mustFail(time.Second); !errors.Is(err, redlock.ErrReleased) && !errors.Is(err, context.Canceled) {
			w.Errorf("the re-entry returned %v", err)
		}
		after(time.Second)
		w.wantOn("x", 0)
	})
}

// A hold that reached its maximum while a re-entry was in progress is released, and does not remain until its TTL
// expires.
func TestMaxHoldDuringReentry(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		c := w.peer("client")
		lock := must(c.Lock(w.Context(), "x", redlock.WithTTL(20*time.Second), redlock.WithMaxHold(time.Second)))(w)
		after(990 * time.Millisecond)
		w.delay(20 * time.Millisecond)
		inner := w.goLock(lock.Context(context.Background()), c, "x", redlock.WithReentry())
		after(10100 * time.Microsecond)
		w.isError(lock.Unlock(w.Context()), redlock.ErrMaxHold)
		_ = inner.mustFail(time.Second)
		after(time.Second)
		w.wantOn("x", 0)
	})
}

// H28: a repair that arrives after a longer re-entry does not shorten the TTL on which the re-entry relies.
func TestLateRepairDoesNotShortenKey(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		c, d := w.peer("client"), w.peer("client")
		lock := must(c.Lock(w.Context(), "x"))(w)
		synctest.Wait()
		w.masters.Master(2).Evict("x")
		w.delay(5 * time.Millisecond)
		go func() { _ = lock.Extend(w.Context()) }()
		after(4 * time.Millisecond)
		go func() { _ = lock.Extend(w.Context()) }()
		after(8 * time.Millisecond)
		reentry := w.goLock(lock.Context(w.Context()), c, "x", redlock.WithReentry(), redlock.WithTTL(30*time.Second),
			redlock.WithMinValidity(time.Second))
		after(3 * time.Millisecond)
		c.cut(1) // the messages of the re-entry to this master are lost with the connection
		inner := reentry.mustLock(time.Second)
		c.cut(0, 1, 2)
		w.delay(0)
		after(10500 * time.Millisecond) // longer than the first TTL
		_ = w.wantOneHolder(inner, d.Locker)
		w.noError(inner.Err())
	})
}

// A failed re-entry with a longer TTL does not cause extensions in a loop without pauses.
func TestExtensionsDoNotSpinAfterFailedReentry(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		c := w.peer("client", redlock.WithTTL(time.Second))
		lock := must(c.Lock(w.Context(), "x"))(w)
		w.delay(time.Millisecond)
		ctx, cancel := context.WithTimeout(lock.Context(w.Context()), time.Millisecond)
		defer cancel()
		w.isError(errOf(c.Lock(ctx, "x", redlock.WithReentry(), redlock.WithTTL(30*time.Second))), context.DeadlineExceeded)
		after(40 * time.Second)
		atMost(w, len(w.wire.sent())+len(c.cluster.wire.sent()), 3*200, "commands in 40 s")
		w.noError(lock.Err())
	})
}

// If Export and Unlock run concurrently, one of them wins: a handle that Export has returned is valid.
func TestExportDuringUnlock(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l := w.locker()
		for range 500 {
			k := must(l.Lock(w.Context(), "x"))(w)
			var text string
			var exported error
			var wg sync.WaitGroup
			start := make(chan struct{})
			wg.Go(func() { <-start; text, exported = k.Export() })
			wg.Go(func() { <-start; _ = k.Unlock(w.Context()) })
			close(start)
			wg.Wait()
			if exported == nil {
				w.noError(must(l.Import(w.Context(), text))(w).Unlock(w.Context()))
			}
		}
	})
}

// H37: Close waits for an Unlock that started before, so the pool can be closed after Close.
func TestCloseWaitsForUnlock(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		for range rounds(200, 40) {
			p := w.pool()
			l := w.newLocker(p)
			k := must(l.Lock(w.Context(), "x"))(w)
			ctx := k.Context(w.Context())
			var cancels []context.CancelFunc
			for range 200 { // so many that ending them takes a moment
				_, cancel := context.WithCancel(ctx)
				cancels = append(cancels, cancel)
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				_ = k.Unlock(w.Context())
			}()
			<-k.Done()
			w.must(l.Close())
			w.must(p.Close())
			<-done
			for _, cancel := range cancels {
				cancel()
			}
			w.wantOn("x", 0)
		}
	})
}

// A virtual machine stops for a minute, in the second run after it was refused a lock, so its ballots are a minute
// old. The replies of all masters contain their time, and the client uses this time, although its reading from before
// the stop was more exact.
func TestFreeNameAfterFreeze(t *testing.T) {
	for _, refused := range []bool{false, true} {
		bubble(t, 3, func(w *cluster) {
			w.delay(200 * time.Microsecond)
			ca, cb := newShiftClock(1), newShiftClock(1)
			a, b := w.locker(redlock.WithClock(ca.clock())), w.locker(redlock.WithClock(cb.clock()))
			must(a.Lock(w.Context(), "n"))(w)
			if refused {
				w.isError(errOf(b.TryLock(w.Context(), "n")), redlock.ErrHeld)
			}
			w.setClocks(time.Minute)
			ca.jump(time.Minute, time.Minute)
			cb.jump(0, time.Minute)
			k := must(b.TryLock(w.Context(), "free"))(w)
			w.noError(k.Unlock(w.Context()))
		})
	}
}

// A call without a limit has won. Before it returns, two of three masters restart empty, or the machine sleeps for
// more than half of the TTL. The call must retry until its context ends.
func TestUnboundedLockDoesNotGiveUp(t *testing.T) {
	for _, how := range []string{"restart", "sleep"} {
		subtest(t, how, 3, func(w *cluster) {
			var armed atomic.Bool
			armed.Store(true)
			c := newShiftClock(1)
			l := w.locker(redlock.WithClock(c.clock()))
			redlock.Interrupt(l, func(moment string) {
				if moment != "attempt" || !armed.CompareAndSwap(true, false) { // interfere only once
					return
				}
				if how == "sleep" {
					c.jump(6*time.Second, 6*time.Second)
					return
				}
				w.restart(false, 0, 1)
				<-time.After(100 * time.Millisecond)
			})
			ctx := w.withTimeout(2 * time.Minute)
			began := time.Now()
			k, err := l.Lock(ctx, "x")
			if err != nil {
				w.Errorf("Lock gave up after %v of 2 minutes: %v", time.Since(began), err)
				return
			}
			_ = k.Unlock(w.Context()) // if two masters have restarted, the lock may be lost
		})
	}
}

// When its wait limit expires, a call fails with ErrHeld or ErrNoQuorum and not with context.DeadlineExceeded, even
// if the call is in no queue.
func TestWaitLimitOfCallsWithoutQueue(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l := w.locker()
		k, own := must(w.locker().Lock(w.Context(), "x"))(w), must(l.Lock(w.Context(), "own"))(w)
		exported := must(l.Lock(w.Context(), "exported"))(w)
		handle := must(exported.Export())(w)
		limit := redlock.WithWaitLimit(300 * time.Millisecond)
		limited := func(err, want error) {
			w.Helper()
			w.isError(err, want)
			w.notError(err, context.DeadlineExceeded)
		}
		limited(errOf(l.Lock(w.Context(), "x", limit, redlock.WithTries(1000))), redlock.ErrHeld)
		w.hang()
		limited(errOf(l.TryLock(w.Context(), "free", limit)), redlock.ErrNoQuorum)
		began := time.Now()
		limited(errOf(l.Import(w.Context(), handle, limit)), redlock.ErrNoQuorum)
		w.wantSince(began, time.Second)
		w.resume()
		after(5 * time.Second)
		w.hang()
		limited(errOf(l.Lock(own.Context(w.Context()), "own", redlock.WithReentry(), limit)), redlock.ErrNoQuorum)
		w.resume()
		after(5 * time.Second)
		_, _ = k.Unlock(w.Context()), own.Unlock(w.Context())
	})
}

// Single schedules of waiting that once broke a guarantee, each written out step by step.

// H31: if the context of a call ends at the moment at which the call gets a hold by hand-off, the call returns
// without waiting for the masters.
func TestHandoffToCancelledCallDelaysNone(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		ctx, cancel := context.WithCancel(w.Context())
		var release atomic.Bool
		l := w.locker()
		redlock.Interrupt(l, func(moment string) {
			if moment == "released" && release.CompareAndSwap(true, false) {
				w.hang()
				cancel()
				after(0) // the parked call notices the end of its context first
			}
		})
		first := must(l.Lock(w.Context(), "x"))(w)
		cancelled := w.goLock(ctx, l, "x")
		after(time.Millisecond)
		release.Store(true)
		began := time.Now()
		w.noError(first.Unlock(w.Context()))
		w.isError(cancelled.mustFail(time.Second), context.Canceled)
		w.wantSince(began, 20*time.Millisecond)
		w.resume()
	})
}

// A waiter for a key with a TTL that overflows a Duration does not retry in a loop without pauses.
func TestWaiterBehindEndlessTTLDoesNotSpin(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l := w.locker()
		now := w.masters.Master(0).Time().UnixMicro()
		keys := defaultPrefix.Keys("x")
		endless := scripts.Term{TTL: time.Second, Until: scripts.MaxBallot}
		call := scripts.NewEncoder(defaultPrefix, 0).Acquire(&keys, "stranger:1:", endless, now, now, 1, nil)
		command, args := call.Args("", false)
		args[6] = int64(20_000_000_000_000) // ms, more than a Duration holds
		for i := range 3 {
			if reply, err := w.raw(i, command, args...); reply != int64(1) || err != nil {
				w.Fatal(reply, err)
			}
		}
		w.isError(errOf(l.Lock(w.withTimeout(10*time.Second), "x")), context.DeadlineExceeded)
		atMost(w, w.count("acquire"), 3*100, "acquires in 10 s")
	})
}

// H188: clients with different timeouts exclude each other. A patient client has a vote that its master forgets, and on
// which the lock of the holder is repaired. Its message to another master arrives when the holder's lock has expired
// there by the clock of that master.
func TestPatientClientIsRefused(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		holder := w.cutOff(0, redlock.WithTTL(time.Second))
		rival := w.newPeer("rival")
		rival.pool = rival.cluster.pool(pool.WithDialer(rival.dial), pool.WithTimeout(20*time.Second))
		rival.Locker = rival.cluster.newLocker(rival.pool, redlock.WithTTL(25*time.Second))
		rival.ready()
		k := must(holder.Lock(w.Context(), "x"))(w)
		after(10 * time.Millisecond) // so that its ballot is not stale
		rival.hold(1)
		call := w.background(func() (*redlock.Lock, error) { return rival.TryLock(w.Context(), "x") })
		after(10 * time.Millisecond)
		if id, _, _ := w.masters.Master(0).Holds("x"); id == "" {
			w.Error("the patient client has no vote")
		}
		w.flush(0)
		holder.cluster.wire.block()
		after(500 * time.Millisecond)
		if on, _ := client.HeldOn(k); on != 3 {
			w.Errorf("the lock is on %d masters: it was not repaired", on)
		}
		holder.cut(1)
		after(1500 * time.Millisecond)
		rival.release()
		after(100 * time.Millisecond)
		if !call.returned() || call.err == nil || k.Err() != nil {
			w.Errorf("the patient client got %v, and the lock of the holder has ended: %v", call.err, k.Err())
		}
	})
}

// do sends one call to master i on a separate connection, and returns the reply.
func (w *cluster) do(i int, call *frame.Call) (any, error) {
	w.Helper()
	command, args := call.Args("", false)
	return w.raw(i, command, args...)
}

func (w *cluster) raw(i int, command string, args ...any) (any, error) {
	w.Helper()
	nc := must(w.masters.Dial(w.Context(), "tcp", w.masters.Master(i).Addr()))(w)
	c := redis.NewConn(nc, 0, 0)
	defer c.Close()
	return c.Do(command, args...)
}

// H12: the masters get only durations, so the locks of a client whose wall clock is hours off last as long as those
// of any other client.
func TestWallClockDoesNotAffectTTL(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		for _, off := range []time.Duration{-5 * time.Hour, 5 * time.Hour} {
			origin := time.Now()
			skewed := clock.New(func() clock.Instant {
				now := time.Now()
				return clock.At(int64(now.Sub(origin))+1, now.Add(off).UnixNano())
			})
			c := w.peer("client", redlock.WithClock(skewed))
			lock := must(c.Lock(w.Context(), "x"))(w)
			synctest.Wait() // the slowest master has the lock, too
			for i := range w.masters.N() {
				if _, _, left := w.masters.Master(i).Holds("x"); left <= 0 || left > redlock.DefaultTTL {
					w.Errorf("clock off by %v: master %d keeps the lock for %v", off, i, left)
				}
			}
			if left := lock.Remaining(); left <= 9*time.Second || left > redlock.DefaultTTL {
				w.Errorf("clock off by %v: %v of validity are left", off, left)
			}
			w.noError(lock.Unlock(w.Context()))
			synctest.Wait() // until the slowest master has released the lock
		}
	})
}

// H27: the extensions of other names are not delayed by a name whose extension fails on every master, or by a master
// that hangs.
func TestOneNameThatFailsDelaysNoOther(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		c := w.peer("client")
		var locks []*redlock.Lock
		for i := range 100 {
			k := must(c.Lock(w.Context(), fmt.Sprint("name", i)))(w)
			locks = append(locks, k)
		}
		bad := must(c.Lock(w.Context(), "x"))(w)
		synctest.Wait()
		for i := range w.masters.N() {
			w.masters.Master(i).Evict("x")
			w.masters.Master(i).Set("redlock:{x}", "a client's data")
		}
		w.masters.Master(4).Hang()
		after(time.Minute)
		for _, k := range locks {
			if left := k.Remaining(); k.Err() != nil || left < redlock.DefaultTTL/3 {
				w.Errorf("%s is valid for %v, and ended with %v", k.Name(), left, k.Err())
			}
		}
		if !errors.Is(bad.Err(), redlock.ErrLost) {
			w.Errorf("the lock whose keys are gone ended with %v", bad.Err())
		}
		w.masters.Master(4).Resume()
	})
}

// A call whose options can never be satisfied does not keep other calls of its process from the name.
func TestHopelessCallBlocksNoOther(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		for i := range 3 {
			w.masters.Master(i).Admit("redlock", 10*time.Second)
		}
		l := w.locker()
		ctx, cancel := context.WithCancel(w.Context())
		hopeless := w.goLock(ctx, l, "x", redlock.WithTTL(20*time.Second))
		after(time.Second)
		w.noError(l.Do(w.withTimeout(30*time.Second), "x", nothing, redlock.WithTTL(5*time.Second)))
		cancel()
		_ = hopeless.mustFail(time.Second)
	})
}
