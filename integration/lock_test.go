package integration

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/private"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// open returns a Locker over the masters, whose pool considers a master down after a second.
func open(t *testing.T, list []Master, opts ...redlock.Option) *redlock.Locker {
	t.Helper()
	p, err := pool.Open(urls(list), pool.WithTimeout(time.Second), pool.WithDialTimeout(3*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	l, err := redlock.New(p, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), hang)
		defer cancel()
		if err := l.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
		p.Close()
	})
	return l
}

func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), hang)
	t.Cleanup(cancel)
	return ctx
}

// A lock survives faults of a minority: a hung master, a dead one, one that restarts empty. It is held until it is
// unlocked, no other client gets it, and at the end it is on all masters again.
func TestALockOutlivesAMinority(t *testing.T) {
	five := masters(t, 5)
	l, other := open(t, five), open(t, five)
	ctx := bounded(t)
	if err := l.Admin().Admit(ctx); err != nil {
		t.Fatal(err)
	}
	if err := other.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	lock, err := l.Lock(ctx, "job", redlock.WithTTL(3*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	check := func(when string) {
		t.Helper()
		if err := lock.Extend(ctx); err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		if k, err := other.TryLock(ctx, "job"); err == nil || k != nil || lock.Err() != nil {
			t.Fatalf("%s: another client's lock: %v; %v", when, err, lock.Err())
		}
	}
	whole := func() {
		t.Helper()
		for on, n := private.HeldOn(lock); on < n; on, n = private.HeldOn(lock) {
			select {
			case <-ctx.Done():
				t.Fatalf("the lock is on %d of %d", on, n)
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
	check("all healthy")
	whole() // on a busy machine a master may have been too slow; the next extension adds the lock there
	each(t, Master.Pause, five[0])
	each(t, Master.Kill, five[1])
	check("one hung, one dead")
	each(t, Master.Resume, five[0])
	each(t, Master.Start, five[1])
	check("both back, one of them empty")
	whole()
	if err := lock.Unlock(ctx); err != nil {
		t.Fatal(err)
	}
}

// While a majority hangs, no call exceeds its context, a held lock is lost in time, and afterwards everything works.
func TestAHungMajorityHoldsNobodyUp(t *testing.T) {
	five := masters(t, 5)
	l := open(t, five)
	ctx := bounded(t)
	if err := l.Admin().Admit(ctx); err != nil {
		t.Fatal(err)
	}
	lock, err := l.Lock(ctx, "job", redlock.WithTTL(2*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	each(t, Master.Pause, five[:3]...)
	short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	if _, err := l.Lock(short, "other"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with a hung majority: %v", err)
	}
	select {
	case <-lock.Done():
	case <-ctx.Done():
		t.Fatal("the lock was not lost")
	}
	if err := lock.Unlock(ctx); !errors.Is(err, redlock.ErrLost) {
		t.Errorf("unlock of a lost lock: %v", err)
	}
	each(t, Master.Resume, five[:3]...)
	again, err := l.Lock(ctx, "job")
	if err != nil {
		t.Fatal(err)
	}
	if again.Token() <= lock.Token() {
		t.Errorf("token %d after %d", again.Token(), lock.Token())
	}
	if err := again.Unlock(ctx); err != nil {
		t.Fatal(err)
	}
}
