package redlock_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlock-go/redlock/redlock"
)

// recovered calls f as a server calls a handler, and reports whether it panicked.
func recovered(f func()) (panicked bool) {
	defer func() { panicked = recover() != nil }()
	f()
	return false
}

// A trace that panics while a hold is handed on, in a program that recovers, leaves nobody waiting for a turn that
// never comes.
func TestATraceThatPanicsInAHandOnStrandsNobody(t *testing.T) {
	virtual(t, 3, func(w *world) {
		var armed atomic.Bool
		l := w.locker(redlock.WithTrace(&redlock.Trace{Released: func(redlock.LockInfo) {
			if armed.CompareAndSwap(true, false) {
				panic("a trace")
			}
		}}))
		first := w.take(l, "x")
		got := make(chan error, 1)
		ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
		defer cancel()
		go func() {
			k, err := l.Lock(ctx, "x")
			if err == nil {
				err = k.Unlock(w.Context())
			}
			got <- err
		}()
		after(time.Millisecond)
		armed.Store(true)
		if !recovered(func() { _ = first.Unlock(w.Context()) }) {
			t.Error("nothing panicked")
		}
		select {
		case err := <-got:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(2 * time.Minute):
			t.Error("the call is still there a minute after its context has ended")
		}
	})
}

// A trace that panics in an attempt, in a program that recovers, does not keep the name from the rest of the process.
func TestATraceThatPanicsInAnAttemptLeavesTheLineFree(t *testing.T) {
	virtual(t, 3, func(w *world) {
		var armed atomic.Bool
		armed.Store(true)
		l := w.locker(redlock.WithTrace(&redlock.Trace{Attempt: func(redlock.AttemptInfo) {
			if armed.CompareAndSwap(true, false) {
				panic("a trace")
			}
		}}))
		if !recovered(func() { _, _ = l.Lock(w.Context(), "x") }) {
			t.Error("nothing panicked")
		}
		ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
		defer cancel()
		k, err := l.Lock(ctx, "x")
		if errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("the name is free after one TTL, and %v", err)
		}
		w.unlock(k)
	})
}
