package main

import (
	"io"
	"log"
	"sync/atomic"
	"time"
)

// An aside writes what it is given by a goroutine of its own, so that a writer that blocks (a full pipe, a stopped
// terminal) delays nobody. What does not fit into its queue is dropped.
type aside struct {
	to      io.Writer
	queue   chan any // []byte: text; chan struct{}: closed when all before it was written
	dropped atomic.Int64
}

func newAside(to io.Writer) *aside {
	w := &aside{to: to, queue: make(chan any, 1000)}
	go w.write()
	return w
}

// Write queues p. It never blocks, and never fails.
func (w *aside) Write(p []byte) (int, error) {
	select {
	case w.queue <- append([]byte(nil), p...):
	default:
		w.dropped.Add(1)
	}
	return len(p), nil
}

func (w *aside) write() {
	for item := range w.queue {
		switch item := item.(type) {
		case []byte:
			_, _ = w.to.Write(item) // a reader that has gone is no reason to end
		case chan struct{}:
			close(item)
		}
	}
}

// flush waits until all is written, for at most d.
func (w *aside) flush(d time.Duration) {
	written, timeout := make(chan struct{}), time.After(d)
	select {
	case w.queue <- written:
	case <-timeout:
		return
	}
	select {
	case <-written:
	case <-timeout:
	}
}

// reportAside makes all reports, and the log, writes that never block.
func (a *app) reportAside() {
	w := newAside(a.stderr)
	a.stderr = w
	log.SetOutput(w)
}

// flush waits a moment for reports that were made aside.
func (a *app) flush() {
	if w, ok := a.stderr.(*aside); ok {
		w.flush(time.Second)
	}
}
