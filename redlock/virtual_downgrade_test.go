package redlock_test

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/redlock"
)

// H125: the replies to the first round of a downgrade are lost, and a later round wins. Its ballot is the reader's
// token, so it must be a fence: the next writer's token is larger. A fence that is ahead of the clocks makes every
// ballot count.
func TestDowngradeOfSeveralRoundsRaisesFences(t *testing.T) {
	virtual(t, 3, func(w *world) {
		high := strconv.FormatInt(time.Now().Add(12*time.Second).UnixMicro(), 10)
		w.each(func(_ int, m *memory.Master) { m.Set(defaultPrefix.Fence("x"), high) })
		opts := []redlock.LockOption{redlock.WithTTL(3 * time.Second), redlock.WithExtension(false)}
		writer, err := w.locker().RWLock("x").Lock(w.Context(), opts...)
		w.must(err)
		after(time.Second)
		w.each(func(_ int, m *memory.Master) { m.DropReplies(1) })
		w.wire.block(0, 1, 2) // new connections wait
		time.AfterFunc(300*time.Millisecond, func() { w.wire.block() })
		reader, err := writer.Downgrade(w.Context(), opts...)
		w.must(err)
		if reader.Token() <= writer.Token() {
			t.Errorf("the reader's token is %d, the writer's was %d", reader.Token(), writer.Token())
		}
		fences := 0
		w.each(func(_ int, m *memory.Master) {
			text, _ := m.Get(defaultPrefix.Reads("x"))
			if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= reader.Token() {
				fences++
			}
		})
		if fences < 2 {
			t.Errorf("the token %d is a fence on %d of 3 masters", reader.Token(), fences)
		}
		after(4 * time.Second) // the reader's share ends
		next, err := w.locker().RWLock("x").Lock(w.Context(), opts...)
		w.must(err)
		if next.Token() <= reader.Token() {
			t.Errorf("the next writer's token %d is not larger than the reader's, %d", next.Token(), reader.Token())
		}
		w.unlockAll(next)
	})
}

// H125: a writer's acquire that arrives after the writer has given up queues it again. It must not keep readers out for
// the 8 s for which a writer that has asked counts: its client has it leave.
func TestLateAcquireOfAbsentWriterLetsReadersIn(t *testing.T) {
	virtual(t, 3, func(w *world) {
		first := w.rlock(w.locker().RWLock("x"))
		ctx, cancel := context.WithTimeout(w.Context(), 3*time.Second)
		defer cancel()
		_, err := w.locker().RWLock("x").Lock(ctx)
		w.isError(err, context.DeadlineExceeded)
		after(10 * time.Millisecond)
		late := w.wire.sent("shared acquire")
		late = slices.DeleteFunc(late, func(s sent) bool { return s.arg(6) == "" })
		if len(late) == 0 || w.queued("x") != 0 {
			w.Fatalf("%d asks with a waiter, %d waiters", len(late), w.queued("x"))
		}
		for _, s := range late {
			w.replay(s)
		}
		if w.queued("x") == 0 {
			w.Fatal("the late acquires have queued no waiter")
		}
		start := time.Now()
		second := w.rlock(w.locker().RWLock("x"))
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("a reader has waited %v behind a writer that is gone", took)
		}
		w.unlockAll(first, second) // the reader may wait on a master that has let it in late
		after(10 * time.Millisecond)
		if n := w.queued("x"); n != 0 {
			t.Errorf("%d waiters are left", n)
		}
	})
}
