package sim

import (
	"sync"
	"time"

	"github.com/redlock-go/redlock/clock"
)

// A watch is the clock of one client. Its boot and wall readings follow true time at a rate, with separate origins.
type watch struct {
	now     func() time.Time // true time
	mu      sync.Mutex
	base    time.Time
	rate    float64
	boot    time.Duration // boot and wall: how far each reading is ahead of true time
	wall    time.Duration
	stopped bool      // the machine is suspended, or its virtual machine is frozen
	at      time.Time // true time of the stop
}

func newWatch(now func() time.Time, rate float64, boot, wall time.Duration) *watch {
	return &watch{now: now, base: now(), rate: rate, boot: boot, wall: wall}
}

// clock returns the watch as a clock for the library.
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

// stop stops both readings.
func (k *watch) stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stopped, k.at = true, k.now()
}

// start makes both readings continue, as if they had not stopped. If the virtual machine was frozen, the boot reading
// has missed the time of the stop; if the machine was paused, both readings have missed that time.
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

// miss makes the boot reading miss d of the true time that has passed, as in a virtual machine that was frozen.
func (k *watch) miss(d time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.boot -= time.Duration(float64(d) * k.rate)
}

// turn adds delta to the wall reading.
func (k *watch) turn(delta time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.wall += delta
}
