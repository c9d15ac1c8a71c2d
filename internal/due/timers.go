package due

import (
	"container/heap"
	"sync"
	"time"

	"github.com/redlock-go/redlock/clock"
)

const (
	// watchPeriod bounds how late a task runs after a suspension.
	watchPeriod = 100 * time.Millisecond
	// leastPause is the shortest sleep. If timers run faster than the clock, a sequence of ever shorter sleeps would
	// never reach the time of the task.
	leastPause = 20 * time.Microsecond
	// skewStep is the gain of the wall clock on the boot clock at which every task is run. A smaller gain is normal: NTP
	// slews the wall clock.
	skewStep = time.Millisecond
)

// A Task runs when it is due, on the goroutine of its Timers. Run must not block, and must call Timers.Reschedule or
// Timers.Remove. If Run returns a function, the function is called after all due tasks have run, so that it delays no
// task.
type Task interface {
	Run(now clock.Instant) (after func())
}

// An Entry is the place of one Task in Timers. The zero Entry is in no Timers.
type Entry[T Task] struct {
	task  T
	index int   // index in the heap, from 1; 0: the entry is in no heap; guarded by Timers.mu
	due   int64 // when the task is due, on the boot clock; guarded by Timers.mu
}

// Timers is a queue of tasks, ordered by when they are due. All methods are safe for concurrent use.
type Timers[T Task] struct {
	clock *clock.Clock
	wake  chan struct{} // capacity 1
	stop  chan struct{}
	done  chan struct{}

	mu     sync.Mutex
	heap   entries[T]
	next   int64 // when the goroutine is to wake, on the boot clock; 0 while it is awake
	closed bool  // whether stop is closed
}

// New returns Timers and starts their goroutine. Close ends it.
func New[T Task](c *clock.Clock) *Timers[T] {
	t := &Timers[T]{clock: c, wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	go t.run()
	return t
}

// Add adds the task x, which is due at the time due of the boot clock, as e. It returns false after Close.
func (t *Timers[T]) Add(e *Entry[T], x T, due int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	e.task, e.due = x, due
	heap.Push(&t.heap, e)
	t.wakeLocked(e.due)
	return true
}

// Reschedule changes when e is due. It does nothing if e is in no Timers.
func (t *Timers[T]) Reschedule(e *Entry[T], due int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.index > 0 {
		e.due = due
		heap.Fix(&t.heap, e.index-1)
		t.wakeLocked(e.due)
	}
}

// Advance makes e due earlier. It does nothing if e is in no Timers, or is due no later than due.
func (t *Timers[T]) Advance(e *Entry[T], due int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.index > 0 && due < e.due {
		e.due = due
		heap.Fix(&t.heap, e.index-1)
		t.wakeLocked(e.due)
	}
}

// Remove removes e.
func (t *Timers[T]) Remove(e *Entry[T]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.index > 0 {
		heap.Remove(&t.heap, e.index-1)
	}
}

// All returns all tasks.
func (t *Timers[T]) All() []T {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]T, len(t.heap))
	for i, e := range t.heap {
		all[i] = e.task
	}
	return all
}

// Close makes Add return false from now on, and ends the goroutine. The tasks stay in the heap. It returns a channel
// that is closed when the goroutine has ended.
func (t *Timers[T]) Close() (ended <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.closed = true
		close(t.stop)
	}
	return t.done
}

// wakeLocked wakes the goroutine if it would sleep beyond due.
func (t *Timers[T]) wakeLocked(due int64) {
	if t.next != 0 && due < t.next {
		t.next = 0
		select {
		case t.wake <- struct{}{}:
		default:
		}
	}
}

func (t *Timers[T]) run() {
	defer close(t.done)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	skew := t.clock.Now().Skew()
	var due []T
	var after []func()
	for {
		now := t.clock.Now()
		if now.Skew()-skew > int64(skewStep) {
			skew = now.Skew()
			due = append(due[:0], t.All()...)
		} else {
			skew = min(skew, now.Skew()) // small gains add up to a step
			due = t.collectDue(due[:0], now)
		}
		for _, x := range due {
			if f := x.Run(now); f != nil {
				after = append(after, f)
			}
		}
		for _, f := range after {
			f()
		}
		clear(due)
		clear(after)
		after = after[:0]
		timer.Reset(t.untilNext())
		select {
		case <-timer.C:
		case <-t.wake:
		case <-t.stop:
			return
		}
	}
}

// collectDue appends to due the tasks that are due at now. These stay in the heap, with a later due time until Run
// reschedules them.
func (t *Timers[T]) collectDue(due []T, now clock.Instant) []T {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.heap) > 0 && t.heap[0].due <= now.Steady() {
		e := t.heap[0]
		e.due = now.Steady() + int64(watchPeriod)
		heap.Fix(&t.heap, 0)
		due = append(due, e.task)
	}
	return due
}

// untilNext returns how long the goroutine sleeps: until a task is due, but no longer than watchPeriod.
func (t *Timers[T]) untilNext() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	now, wait := t.clock.Now().Steady(), time.Hour
	if len(t.heap) > 0 {
		wait = max(leastPause, min(time.Duration(t.heap[0].due-now), watchPeriod))
	}
	t.next = now + int64(wait)
	return wait
}

// entries is a heap ordered by when the entries are due.
type entries[T Task] []*Entry[T]

func (q entries[T]) Len() int           { return len(q) }
func (q entries[T]) Less(i, j int) bool { return q[i].due < q[j].due }
func (q entries[T]) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i+1, j+1
}

// Push implements heap.Interface.
func (q *entries[T]) Push(x any) {
	e := x.(*Entry[T])
	*q = append(*q, e)
	e.index = len(*q)
}

// Pop implements heap.Interface.
func (q *entries[T]) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	(*q)[last], e.index = nil, 0
	*q = (*q)[:last]
	return e
}
