package redlock_test

import (
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/redlock"
)

// Unlock with WithAsyncUnlock does not wait for the masters, and everything else is as with an Unlock that waits.
func TestVirtualAsyncUnlock(t *testing.T) {
	const trip = 20 * time.Millisecond // there and back
	for _, c := range []struct {
		name string
		run  func(w *world, p *peer)
	}{
		{"returns before the masters have answered", func(w *world, p *peer) {
			k := w.take(p.Locker, "n")
			began := time.Now()
			w.unlock(k)
			if took := time.Since(began); took != 0 {
				w.Errorf("it took %v", took)
			}
			w.isError(k.Err(), redlock.ErrReleased)
			if w.on("n") != 5 {
				w.Error("the masters have freed the name already, so this shows nothing")
			}
			after(trip)
			w.nothingLeft("n")
			w.isError(k.Unlock(w.Context()), redlock.ErrReleased)
		}},
		{"the next lock is granted behind the release", func(w *world, p *peer) {
			for range 3 {
				w.unlock(w.take(p.Locker, "n"))
			}
			after(trip)
			w.nothingLeft("n")
		}},
		{"the inner lock of two", func(w *world, p *peer) {
			k := w.take(p.Locker, "n")
			inner, err := p.Lock(k.Context(w.Context()), "n")
			w.must(err)
			began := time.Now()
			w.unlock(inner)
			if took := time.Since(began); took != 0 {
				w.Errorf("it took %v", took)
			}
			w.unlock(k)
			after(trip)
			w.nothingLeft("n")
		}},
		{"Close waits for the release", func(w *world, p *peer) {
			w.unlock(w.take(p.Locker, "n"))
			w.must(p.Close(w.Context()))
			w.nothingLeft("n")
		}},
		{"a lock that was lost", func(w *world, p *peer) {
			k := w.take(p.Locker, "n", redlock.WithExtension(false))
			after(redlock.DefaultTTL)
			w.isError(k.Unlock(w.Context()), redlock.ErrLost)
		}},
		{"masters that are down are sent the release later", func(w *world, p *peer) {
			k := w.take(p.Locker, "n", redlock.WithTTL(20*time.Second))
			w.each(func(_ int, m *memory.Master) { m.CutConnections() }, 0, 1, 2)
			w.unlock(k)
			after(2 * time.Second)
			w.nothingLeft("n")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, 5, func(w *world) {
				w.delay(trip / 2)
				c.run(w, w.peer("p", redlock.WithAsyncUnlock()))
			})
		})
	}
}
