package sim

import (
	"sync"
	"time"

	"github.com/redlock-go/redlock/clock"
)

// A watch is the clock of one client: two readings that follow true time at a rate, from origins of their own.
type watch struct {
	now     func() time.Time // true time
	mu      sync.Mutex
	base    time.Time
	rate    float64
	boot    time.Duration // by how much each reading is ahead
	wall    time.Duration
	stopped bool // the machine is suspended, or its virtual machine frozen
	at      time.Time
}

func newWatch(now func() time.Time, rate float64, boot, wall time.Duration) *watch {
	return &watch{now: now, base: now(), rate: rate, boot: boot, wall: wall}
}

// clock is the watch as the library reads it.
func (k *watch) clock() *clock.Clock {
	return clock.New(func() clock.Instant {
		k.mu.Lock()
		defer k.mu.Unlock()
		now := k.now()
		if k.stopped {
			now = k.at
		}
		run := time.Duration(float64(now.Sub(k.base)) * k.rate)
		return clock.At(int64(run+k.boot), k.base.UnixNano()+int64(run+k.wall))
	})
}

// stop lets both readings stand still.
func (k *watch) stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stopped, k.at = true, k.now()
}

// start lets them go on, as they would have without the stop. In a virtual machine that was frozen the one that nobody
// sets has missed that time, and in one that was paused both have.
func (k *watch) start(frozen, paused bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	missed := time.Duration(float64(k.now().Sub(k.at)) * k.rate)
	if k.stopped && (frozen || paused) {
		k.boot -= missed
	}
	if k.stopped && paused {
		k.wall -= missed
	}
	k.stopped = false
}

// miss lets the clock that nobody sets miss d of the time that has passed, as in a virtual machine that was frozen.
func (k *watch) miss(d time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.boot -= time.Duration(float64(d) * k.rate)
}

// turn sets the wall clock.
func (k *watch) turn(by time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.wall += by
}
