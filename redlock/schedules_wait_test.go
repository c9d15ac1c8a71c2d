package redlock_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

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
		owner, _ := scripts.GrantLabel(id)
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
