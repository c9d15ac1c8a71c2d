package lease

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/internal/testbed"
)

func each(b *managerBed, f func(m *memory.Master), which ...int) {
	for _, i := range which {
		f(b.Masters.Master(i))
	}
}

// H21: an extension that fails changes nothing: the validity does not move, the lock is not lost, and the background
// extension continues.
func TestFailedExtensionChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, 3)
		h := b.lock(terms())
		each(b, (*memory.Master).Hang, 1, 2)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		before := h.Remaining()
		err := h.Extend(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrLost) {
			t.Errorf("Extend returned %v", err)
		}
		if passed := before - h.Remaining(); passed != 100*time.Millisecond || h.Err() != nil {
			t.Errorf("within 100 ms the validity has become %v shorter, and the lock has ended with %v", passed, h.Err())
		}
		each(b, (*memory.Master).Resume, 1, 2)
		after(4 * time.Second)
		if h.Remaining() < before-time.Second || h.Err() != nil {
			t.Errorf("4 s later the lock has %v of its validity left, and has ended with %v", h.Remaining(), h.Err())
		}
	})
}

// If another program has written the key of a held lock, the errors of its extension and of its release name the key.
func TestErrorsNameTheKeyWithOtherData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, key := newBed(t, 3), testbed.Keys("n").Lock()
		h := b.lock(terms())
		b.takeLog() // waits until all masters have the lease
		each(b, func(m *memory.Master) { m.Set(key, "data") }, 0, 1, 2)
		for call, err := range map[string]error{"Extend": h.Extend(t.Context()), "Unlock": h.Unlock(t.Context())} {
			if err == nil || !strings.Contains(err.Error(), `another program wrote the key "`+key+`"`) {
				t.Errorf("%s returned %v", call, err)
			}
		}
	})
}

// H43: Unlock of a lost lock returns the loss. Its release takes one round, which deletes what is left on the masters.
// After the end of the validity Unlock does not wait for masters.
func TestUnlockOfLostLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, 3)
		h := b.lock(terms())
		b.takeLog() // waits until all masters have the lease
		each(b, func(m *memory.Master) { m.Evict("n") }, 0, 1)
		if err := h.Unlock(t.Context()); !errors.Is(err, ErrLost) {
			t.Errorf("Unlock returned %v", err)
		}
		synctest.Wait()
		if id, on := b.Masters.Holder("n"); on != 0 {
			t.Errorf("%d masters have the lease %s", on, id)
		}
		releases := slices.DeleteFunc(b.takeLog(), func(s string) bool { return s != "releasing" })
		if len(releases) != 1 {
			t.Errorf("%d rounds of releases", len(releases))
		}

		still := terms()
		still.Extend = false
		h = b.lock(still)
		after(10 * time.Second)
		each(b, (*memory.Master).Hang, 0, 1, 2)
		defer each(b, (*memory.Master).Resume, 0, 1, 2)
		began := time.Now()
		if err := h.Unlock(t.Context()); !errors.Is(err, ErrLost) || time.Since(began) > 0 {
			t.Errorf("after the end of the validity Unlock returned %v after %v", err, time.Since(began))
		}
	})
}
