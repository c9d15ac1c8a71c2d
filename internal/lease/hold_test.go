package lease

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/admission"
	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/round"
	"github.com/redlock-go/redlock/internal/scripts"
)

// bindTo returns a context that is bound to h.
func bindTo(t *testing.T, h *Hold) context.Context {
	return h.Context(t.Context())
}

// H25, H169: at the max hold, the contexts of all holds of the lease end before the release is sent, whether the
// Manager or a call of the holder notices the end. Then the lease is extended no more.
func TestContextsEndBeforeMaxHoldRelease(t *testing.T) {
	for how, notice := range map[string]func(h *Hold){
		"Manager": func(*Hold) { after(2 * time.Second) },
		"holder": func(h *Hold) {
			h.lease.mu.Lock()
			h.lease.ownership.terms.MaxHold = time.Nanosecond
			h.lease.mu.Unlock()
			_ = h.Err()
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			b, bounded, inner := newBed(t, 3), terms(), &Hold{}
			bounded.MaxHold = 2 * time.Second
			h := b.lock(bounded)
			must.Do(t, h.Reenter(t.Context(), inner, bounded, 0))
			outerCtx, cancel := context.WithCancel(bindTo(t, h)) // Done of a derived context, since Err of its parent is exact
			defer cancel()
			innerCtx, cancel := context.WithCancel(bindTo(t, inner))
			defer cancel()
			after(time.Millisecond)
			var sent atomic.Int64
			check := func() {
				sent.Add(1)
				for _, done := range []<-chan struct{}{outerCtx.Done(), innerCtx.Done(), h.Done(), inner.Done()} {
					select {
					case <-done:
					default:
						t.Errorf("%s: the release is sent before the contexts have ended", how)
					}
				}
			}
			b.sending.Store(&check)
			notice(h)
			after(time.Minute)
			if cause := context.Cause(innerCtx); sent.Load() != 1 || !errors.Is(cause, ErrMaxHold) {
				t.Errorf("%s: %d releases, and the context ended with %v", how, sent.Load(), cause)
			}
			if id, _, _ := b.Masters.Master(0).Holds("n"); id != "" {
				t.Errorf("%s: %s still has the name", how, id)
			}
			got, want := b.takeLog(), []string{"releasing", "ended", "lost: " + ErrMaxHold.Error()}
			if !slices.Equal(got[max(0, len(got)-3):], want) {
				t.Errorf("%s: the events are %q, want at the end %q", how, got, want)
			}
		})
	}
}

// A holder whose terms allow no hand-offs releases its lease, even if the holder got the lease by a hand-off.
func TestHolderWithoutHandoffsReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, 3)
		h, successor := b.lock(terms()), &Hold{}
		none := terms()
		none.Handoffs = 0
		b.next = func() *Successor { return &Successor{First: successor, Terms: none, OnHandoff: func() {}} }
		must.Do(t, h.Unlock(t.Context()))
		b.next = func() *Successor { t.Error("the hold was handed off"); return nil }
		if err := successor.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// If a master comes up while an extension is in progress, another extension follows, which gives the master the
// lease. If a master comes up while a failed extension waits for its retry, the extension is sent immediately.
func TestExtendSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, 3)
		h := b.lock(terms())
		l := h.Lease()
		b.takeLog()
		delay := func(d time.Duration) {
			for i := range 3 {
				b.Masters.Master(i).Delay(d)
			}
		}
		delay(5 * time.Millisecond)
		for range 2 { // the first is in progress when the second is requested
			l.ExtendSoon(0)
			after(time.Millisecond)
		}
		after(20 * time.Millisecond)
		if got := b.takeLog(); !slices.Equal(got, []string{"extended false", "extended false"}) {
			t.Errorf("with one extension in progress the log is %q", got)
		}
		l.ExtendSoon(0)
		after(time.Millisecond)
		l.ExtendSoon(2 * time.Second) // later than a retry; the confirmation must not cancel this extension
		after(2010 * time.Millisecond)
		delay(0)
		if got := b.takeLog(); !slices.Equal(got, []string{"extended false", "extended false"}) {
			t.Errorf("with one extension requested for later the log is %q", got)
		}
		now := b.Manager.Clock.Now()
		l.mu.Lock()
		l.renewal.retry = now.Add(time.Second).Steady()
		l.scheduleLocked(now)
		l.mu.Unlock()
		l.ExtendSoon(time.Millisecond)
		l.ExtendSoon(time.Hour) // a later time does not delay the earlier one
		after(2 * time.Millisecond)
		if got := b.takeLog(); !slices.Equal(got, []string{"extended false"}) {
			t.Errorf("with a retry that is due in a second the log is %q", got)
		}
	})
}

// An extension that is requested for later does not delay the check that a message causes. Many messages cause one
// check for each checkPause.
func TestMessageIsNotDelayedByLaterExtension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, 3)
		l := b.lock(terms()).Lease()
		b.takeLog()
		l.ExtendSoon(2 * time.Second)
		for range 15 {
			l.Message(scripts.WakeUp{})
			after(10 * time.Millisecond)
		}
		if got := b.takeLog(); !slices.Equal(got, []string{"extended false", "extended false"}) {
			t.Errorf("after 150 ms with messages the log is %q", got)
		}
	})
}

// While the masters are changed, a lease that was won only by the old set uses the old set until both sets have
// confirmed an extension. The unlock of an inner lock, which only the old set confirms, does not change that.
func TestInnerUnlockInJointConfiguration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, 6)
		joint := *b.Monitor.View().Config
		joint.Epoch, joint.Rule = 1, quorum.Rule{Old: quorum.First(3), Next: quorum.First(6) &^ quorum.First(3)}
		old := joint
		old.Epoch, old.Rule = 0, quorum.Rule{Old: quorum.First(3)}
		b.change(func(v *admission.View) { v.Config = &old })
		still := terms()
		still.Extend = false
		h, inner := b.lock(still), &Hold{}
		must.Do(t, h.Reenter(t.Context(), inner, still, 0))
		for i := range 3 { // the next masters answer first
			b.Masters.Master(i).Delay(time.Millisecond)
		}
		b.change(func(v *admission.View) { v.Config = &joint })
		if err := inner.Unlock(t.Context()); err != nil {
			t.Errorf("the inner Unlock: %v", err)
		}
		synctest.Wait()
		if err := h.Err(); err != nil {
			t.Errorf("the outer lock ended: %v", err)
		}
		if h.Lease().Config() != &old {
			t.Error("the lease uses the joint configuration, whose next set has not confirmed it")
		}
		if err := h.Extend(t.Context()); err != nil {
			t.Fatalf("the extension: %v", err)
		}
		synctest.Wait()
		if h.Lease().Config() != &joint || h.Err() != nil {
			t.Errorf("after the extension the lease uses %+v, %v", h.Lease().Config(), h.Err())
		}
	})
}

// H70: a re-entry with a TTL that the deployment does not allow fails with the reason, and does not change the lock.
func TestRefusedTTLOfReentryIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, 3)
		h := b.lock(terms())
		long := terms()
		long.TTL = time.Minute
		err := h.Reenter(t.Context(), &Hold{}, long, 0)
		if f, ok := round.AsFailure(err); !ok || !errors.Is(f.Decision, round.ErrTTLTooLong) {
			t.Errorf("Reenter returned %v, want ErrTTLTooLong", err)
		}
		synctest.Wait()
		if i := h.Lease().Info(); h.Err() != nil || h.Lease().ownership.depth != 1 || i.Left > 10*time.Second {
			t.Errorf("the lock is %+v, %v", i, h.Err())
		}
	})
}

// H28: a re-entry that fails does not change the depth, also on the masters.
func TestFailedReentryIsUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, 3)
		h := b.lock(terms())
		greedy := terms()
		greedy.Least = time.Hour
		if err := h.Reenter(t.Context(), &Hold{}, greedy, 0); !errors.Is(err, round.ErrTooSlow) {
			t.Errorf("Reenter returned %v, want ErrTooSlow", err)
		}
		synctest.Wait()
		if _, depth, _ := b.Masters.Master(0).Holds("n"); depth != 1 || h.Lease().ownership.depth != 1 {
			t.Errorf("the depth is %d on the master, %d in the client", depth, h.Lease().ownership.depth)
		}
	})
}

// H102: a lock that is held for days, and from which each request gets a context, does not keep contexts that have
// ended.
func TestContextsAreNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, 3)
		h := b.lock(terms())
		lasting := bindTo(t, h)
		for range 10_000 {
			ctx, cancel := context.WithCancel(t.Context())
			h.Context(ctx)
			cancel()
			if h.Context(t.Context()) != lasting {
				t.Fatal("one parent has two contexts")
			}
		}
		if n := len(h.contexts); n > 200 {
			t.Errorf("%d contexts are kept", n)
		}
		must.Do(t, h.Unlock(t.Context()))
		if lasting.Err() == nil {
			t.Error("a context that had not ended did not end with the lock")
		}
	})
}

// confirmed waits until the round is decided, its context ends, or the remaining validity has expired. In the last two
// cases it waits at least 10 ms in all, so that near masters can confirm the release.
func TestConfirmedAsTable(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name       string
		after      time.Duration // time after which two of three votes arrive
		kind       quorum.Outcome
		left       time.Duration
		cancelled  bool
		want       error
		wantWithin time.Duration
	}{
		{"in time", ms, quorum.Granted, time.Second, false, nil, ms},
		{"cancelled and near", ms, quorum.Granted, time.Second, true, nil, ms},
		{"cancelled and far", 11 * ms, quorum.Granted, time.Second, true, context.Canceled, 10 * ms},
		{"longer than the validity", 101 * ms, quorum.Granted, 100 * ms, false, round.ErrNoQuorum, 100 * ms},
		{"nothing is left", 11 * ms, quorum.Granted, 0, false, round.ErrNoQuorum, 10 * ms},
		{"refused", ms, quorum.Failed, time.Second, false, round.ErrNoQuorum, ms},
		{"not there", ms, quorum.Missing, time.Second, false, ErrLost, ms},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBed(t, 3)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.cancelled {
					cancel()
				}
				rd, began := b.Sender.New(b.Monitor.View(), "unlock", "", nil), time.Now()
				go func() {
					<-time.After(c.after)
					rd.Record(0, vote(c.kind, 0, 0))
					rd.Record(1, vote(c.kind, 0, 0))
				}()
				err := b.confirmed(ctx, rd, c.left)
				if took := time.Since(began); took != c.wantWithin || (err == nil) != (c.want == nil) || !errors.Is(err, c.want) {
					t.Errorf("confirmed returned %v after %v, want %v after %v", err, took, c.want, c.wantWithin)
				}
				<-rd.Done()
			})
		})
	}
}

// H101: thousands of re-entries may be unlocked together. When each of them searched the others, fifty thousand took
// nine seconds, in which the lock of the lease was held and no lock of the Locker was extended.
func TestManyReentriesAreRemoved(t *testing.T) {
	const many, limit = 200_000, 10 * time.Second // with a search it takes minutes
	for order, remove := range map[string]func(i int) int{
		"from the front": func(i int) int { return i }, "from the back": func(i int) int { return many - 1 - i },
		"from the middle": func(i int) int { return (i + many/2) % many },
	} {
		o, holds := &ownership{}, make([]Hold, many)
		o.single[0] = &holds[0]
		o.holds = o.single[:]
		for i := range holds[1:] {
			o.addLocked(&holds[1+i])
		}
		began := time.Now()
		for i := range many {
			o.removeLocked(&holds[remove(i)])
			if time.Since(began) > limit {
				t.Fatalf("%s: after %v only %d of %d holds are removed", order, limit, i, many)
			}
			for at, h := range o.holds[:min(3, len(o.holds))] {
				if h.index != int32(at) {
					t.Fatalf("%s: after %d removals hold %d has the place %d", order, i, at, h.index)
				}
			}
		}
		if len(o.holds) != 0 {
			t.Errorf("%s: %d holds are left", order, len(o.holds))
		}
	}
}
