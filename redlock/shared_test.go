package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/redlock"
)

// Readers and writers get the lock in the order of the queue: the readers ahead of a writer hold it together, and
// the readers behind the writer get it after the writer.
func TestReadersAndWritersKeepOrder(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		holder := must(w.locker().RWLock("x").Lock(w.Context()))(w)
		var mu sync.Mutex
		var order []string
		var wg sync.WaitGroup
		wait := func(what string, take func(*redlock.RWLock) (*redlock.Lock, error)) {
			s := w.locker().RWLock("x")
			wg.Go(func() {
				k, err := take(s)
				if err != nil {
					w.Errorf("the call %q returned %v", what, err)
					return
				}
				mu.Lock()
				order = append(order, what)
				mu.Unlock()
				time.Sleep(300 * time.Millisecond)
				_ = k.Unlock(w.Context())
			})
			after(100 * time.Millisecond)
		}
		read := func(s *redlock.RWLock) (*redlock.Lock, error) { return s.RLock(w.Context()) }
		write := func(s *redlock.RWLock) (*redlock.Lock, error) { return s.Lock(w.Context()) }
		wait("r", read)
		wait("r", read)
		wait("w", write)
		wait("R", read)
		wait("R", read)
		began := time.Now()
		w.noError(holder.Unlock(w.Context()))
		wg.Wait()
		if want := []string{"r", "r", "w", "R", "R"}; !slices.Equal(order, want) {
			w.Errorf("the order was %q, want %q", order, want)
		}
		w.wantSince(began, 1100*time.Millisecond)
	})
}

func TestDowngrade(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		l := w.locker()
		writer := must(l.RWLock("x").Lock(w.Context()))(w)
		ctx := writer.Context(w.Context())
		got := make(chan string, 2)
		for what, s := range map[string]*redlock.RWLock{"w": w.locker().RWLock("x"), "r": w.locker().RWLock("x")} {
			go func() {
				take := s.RLock
				if what == "w" {
					take = s.Lock
					time.Sleep(time.Second)
				}
				k, err := take(w.Context())
				if err != nil {
					w.Errorf("the call %q returned %v", what, err)
					got <- "error"
					return
				}
				got <- what
				_ = k.Unlock(w.Context())
			}()
		}
		after(3 * time.Second)
		reader := must(writer.Downgrade(w.Context()))(w)
		if first := <-got; first != "r" {
			w.Errorf("%q acquired the name first, want the reader \"r\"", first)
		}
		w.isError(writer.Err(), redlock.ErrReleased)
		w.isError(context.Cause(ctx), redlock.ErrReleased)
		w.wantLater(reader, writer)
		after(30 * time.Second)
		if reader.Err() != nil {
			w.Errorf("the reader has lost its lock: %v", reader.Err())
		}
		if len(got) > 0 {
			w.Error("a writer got the lock while the reader held it")
		}
		w.noError(reader.Unlock(w.Context()))
		if last := <-got; last != "w" {
			w.Errorf("the last holder was %q, want the writer \"w\"", last)
		}
	})
}

// A reader cannot become a writer, which is no reason to refuse a writer after the reader has ended. Readers and
// writers can re-enter as readers. A Downgrade with a context of the writer's lock, which ends, is refused before
// anything ends.
func TestUpgradesAndReentriesOfReaders(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		s := w.locker().RWLock("x")
		r := must(s.RLock(w.Context()))(w)
		ctx := r.Context(w.Context())
		w.isError(errOf(s.Lock(ctx)), redlock.ErrUpgrade)
		w.isError(errOf(s.Lock(ctx, redlock.WithReentry())), redlock.ErrUpgrade)
		w.isError(errOf(s.TryLock(ctx)), redlock.ErrUpgrade)
		w.noError(s.DoRead(ctx, nothing, redlock.WithReentry()))
		w.isError(errOf(r.Export()), redlock.ErrInvalid)
		w.isError(errOf(r.Downgrade(w.Context())), redlock.ErrInvalid)
		w.noError(r.Err(), r.Unlock(w.Context()))
		err := errOf(s.Lock(context.WithoutCancel(ctx)))
		w.isError(err, redlock.ErrReleased)
		w.notError(err, redlock.ErrInvalid)
		writer := must(s.Lock(w.Context()))(w)
		w.isError(errOf(writer.Downgrade(writer.Context(w.Context()))), redlock.ErrInvalid)
		w.noError(writer.Err())
		inner := must(s.RLock(writer.Context(w.Context()), redlock.WithReentry()))(w)
		equal(w, inner.Token(), writer.Token(), "token of the re-entry")
		w.isError(errOf(writer.Downgrade(w.Context())), redlock.ErrInvalid)
		w.noError(inner.Unlock(w.Context()), writer.Unlock(w.Context()))
		w.isError(errOf(s.RLock(w.Context(), redlock.WithMinHold(time.Second))), redlock.ErrInvalid)
	})
}

func TestReadersAreExtendedAndRepaired(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		s := w.locker().RWLock("x")
		r := must(s.RLock(w.Context()))(w)
		after(time.Minute)
		if r.Err() != nil {
			w.Fatalf("after a minute the reader's lock has ended: %v", r.Err())
		}
		w.restart(false, 0, 1)
		after(40 * time.Second)
		w.wantHeld(r, w.masters.N())
		w.isError(errOf(w.locker().RWLock("x").TryLock(w.Context())), redlock.ErrHeld)
		w.noError(r.Unlock(w.Context()))
		synctest.Wait()
		if errors.Is(r.Err(), redlock.ErrLost) {
			w.Error("the reader has lost its lock")
		}
	})
}

// A downgrade that gets no answers from a quorum fails when its context ends, and leaves no keys.
func TestDowngradeWithoutQuorumLeavesNothing(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		writer := must(w.locker().RWLock("x").Lock(w.Context()))(w)
		w.hang(0, 1, 2)
		w.isError(errOf(writer.Downgrade(w.withTimeout(200*time.Millisecond))), context.DeadlineExceeded)
		w.isError(writer.Err(), redlock.ErrReleased)
		w.resume(0, 1, 2)
		after(3 * time.Second)
		w.noError(w.locker().RWLock("x").Do(w.Context(), nothing))
		w.wantOn("x", 0)
		lost := must(w.locker().RWLock("x").Lock(w.Context(), redlock.WithExtension(false), redlock.WithTTL(time.Second)))(w)
		after(2 * time.Second)
		w.isError(errOf(lost.Downgrade(w.Context())), redlock.ErrLost)
	})
}

// A writer cannot downgrade a lock that the masters have lost, even if the writer does not know of the loss yet:
// another writer may have held the name in the meantime.
func TestLostWriterCannotDowngrade(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		writer := must(w.locker().RWLock("x").Lock(w.Context(), redlock.WithExtension(false)))(w)
		w.masters.Lose("x")
		w.noError(w.locker().RWLock("x").Do(w.Context(), nothing))
		w.must(writer.Err())
		w.isError(errOf(writer.Downgrade(w.Context())), redlock.ErrLost)
		w.wantOn("x", 0)
	})
}

// A master that missed a downgrade still has the writer's share, and gets the reader's share when the writer's share
// has expired.
func TestDowngradeMissedByMaster(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		writer := must(w.locker().RWLock("x").Lock(w.Context(), redlock.WithTTL(3*time.Second)))(w)
		w.each(func(_ int, m *memory.Master) { m.DropRequests(1) }, 4)
		reader := must(writer.Downgrade(w.Context()))(w)
		other := must(w.locker().RWLock("x").RLock(w.Context()))(w)
		w.isError(errOf(w.locker().RWLock("x").TryLock(w.Context())), redlock.ErrHeld)
		after(10 * time.Second)
		w.wantHeld(reader, 5)
		w.noError(reader.Unlock(w.Context()), other.Unlock(w.Context()))
		w.noError(w.locker().RWLock("x").Do(w.Context(), nothing))
	})
}

// Only masters that know the name as another kind count for ErrKind. If they are a minority, the call gets the lock
// from the others. If too few of those can vote, the call waits for them, and its error names both.
func TestNameOfAnotherKindOnSomeMasters(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		l := w.locker(redlock.WithWaitLimit(time.Second))
		w.noError(l.RWLock("x").DoRead(w.Context(), nothing))
		synctest.Wait()
		for _, i := range []int{2, 3, 4} {
			w.masters.Master(i).EvictKey("redlock:{x}")
		}
		k := must(l.Lock(w.Context(), "x"))(w)
		w.isError(errOf(l.RWLock("x").TryLock(w.Context())), redlock.ErrKind)
		w.noError(k.Unlock(w.Context()))
		w.masters.Master(2).Stop()
		after(time.Second)
		_, err := l.Lock(w.Context(), "x")
		w.isError(err, redlock.ErrNoQuorum)
		w.notError(err, redlock.ErrKind)
		if !strings.Contains(fmt.Sprint(err), "it knows the name as a readers-writer lock (RWLock)") {
			w.Errorf("the error is %v", err)
		}
	})
}

// H125: the replies to the first round of a downgrade are lost, and a later round wins. The ballot of the later
// round becomes the reader's token, so the masters must raise their fences to it: the token of the next writer must
// be larger. The test starts with a fence ahead of the clocks, so that a fence which is too low by a single ballot
// is noticed. The validity of the lease is measured from the start of the later round, so the TTLs of the shares
// must be, too.
func TestDowngradeOfSeveralRoundsRaisesFences(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		high := strconv.FormatInt(time.Now().Add(12*time.Second).UnixMicro(), 10)
		w.noError(w.locker().RWLock("x").Do(w.Context(), nothing))
		w.each(func(_ int, m *memory.Master) { m.SetFence("x", high) })
		opts := []redlock.LockOption{redlock.WithTTL(3 * time.Second), redlock.WithExtension(false)}
		writer := must(w.locker().RWLock("x").Lock(w.Context(), opts...))(w)
		after(time.Second)
		w.each(func(_ int, m *memory.Master) { m.DropReplies(1) })
		w.wire.block(0, 1, 2) // new connections wait
		time.AfterFunc(300*time.Millisecond, func() { w.wire.block() })
		began := time.Now()
		reader := must(writer.Downgrade(w.Context(), opts...))(w)
		if time.Since(began) < 100*time.Millisecond {
			w.Error("the downgrade was not sent again")
		}
		w.wantLater(reader, writer)
		fences, long := 0, 0
		w.each(func(_ int, m *memory.Master) {
			if _, _, left := m.Holds("x"); left >= reader.Remaining() {
				long++
			}
			text := m.ReadersFence("x")
			if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= reader.Token() {
				fences++
			}
		})
		if fences < 2 || long < 2 {
			w.Errorf("the token %d is a fence on %d of 3 masters, %d keep the share long enough", reader.Token(), fences, long)
		}
		after(4 * time.Second) // the reader's share ends
		next := must(w.locker().RWLock("x").Lock(w.Context(), opts...))(w)
		w.wantLater(next, reader)
		w.noError(next.Unlock(w.Context()))
	})
}

// H125: a writer's acquire that arrives after the writer has given up puts the writer into the queue again. A queued
// writer keeps readers out for 8 s. The client of this writer must prevent that, so it removes the writer from the
// queue.
func TestLateAcquireOfAbsentWriterLetsReadersIn(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		first := must(w.locker().RWLock("x").RLock(w.Context()))(w)
		w.isError(errOf(w.locker().RWLock("x").Lock(w.withTimeout(3*time.Second))), context.DeadlineExceeded)
		after(10 * time.Millisecond)
		late := w.wire.sent("shared acquire")
		late = slices.DeleteFunc(late, func(s sent) bool { return s.arg(6) == "" })
		if len(late) == 0 || w.queued("x") != 0 {
			w.Fatalf("%d acquires with a waiter were sent, %d masters have a waiter", len(late), w.queued("x"))
		}
		for _, s := range late {
			w.replay(s)
		}
		if w.queued("x") == 0 {
			w.Fatal("the late acquires have queued no waiter")
		}
		start := time.Now()
		second := must(w.locker().RWLock("x").RLock(w.Context()))(w)
		w.wantSince(start, 2*time.Second)
		w.noError(first.Unlock(w.Context()), second.Unlock(w.Context()))
		after(10 * time.Millisecond) // a late master may still list the reader as a waiter
		equal(w, w.queued("x"), 0, "masters with a waiter")
	})
}
