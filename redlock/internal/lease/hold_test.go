package lease

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock/internal/admission"
	"github.com/redlock-go/redlock/redlock/internal/quorum"
	"github.com/redlock-go/redlock/redlock/internal/round"
)

// bound binds a context to h.
func bindTo(t *testing.T, h *Hold) context.Context {
	return h.Context(t.Context())
}

func TestLeaseIsOnAllMastersUntilReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, 5)
		h := b.lock(terms())
		synctest.Wait()
		if i := h.Lease().Info(); i.On != 5 || i.Expects != 5 || i.Depth != 1 || i.Token != h.Token() || b.on() != 5 {
			t.Errorf("it is %+v, on %d masters", i, b.on())
		}
		ctx := bindTo(t, h)
		if err := h.Unlock(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if !errors.Is(context.Cause(ctx), ErrReleased) || !errors.Is(h.Err(), ErrReleased) {
			t.Errorf("the context ended with %v, the handle with %v", context.Cause(ctx), h.Err())
		}
		synctest.Wait()
		if b.on() != 0 {
			t.Errorf("it is still on %d masters", b.on())
		}
		want := []string{"attempted false", "acquired -3", "releasing", "ended", "released: <nil>"}
		if got := b.takeLog(); !slices.Equal(got, want) {
			t.Errorf("logged %q", got)
		}
		if err := h.Unlock(t.Context(), nil); !errors.Is(err, ErrReleased) {
			t.Errorf("a second Unlock: %v", err)
		}
	})
}

// H71: each ownership has one beginning and one end, and the contexts of the one before end with it.
func TestHandoffEndsTheContextsOfTheLastHolderOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, 3)
		first, second, third := b.lock(terms()), &Hold{}, &Hold{}
		b.takeLog()
		ctx := bindTo(t, first)
		taken := 0
		next := func(h *Hold) ChooseSuccessor {
			return func(left, ttl time.Duration) *Successor {
				if left <= 9*time.Second || ttl != 10*time.Second {
					t.Errorf("%v of %v are left", left, ttl)
				}
				return &Successor{Hold: h, Terms: terms(), OnHandoff: func() { taken++ }}
			}
		}
		if err := first.Unlock(t.Context(), next(second)); err != nil {
			t.Fatal(err)
		}
		if !errors.Is(context.Cause(ctx), ErrReleased) {
			t.Errorf("the context of a holder that has unlocked ended with %v", context.Cause(ctx))
		}
		ctx2 := bindTo(t, second)
		if second.Token() != first.Token()+1 || second.Err() != nil || ctx2.Err() != nil {
			t.Errorf("the successor of token %d has %d, and is %v", first.Token(), second.Token(), second.Err())
		}
		if err := second.Unlock(t.Context(), next(third)); err != nil {
			t.Fatal(err)
		}
		if taken != 2 || ctx2.Err() == nil {
			t.Errorf("taken %d times; the second context is %v", taken, ctx2.Err())
		}
		want := []string{"released: <nil>", "acquired -2", "released: <nil>", "acquired -1"}
		if got := b.takeLog(); !slices.Equal(got, want) {
			t.Errorf("logged %q", got)
		}
	})
}

// A lease is handed off as often as there are tokens, for as long as was agreed, and not while a client re-enters it.
func TestHandoffsAreBounded(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(t *Terms)
		before func(h *Hold)
		want   int
	}{
		{"all tokens", func(*Terms) {}, nil, 3},
		{"none agreed", func(t *Terms) { t.Handoffs = 0 }, nil, 0},
		{"no time agreed", func(t *Terms) { t.HandoffTime = 0 }, nil, 0},
		{"too late", func(*Terms) {}, func(*Hold) { after(100 * time.Millisecond) }, 0},
		{"just in time", func(*Terms) {}, func(*Hold) { after(99 * time.Millisecond) }, 3},
		{"one re-enters", func(*Terms) {}, func(h *Hold) { h.lease.ownership.entering++ }, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBed(t, 3)
				terms := terms()
				c.change(terms)
				h, n := b.lock(terms), 0
				if c.before != nil {
					c.before(h)
				}
				for {
					successor := &Hold{}
					took := false
					next := func(time.Duration, time.Duration) *Successor {
						return &Successor{Hold: successor, Terms: terms, OnHandoff: func() { took = true }}
					}
					if err := h.Unlock(t.Context(), next); err != nil {
						t.Fatal(err)
					}
					if !took {
						break
					}
					h = successor
					n++
				}
				if n != c.want {
					t.Errorf("it was handed off %d times, want %d", n, c.want)
				}
			})
		})
	}
}

// A holder whose own terms allow no handoff does not hand off what was handed to it.
func TestHolderWithoutHandoffsReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, 3)
		h, successor := b.lock(terms()), &Hold{}
		none := terms()
		none.Handoffs = 0
		if err := h.Unlock(t.Context(), func(_, _ time.Duration) *Successor {
			return &Successor{Hold: successor, Terms: none, OnHandoff: func() {}}
		}); err != nil {
			t.Fatal(err)
		}
		noHandoff := func(_, _ time.Duration) *Successor { t.Error("handed off"); return nil }
		if err := successor.Unlock(t.Context(), noHandoff); err != nil {
			t.Error(err)
		}
	})
}

// H77: a client's first lock is won by the masters that vote so far. The others get it as soon as they vote, although
// their connections were there already.
func TestMastersThatVoteAMomentLaterGetTheLeaseAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, 5)
		full := b.Monitor.View()
		b.change(func(v *admission.View) {
			v.Voting = quorum.First(3)
			v.Masters[3].Phase, v.Masters[3].Stamp = admission.Connecting, admission.Unread
			v.Masters[4].Phase, v.Masters[4].Stamp = admission.Connecting, admission.Unread
		})
		early := b.Manager.View()
		h := b.lock(terms())
		synctest.Wait()
		if b.on() != 3 {
			t.Fatalf("it is on %d masters", b.on())
		}
		b.Manager.View = func() *admission.View { return full }
		b.Manager.Changed(early, full)
		after(time.Millisecond)
		if on := h.Lease().Info().On; b.on() != 5 || on != 5 {
			t.Errorf("a moment later it is on %d masters, known on %d", b.on(), on)
		}
	})
}

// The same, if the masters vote between the acquire and the moment at which the lease becomes live.
func TestMastersThatVoteBeforeTheLeaseIsLiveGetItAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, 5)
		full := b.Monitor.View()
		b.change(func(v *admission.View) {
			v.Voting = quorum.First(3)
			v.Masters[3].Phase, v.Masters[4].Session = admission.Connecting, 0
		})
		l, err := b.acquire(terms())
		if err != nil {
			t.Fatal(err)
		}
		b.Manager.View = func() *admission.View { return full }
		h := &Hold{}
		if err := l.StartHold(h, terms()); err != nil {
			t.Fatal(err)
		}
		after(time.Millisecond)
		if b.on() != 5 || l.Info().On != 5 {
			t.Errorf("it is on %d masters", b.on())
		}
	})
}

// A master that comes up while an extension is under way gets the lease by one that follows; one that comes up while a
// failed extension waits for its retry does not wait for that.
func TestExtendSoonComesNeitherTooEarlyNorLate(t *testing.T) {
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
		for range 2 { // the first is under way when the second is wanted
			l.ExtendSoon(0)
			after(time.Millisecond)
		}
		after(20 * time.Millisecond)
		if got := b.takeLog(); !slices.Equal(got, []string{"extended false", "extended false"}) {
			t.Errorf("with one under way: %q", got)
		}
		l.ExtendSoon(0)
		after(time.Millisecond)
		l.ExtendSoon(2 * time.Second) // later than a retry would come; the confirmation does not cancel it
		after(2010 * time.Millisecond)
		delay(0)
		if got := b.takeLog(); !slices.Equal(got, []string{"extended false", "extended false"}) {
			t.Errorf("with one wanted later: %q", got)
		}
		now := b.Manager.Clock.Now()
		l.mu.Lock()
		l.renewal.retry = now.Add(time.Second)
		l.scheduleLocked(now)
		l.mu.Unlock()
		l.ExtendSoon(time.Millisecond)
		l.ExtendSoon(time.Hour) // and one that is further off puts nothing off
		after(2 * time.Millisecond)
		if got := b.takeLog(); !slices.Equal(got, []string{"extended false"}) {
			t.Errorf("while a retry is due in a second: %q", got)
		}
	})
}

// While the masters are changed, a lease that was won by the old set alone uses the old set until an extension has
// been confirmed by both. To unlock an inner lock, which the old set confirms alone, changes nothing of that.
func TestAnInnerUnlockInAJointConfigurationLosesNothing(t *testing.T) {
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
		if err := h.Reenter(t.Context(), inner, still); err != nil {
			t.Fatal(err)
		}
		for i := range 3 { // the next masters answer first
			b.Masters.Master(i).Delay(time.Millisecond)
		}
		b.change(func(v *admission.View) { v.Config = &joint })
		if err := inner.Unlock(t.Context(), nil); err != nil {
			t.Errorf("the inner Unlock: %v", err)
		}
		synctest.Wait()
		if err := h.Err(); err != nil {
			t.Errorf("the outer lock ended: %v", err)
		}
		if h.Lease().Config() != &old {
			t.Error("it uses the joint configuration, which has not confirmed it")
		}
		if err := h.Extend(t.Context()); err != nil {
			t.Fatalf("the extension: %v", err)
		}
		synctest.Wait()
		if h.Lease().Config() != &joint || h.Err() != nil {
			t.Errorf("after the extension it uses %+v, %v", h.Lease().Config(), h.Err())
		}
	})
}

// H70: a re-entry with a TTL that the deployment does not allow fails with the reason, and leaves the lock as it was.
func TestRefusedTTLOfAReentryIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, 3)
		h := b.lock(terms())
		long := terms()
		long.TTL = time.Minute
		err := h.Reenter(t.Context(), &Hold{}, long)
		if f, ok := round.AsFailure(err); !ok || !errors.Is(f.Decision, round.ErrGuardTime) {
			t.Errorf("%v, want ErrGuardTime", err)
		}
		synctest.Wait()
		if i := h.Lease().Info(); h.Err() != nil || i.Depth != 1 || i.Left > 10*time.Second {
			t.Errorf("the lock is %+v, %v", i, h.Err())
		}
	})
}

// H70: an acquire with such a TTL ends at once, with the reason.
func TestRefusedTTLOfAnAcquireIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, 3)
		long := terms()
		long.TTL = time.Minute
		_, err := b.acquire(long)
		if f, ok := round.AsFailure(err); !ok || !errors.Is(f.Decision, round.ErrGuardTime) {
			t.Errorf("%v, want ErrGuardTime", err)
		}
	})
}

// H28, H29: an inner Unlock ends the inner lock and its contexts alone, in any order they are unlocked.
func TestAnInnerUnlockEndsThatLockAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, 3)
		h, inner, third := b.lock(terms()), &Hold{}, &Hold{}
		for _, in := range []*Hold{inner, third} {
			if err := h.Reenter(t.Context(), in, terms()); err != nil {
				t.Fatal(err)
			}
		}
		if inner.Token() != h.Token() || h.Lease().Info().Depth != 3 {
			t.Errorf("tokens %d and %d, depth %d", h.Token(), inner.Token(), h.Lease().Info().Depth)
		}
		outer, ctx := bindTo(t, h), bindTo(t, inner)
		if err := inner.Unlock(t.Context(), nil); err != nil || ctx.Err() == nil || outer.Err() != nil {
			t.Errorf("%v; the inner context is %v, the outer one %v", err, ctx.Err(), outer.Err())
		}
		if err := inner.Unlock(t.Context(), nil); !errors.Is(err, ErrReleased) {
			t.Errorf("a second Unlock of the inner lock: %v", err)
		}
		if err := h.Unlock(t.Context(), nil); err != nil || outer.Err() == nil || third.Err() != nil {
			t.Errorf("%v; the outer context is %v, the last lock %v", err, outer.Err(), third.Err())
		}
		synctest.Wait()
		if _, depth, _ := b.Masters.Master(0).Holds("n"); depth != 1 {
			t.Errorf("the depth is %d there", depth)
		}
		if err := third.Unlock(t.Context(), nil); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if b.on() != 0 {
			t.Error("the last Unlock has not released it")
		}
	})
}

// H28: a re-entry that fails leaves the depth as it was, also on the masters.
func TestAFailedReentryIsUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, 3)
		h := b.lock(terms())
		greedy := terms()
		greedy.Least = time.Hour
		if err := h.Reenter(t.Context(), &Hold{}, greedy); !errors.Is(err, round.ErrTooSlow) {
			t.Errorf("%v, want ErrTooSlow", err)
		}
		synctest.Wait()
		if _, depth, _ := b.Masters.Master(0).Holds("n"); depth != 1 || h.Lease().Info().Depth != 1 {
			t.Errorf("the depth is %d there, %d here", depth, h.Lease().Info().Depth)
		}
	})
}

// H102: a lock that is held for days and gives each request a context does not grow.
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
		if err := h.Unlock(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if lasting.Err() == nil {
			t.Error("one that has not ended was forgotten")
		}
	})
}

// A release whose context has ended is still confirmed, by masters that are near; one that hangs is not waited for.
func TestConfirmedAsTable(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name       string
		after      time.Duration // when two of three votes come
		kind       scripts.Outcome
		left       time.Duration
		cancelled  bool
		want       error
		wantWithin time.Duration
	}{
		{"in time", ms, scripts.Granted, time.Second, false, nil, ms},
		{"cancelled and near", ms, scripts.Granted, time.Second, true, nil, ms},
		{"cancelled and far", 11 * ms, scripts.Granted, time.Second, true, context.Canceled, 10 * ms},
		{"longer than the validity", 101 * ms, scripts.Granted, 100 * ms, false, round.ErrNoQuorum, 100 * ms},
		{"nothing is left", 11 * ms, scripts.Granted, 0, false, round.ErrNoQuorum, 10 * ms},
		{"refused", ms, scripts.Failed, time.Second, false, round.ErrNoQuorum, ms},
		{"not there", ms, scripts.Missing, time.Second, false, ErrLost, ms},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBed(t, 3)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.cancelled {
					cancel()
				}
				rd, began := b.Sender.New(b.Monitor.View(), "unlock", nil), time.Now()
				go func() {
					<-time.After(c.after)
					rd.Record(0, vote(c.kind, 0, 0))
					rd.Record(1, vote(c.kind, 0, 0))
				}()
				err := confirmed(ctx, rd, c.left)
				if took := time.Since(began); took != c.wantWithin || (err == nil) != (c.want == nil) || !errors.Is(err, c.want) {
					t.Errorf("after %v: %v", took, err)
				}
				<-rd.Done()
			})
		})
	}
}
