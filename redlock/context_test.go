package redlock

import (
	"context"
	"errors"
	"sync"
	"testing"
)

// loneHold is a live hold of a Locker that has no masters and no goroutines: what contexts say needs neither.
func loneHold(l *Locker, name string) *Lock {
	h := &hold{l: l, name: name, seq: 1, index: -1, depth: 1}
	h.first.h = h
	h.handles = []*Lock{&h.first}
	return &h.first
}

func loneLocker() *Locker {
	l := &Locker{}
	l.schedule = newSchedule(l)
	return l
}

func TestContextEndsWithTheLock(t *testing.T) {
	for name, cause := range sentinels {
		k := loneHold(loneLocker(), "a")
		before := k.Context(t.Context())
		inner := k.Context(before)
		if before.Err() != nil || inner.Err() != nil || k.Err() != nil {
			t.Fatal("a context of a live lock has ended")
		}
		if !k.h.end(cause) || k.h.end(ErrReleased) {
			t.Error("a hold ends once")
		}
		after := k.Context(t.Context())
		for _, ctx := range []context.Context{before, inner, after} {
			<-ctx.Done()
			if got := context.Cause(ctx); !errors.Is(got, cause) || !errors.Is(ctx.Err(), context.Canceled) {
				t.Errorf("%s: the context ended with %v, cause %v", name, ctx.Err(), got)
			}
			if err := contextError(ctx); !errors.Is(err, cause) {
				t.Errorf("%s: a call with the context fails with %v", name, err)
			}
		}
		<-k.Done()
		if !errors.Is(k.Err(), cause) {
			t.Errorf("%s: the lock ended with %v", name, k.Err())
		}
	}
}

func TestContextEndsWithItsParentAndLeavesTheLock(t *testing.T) {
	k := loneHold(loneLocker(), "a")
	parent, cancel := context.WithCancelCause(t.Context())
	ctx, other := k.Context(parent), k.Context(t.Context())
	why := errors.New("the request is over")
	cancel(why)
	<-ctx.Done()
	if !errors.Is(context.Cause(ctx), why) {
		t.Errorf("cause %v", context.Cause(ctx))
	}
	if other.Err() != nil || k.Err() != nil {
		t.Error("the end of one context ended the lock")
	}
	k.h.end(ErrReleased)
	<-other.Done()
}

// H29: ownership is what the context says, by Locker and name; nothing else gives it.
func TestOwnerIsFoundByLockerAndName(t *testing.T) {
	l, another := loneLocker(), loneLocker()
	a, b, a2, foreign := loneHold(l, "a"), loneHold(l, "b"), loneHold(l, "a"), loneHold(another, "a")
	bare := t.Context()
	onlyA := a.Context(bare)
	all := foreign.Context(b.Context(onlyA))
	type key struct{}
	deep, cancel := context.WithCancel(context.WithValue(all, key{}, 1))
	defer cancel()
	for _, c := range []struct {
		what string
		ctx  context.Context
		l    *Locker
		name string
		want *Lock
	}{
		{"no lock", bare, l, "a", nil},
		{"its own", onlyA, l, "a", a},
		{"another name", onlyA, l, "b", nil},
		{"a longer name", onlyA, l, "a ", nil},
		{"another Locker", onlyA, another, "a", nil},
		{"outer of three", all, l, "a", a},
		{"middle of three", all, l, "b", b},
		{"the other Locker's", all, another, "a", foreign},
		{"through contexts of others", deep, l, "a", a},
		{"without cancel", context.WithoutCancel(deep), l, "b", b},
		{"the innermost of two of a name", a2.Context(all), l, "a", a2},
	} {
		if got := ownerOf(c.ctx, c.l, c.name); got != c.want {
			t.Errorf("%s: %p, want %p", c.what, got, c.want)
		}
	}
	a.h.end(ErrLost)
	if got := ownerOf(onlyA, l, "a"); got != a {
		t.Error("a lock that has ended is no longer told from none: locking would take it anew")
	}
	for _, k := range []*Lock{b, a2, foreign} {
		k.h.end(ErrReleased)
	}
}

// A lock that is held for days and gives each request a context does not grow.
func TestContextsThatHaveEndedAreForgotten(t *testing.T) {
	k := loneHold(loneLocker(), "a")
	lasting := k.Context(t.Context())
	for range 10_000 {
		parent, cancel := context.WithCancel(t.Context())
		ctx := k.Context(parent)
		cancel()
		<-ctx.Done()
	}
	k.h.mu.Lock()
	n := len(k.contexts)
	k.h.mu.Unlock()
	if n > 200 {
		t.Errorf("%d contexts are kept", n)
	}
	k.h.end(ErrLost)
	<-lasting.Done()
}

func TestContextsAreMadeWhileTheLockEnds(t *testing.T) {
	for range 200 {
		k := loneHold(loneLocker(), "a")
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				for range 5 {
					<-k.Context(t.Context()).Done()
				}
			})
		}
		wg.Go(func() { k.h.end(ErrLost) })
		wg.Wait()
	}
}
