package redlock_test

import (
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock"
)

// Inspect reports the masters that have the lock, and the waiters in their order, with their labels.
func TestInspectShowsHolderAndQueue(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		look := w.locker(redlock.WithObserver())
		if who, err := look.Inspect(w.Context(), "n"); err != nil || who.ID != "" || who.N != 5 || len(who.Waiters) != 0 {
			w.Errorf("a free name: %+v, %v", who, err)
		}
		k := w.take(w.locker(redlock.WithOwner("holder")), "n")
		w.peer("b").waits("n")
		w.peer("a").waits("n")
		who, err := look.Inspect(w.Context(), "n")
		if err != nil || who.Owner != "holder" || who.Token != k.Token() || who.On != 5 ||
			who.Left <= 0 || len(who.Waiters) != 2 {
			w.Fatalf("%+v, %v", who, err)
		}
		for i, want := range []string{"b", "a"} {
			got := who.Waiters[i]
			if got.Owner != want || got.On != 5 || time.Since(got.Since) < time.Duration(2-i)*time.Second ||
				time.Since(got.Since) > 3*time.Second {
				w.Errorf("place %d: %+v, want %q", i, got, want)
			}
		}
		w.stop(0, 1)
		after(time.Second)
		if who, err := look.Inspect(w.Context(), "n"); err != nil || who.On != 3 || who.N != 5 {
			w.Errorf("two masters are down: %+v, %v", who, err)
		}
		w.stop(2)
		after(time.Second)
		w.isError(errOf(look.Inspect(w.Context(), "n")), redlock.ErrNoQuorum)
	})
}

// A forced release ends the lease with the given id, and no other: the first waiter gets the name with a larger token,
// and the holder detects the loss at its next extension.
func TestForcedReleaseEndsOneLease(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		look := w.locker(redlock.WithObserver())
		k := w.take(w.locker(redlock.WithOwner("holder")), "n")
		waiting := w.peer("next").waits("n")
		who := w.inspect(look, "n")
		if n, err := look.Admin().ForceRelease(w.Context(), "n", who.ID); n != 5 || err != nil {
			w.Fatalf("released on %d masters, %v", n, err)
		}
		next := waiting.gets(time.Second)
		w.wantLater(next, k)
		w.ends(k.Context(w.Context()), redlock.DefaultTTL/3+time.Second, redlock.ErrLost)
		if n, err := look.Admin().ForceRelease(w.Context(), "n", who.ID); n != 0 || err != nil {
			w.Errorf("second call: released on %d masters, %v", n, err)
		}
		after(redlock.DefaultTTL)
		if on := w.on("n"); on != 5 || next.Err() != nil {
			w.Errorf("the next holder has it on %d masters: %v", on, next.Err())
		}
		_ = next.Unlock(w.Context())
	})
}

// If no quorum is reached the error says so; a master that was reached has a fence above the lease.
func TestForcedReleaseRaisesFence(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		look := w.locker(redlock.WithObserver())
		k := w.take(w.locker(), "n")
		who := w.inspect(look, "n")
		w.stop(3, 4)
		after(time.Second)
		before := []scripts.Holding{w.holding(0, "n"), w.holding(1, "n"), w.holding(2, "n")}
		if n, err := look.Admin().ForceRelease(w.Context(), "n", who.ID); n != 3 || err != nil {
			w.Fatalf("released on %d masters, %v", n, err)
		}
		for i, was := range before {
			if h := w.holding(i, "n"); h.ID != "" || h.Fence <= was.Fence || was.Fence < k.Token() {
				w.Errorf("master %d: %+v, before it %+v", i, h, was)
			}
		}
		w.stop(2)
		after(time.Second)
		w.isError(errOf(look.Admin().ForceRelease(w.Context(), "n", who.ID)), redlock.ErrNoQuorum)
		for _, id := range []string{"", "x", "a:b:c"} {
			w.isError(errOf(look.Admin().ForceRelease(w.Context(), "n", id)), redlock.ErrInvalid)
		}
	})
}

// holding returns the answer of master i about a name.
func (w *cluster) holding(i int, name string) scripts.Holding {
	w.Helper()
	keys := defaultPrefix.Keys(name)
	reply, err := w.do(i, scripts.NewEncoder(defaultPrefix, 0).Inspect(&keys))
	w.must(err)
	h, err := scripts.DecodeHolding(reply)
	w.must(err)
	return h
}
