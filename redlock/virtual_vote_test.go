package redlock_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/redlock"
)

// Each vote is told once, with how long it took, and one of a round decides: of five masters that answer one after the
// other, the third.
func TestVirtualVotesAreToldAndOneDecides(t *testing.T) {
	virtual(t, 5, func(w *world) {
		var mu sync.Mutex
		took, decided := map[string]time.Duration{}, []string{}
		l := w.locker(redlock.WithTrace(&redlock.Trace{Vote: func(v redlock.VoteInfo) {
			mu.Lock()
			defer mu.Unlock()
			if v.Op != "lock" {
				return
			}
			if _, twice := took[v.Master]; twice || v.Kind != "granted" {
				w.Errorf("%+v", v)
			}
			took[v.Master] = v.Elapsed
			if v.Decides {
				decided = append(decided, v.Master)
			}
		}}))
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
		if len(decided) != 1 || decided[0] != w.masters.Master(2).Addr() {
			w.Errorf("decided by %v", decided)
		}
		mu.Unlock()
		w.unlock(k)
		synctest.Wait()
	})
}
