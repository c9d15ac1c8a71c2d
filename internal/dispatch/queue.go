package dispatch

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"sync"
	"time"
)

// capacity is the maximum number of pending events. An event takes about 250 bytes.
const capacity = 1 << 14

// A Queue delivers the events of one client. All methods are safe for concurrent use, and none of them blocks.
type Queue struct {
	handler slog.Handler
	label   slog.Attr // an attribute of every record

	mu       sync.Mutex
	pending  []func()
	running  bool          // whether the goroutine exists: an event starts it, and it ends when no event is pending
	idle     chan struct{} // closed when the goroutine ends; nil: nothing waits for that
	dropped  uint64        // number of events dropped
	reported uint64        // value of dropped that was last logged
	panics   uint64        // number of panics
}

// New returns a Queue whose records go to the handler and begin with the attribute label.
func New(h slog.Handler, label slog.Attr) *Queue { return &Queue{handler: h, label: label} }

// Post queues a callback.
func (q *Queue) Post(callback func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.pending) >= capacity {
		q.dropped++
		return
	}
	q.pending = append(q.pending, callback)
	if !q.running {
		q.running = true
		go q.run()
	}
}

// Log queues a record with the time and the source position of the call.
func (q *Queue) Log(level slog.Level, msg string, attrs ...slog.Attr) {
	var pcs [1]uintptr
	runtime.Callers(2, pcs[:]) // runtime.Callers and Log
	r := slog.NewRecord(time.Now(), level, msg, pcs[0])
	r.AddAttrs(q.label)
	r.AddAttrs(attrs...)
	q.Post(func() { q.handle(r) })
}

// Guard runs a callback on the caller's goroutine. A panic is recovered, counted and logged.
func (q *Queue) Guard(callback func()) {
	defer func() {
		if p := recover(); p != nil {
			q.countPanic()
			q.Log(slog.LevelError, "redlock: trace callback panicked", slog.String("panic", fmt.Sprint(p)),
				slog.String("stack", string(debug.Stack())))
		}
	}()
	callback()
}

// Idle returns a channel that is closed once nothing is pending and no callback runs.
func (q *Queue) Idle() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.idle == nil {
		q.idle = make(chan struct{})
	}
	idle := q.idle
	if !q.running {
		q.endLocked()
	}
	return idle
}

// Counts returns how many events were dropped, and how many callbacks have panicked.
func (q *Queue) Counts() (dropped, panics uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.dropped, q.panics
}

// run delivers the pending callbacks.
func (q *Queue) run() {
	done := false
	defer func() {
		if !done { // a callback has called runtime.Goexit
			go q.run()
		}
	}()
	for callback := q.next(); callback != nil; callback = q.next() {
		q.Guard(callback)
	}
	done = true
}

// next removes and returns the first pending callback. It returns nil if no callback is pending: then the goroutine
// ends. The number of dropped events is logged when the queue has caught up, or when as many events were dropped as the
// queue can hold.
func (q *Queue) next() func() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n := q.dropped - q.reported; n >= capacity || n > 0 && len(q.pending) == 0 {
		q.reported = q.dropped
		r := slog.NewRecord(time.Now(), slog.LevelWarn, "redlock: log records and trace events were dropped", 0)
		r.AddAttrs(q.label, slog.Uint64("dropped", n))
		return func() { q.handle(r) }
	}
	if len(q.pending) == 0 {
		q.pending, q.running = nil, false
		q.endLocked()
		return nil
	}
	callback := q.pending[0]
	q.pending[0] = nil
	q.pending = q.pending[1:]
	return callback
}

// endLocked closes idle.
func (q *Queue) endLocked() {
	if q.idle != nil {
		close(q.idle)
		q.idle = nil
	}
}

// handle passes a record to the handler. A panic of the handler is only counted, since it could not be logged.
func (q *Queue) handle(r slog.Record) {
	defer func() {
		if recover() != nil {
			q.countPanic()
		}
	}()
	ctx := context.Background()
	if q.handler.Enabled(ctx, r.Level) {
		_ = q.handler.Handle(ctx, r) // a record that cannot be written cannot be reported either
	}
}

func (q *Queue) countPanic() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.panics++
}
