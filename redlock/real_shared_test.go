package redlock_test

import (
	"errors"
	"testing"
	"time"

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
