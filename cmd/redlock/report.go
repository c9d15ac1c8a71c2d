package main

import (
	"io"
	"log"
	"sync/atomic"
	"time"
)

// An aside writes in a separate goroutine, so that a writer that blocks (a full pipe, a stopped terminal) delays
// nothing else. Output beyond the capacity of its queue is dropped.
type aside struct {
	to      io.Writer
	queue   chan any // []byte: text; chan struct{}: closed when everything before it has been written
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
			_, _ = w.to.Write(item) // continue if the reader has gone
		case chan struct{}:
			close(item)
		}
	}
}

// flush waits until everything is written, for at most d.
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

// reportAside makes all reports, and the log, non-blocking.
func (a *app) reportAside() {
	w := newAside(a.stderr)
	a.stderr = w
	log.SetOutput(w)
}

// flush waits briefly for reports that are still queued.
func (a *app) flush() {
	if w, ok := a.stderr.(*aside); ok {
		w.flush(time.Second)
	}
}
