package redlock_test

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/redlock-go/redlock/redlock"
)

// H148: a virtual machine is started several times from one snapshot of its memory. The copies of a Locker have the
// same UUID and count their leases alike, and only one of them at a time has the name.
func TestCopiesOfOneClientExcludeEachOther(t *testing.T) { //nolint:paralleltest // it sets the source of all UUIDs
	t.Cleanup(func() { uuid.SetRand(nil) })
	bubble(t, 5, func(w *cluster) {
		var copies []*redlock.Locker
		for range 3 {
			uuid.SetRand(rand.NewChaCha8([32]byte{}))
			copies = append(copies, w.locker())
		}
		uuid.SetRand(nil)
		w.delay(time.Millisecond)
		var holders atomic.Int64
		var wg sync.WaitGroup
		for i, l := range copies {
			wg.Go(func() {
				after(time.Duration(i) * 10 * time.Microsecond) // no two machines are that exact
				for range 20 {
					k := w.take(l, "n")
					if n := holders.Add(1); n > 1 {
						w.Errorf("%d copies hold the name", n)
					}
					<-time.After(5 * time.Millisecond)
					w.noError(k.Err())
					holders.Add(-1)
					w.unlock(k)
				}
			})
		}
		wg.Wait()
	})
}
