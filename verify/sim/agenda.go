package sim

import (
	"container/heap"
	"time"
)

// An agenda runs functions at their due times, in one goroutine and with simulation.mu held.
type agenda struct {
	w     *simulation
	timer *time.Timer
	end   chan struct{}
	ended chan struct{}
	due   dueHeap // guarded by simulation.mu, like next and count
	next  int64   // when the timer fires, in ns since the start
	count int
}

type appointment struct {
	at    int64 // ns since the start
	order int
	f     func()
}

func newAgenda(w *simulation) *agenda {
	a := &agenda{w: w, timer: time.NewTimer(time.Hour), next: int64(time.Hour)}
	a.end, a.ended = make(chan struct{}), make(chan struct{})
	go a.run()
	return a
}

// add makes the agenda run f at due. The caller must hold simulation.mu.
func (a *agenda) add(due time.Time, f func()) {
	a.count++
	at := int64(due.Sub(a.w.start))
	heap.Push(&a.due, appointment{at: at, order: a.count, f: f})
	if at < a.next {
		a.next = at
		a.timer.Reset(time.Until(due))
	}
}

func (a *agenda) run() {
	defer close(a.ended)
	defer a.timer.Stop()
	for {
		select {
		case <-a.timer.C:
		case <-a.end:
			return
		}
		a.w.mu.Lock()
		now := int64(time.Since(a.w.start))
		for len(a.due) > 0 && a.due[0].at <= now {
			heap.Pop(&a.due).(appointment).f()
		}
		a.next = now + int64(time.Hour)
		if len(a.due) > 0 {
			a.next = a.due[0].at
		}
		a.timer.Reset(time.Duration(a.next - now))
		a.w.mu.Unlock()
	}
}

// stop ends the goroutine of the agenda. Functions that are due later do not run.
func (a *agenda) stop() {
	close(a.end)
	<-a.ended
}

type dueHeap []appointment

func (h dueHeap) Len() int { return len(h) }
func (h dueHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].order < h[j].order
}
func (h dueHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *dueHeap) Push(x any) { *h = append(*h, x.(appointment)) }

// Pop implements heap.Interface.
func (h *dueHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = appointment{}
	*h = old[:len(old)-1]
	return last
}
