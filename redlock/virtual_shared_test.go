package redlock_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// rlock acquires the lock of a reader and fails the test if that fails.
func (w *world) rlock(s *redlock.RWLock, opts ...redlock.LockOption) *redlock.Lock {
	w.Helper()
	k, err := s.RLock(w.Context(), opts...)
	if err != nil {
		w.Fatalf("rlock: %v", err)
	}
	return k
}

func (w *world) wlock(s *redlock.RWLock, opts ...redlock.LockOption) *redlock.Lock {
	w.Helper()
	k, err := s.Lock(w.Context(), opts...)
	if err != nil {
		w.Fatalf("lock: %v", err)
	}
	return k
}

func (w *world) unlockAll(ks ...*redlock.Lock) {
	w.Helper()
	for _, k := range ks {
		if err := k.Unlock(w.Context()); err != nil {
			w.Errorf("unlock %s: %v", k.Name(), err)
		}
	}
}

func TestVirtualReadersShareAndAWriterIsAlone(t *testing.T) {
	virtual(t, 5, func(w *world) {
		a, b := w.locker().RWLock("x"), w.locker().RWLock("x")
		r1, r2, r3 := w.rlock(a), w.rlock(a), w.rlock(b)
		_, err := b.TryLock(w.Context())
		w.isError(err, redlock.ErrHeld)
		w.unlockAll(r1, r2)
		_, err = a.TryLock(w.Context())
		w.isError(err, redlock.ErrHeld)
		w.unlockAll(r3)
		writer := w.wlock(a)
		for _, r := range []*redlock.Lock{r1, r2, r3} {
			if writer.Token() <= r.Token() {
				w.Errorf("the writer's token %d is not larger than the reader's %d", writer.Token(), r.Token())
			}
		}
		for _, s := range []*redlock.RWLock{a, b} {
			_, err = s.TryRLock(w.Context())
			w.isError(err, redlock.ErrHeld)
			_, err = s.TryLock(w.Context())
			w.isError(err, redlock.ErrHeld)
		}
		w.unlockAll(writer)
		r1 = w.rlock(b)
		if r1.Token() <= writer.Token() {
			w.Errorf("the reader's token %d is not larger than the writer's %d", r1.Token(), writer.Token())
		}
		w.unlockAll(r1)
		synctest.Wait()
		if keys := w.masters.Master(0).Keys(); slices.Contains(keys, "redlock:{x}") {
			w.Errorf("at the end the master has %q", keys)
		}
	})
}

// An endless stream of readers does not starve a writer: later readers wait behind it.
func TestVirtualAWriterIsNotStarvedByReaders(t *testing.T) {
	virtual(t, 5, func(w *world) {
		l := []*redlock.Locker{w.locker(), w.locker(), w.locker()}
		var wg sync.WaitGroup
		ctx, stop := context.WithCancel(w.Context())
		for i := range 12 {
			wg.Go(func() {
				s := l[i%3].RWLock("x")
				for ctx.Err() == nil {
					r, err := s.RLock(ctx)
					if err != nil {
						continue
					}
					time.Sleep(time.Duration(20+i) * time.Millisecond)
					_ = r.Unlock(ctx)
				}
			})
		}
		after(500 * time.Millisecond)
		for range 5 {
			began := time.Now()
			k := w.wlock(l[0].RWLock("x"))
			if took := time.Since(began); took > 200*time.Millisecond {
				w.Errorf("the writer has waited for %v", took)
			}
			after(10 * time.Millisecond)
			w.unlockAll(k)
			after(100 * time.Millisecond)
		}
		stop()
		wg.Wait()
	})
}

// The order is that of the queue: readers before the writer hold together, readers behind it follow it.
func TestVirtualTheOrderIsThatOfTheQueue(t *testing.T) {
	virtual(t, 5, func(w *world) {
		holder := w.wlock(w.locker().RWLock("x"))
		var mu sync.Mutex
		var order []string
		var wg sync.WaitGroup
		wait := func(what string, take func(*redlock.RWLock) (*redlock.Lock, error)) {
			s := w.locker().RWLock("x")
			wg.Go(func() {
				k, err := take(s)
				if err != nil {
					w.Errorf("%s: %v", what, err)
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
		w.unlockAll(holder)
		wg.Wait()
		if want := []string{"r", "r", "w", "R", "R"}; !slices.Equal(order, want) {
			w.Errorf("the order was %q, want %q", order, want)
		}
		if took := time.Since(began); took > 1100*time.Millisecond {
			w.Errorf("it took %v: the readers have not gone together", took)
		}
	})
}

func TestVirtualAReaderThatDiesFreesItsShareAlone(t *testing.T) {
	virtual(t, 5, func(w *world) {
		lives := w.rlock(w.locker().RWLock("x"), redlock.WithTTL(3*time.Second)) // extended each second
		dying := w.locker().RWLock("x")
		dead := w.rlock(dying, redlock.WithTTL(3*time.Second), redlock.WithExtension(false))
		after(2 * time.Second)
		w.unlockAll(lives)
		_, err := w.locker().RWLock("x").TryLock(w.Context())
		w.isError(err, redlock.ErrHeld)
		began := time.Now()
		k := w.wlock(w.locker().RWLock("x"))
		if took := time.Since(began); took > 2*time.Second {
			w.Errorf("the writer has waited for %v: a dead reader's share has 1 s left", took)
		}
		w.isError(dead.Err(), redlock.ErrLost)
		w.unlockAll(k)
	})
}

func TestVirtualAWriterBecomesAReader(t *testing.T) {
	virtual(t, 5, func(w *world) {
		l := w.locker()
		writer := w.wlock(l.RWLock("x"))
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
					w.Errorf("%s: %v", what, err)
					got <- "error"
					return
				}
				got <- what
				_ = k.Unlock(w.Context())
			}()
		}
		after(3 * time.Second)
		reader, err := writer.Downgrade(w.Context())
		if err != nil {
			w.Fatal(err)
		}
		if first := <-got; first != "r" {
			w.Errorf("%q acquired the name first", first)
		}
		w.isError(writer.Err(), redlock.ErrReleased)
		w.isError(context.Cause(ctx), redlock.ErrReleased)
		if reader.Token() <= writer.Token() {
			w.Errorf("tokens %d, then %d", writer.Token(), reader.Token())
		}
		after(30 * time.Second)
		if reader.Err() != nil {
			w.Errorf("the reader has lost its lock: %v", reader.Err())
		}
		if len(got) > 0 {
			w.Error("a writer came beside the reader")
		}
		w.unlockAll(reader)
		if last := <-got; last != "w" {
			w.Errorf("%q came last", last)
		}
	})
}

func TestVirtualUpgradeKindsAndReentry(t *testing.T) {
	virtual(t, 5, func(w *world) {
		l := w.locker()
		s := l.RWLock("x")
		r := w.rlock(s)
		_, err := s.Lock(r.Context(w.Context()))
		w.isError(err, redlock.ErrUpgrade)
		_, err = s.TryLock(r.Context(w.Context()))
		w.isError(err, redlock.ErrUpgrade)
		again, err := s.RLock(r.Context(w.Context()))
		if err != nil {
			w.Fatal(err)
		}
		w.unlockAll(again)
		_, err = l.Lock(r.Context(w.Context()), "x")
		w.isError(err, redlock.ErrKind)
		for _, o := range []*redlock.Locker{l, w.locker()} {
			_, err = o.Lock(w.Context(), "x")
			w.isError(err, redlock.ErrKind)
			_, err = o.TryLock(w.Context(), "x")
			w.isError(err, redlock.ErrKind)
		}
		if r.Err() != nil {
			w.Errorf("the reader has lost its lock: %v", r.Err())
		}
		_, err = r.Export()
		w.isError(err, redlock.ErrInvalid)
		_, err = r.Downgrade(w.Context())
		w.isError(err, redlock.ErrInvalid)
		w.unlockAll(r)
		k := w.take(l, "x")
		for _, o := range []*redlock.Locker{l, w.locker()} {
			_, err = o.RWLock("x").RLock(w.Context())
			w.isError(err, redlock.ErrKind)
			_, err = o.RWLock("x").Lock(w.Context())
			w.isError(err, redlock.ErrKind)
		}
		w.unlockAll(k)
		writer := w.wlock(s)
		inner, err := s.RLock(writer.Context(w.Context()))
		if err != nil || inner.Token() != writer.Token() {
			w.Errorf("a writer that reads: %v, %v", inner, err)
		}
		_, err = writer.Downgrade(w.Context())
		w.isError(err, redlock.ErrInvalid)
		w.unlockAll(inner, writer)
		_, err = s.RLock(w.Context(), redlock.WithMinHold(time.Second))
		w.isError(err, redlock.ErrInvalid)
	})
}

func TestVirtualReadersAreExtendedAndRepaired(t *testing.T) {
	virtual(t, 5, func(w *world) {
		s := w.locker().RWLock("x")
		r := w.rlock(s)
		after(time.Minute)
		if r.Err() != nil {
			w.Fatalf("after a minute: %v", r.Err())
		}
		w.each(func(_ int, m *memory.Master) { m.Restart(false) }, 0, 1)
		after(40 * time.Second)
		if on, n := r.HeldOn(); on != 5 || n != 5 {
			w.Errorf("held on %d of %d", on, n)
		}
		_, err := w.locker().RWLock("x").TryLock(w.Context())
		w.isError(err, redlock.ErrHeld)
		w.unlockAll(r)
		synctest.Wait()
		if errors.Is(r.Err(), redlock.ErrLost) {
			w.Error("lost")
		}
	})
}

// A downgrade that no quorum answers fails with its context, and leaves no keys.
func TestVirtualADowngradeWithoutQuorumLeavesNothing(t *testing.T) {
	virtual(t, 5, func(w *world) {
		writer := w.wlock(w.locker().RWLock("x"))
		w.hang(0, 1, 2)
		ctx, cancel := context.WithTimeout(w.Context(), 200*time.Millisecond)
		defer cancel()
		_, err := writer.Downgrade(ctx)
		w.isError(err, context.DeadlineExceeded)
		w.isError(writer.Err(), redlock.ErrReleased)
		w.resume(0, 1, 2)
		after(3 * time.Second)
		w.unlockAll(w.wlock(w.locker().RWLock("x")))
		synctest.Wait()
		if on := w.on("x"); on > 0 {
			w.Errorf("it is still on %d masters", on)
		}
		lost := w.wlock(w.locker().RWLock("x"), redlock.WithExtension(false), redlock.WithTTL(time.Second))
		after(2 * time.Second)
		_, err = lost.Downgrade(w.Context())
		w.isError(err, redlock.ErrLost)
	})
}

// A writer whose lock the masters have lost, and that does not know it yet, cannot downgrade: another writer may have
// held the name meanwhile.
func TestVirtualAWriterThatWasLostBecomesNoReader(t *testing.T) {
	virtual(t, 5, func(w *world) {
		writer := w.wlock(w.locker().RWLock("x"), redlock.WithExtension(false))
		w.masters.Lose("x")
		w.unlockAll(w.wlock(w.locker().RWLock("x")))
		if err := writer.Err(); err != nil {
			w.Fatalf("it knows already: %v", err)
		}
		_, err := writer.Downgrade(w.Context())
		w.isError(err, redlock.ErrLost)
		synctest.Wait()
		if on := w.on("x"); on > 0 {
			w.Errorf("it is on %d masters", on)
		}
	})
}

// The master that missed the downgrade still has the writer's share, and gets the reader's when that has expired.
func TestVirtualADowngradeThatAMasterMisses(t *testing.T) {
	virtual(t, 5, func(w *world) {
		writer := w.wlock(w.locker().RWLock("x"), redlock.WithTTL(3*time.Second))
		w.each(func(_ int, m *memory.Master) { m.DropRequests(1) }, 4)
		reader, err := writer.Downgrade(w.Context())
		if err != nil {
			w.Fatal(err)
		}
		other := w.rlock(w.locker().RWLock("x"))
		_, err = w.locker().RWLock("x").TryLock(w.Context())
		w.isError(err, redlock.ErrHeld)
		after(10 * time.Second)
		if on, _ := reader.HeldOn(); on != 5 {
			w.Errorf("the reader is on %d masters", on)
		}
		w.unlockAll(reader, other)
		w.unlockAll(w.wlock(w.locker().RWLock("x")))
	})
}

// A trace reports the calls of readers under separate names.
func TestVirtualTheCallsOfReadersAreTraced(t *testing.T) {
	virtual(t, 3, func(w *world) {
		var ops []string
		l := w.locker(redlock.WithTrace(redlock.On("call", func(i redlockinfo.Event) {
			ops = append(ops,
				i.Op+" "+redlock.Outcome(i.Err))
		})))
		s := l.RWLock("x")
		r := w.rlock(s)
		_, err := s.TryLock(r.Context(w.Context()))
		w.isError(err, redlock.ErrUpgrade)
		_, err = l.TryLock(w.Context(), "x")
		w.isError(err, redlock.ErrKind)
		w.unlockAll(r)
		k := w.wlock(s)
		_, err = s.TryRLock(w.Context())
		w.isError(err, redlock.ErrHeld)
		if k, err = k.Downgrade(w.Context()); err != nil {
			w.Fatal(err)
		}
		w.unlockAll(k)
		synctest.Wait()
		want := []string{"rlock ok", "try lock invalid", "try lock lock_kind", "unlock ok", "lock ok", "try rlock held",
			"downgrade ok", "unlock ok"}
		if !slices.Equal(ops, want) {
			w.Errorf("notified %q, want %q", ops, want)
		}
	})
}

// A downgrade whose first answers are lost is sent again, and its validity counts from then; so must the TTLs of the
// shares.
func TestVirtualRepeatedDowngradeKeepsTTL(t *testing.T) {
	virtual(t, 5, func(w *world) {
		writer, err := w.locker().RWLock("x").Lock(w.Context(), redlock.WithTTL(3*time.Second), redlock.WithExtension(false))
		if err != nil {
			t.Fatal(err)
		}
		after(time.Second)
		w.each(func(_ int, m *memory.Master) { m.DropReplies(1) })
		w.wire.block(0, 1, 2, 3, 4) // new connections wait
		time.AfterFunc(300*time.Millisecond, func() { w.wire.block() })
		began := time.Now()
		reader, err := writer.Downgrade(w.Context())
		if err != nil {
			t.Fatal(err)
		}
		if time.Since(began) < 100*time.Millisecond {
			t.Error("the downgrade was not sent again")
		}
		long := 0
		w.each(func(_ int, m *memory.Master) {
			if _, _, left := m.Holds("x"); left >= reader.Remaining() {
				long++
			}
		})
		if long < 3 {
			t.Errorf("%d masters keep it for its validity of %v", long, reader.Remaining())
		}
		w.unlock(reader)
	})
}

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
