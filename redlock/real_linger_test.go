package redlock_test

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/long"
	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/redlock"
)

// When many lingering locks end at the same time, the extension of another lock is not delayed.
func TestManyLingeringLocksEnd(t *testing.T) {
	if !long.Enabled() {
		t.Skip("it takes ten seconds, and needs the machine to itself")
	}
	masters := memory.New(3)
	t.Cleanup(masters.Close)
	p, err := masters.Pool()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	l := locker(t, p)
	lock := func(name string, opts ...redlock.LockOption) *redlock.Lock {
		k, err := l.Lock(t.Context(), name, opts...)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	lock("subscribes", redlock.WithLinger(time.Hour))
	locks := make([]*redlock.Lock, 20_000)
	var all sync.WaitGroup
	for part := range 100 {
		all.Go(func() {
			for i := part; i < len(locks); i += 100 {
				locks[i] = lock(strconv.Itoa(i), redlock.WithLinger(2*time.Second), redlock.WithTTL(30*time.Second))
			}
		})
	}
	all.Wait()
	k := lock("extended", redlock.WithTTL(time.Second))
	for _, one := range locks {
		if err := one.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	least := time.Second
	for range 800 {
		least = min(least, k.Remaining())
		time.Sleep(5 * time.Millisecond)
	}
	if least < 500*time.Millisecond || k.Err() != nil {
		t.Errorf("a lock of 1 s that is extended had %v left, and ended with %v", least, k.Err())
	}
}
