package redlock_test

import (
	"sync"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock"
)

// A heard hint of a peer, and the master on whose connection it came.
type heard struct {
	master  int
	payload string
}

// hears has the peer's hints taken down, and f, if it is not nil, say what comes in the place of each.
func (p *peer) hears(f func(master int, h scripts.WakeUp, payload string) []string) func() []heard {
	var mu sync.Mutex
	var all []heard
	p.tampering(func(master int, payload string) []string {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, heard{master, payload})
		if h, ok := defaultPrefix.ParseWakeUp(payload); ok && f != nil {
			return f(master, h, payload)
		}
		return []string{payload}
	})
	return func() []heard {
		mu.Lock()
		defer mu.Unlock()
		return append([]heard(nil), all...)
	}
}

// publish repeats the hints that a peer has received, from the same masters.
func (w *world) publish(p *peer, all []heard) {
	w.Helper()
	for _, h := range all {
		w.replay(sent{master: h.master, args: []string{"PUBLISH", p.inbox(), h.payload}})
	}
	after(10 * time.Millisecond)
}

// inbox returns the channel of the peer's hints, or "" if it has never waited.
func (p *peer) inbox() string {
	v := p.world.wire
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.inbox
}

// taken acquires the name, and waits until all masters have granted it. From then on messages take time: two attempts
// of one instant carry the same ballot.
func (w *world) taken(l *redlock.Locker, opts ...redlock.LockOption) *redlock.Lock {
	w.Helper()
	w.delay(10 * time.Microsecond)
	k := w.take(l, "n", opts...)
	after(time.Millisecond)
	return k
}

// holder returns the label of the owner that has name on most masters, and their number.
func (w *world) holder(name string) (label string, on int) {
	id, on := w.masters.Holder(name)
	return labelOf(id), on
}

// labelOf returns the label in the id of a lease.
func labelOf(id string) string {
	_, label := scripts.LeaseLabel(id)
	return label
}
