package due

import (
	"container/heap"
	"sync"
	"time"

	"github.com/redlock-go/redlock/clock"
)

const (
	// watchPeriod bounds how late anything is looked at after a suspension.
	watchPeriod = 100 * time.Millisecond
	// leastPause is the shortest sleep. Where timers run faster than the clock, shorter ones would never arrive.
	leastPause = 20 * time.Microsecond
	// skewStep is by how much the wall clock must gain on the boot clock for everything to be looked at. Less is the
	// slewing of NTP.
	skewStep = time.Millisecond
)

// A Looker is looked at when it is due, by the goroutine of its List. Look must not block. It calls List.Fix. The
// function that it returns, unless it is nil, is called when all that was due has been looked at: what is urgent for one
// Looker comes before what is not for another.
type Looker interface {
	Look(now clock.Instant) (after func())
}

// An Entry is one Looker's place in a List. The zero Entry is in none.
type Entry[L Looker] struct {
	looker L
	index  int   // in the heap, from 1; 0: in none; guarded by List.mu, like at
	at     int64 // when it is due, on the boot clock
}

// A List is what is to be looked at. All methods are safe for concurrent use.
type List[L Looker] struct {
	clock *clock.Clock
	wake  chan struct{} // capacity 1
	stop  chan struct{}
	done  chan struct{}

	mu     sync.Mutex
	heap   entries[L]
	next   int64 // when the goroutine means to wake, on the boot clock; 0 while it is awake
	closed bool  // stop is closed
}

// New starts the goroutine of a List. Close ends it.
func New[L Looker](c *clock.Clock) *List[L] {
	l := &List[L]{clock: c, wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	go l.run()
	return l
}

// Add takes a Looker in, to be looked at at an instant of the boot clock. It reports false after Close.
func (l *List[L]) Add(e *Entry[L], x L, at int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	e.looker, e.at = x, at
	heap.Push(&l.heap, e)
	l.nudgeLocked(e.at)
	return true
}

// Fix changes when e is looked at. An Entry that is in no List stays out.
func (l *List[L]) Fix(e *Entry[L], at int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.index > 0 {
		e.at = at
		heap.Fix(&l.heap, e.index-1)
		l.nudgeLocked(e.at)
	}
}

// Remove takes e out.
func (l *List[L]) Remove(e *Entry[L]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.index > 0 {
		heap.Remove(&l.heap, e.index-1)
	}
}

// All returns everything in the List.
func (l *List[L]) All() []L {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]L, len(l.heap))
	for i, e := range l.heap {
		all[i] = e.looker
	}
	return all
}

// Close has Add refuse from here on, and ends the goroutine. What is in the List stays. It returns a channel that is
// closed when the goroutine has ended.
func (l *List[L]) Close() (ended <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.closed = true
		close(l.stop)
	}
	return l.done
}

// nudgeLocked wakes the goroutine if it sleeps beyond at.
func (l *List[L]) nudgeLocked(at int64) {
	if l.next != 0 && at < l.next {
		l.next = 0
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
}

func (l *List[L]) run() {
	defer close(l.done)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	skew := l.clock.Now().Skew()
	var due []L
	var after []func()
	for {
		now := l.clock.Now()
		if now.Skew()-skew > int64(skewStep) {
			skew = now.Skew()
			due = append(due[:0], l.All()...)
		} else {
			skew = min(skew, now.Skew()) // small gains add up to a step
			due = l.take(due[:0], now)
		}
		for _, x := range due {
			if f := x.Look(now); f != nil {
				after = append(after, f)
			}
		}
		for _, f := range after {
			f()
		}
		clear(due)
		clear(after)
		after = after[:0]
		timer.Reset(l.pause())
		select {
		case <-timer.C:
		case <-l.wake:
		case <-l.stop:
			return
		}
	}
}

// take collects what is due. It stays in the heap, put off until Look says when it is due again.
func (l *List[L]) take(due []L, now clock.Instant) []L {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.heap) > 0 && l.heap[0].at <= now.Steady() {
		e := l.heap[0]
		e.at = now.Steady() + int64(watchPeriod)
		heap.Fix(&l.heap, 0)
		due = append(due, e.looker)
	}
	return due
}

// pause is how long nothing is due.
func (l *List[L]) pause() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, wait := l.clock.Now().Steady(), time.Hour
	if len(l.heap) > 0 {
		wait = max(leastPause, min(time.Duration(l.heap[0].at-now), watchPeriod))
	}
	l.next = now + int64(wait)
	return wait
}

// entries are a heap, the first due first.
type entries[L Looker] []*Entry[L]

func (q entries[L]) Len() int           { return len(q) }
func (q entries[L]) Less(i, j int) bool { return q[i].at < q[j].at }
func (q entries[L]) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i+1, j+1
}

// Push implements heap.Interface.
func (q *entries[L]) Push(x any) {
	e := x.(*Entry[L])
	*q = append(*q, e)
	e.index = len(*q)
}

// Pop implements heap.Interface.
func (q *entries[L]) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	(*q)[last], e.index = nil, 0
	*q = (*q)[:last]
	return e
}
