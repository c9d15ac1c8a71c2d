package redlock

import (
	"container/heap"
	"sync"
	"time"

	"github.com/redlock-go/redlock/clock"
)

// watchPeriod bounds how late a holder hears of the end of its lock after the machine was suspended: timers stand still
// meanwhile, so while anything is held the clock is looked at this often.
const watchPeriod = 100 * time.Millisecond

// freshFor is for how long a hold keeps what it needs for a quick release. Most are over by then.
const freshFor = 250 * time.Millisecond

// leastPause is the shortest sleep: where timers run faster than the clock, ever shorter ones would never arrive.
const leastPause = 20 * time.Microsecond

// skewStep is by how much the wall clock must gain on the steady clock, from one look to the next, for the schedule to
// be looked through as a whole: less is the slewing of NTP and the time between two readings.
const skewStep = time.Millisecond

// A schedule looks at each live hold when something is due for it: one goroutine and one heap for all holds of a
// Locker. It never waits for the network: whatever a hold sends is only queued.
//
// mu is never held while a hold's mutex is taken; holds take it with theirs held.
type schedule struct {
	l    *Locker
	wake chan struct{}
	ripe []ripe // of the goroutine: what it collects to extend together

	mu   sync.Mutex
	heap dueHeap // guarded by mu, as are index and due of every hold in it
	next int64   // guarded by mu: when the goroutine means to wake, steady ns; 0 while it is awake
}

func newSchedule(l *Locker) *schedule {
	return &schedule{l: l, wake: make(chan struct{}, 1)}
}

// add makes h known; it is looked at from at on.
func (s *schedule) add(h *hold, at clock.Instant) {
	s.mu.Lock()
	h.due = at.Steady()
	heap.Push(&s.heap, h)
	s.nudgeLocked(h.due)
	s.mu.Unlock()
}

// fix changes when h is looked at. A hold that is not in the schedule stays out of it.
func (s *schedule) fix(h *hold, at clock.Instant) {
	s.mu.Lock()
	if h.index >= 0 {
		h.due = at.Steady()
		heap.Fix(&s.heap, h.index)
		s.nudgeLocked(h.due)
	}
	s.mu.Unlock()
}

// remove takes h out.
func (s *schedule) remove(h *hold) {
	s.mu.Lock()
	if h.index >= 0 {
		heap.Remove(&s.heap, h.index)
	}
	s.mu.Unlock()
}

// nudgeLocked wakes the goroutine if it sleeps beyond due.
func (s *schedule) nudgeLocked(due int64) {
	if s.next != 0 && due < s.next {
		s.next = 0
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

// all returns every live hold.
func (s *schedule) all() []*hold {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*hold(nil), s.heap...)
}

// run is the schedule's goroutine. It ends when the Locker has closed.
func (s *schedule) run() {
	defer s.l.joined.Done()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	skew := s.l.now().Skew()
	var due []*hold
	for {
		now := s.l.now()
		if now.Skew()-skew > int64(skewStep) {
			skew = now.Skew()
			due = append(due[:0], s.all()...)
		} else {
			skew = min(skew, now.Skew()) // small gains add up to a step
			due = s.take(due[:0], now)
		}
		s.look(now, due)
		clear(due)
		timer.Reset(s.pause())
		select {
		case <-timer.C:
		case <-s.wake:
		case <-s.l.closed:
			return
		}
	}
}

// look does what is due for the holds. Where there are enough of them, those that are to be extended are extended together.
func (s *schedule) look(now clock.Instant, due []*hold) {
	together := len(due) >= manyLeast
	list := s.ripe[:0]
	for _, h := range due {
		if ttl := h.tick(now, together); ttl > 0 {
			list = append(list, ripe{h, ttl})
		}
	}
	s.ripe = list
	s.l.extendAll(now, list)
	clear(s.ripe)
}

// take collects the holds that are due, and where there are any, those that nearly are. They stay in the heap, put off until their tick says when they are due again.
func (s *schedule) take(due []*hold, now clock.Instant) []*hold {
	s.mu.Lock()
	defer s.mu.Unlock()
	until := now.Steady()
	if len(s.heap) > 0 && s.heap[0].due <= until {
		until += int64(manyAhead)
	}
	for len(s.heap) > 0 && s.heap[0].due <= until {
		h := s.heap[0]
		h.due = now.Add(watchPeriod).Steady()
		heap.Fix(&s.heap, 0)
		due = append(due, h)
	}
	return due
}

// pause is how long nothing is due.
func (s *schedule) pause() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.l.now().Steady()
	if len(s.heap) == 0 {
		s.next = now + int64(time.Hour)
		return time.Hour
	}
	wait := min(time.Duration(s.heap[0].due-now), watchPeriod)
	if wait <= 0 {
		s.next = 0
		return 0
	}
	wait = max(wait, leastPause)
	s.next = now + int64(wait)
	return wait
}

// dueHeap orders holds by when they are due.
type dueHeap []*hold

func (q dueHeap) Len() int           { return len(q) }
func (q dueHeap) Less(i, j int) bool { return q[i].due < q[j].due }
func (q dueHeap) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push implements heap.Interface.
func (q *dueHeap) Push(x any) {
	h := x.(*hold)
	h.index = len(*q)
	*q = append(*q, h)
}

// Pop implements heap.Interface.
func (q *dueHeap) Pop() any {
	old := *q
	h := old[len(old)-1]
	old[len(old)-1] = nil
	h.index = -1
	*q = old[:len(old)-1]
	return h
}
