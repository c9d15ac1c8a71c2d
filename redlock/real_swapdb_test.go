package redlock_test

import (
	"testing"
	"time"

	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// H161: two deployments use two databases of the same servers, and the databases change places (SWAPDB). Each master
// then shows a record that admits it, but without the locks. No client gets a lock that is still held.
func TestDatabasesThatChangePlaces(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 3)
	f.admit(locker(t, f.dial(pool.WithDatabase(1))))
	holder, rival := f.admitted(), f.locker()
	f.must(rival.WaitReady(f.withTimeout(hang)))
	held, err := holder.Lock(f.withTimeout(hang), "n", redlock.WithTTL(5*time.Second), redlock.WithExtension(false))
	f.must(err)
	for i := range f.servers {
		f.do(i, "SWAPDB", 0, 1)
	}
	for held.Err() == nil {
		if second, err := rival.TryLock(f.withTimeout(hang), "n"); err == nil && held.Err() == nil && second.Err() == nil {
			t.Fatalf("two holders, tokens %d and %d", held.Token(), second.Token())
		}
	}
}
