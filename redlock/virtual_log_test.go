package redlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/redlock-go/redlock/redlock"
)

// A call waits without a quorum although all masters vote: the log says why, and when that has ended.
func TestVirtualCallsThatGetNoQuorumAreLoggedAndCounted(t *testing.T) {
	virtual(t, 3, func(w *world) {
		var h health
		l := w.locker(h.option())
		k := w.take(l, "held")
		waiting := w.call(w.Context(), l, "held")
		w.refuse(outOfMemory, 0, 1)
		starved := w.call(w.Context(), l, "n")
		after(1100 * time.Millisecond)
		if got := l.Stats().Waiting; got["held"] != 1 || got["no_quorum"] != 1 {
			t.Errorf("waiting: %v", got)
		}
		if h.logged("no lock can be acquired", "waiting=1", "reason=no quorum of masters; ", "OOM") != 1 {
			t.Errorf("%q", h.logs)
		}
		after(6 * time.Second)
		if n := h.logged("no lock can be acquired"); n != 3 { // after 1, 3 and 7 s
			t.Errorf("%d warnings in 7 s", n)
		}
		w.refuse("", 0, 1)
		w.unlock(k)
		for _, c := range []*call{waiting, starved} {
			k, _ := c.gets(5 * time.Second)
			w.unlock(k)
		}
		after(2 * time.Minute)
		if h.logged("no lock can be acquired") != 3 || h.logged("locks can be acquired again", "for=") != 1 {
			t.Errorf("%q", h.logs)
		}
		if got := l.Stats().Waiting; got["held"] != 0 || got["no_quorum"] != 0 {
			t.Errorf("waiting: %v", got)
		}
	})
}

func TestVirtualALockThatIsHeldForAnHourIsLoggedOnce(t *testing.T) {
	virtual(t, 3, func(w *world) {
		var h health
		l := w.locker(h.option())
		w.unlock(w.take(l, "short"))
		k := w.take(l, "forgotten")
		bounded := w.take(l, "bounded", redlock.WithMaxHold(5*time.Hour))
		ctx, cancel := context.WithCancel(w.Context())
		led := make(chan struct{})
		go func() {
			defer close(led)
			_ = l.Lead(ctx, "leader", func(ctx context.Context) error { <-ctx.Done(); return nil })
		}()
		after(59 * time.Minute)
		if h.logged("held for an hour") != 0 {
			t.Errorf("too early: %q", h.logs)
		}
		after(2 * time.Hour)
		if h.logged("held for an hour") != 1 || h.logged("held for an hour", "lock=forgotten", "token=", "hint=if") != 1 {
			t.Errorf("%q", h.logs)
		}
		cancel()
		<-led
		w.unlock(k)
		w.unlock(bounded)
	})
}

// A call whose context never ends, and that waits for a lock of its own Locker, may wait for itself.
func TestVirtualASelfDeadlockIsLogged(t *testing.T) {
	virtual(t, 3, func(w *world) {
		var h health
		l := w.locker(h.option())
		k := w.take(l, "n")
		ended, cancel := context.WithCancel(context.Background())
		bounded := w.call(ended, l, "n")
		after(time.Minute)
		if h.logged("waits for a lock of this Locker") != 0 {
			t.Errorf("a call with a context that can end: %q", h.logs)
		}
		cancel()
		w.isError(bounded.fails(time.Second), context.Canceled)
		deadlock := w.call(context.Background(), l, "n")
		after(1100 * time.Millisecond)
		if h.logged("waits for a lock of this Locker", "lock=n", "held=", "pass the context of that lock") != 1 {
			t.Errorf("after a second: %q", h.logs)
		}
		after(time.Hour / 2)
		if h.logged("waits for a lock of this Locker") != 1 {
			t.Errorf("after half an hour: %q", h.logs)
		}
		w.unlock(k)
		k, _ = deadlock.gets(time.Second)
		w.unlock(k)
	})
}

func TestVirtualAPoolThatIsClosedBeforeItsLockerIsReported(t *testing.T) {
	virtual(t, 3, func(w *world) {
		var h health
		p := w.pool()
		l := w.over(p, h.option())
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		after(time.Second)
		if h.logged("pool was closed before its Locker", "hint=") != 1 || h.logged("master is down") != 0 {
			t.Errorf("%q", h.logs)
		}
		if _, err := l.TryLock(w.Context(), "n"); err == nil {
			t.Error("locked without a pool")
		}
	})
}
