package redlock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/worker"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

func TestReadersAndWritersOnRealMasters(t *testing.T) {
	t.Parallel()
	servers, p, l := masters(t, 5)
	ctx := bounded(t)
	s, other := l.RWLock("prices"), locker(t, p).RWLock("prices")
	one, two := held(t)(s.RLock(ctx)), held(t)(other.RLock(ctx))
	if _, err := s.TryLock(ctx); !errors.Is(err, redlock.ErrHeld) {
		t.Errorf("a writer beside readers: %v, want ErrHeld", err)
	}
	h := must[redlockinfo.Inspection](t)(l.Inspect(ctx, "prices"))
	if h.ReaderCount != 2 || len(h.Readers) != 2 || h.Readers[0].On < 3 || time.Since(h.Readers[0].Since) > time.Minute {
		t.Errorf("the readers are reported as %+v", h)
	}
	if _, err := l.Lock(ctx, "prices"); !errors.Is(err, redlock.ErrKind) {
		t.Errorf("a plain lock of the name: %v, want ErrKind", err)
	}
	if err := errors.Join(one.Unlock(ctx), two.Unlock(ctx)); err != nil {
		t.Fatal(err)
	}
	writer := held(t)(other.Lock(ctx))
	if _, err := s.TryRLock(ctx); !errors.Is(err, redlock.ErrHeld) {
		t.Errorf("a reader beside the writer: %v, want ErrHeld", err)
	}
	reader := held(t)(writer.Downgrade(ctx))
	if reader.Token() <= writer.Token() || writer.Token() <= max(one.Token(), two.Token()) {
		t.Errorf("tokens %d and %d, then %d, then %d", one.Token(), two.Token(), writer.Token(), reader.Token())
	}
	beside := held(t)(s.RLock(ctx))
	if err := errors.Join(beside.Extend(ctx), reader.Extend(ctx), beside.Unlock(ctx)); err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{0, 1} { // a minority
		if err := servers[i].Kill(); err != nil {
			t.Fatal(err)
		}
	}
	again := held(t)(s.RLock(ctx))
	if err := errors.Join(reader.Unlock(ctx), again.Unlock(ctx)); err != nil {
		t.Fatal(err)
	}
	if err := held(t)(s.Lock(ctx)).Unlock(ctx); err != nil {
		t.Fatal(err)
	}
	if err := held(t)(l.Lock(ctx, "prices")).Unlock(ctx); err != nil { // no client has it any more: it may be a plain lock
		t.Fatal(err)
	}
}

// Readers and writers of several programs, on real masters: a writer is alone with a value that readers see unchanged.
func TestAWriterIsAloneOnRealMasters(t *testing.T) {
	t.Parallel()
	_, p, first := masters(t, 3)
	ctx := bounded(t)
	lockers := []*redlock.Locker{first, locker(t, p), locker(t, p)}
	var mu sync.Mutex // of the value alone
	reading, writing, most := 0, 0, 0
	in := func(n *int, by int) {
		mu.Lock()
		defer mu.Unlock()
		*n += by
		most = max(most, reading)
		if writing > 1 || writing == 1 && reading > 0 {
			t.Errorf("%d writers and %d readers", writing, reading)
		}
	}
	var wg sync.WaitGroup
	for i := range 12 {
		s := lockers[i%3].RWLock("prices")
		wg.Go(func() {
			for n := range 25 {
				do, what := s.DoRead, &reading
				if (i+n)%5 == 0 {
					do, what = s.Do, &writing
				}
				err := do(ctx, func(ctx context.Context) error {
					in(what, 1)
					defer in(what, -1)
					time.Sleep(time.Millisecond)
					return ctx.Err()
				})
				if err != nil && !errors.Is(err, redlock.ErrNoQuorum) { // the masters of a busy machine may be too late
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if most < 2 {
		t.Error("readers have never shared the name")
	}
}

// writeRole waits for a lock with readers, as a writer.
func writeRole(ctx context.Context, l *redlock.Locker, a workerArgs) error {
	lock, err := l.RWLock(a.Name).Lock(ctx)
	if err != nil {
		return err
	}
	worker.Say("written")
	return lock.Unlock(ctx)
}
