package redlock_test

import (
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// A client may hold very many locks. Apart from its place in two lists that do not shrink, a lock takes less than a
// kilobyte, both when it has just been acquired and when it has been extended and reported. The masters are in the same
// heap, so the test measures the memory that is freed when every lock is exported, which sends nothing to the masters.
func TestHeldLockIsSmall(t *testing.T) {
	const most = 1024
	count := rounds(10_000, 2000)
	var mu sync.Mutex
	bubble(t, 5, func(w *cluster) {
		p := must(w.masters.Pool())(w)
		w.Cleanup(func() { _ = p.Close() })
		extended := 0
		l := w.readyLocker(p, redlock.WithTrace(redlock.On("extended", func(h redlockinfo.Event) { // also after a connect
			if mu.Lock(); h.ID != "" {
				extended++
			}
			mu.Unlock()
		})))
		locks := make([]*redlock.Lock, count)
		var wg sync.WaitGroup
		for first := range 64 {
			wg.Go(func() {
				for i := first; i < count; i += 64 {
					locks[i] = must(l.Lock(w.Context(), "held-"+strconv.Itoa(i)))(w)
				}
			})
		}
		wg.Wait()
		after(5 * time.Second) // each lock is extended once
		held := heapNow()
		for _, k := range locks {
			w.wantHeld(k, w.masters.N())
		}
		for i, k := range locks {
			must(k.Export())(w)
			locks[i] = nil
		}
		each := (held - heapNow()) / int64(count)
		w.Logf("%d bytes a lock", each)
		if each > most {
			w.Errorf("a held lock takes %d bytes, the maximum is %d", each, most)
		}
		if extended != count {
			w.Errorf("there were %d extensions of %d locks, want one each", extended, count)
		}
	})
}

func heapNow() int64 {
	runtime.GC()
	runtime.GC() // memory that finalizers freed
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
