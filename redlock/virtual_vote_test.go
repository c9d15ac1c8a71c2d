package redlock_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// Each vote is reported once, with how long it took.
func TestVirtualVotesAreReportedOnce(t *testing.T) {
	virtual(t, 5, func(w *world) {
		var mu sync.Mutex
		took := map[string]time.Duration{}
		l := w.locker(redlock.WithTrace(redlock.On("vote", func(v redlockinfo.Event) {
			mu.Lock()
			defer mu.Unlock()
			if v.Op != "lock" {
				return
			}
			if _, twice := took[v.Master]; twice || v.State != "granted" {
				w.Errorf("%+v", v)
			}
			took[v.Master] = v.Elapsed
		})))
		for i := range 5 {
			w.delay(time.Duration(i+1)*10*time.Millisecond, i)
		}
		k := w.take(l, "a")
		after(200 * time.Millisecond)
		mu.Lock()
		for i := range 5 {
			addr := w.masters.Master(i).Addr()
			if want := time.Duration(i+1) * 20 * time.Millisecond; took[addr] < want || took[addr] > want+time.Millisecond {
				w.Errorf("the vote of master %d took %v, not %v", i, took[addr], want)
			}
		}
		mu.Unlock()
		w.unlock(k)
		synctest.Wait()
	})
}
