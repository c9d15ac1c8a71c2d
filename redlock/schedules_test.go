package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock"
)

// Single schedules that once broke a guarantee, each written out step by step.

// forAMinute are the options of a client with a longer max TTL than the default.
var forAMinute = []redlock.Option{
	redlock.WithMaxTTL(time.Minute), redlock.WithTTL(time.Minute), redlock.WithExtension(false),
}

// The last Unlock ends the hold, even if re-entries are under way: no caller would be left to unlock it.
func TestUnlockDuringReentry(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		c := w.peer("client")
		lock := w.take(c, "x")
		w.delay(5 * time.Millisecond)
		ctx := lock.Context(w.Context())
		inner := make(chan error, 1)
		go func() {
			_, err := c.Lock(ctx, "x")
			inner <- err
		}()
		after(2 * time.Millisecond)
		w.unlock(lock)
		if err := <-inner; !errors.Is(err, redlock.ErrReleased) && !errors.Is(err, context.Canceled) {
			w.Errorf("the re-entry: %v", err)
		}
		after(time.Second)
		w.wantOn("x", 0)
	})
}

// A hold that ended by its limit while a re-entry was under way is released by the last Unlock, not left to its TTL.
func TestUnlockAfterLossDuringReentry(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		c := w.peer("client")
		lock := w.take(c, "x", redlock.WithTTL(20*time.Second), redlock.WithMaxHold(time.Second))
		after(990 * time.Millisecond)
		w.delay(20 * time.Millisecond)
		inner := make(chan error, 1)
		go func() {
			_, err := c.Lock(lock.Context(context.Background()), "x")
			inner <- err
		}()
		after(10100 * time.Microsecond)
		w.isError(lock.Unlock(w.Context()), redlock.ErrMaxHold)
		if err := <-inner; err == nil {
			w.Error("the re-entry entered a hold that had ended")
		}
		after(time.Second)
		w.wantOn("x", 0)
	})
}

// H28: a repair that comes after a longer re-entry does not shorten the key that the re-entry counts on.
func TestLateRepairDoesNotShortenKey(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		c, d := w.peer("client"), w.peer("client")
		lock := w.take(c, "x")
		synctest.Wait()
		w.masters.Master(2).Evict("x")
		w.delay(5 * time.Millisecond)
		go func() { _ = lock.Extend(w.Context()) }()
		after(4 * time.Millisecond)
		go func() { _ = lock.Extend(w.Context()) }()
		after(8 * time.Millisecond)
		won := make(chan *redlock.Lock, 1)
		go func() {
			ctx := lock.Context(w.Context())
			inner, err := c.Lock(ctx, "x", redlock.WithTTL(30*time.Second), redlock.WithMinValidity(time.Second))
			w.noError(err)
			won <- inner
		}()
		after(3 * time.Millisecond)
		c.cut(1) // the messages of the re-entry to this master are lost with the connection
		inner := <-won
		c.cut(0, 1, 2)
		w.delay(0)
		after(10500 * time.Millisecond) // longer than the first TTL
		d.mustNotTake(inner)
	})
}

// H58: the records that an idle client read long ago do not determine the length of a quarantine.
func TestQuarantineUsesRecentRecords(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		for i, g := range []time.Duration{10 * time.Second, 10 * time.Second, time.Minute} {
			w.masters.Master(i).Admit("redlock", g)
		}
		idle := w.peer("client", redlock.WithMaxTTL(10*time.Second), redlock.WithTTL(5*time.Second))
		b := w.peer("client", forAMinute...)
		w.masters.Master(0).Flush()                                                          // no connection notices
		if _, err := b.TryLock(w.Context(), "y", redlock.WithTTL(time.Second)); err != nil { // b contacts the master
			w.Fatal(err)
		}
		after(65 * time.Second)
		held := w.take(b, "x")
		b.cut(2) // another client must detect the restarted master first
		w.restart(false, 2)
		after(14 * time.Second)
		idle.mustNotTake(held)
	})
}

// A master that boots before its clock is set is not admitted by a client that sees too few clocks to compare.
func TestWrongClockIsNotMedian(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		h := w.cutOff(1, redlock.WithTTL(30*time.Second), redlock.WithExtension(false))
		held := w.take(h, "x")
		h.cut(0)
		w.masters.Master(0).SetClock(-10*time.Minute, 1)
		w.restart(false, 0)
		c := w.cutOff(2, redlock.WithTTL(5*time.Second))
		after(4 * time.Second)
		w.masters.Master(0).SetClock(0, 1) // NTP
		after(5 * time.Second)
		c.mustNotTake(held)
	})
}

// H58: a master that has lost its data does not know the max TTL that was in use.
func TestForgetfulMasterIsNoWitness(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		for i, g := range []time.Duration{time.Minute, time.Minute, time.Minute, 10 * time.Second, 10 * time.Second} {
			w.masters.Master(i).Admit("redlock", g)
		}
		b := w.peer("client", forAMinute...)
		held := w.take(b, "x")
		b.cut(0, 1)
		w.restart(false, 0)
		w.restart(false, 1)
		s := w.cutOff(2, redlock.WithMaxTTL(10*time.Second), redlock.WithTTL(5*time.Second))
		after(14 * time.Second)
		s.mustNotTake(held)
	})
}

// A quarantine that began while too few other masters were reachable waits for them, however long, and then lasts no
// longer than their records require.
func TestQuarantineEndsOnceQuorumWasAsked(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		c := w.peer("client")
		w.restart(false, 0)
		after(5 * time.Second)
		if left := c.Masters()[0].Left; left < 20*time.Second || left > redlock.DefaultMaxTTL {
			w.Errorf("%v left, the max TTL is %v", left, redlock.DefaultMaxTTL)
		}
		c.cut(1, 2)
		after(10 * time.Minute)
		if state := c.Masters()[0].State; state == "voting" {
			w.Errorf("state %s, with no other master reached", state)
		}
		c.cluster.wire.block(2)
		after(5 * time.Second)
		if state := c.Masters()[0].State; state != "voting" {
			w.Errorf("state %s, with one of two other masters reached", state)
		}
	})
}

// A failed re-entry with a longer TTL does not make the extensions of the hold loop without pauses.
func TestExtensionsDoNotSpinAfterFailedReentry(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		c := w.peer("client", redlock.WithTTL(time.Second))
		lock := w.take(c, "x")
		w.delay(time.Millisecond)
		ctx, cancel := context.WithTimeout(lock.Context(w.Context()), time.Millisecond)
		defer cancel()
		w.isError(errOf(c.Lock(ctx, "x", redlock.WithTTL(30*time.Second))), context.DeadlineExceeded)
		after(40 * time.Second)
		total := 0
		for _, n := range w.masters.Master(0).Commands() {
			total += n
		}
		if total > 200 {
			w.Errorf("%d commands in 40 s", total)
		}
		if lock.Err() != nil {
			w.Error(lock.Err())
		}
	})
}

// H26, H59: one master with a poisoned fence does not stop the repair of the others.
func TestPoisonedFenceDoesNotStopRepair(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		w.masters.Master(4).Set("redlock:{x}:fence", "9000000000000000")
		c := w.peer("client")
		lock := w.take(c, "x")
		after(5 * time.Second)
		w.masters.Master(3).Evict("x")
		after(30 * time.Second)
		w.wantHeld(lock, w.masters.N())
	})
}

// Of a concurrent Export and Unlock one wins: a handle that was returned is valid.
func TestExportDuringUnlock(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l := w.locker()
		for range 500 {
			k := w.take(l, "x")
			var text string
			var exported error
			var wg sync.WaitGroup
			start := make(chan struct{})
			wg.Go(func() { <-start; text, exported = k.Export() })
			wg.Go(func() { <-start; _ = k.Unlock(w.Context()) })
			close(start)
			wg.Wait()
			if exported == nil {
				w.unlock(w.imported(l, text))
			}
		}
	})
}

// H37: Close waits for an Unlock that came first, so the pool can be closed after it.
func TestCloseWaitsForUnlock(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		for range 200 {
			p := w.pool()
			l := w.start(p)
			k := w.take(l, "x")
			ctx := k.Context(w.Context())
			var cancels []context.CancelFunc
			for range 200 { // ending them takes a moment
				_, cancel := context.WithCancel(ctx)
				cancels = append(cancels, cancel)
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				_ = k.Unlock(w.Context())
			}()
			<-k.Done()
			w.must(l.Close(w.Context()))
			w.must(p.Close())
			<-done
			for _, cancel := range cancels {
				cancel()
			}
			w.wantOn("x", 0)
		}
	})
}

// Schedules that were found by reading the code, and that broke a guarantee.

// While Admit waits for the last server to start, the others vote and clients lock. One of those restarts empty: the
// pending Admit must not let it vote. The caller's assertion was true only when it called.
func TestPendingAdmitRejectsForgetfulMaster(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		w.masters.Master(2).Stop() // this master starts later than the others
		operator := w.peer("client")
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- operator.Admin().Admit(ctx) }()
		after(time.Second)
		h, p := w.cutOff(2), w.peer("client") // h never reaches the last master
		held := w.takeWith(h, ctx, "x")
		after(time.Second)
		w.restart(false, 0)
		after(time.Second)
		w.restart(false, 2)
		after(2 * time.Second)
		w.Log(p.Masters())
		p.mustNotTake(held)
		cancel()
		if err := <-done; err == nil {
			w.Error("the call ended before its context, although one master does not vote")
		}
	})
}

// If the script refuses to put a master into quarantine because its clock is off, the caller gets an error.
func TestRefusedQuarantineIsError(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l := w.locker()
		m := w.masters.Master(0)
		m.SetClock(time.Minute, 1)
		after(10 * time.Second)
		err := l.Admin().Quarantine(w.Context(), m.Addr())
		after(time.Second)
		if text, _ := m.Get(defaultPrefix.Admission()); err == nil && !strings.Contains(text, "state=quarantine") {
			w.Errorf("no error, and its record is %q; the Locker has it as %+v", text, l.Masters()[0])
		}
	})
}

// A virtual machine stops for a minute after it was refused a lock. Its ballots are a minute old. All masters show that
// by their time, and the client uses it, although the reading from before the freeze was more exact.
func TestFreeNameAfterFreeze(t *testing.T) {
	for _, refused := range []bool{false, true} {
		bubble(t, 3, func(w *cluster) {
			w.delay(200 * time.Microsecond)
			ca, cb := newShiftClock(1), newShiftClock(1)
			a, b := w.locker(redlock.WithClock(ca.clock())), w.locker(redlock.WithClock(cb.clock()))
			w.take(a, "n")
			if refused {
				w.isError(errOf(b.TryLock(w.Context(), "n")), redlock.ErrHeld)
			}
			w.each(func(_ int, m *memory.Master) { m.SetClock(time.Minute, 1) })
			ca.jump(time.Minute, time.Minute)
			cb.jump(0, time.Minute)
			k := w.tryTake(b, "free")
			w.unlock(k)
		})
	}
}

// H28: an inner lock neither shortens nor ends the outer one, even if the masters are out of memory when it is
// unlocked: they refuse the new depth, but still extend the lock.
func TestInnerUnlockOnFullMasters(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 3)
	l := f.admitted(redlock.WithTTL(time.Second))
	outer := f.take(l, "x")
	inner := f.takeWith(l, outer.Context(t.Context()), "x")
	for i := range f.servers {
		f.do(i, "CONFIG", "SET", "maxmemory", "1")
	}
	t.Logf("inner unlock: %.200v", inner.Unlock(t.Context()))
	<-time.After(3 * time.Second)
	f.noError(outer.Err())
}

// An unbounded call has won, and before it returns two of three masters restart empty, or the machine sleeps for half
// of its TTL. The call retries until its context ends.
func TestUnboundedLockDoesNotGiveUp(t *testing.T) {
	for _, how := range []string{"restart", "sleep"} {
		subtest(t, how, 3, func(w *cluster) {
			var armed atomic.Bool
			armed.Store(true)
			c := newShiftClock(1)
			l := w.locker(redlock.WithClock(c.clock()))
			redlock.Interrupt(l, func(moment string) {
				if moment != "attempt" || !armed.CompareAndSwap(true, false) { // stop the client here once
					return
				}
				if how == "sleep" {
					c.jump(6*time.Second, 6*time.Second)
					return
				}
				w.restart(false, 0, 1)
				<-time.After(100 * time.Millisecond)
			})
			ctx := w.within(2 * time.Minute)
			began := time.Now()
			k, err := l.Lock(ctx, "x")
			if err != nil {
				w.Errorf("after %v of 2 minutes: %v", time.Since(began), err)
				return
			}
			_ = k.Unlock(w.Context()) // if two masters have restarted it may have been lost since
		})
	}
}

// A backoff panics in an import, in a client that recovers: the shares already taken over are released.
func TestPanicInImportLeavesNothing(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		giver := w.locker()
		text := w.export(w.take(giver, "x", redlock.WithTTL(30*time.Second)))
		w.stop(1, 2)
		l := w.locker(redlock.WithRetry(redlock.Retry{Pause: func(int) time.Duration { panic("a policy") }}))
		if !recovered(func() { _, _ = l.Import(w.Context(), text) }) {
			w.Error("nothing panicked")
		}
		after(2 * time.Second)
		if id, _, left := w.masters.Master(0).Holds("x"); id != "" {
			w.Errorf("the name stays locked for no client for %v", left)
		}
	})
}

// Two clients import one handle at once (a job that was delivered twice), while one of three masters is down. Each gets
// one master. They give up when the exported lock must have expired, and others get the name.
func TestTwoImportsOfOneHandleEnd(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		giver, a, b, other := w.peer("client"), w.peer("client"), w.peer("client"), w.peer("client")
		text, err := w.take(giver, "x").Export()
		w.must(err)
		w.masters.Master(2).Stop()
		after(time.Second)
		a.lateTo(1, 2*time.Millisecond)
		b.lateTo(0, 2*time.Millisecond)
		ctx := w.within(10 * time.Minute)
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
		got := make(chan error, 1)
		go func() {
			k, err := other.Lock(ctx, "x")
			if err == nil {
				_ = k.Unlock(ctx)
			}
			got <- err
		}()
		wg.Wait()
		if errs[0] != nil && errs[1] != nil && took[0] > time.Minute && took[1] > time.Minute {
			w.Errorf("with two of three masters up the imports ended after %v: %v; and %v: %v", took[0], errs[0],
				took[1], errs[1])
		}
		w.noError(<-got)
	})
}

// An import comes late, while one of three masters is down: the first master still has the lock, and on the second it
// has expired. The import is neither won nor lost, and keeps its share for at most the max TTL.
func TestLateImportEnds(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		giver, a, other := w.peer("client"), w.peer("client"), w.peer("client")
		w.masters.Master(2).Stop()
		after(time.Second)
		text := w.export(w.take(giver, "x"))
		a.lateTo(1, 20*time.Millisecond)
		after(redlock.DefaultTTL - 10*time.Millisecond)
		ctx, cancel := context.WithTimeout(w.Context(), 10*time.Minute)
		defer cancel()
		began, late := time.Now(), make(chan error, 1)
		go func() {
			_, err := a.Import(ctx, text)
			late <- err
		}()
		_ = errOf(other.Lock(ctx, "x"))
		w.wantSince(began, time.Minute)
		cancel()
		w.Log("the import:", <-late)
	})
}

// When the wait limit expires, a call fails with ErrHeld or ErrNoQuorum and not with context.DeadlineExceeded, even if
// it is in no queue.
func TestWaitLimitOfCallsWithoutQueue(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l := w.locker()
		k, own := w.take(w.locker(), "x"), w.take(l, "own")
		limit := redlock.WithWaitLimit(300 * time.Millisecond)
		limited := func(err, want error) {
			w.Helper()
			w.isError(err, want)
			w.notError(err, context.DeadlineExceeded)
		}
		limited(errOf(l.Lock(w.Context(), "x", limit, redlock.WithTries(1000))), redlock.ErrHeld)
		limited(errOf(l.Lock(w.Context(), "x", limit, redlock.WithRetry(redlock.Retry{
			Pause: func(int) time.Duration { return 50 * time.Millisecond },
		}))), redlock.ErrHeld)
		w.hang()
		limited(errOf(l.TryLock(w.Context(), "free", limit)), redlock.ErrNoQuorum)
		w.resume()
		after(5 * time.Second)
		w.hang()
		limited(errOf(l.Lock(own.Context(w.Context()), "own", limit)), redlock.ErrNoQuorum)
		w.resume()
		after(5 * time.Second)
		_, _ = k.Unlock(w.Context()), own.Unlock(w.Context())
	})
}

// WithWaitLimit also bounds an import.
func TestWaitLimitOfImport(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		text := w.export(w.take(w.locker(), "x"))
		l := w.locker()
		w.stop(0, 1)
		after(time.Second)
		ctx := w.within(10 * time.Minute)
		began := time.Now()
		_ = errOf(l.Import(ctx, text, redlock.WithWaitLimit(time.Second)))
		w.wantSince(began, 2*time.Second)
	})
}

// Single schedules of waiting that once broke a guarantee, each written out step by step.

// H31: a call whose context ends at the same moment at which it gets a hold by hand-off returns, regardless of the
// masters.
func TestHandoffToCancelledCallDelaysNone(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		ctx, cancel := context.WithCancel(w.Context())
		var release atomic.Bool
		l := w.locker()
		redlock.Interrupt(l, func(moment string) {
			if moment == "released" && release.CompareAndSwap(true, false) {
				w.hang()
				cancel()
				after(0) // the parked call sees its context end before its turn
			}
		})
		first := w.take(l, "x")
		waited := make(chan time.Duration, 1)
		var ended time.Time
		go func() {
			w.isError(errOf(l.Lock(ctx, "x")), context.Canceled)
			waited <- time.Since(ended)
		}()
		after(time.Millisecond)
		release.Store(true)
		ended = time.Now()
		w.unlock(first)
		atMost(w, <-waited, 20*time.Millisecond, "time since the end of the context")
		w.resume()
	})
}

// A key with a TTL that overflows a Duration does not make a waiter loop without pauses.
func TestWaiterBehindEndlessTTLDoesNotSpin(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l := w.locker()
		now := w.masters.Master(0).Time().UnixMicro()
		keys := defaultPrefix.Keys("x")
		call := scripts.NewEncoder(defaultPrefix, 0).Acquire(&keys, "stranger:1:", time.Second, now, now, nil)
		command, args := call.Args("", false)
		args[6] = int64(20_000_000_000_000) // ms, more than a Duration holds
		for i := range 3 {
			if reply, err := w.raw(i, command, args...); reply != int64(1) || err != nil {
				w.Fatal(reply, err)
			}
		}
		w.isError(errOf(l.Lock(w.within(10*time.Second), "x")), context.DeadlineExceeded)
		atMost(w, w.count("acquire"), 3*100, "acquires in 10 s")
	})
}

// A foreign message, or a hint for an unknown waiter, releases no lease.
func TestForgedHintReleasesNothing(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l := w.locker()
		k := w.take(l, "x", redlock.WithExtension(false))
		w.masters.Take("y", time.Minute)
		_, _ = l.Lock(w.within(time.Second), "y") // the inbox is open
		id, _ := w.masters.Holder("x")
		owner, _ := scripts.LeaseLabel(id)
		for i := range 3 {
			for _, waiter := range []string{id, fmt.Sprintf("%016d:%s", time.Now().UnixMicro(), id), "", "nobody"} {
				forged := waiter + "\n" + defaultPrefix.Lock("x")
				if n, err := redis.Int(w.raw(i, "PUBLISH", defaultPrefix.Inbox(owner), forged)); n != 1 || err != nil {
					w.Fatalf("%d subscribers, %v", n, err)
				}
			}
		}
		after(time.Second)
		if on := w.on("x"); on < 3 {
			w.Errorf("held on %d masters after a forged message", on)
		}
		_ = k.Unlock(w.Context())
	})
}

// do makes a master execute one call, on a separate connection.
func (w *cluster) do(i int, call *scripts.Call) (any, error) {
	w.Helper()
	command, args := call.Args("", false)
	return w.raw(i, command, args...)
}

func (w *cluster) raw(i int, command string, args ...any) (any, error) {
	w.Helper()
	nc, err := w.masters.Dial(w.Context(), "tcp", w.masters.Master(i).Addr())
	w.must(err)
	c := redis.NewConn(nc, 0, 0)
	defer c.Close()
	return c.Do(command, args...)
}

// H42: what a waiter leaves in the queues when its client dies is gone soon, also while others go on waiting.
func TestDeadWaiterLeavesQueue(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		holder, waiter := w.locker(), w.locker()
		w.take(holder, "x")
		ctx, cancel := context.WithCancel(w.Context())
		done := make(chan struct{})
		go func() { _, _ = waiter.Lock(ctx, "x"); close(done) }()
		after(time.Second)
		for range 5 { // five clients that wait and die
			p := w.peer("client")
			dead, die := context.WithCancel(w.Context())
			gone := make(chan struct{})
			go func() { _, _ = p.Lock(dead, "x"); close(gone) }()
			after(time.Second)
			p.cut(0, 1, 2)
			die()
			<-gone
		}
		after(10 * time.Minute)
		for i := range 3 {
			if n := len(w.waiters(i, "x")); n > 1 {
				w.Errorf("%d are queued on master %d; one waits", n, i)
			}
		}
		cancel()
		<-done
	})
}

// H02: the last message of a hold before its export is a repair. If that is still in transit when the new owner has
// taken over and released, it is refused like every late message, even if the new owner's ballots are behind.
func TestLateRepairOfExportedLeaseIsRefused(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		behind := newShiftClock(1)
		c, d := w.peer("client"), w.peer("client", redlock.WithClock(behind.clock()))
		behind.jump(-10*time.Millisecond, 0)
		lock := w.take(c, "x")
		after(20 * time.Millisecond)
		w.masters.Master(2).Evict("x")
		w.delay(time.Millisecond)
		go func() { _ = lock.Extend(w.Context()) }()
		after(1500 * time.Microsecond)
		w.masters.Master(2).Delay(50 * time.Millisecond)
		after(time.Millisecond) // the extension was confirmed, and the repair has left
		handle := w.export(lock)
		w.delay(0)
		w.unlock(w.imported(d, handle))
		after(100 * time.Millisecond)
		w.wantOn("x", 0)
	})
}

// A hold is not handed off to a call with a shorter TTL: it would keep the name for longer than that if the new holder
// dies.
func TestHandoffKeepsTTLOfSuccessor(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l := w.locker(redlock.WithTTL(30 * time.Second))
		first := w.take(l, "x")
		got := make(chan *redlock.Lock, 1)
		go func() {
			k, _ := l.Lock(w.Context(), "x", redlock.WithTTL(time.Second), redlock.WithExtension(false))
			got <- k
		}()
		after(time.Millisecond)
		w.unlock(first)
		k := <-got
		if k.Remaining() > time.Second {
			w.Errorf("requested 1 s without extension, has %v", k.Remaining())
		}
		w.unlock(k)
	})
}

// H12: the masters get durations only, so a client whose wall clock is hours off locks for as long as any other.
func TestWallClockOfClientIsInNoTTL(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		for _, off := range []time.Duration{-5 * time.Hour, 5 * time.Hour} {
			origin := time.Now()
			skewed := clock.New(func() clock.Instant {
				now := time.Now()
				return clock.At(int64(now.Sub(origin))+1, now.Add(off).UnixNano())
			})
			c := w.peer("client", redlock.WithClock(skewed))
			lock := w.take(c, "x")
			synctest.Wait() // the slowest master has it too
			for i := range w.masters.N() {
				if _, _, left := w.masters.Master(i).Holds("x"); left <= 0 || left > redlock.DefaultTTL {
					w.Errorf("clock off by %v: master %d keeps the lock for %v", off, i, left)
				}
			}
			if left := lock.Remaining(); left <= 9*time.Second || left > redlock.DefaultTTL {
				w.Errorf("clock off by %v: %v of validity", off, left)
			}
			w.unlock(lock)
			synctest.Wait() // and the slowest has let it go, before another connection requests it
		}
	})
}

// H27: a name whose extension fails on every master, and a master that hangs, delay the extension of no other name.
func TestOneNameThatFailsDelaysNoOther(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		c := w.peer("client")
		var locks []*redlock.Lock
		for i := range 100 {
			k := w.take(c, fmt.Sprint("name", i))
			locks = append(locks, k)
		}
		bad := w.take(c, "x")
		synctest.Wait()
		for i := range w.masters.N() {
			w.masters.Master(i).Evict("x")
			w.masters.Master(i).Set("redlock:{x}", "a client's data")
		}
		w.masters.Master(4).Hang()
		after(time.Minute)
		for _, k := range locks {
			if left := k.Remaining(); k.Err() != nil || left < redlock.DefaultTTL/3 {
				w.Errorf("%s: %v left, %v", k.Name(), left, k.Err())
			}
		}
		if !errors.Is(bad.Err(), redlock.ErrLost) {
			w.Errorf("the lock whose keys are gone: %v", bad.Err())
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
		done := make(chan error, 1)
		go func() {
			_, err := l.Lock(ctx, "x", redlock.WithTTL(20*time.Second))
			done <- err
		}()
		after(time.Second)
		w.unlock(w.takeWith(l, w.within(30*time.Second), "x", redlock.WithTTL(5*time.Second)))
		cancel()
		if err := <-done; err == nil {
			w.Error("the call that cannot win has got the name")
		}
	})
}

// race starts a fair call for "x", and appends its name to order when it has the lock.
func (w *cluster) race(l client, name string, order *[]string) *call {
	c := &call{w: w, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		k := w.take(l, "x", redlock.WithFair())
		*order = append(*order, name)
		<-time.After(time.Millisecond)
		_ = k.Unlock(w.Context())
	}()
	return c
}

// A client that does not know the masters' time yet does not go before all others.
func TestFairCallOfNewClientGoesToTheEnd(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		held := w.take(w.locker(), "x")
		var order []string
		first := w.race(w.locker(), "old", &order)
		after(time.Second)
		second := w.race(w.start(w.pool()), "new", &order) // at once, before it knows anything
		after(2 * time.Second)
		w.unlock(held)
		<-first.done
		<-second.done
		equal(w, order[0], "old", "first client")
	})
}

// A fair call of a client without waiters does not overtake queued waiters if the name is free because its holder is
// dead.
func TestNewFairCallDoesNotOvertake(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		a, b := w.locker(), w.locker()
		w.masters.Take("x", 2*time.Second)
		w.delay(10 * time.Microsecond)
		var order []string
		first := w.race(a, "old", &order)
		for w.on("x") > 0 {
			after(100 * time.Microsecond)
		}
		second := w.race(b, "new", &order)
		<-first.done
		<-second.done
		equal(w, order[0], "old", "first client")
	})
}

// A fair call whose context ends before the masters are known does not block the queue.
func TestFairCallCancelledEarlyLeavesQueue(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		w.hang()
		l := w.start(w.pool())
		w.isError(errOf(l.Lock(w.within(10*time.Millisecond), "x", redlock.WithFair())), context.DeadlineExceeded)
		w.resume()
		w.unlock(w.takeWith(l, w.within(time.Minute), "x"))
	})
}
