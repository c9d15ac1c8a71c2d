package redlock_test

import (
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redlock-go/redlock/redlock"
)

// A program may hold very many locks: what each costs, beside the place in two lists that do not shrink, stays below a
// kilobyte once it is held for a moment, and when it has been extended and told of. The masters are in the same heap,
// so what is measured is what is let go when every lock is exported, which the masters do not hear of.
func TestAHeldLockIsSmall(t *testing.T) {
	const most = 1000
	count := rounds(10_000, 2000)
	var mu sync.Mutex
	bubble(t, 5, func(w *world) {
		p, err := w.masters.Pool()
		if err != nil {
			w.Fatal(err)
		}
		w.Cleanup(func() { _ = p.Close() })
		told := 0
		l := w.over(p, redlock.WithTrace(&redlock.Trace{Extended: func(h redlock.LockInfo) { // the schedule or a connection
			if mu.Lock(); h.ID != "" {
				told++
			}
			mu.Unlock()
		}}))
		locks := make([]*redlock.Lock, count)
		var wg sync.WaitGroup
		for first := range 64 {
			wg.Go(func() {
				for i := first; i < count; i += 64 {
					locks[i] = w.take(l, "held-"+strconv.Itoa(i))
				}
			})
		}
		wg.Wait()
		after(5 * time.Second) // each is extended once
		held := heapNow()
		for i, k := range locks {
			if on, n := k.HeldOn(); on != n {
				w.Fatalf("lock %d is held on %d of %d masters", i, on, n)
			}
		}
		for i, k := range locks {
			if _, err := k.Export(); err != nil {
				w.Fatal(err)
			}
			locks[i] = nil
		}
		each := (held - heapNow()) / int64(count)
		w.Logf("%d bytes a lock", each)
		if each > most {
			w.Errorf("a held lock takes %d bytes; %d are the most", each, most)
		}
		if told != count {
			w.Errorf("%d extensions of %d locks", told, count)
		}
	})
}

func heapNow() int64 {
	runtime.GC()
	runtime.GC() // what finalizers let go
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
