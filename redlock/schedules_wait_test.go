package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock"
)

// Single schedules of waiting that once broke a guarantee, each written out step by step.

// H31: a call whose context ends at the same moment at which it gets a hold by hand-off returns, regardless of the
// masters.
func TestALockThatIsHandedToOneWhoGaveUpDelaysNobody(t *testing.T) {
	virtual(t, 3, func(w *world) {
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
			_, err := l.Lock(ctx, "x")
			w.isError(err, context.Canceled)
			waited <- time.Since(ended)
		}()
		after(time.Millisecond)
		release.Store(true)
		ended = time.Now()
		if err := first.Unlock(w.Context()); err != nil {
			t.Error(err)
		}
		if took := <-waited; took > 20*time.Millisecond {
			t.Errorf("the call returned %v after its context had ended", took)
		}
		w.resume()
	})
}

// A key with a TTL that overflows a Duration does not make a waiter loop without pauses.
func TestAnEndlessTTLDoesNotMakeAWaiterSpin(t *testing.T) {
	virtual(t, 3, func(w *world) {
		l := w.locker()
		now := w.masters.Master(0).Time().UnixMicro()
		keys := defaultPrefix.Keys("x")
		call := scripts.NewEncoder(defaultPrefix, 0).Acquire(&keys, "stranger:1:", time.Second, now, now, nil)
		command, args := call.Args("", false)
		args[6] = int64(20_000_000_000_000) // ms, more than a Duration holds
		for i := range 3 {
			if reply, err := w.raw(i, command, args...); reply != int64(1) || err != nil {
				t.Fatal(reply, err)
			}
		}
		ctx, cancel := context.WithTimeout(w.Context(), 10*time.Second)
		defer cancel()
		_, err := l.Lock(ctx, "x")
		w.isError(err, context.DeadlineExceeded)
		if n := w.count("acquire"); n > 3*100 {
			t.Errorf("%d acquires in 10 s", n)
		}
	})
}

// A foreign message, or a hint for an unknown waiter, releases no lease.
func TestAForgedHintReleasesNothing(t *testing.T) {
	virtual(t, 3, func(w *world) {
		l := w.locker()
		k := w.take(l, "x", redlock.WithExtension(false))
		w.masters.Take("y", time.Minute)
		ctx, cancel := context.WithTimeout(w.Context(), time.Second)
		defer cancel()
		_, _ = l.Lock(ctx, "y") // the inbox is open
		id, _ := w.masters.Holder("x")
		owner, _ := scripts.LeaseLabel(id)
		for i := range 3 {
			for _, waiter := range []string{id, fmt.Sprintf("%016d:%s", time.Now().UnixMicro(), id), "", "nobody"} {
				forged := waiter + "\n" + defaultPrefix.Lock("x")
				if n, err := redis.Int(w.raw(i, "PUBLISH", defaultPrefix.Inbox(owner), forged)); n != 1 || err != nil {
					t.Fatalf("%d heard it, %v", n, err)
				}
			}
		}
		after(time.Second)
		if on := w.on("x"); on < 3 {
			t.Errorf("held on %d masters after a forged message", on)
		}
		_ = k.Unlock(w.Context())
	})
}

// do makes a master execute one call, on a separate connection.
func (w *world) do(i int, call *scripts.Call) (any, error) {
	w.Helper()
	command, args := call.Args("", false)
	return w.raw(i, command, args...)
}

func (w *world) raw(i int, command string, args ...any) (any, error) {
	w.Helper()
	nc, err := w.masters.Dial(w.Context(), "tcp", w.masters.Master(i).Addr())
	if err != nil {
		w.Fatal(err)
	}
	c := redis.NewConn(nc, 0, 0)
	defer c.Close()
	return c.Do(command, args...)
}

// H42: what a waiter leaves in the queues when its program dies is gone soon, also while others go on waiting.
func TestADeadWaiterLeavesTheQueueWhileOthersWait(t *testing.T) {
	virtual(t, 3, func(w *world) {
		holder, waiter := w.locker(), w.locker()
		w.take(holder, "x")
		ctx, cancel := context.WithCancel(w.Context())
		done := make(chan struct{})
		go func() { _, _ = waiter.Lock(ctx, "x"); close(done) }()
		after(time.Second)
		for range 5 { // five programs that wait and die
			p := newParty(w.T, w.masters, nil)
			dead, die := context.WithCancel(w.Context())
			gone := make(chan struct{})
			go func() { _, _ = p.Lock(dead, "x"); close(gone) }()
			after(time.Second)
			p.cutOff(0, 1, 2)
			die()
			<-gone
		}
		after(10 * time.Minute)
		for i := range 3 {
			if n := len(w.waiters(i, "x")); n > 1 {
				t.Errorf("%d are queued on master %d; one waits", n, i)
			}
		}
		cancel()
		<-done
	})
}

// H02: the last message of a hold before its export is a repair. If that is still in transit when the new owner has
// taken over and released, it is refused like every late message, even if the new owner's ballots are behind.
func TestALateRepairOfAnExportedGrantIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMasters(t, 3)
		behind := newShiftClock(1)
		c, d := newParty(t, m, nil), newParty(t, m, nil, redlock.WithClock(behind.clock()))
		behind.jump(-10*time.Millisecond, 0)
		lock := c.lock()
		passes(20 * time.Millisecond)
		m.Master(2).Evict("x")
		slow(m, time.Millisecond)
		go func() { _ = lock.Extend(t.Context()) }()
		passes(1500 * time.Microsecond)
		m.Master(2).Delay(50 * time.Millisecond)
		passes(time.Millisecond) // the extension was confirmed, and the repair has left
		handle, err := lock.Export()
		if err != nil {
			t.Fatal(err)
		}
		slow(m, 0)
		next, err := d.Import(t.Context(), handle)
		if err != nil {
			t.Fatal(err)
		}
		if err := next.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		passes(100 * time.Millisecond)
		if id, on := m.Holder("x"); on > 0 {
			t.Errorf("%s, which was handed on, is on %d masters again", id, on)
		}
	})
}

// A hold is not handed off to a call with a shorter TTL: it would keep the name for longer than that if the new holder
// dies.
func TestAHandedOnLockIsNoLongerThanWasAskedFor(t *testing.T) {
	virtual(t, 3, func(w *world) {
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
			t.Errorf("asked for 1 s without extension, has %v", k.Remaining())
		}
		w.unlock(k)
	})
}

// H12: the masters get durations only, so a client whose wall clock is hours off locks for as long as any other.
func TestTheWallClockOfTheClientIsInNoTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMasters(t, 3)
		for _, off := range []time.Duration{-5 * time.Hour, 5 * time.Hour} {
			origin := time.Now()
			skewed := clock.New(func() clock.Instant {
				now := time.Now()
				return clock.At(int64(now.Sub(origin))+1, now.Add(off).UnixNano())
			})
			c := newParty(t, m, nil, redlock.WithClock(skewed))
			lock := c.lock()
			synctest.Wait() // the slowest master has it too
			for i := range m.N() {
				if _, _, left := m.Master(i).Holds("x"); left <= 0 || left > redlock.DefaultTTL {
					t.Errorf("clock off by %v: master %d keeps the lock for %v", off, i, left)
				}
			}
			if left := lock.Remaining(); left <= 9*time.Second || left > redlock.DefaultTTL {
				t.Errorf("clock off by %v: %v of validity", off, left)
			}
			if err := lock.Unlock(t.Context()); err != nil {
				t.Error(err)
			}
			synctest.Wait() // and the slowest has let it go, before another connection asks for it
		}
	})
}

// H27: a name whose extension fails on every master, and a master that hangs, delay the extension of no other name.
func TestOneNameThatFailsDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMasters(t, 5)
		c := newParty(t, m, nil)
		var locks []*redlock.Lock
		for i := range 100 {
			k, err := c.Lock(t.Context(), fmt.Sprint("name", i))
			if err != nil {
				t.Fatal(err)
			}
			locks = append(locks, k)
		}
		bad := c.lock()
		synctest.Wait()
		for i := range m.N() {
			m.Master(i).Evict("x")
			m.Master(i).Set("redlock:{x}", "a client's data")
		}
		m.Master(4).Hang()
		passes(time.Minute)
		for _, k := range locks {
			if left := k.Remaining(); k.Err() != nil || left < redlock.DefaultTTL/3 {
				t.Errorf("%s: %v left, %v", k.Name(), left, k.Err())
			}
		}
		if !errors.Is(bad.Err(), redlock.ErrLost) {
			t.Errorf("the lock whose keys are gone: %v", bad.Err())
		}
		m.Master(4).Resume()
	})
}
