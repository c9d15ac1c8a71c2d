package redlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/redlock"
)

// A local release hands the hold off to the next local waiter without a message to the masters. Each holder has a
// larger token; the masters see one hold, which the last holder releases.
func TestHandoffSendsNoMessage(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		p := w.peer("p")
		k := must(p.Lock(w.Context(), "n"))(w)
		var calls []*call
		for range 5 {
			calls = append(calls, w.goLock(w.Context(), p, "n", unpolled))
		}
		before := w.count("acquire") + w.count("release") + w.count("extend")
		for i, c := range calls {
			last, left := k, k.Remaining()
			w.noError(k.Unlock(w.Context()))
			var took time.Duration
			if k, took = c.timed(time.Second); took != 0 {
				w.Errorf("hand-off %d took %v, want no time", i, took)
			}
			if k.Token() != last.Token()+1 || k.Remaining() != left {
				w.Errorf("token %d, want %d; validity %v, want %v", k.Token(), last.Token()+1, k.Remaining(), left)
			}
			w.isError(last.Err(), redlock.ErrReleased)
		}
		if n := w.count("acquire") + w.count("release") + w.count("extend"); n != before {
			w.Errorf("%d messages were sent to the masters, want none", n-before)
		}
		if id, on := w.holder("n"); id != "p" || on != 5 {
			w.Errorf("%q holds the name on %d masters, want \"p\" on 5", id, on)
		}
		token := k.Token()
		w.noError(k.Unlock(w.Context()))
		after(time.Millisecond)
		next := must(w.peer("next").Lock(w.Context(), "n"))(w) // its token must follow the last one reserved for hand-offs
		if next.Token() <= token {
			w.Errorf("the next token is %d, want more than %d", next.Token(), token)
		}
		w.noError(next.Unlock(w.Context()))
		w.nothingLeft("n")
	})
}

// After a hand-off the previous holder owns nothing: its context has ended, and neither the context nor the Lock can
// re-enter, extend or export the successor's hold.
func TestContextAfterHandoffOwnsNothing(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		p := w.peer("p")
		k := must(p.Lock(w.Context(), "n"))(w)
		ctx := k.Context(w.Context())
		c := w.goLock(w.Context(), p, "n")
		w.noError(k.Unlock(w.Context()))
		next := c.mustLock(time.Second)
		equal(w, isDone(k), true, "Done is closed")
		w.isError(context.Cause(ctx), redlock.ErrReleased)
		old := context.WithoutCancel(ctx) // old does not end, but still belongs to the old lock
		w.isError(errOf(p.Lock(old, "n")), redlock.ErrReleased)
		w.isError(errOf(p.TryLock(old, "n")), redlock.ErrReleased)
		w.isError(k.Extend(w.Context()), redlock.ErrReleased)
		w.isError(errOf(k.Export()), redlock.ErrReleased)
		w.isError(k.Unlock(w.Context()), redlock.ErrReleased)
		if k.Remaining() > 0 || next.Err() != nil || w.on("n") != 5 {
			w.Errorf("%v left of the old lock; the new lock: %v, on %d masters", k.Remaining(), next.Err(), w.on("n"))
		}
		inner := must(p.Lock(next.Context(w.Context()), "n", redlock.WithReentry()))(w)
		if inner.Token() != next.Token() {
			w.Errorf("the re-entry has the token %d, want %d", inner.Token(), next.Token())
		}
		w.noError(inner.Unlock(w.Context()))
		w.noError(next.Unlock(w.Context()))
		w.nothingLeft("n")
	})
}

// A hold that was handed off is extended, lost, exported and closed like any other.
func TestLockAfterHandoffBehavesNormally(t *testing.T) {
	handed := func(w *cluster, p *peer, name string, opts ...redlock.LockOption) *redlock.Lock {
		k := must(p.Lock(w.Context(), name))(w)
		c := w.goLock(w.Context(), p, name, opts...)
		w.noError(k.Unlock(w.Context()))
		next := c.mustLock(time.Second)
		return next
	}
	virtual(t, 5, func(w *cluster) {
		p := w.peer("p")
		long, lost, exported := handed(w, p, "long"), handed(w, p, "lost"), handed(w, p, "exported")
		bounded := handed(w, p, "bounded", redlock.WithMaxHold(time.Minute))
		after(30 * time.Second)
		if on, _ := client.HeldOn(long); on != 5 || long.Remaining() < 5*time.Second {
			w.Errorf("the lock is on %d masters and valid for %v, want 5 masters and at least 5 s", on, long.Remaining())
		}
		w.masters.Lose("lost")
		w.ends(lost.Context(w.Context()), redlock.DefaultTTL, redlock.ErrLost)
		taken, err := w.peer("q").Import(w.Context(), must(exported.Export())(w))
		if err != nil || taken.Token() <= exported.Token() {
			w.Fatalf("Import returned %v, or a token that is not larger", err)
		}
		w.ends(bounded.Context(w.Context()), time.Minute, redlock.ErrMaxHold)
		w.isError(bounded.Unlock(w.Context()), redlock.ErrMaxHold)
		w.isError(lost.Unlock(w.Context()), redlock.ErrLost)
		w.noError(p.Close())
		w.isError(long.Err(), redlock.ErrClosed)
		w.noError(taken.Unlock(w.Context()))
		w.nothingLeft("long", "lost", "exported", "bounded")
	})
}

// Local hand-offs are bounded in number and in time. After the last hand-off the name is released, and a waiter of
// another process gets the lock.
func TestHandoffsAreBounded(t *testing.T) {
	for name, bound := range map[string]struct {
		hold []redlock.LockOption // options of all calls
		rest time.Duration        // time for which each call holds the lock
		most int                  // number of hand-offs
	}{
		"off":     {hold: []redlock.LockOption{redlock.WithHandoff(0, 0)}},
		"times":   {hold: []redlock.LockOption{redlock.WithHandoff(3, time.Minute)}, most: 3},
		"default": {most: redlock.DefaultHandoffs},
		"time": {
			hold: []redlock.LockOption{redlock.WithHandoff(1000, 50*time.Millisecond)}, rest: 20 * time.Millisecond, most: 2,
		},
	} {
		subtest(t, name, 5, func(w *cluster) {
			p, q := w.peer("p"), w.peer("q")
			w.delay(100 * time.Microsecond)
			k := must(p.Lock(w.Context(), "n", bound.hold...))(w)
			other := w.goLock(w.Context(), q, "n", unpolled)
			after(time.Millisecond) // later waiters are behind this call
			var calls []*call
			for range redlock.DefaultHandoffs + 4 {
				opts := append(bound.hold[:len(bound.hold):len(bound.hold)], unpolled)
				calls = append(calls, w.goLock(w.Context(), p, "n", opts...))
			}
			handed := 0
			for !other.returned() && handed < len(calls) {
				<-time.After(bound.rest)
				w.noError(k.Unlock(w.Context()))
				after(time.Millisecond)
				if calls[handed].returned() && calls[handed].err == nil {
					k = calls[handed].lock
					handed++
				}
			}
			if handed != bound.most || !other.returned() {
				w.Errorf("handed off %d times, want %d; the other process has the lock: %t", handed, bound.most, other.returned())
			}
			got := other.mustLock(time.Second)
			w.wantLater(got, k)
			w.noError(p.Close())
			w.noError(got.Unlock(w.Context()))
			w.nothingLeft("n")
		})
	}
}
