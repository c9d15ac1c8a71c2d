package redlock_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// Tests of Lead and Watch.

// A term is one leadership, as seen by its function.
type term struct {
	who   int
	token int64
	ctx   context.Context
	leave chan error // the return value of the function, which ignores its context
}

// campaign starts a separate client that campaigns for name. terms receives each of its leaderships; ended receives the
// result of Lead.
func (w *world) campaign(
	ctx context.Context, l *redlock.Locker, who int, terms chan<- term, opts ...redlock.LockOption,
) (ended chan error) {
	ended = make(chan error, 1)
	go func() {
		ended <- l.Lead(ctx, "boss", func(ctx context.Context) error {
			t := term{who, redlock.TokenOf(ctx), ctx, make(chan error)}
			terms <- t
			return <-t.leave
		}, opts...)
	}()
	return ended
}

func quiet() redlock.Option { return redlock.WithLogger(slog.New(slog.DiscardHandler)) }

// Returning nil ends the leadership and the campaign; returning an error ends the leadership, and the client campaigns
// again after a pause.
func TestVirtualALeaderWhoseFunctionReturns(t *testing.T) {
	virtual(t, 3, func(w *world) {
		terms := make(chan term)
		first, second := w.locker(quiet()), w.locker(quiet())
		endedFirst := w.campaign(w.Context(), first, 1, terms)
		one := <-terms
		endedSecond := w.campaign(w.Context(), second, 2, terms)
		after(time.Minute)
		select {
		case <-terms:
			t.Fatal("two clients lead")
		default:
		}
		failed := time.Now()
		one.leave <- errors.New("mine")
		two := <-terms
		if two.who != 2 || two.token <= one.token || time.Since(failed) > 100*time.Millisecond {
			t.Errorf("%v later client %d leads with token %d after %d", time.Since(failed), two.who, two.token, one.token)
		}
		w.isError(context.Cause(one.ctx), redlock.ErrReleased)
		after(3 * time.Second) // the first campaigns again
		two.leave <- nil
		if err := <-endedSecond; err != nil {
			t.Error(err)
		}
		again := <-terms
		if again.who != 1 || again.token <= two.token {
			t.Errorf("%d leads with token %d after %d", again.who, again.token, two.token)
		}
		again.leave <- nil
		if err := <-endedFirst; err != nil {
			t.Error(err)
		}
		w.free("boss")
	})
}

// A function that fails each time does not spin: its client pauses for at least a second each time.
func TestVirtualALeaderThatFailsStaysAway(t *testing.T) {
	virtual(t, 3, func(w *world) {
		l := w.locker(quiet())
		ctx, cancel := context.WithTimeout(w.Context(), 20*time.Second)
		defer cancel()
		n := 0
		err := l.Lead(ctx, "boss", func(context.Context) error { n++; return errors.New("mine") })
		w.isError(err, context.DeadlineExceeded)
		if n < 10 || n > 20 {
			t.Errorf("client led %d times in 20 s", n)
		}
	})
}

// The leader's context ends before another can lead. While a majority of the masters is away no client leads, and one
// leads again when they are back. A function that hangs past its context blocks its own client, and no other.
func TestVirtualALeaderIsToldBeforeAnotherLeads(t *testing.T) {
	virtual(t, 3, func(w *world) {
		terms := make(chan term, 2)
		ctx, cancel := context.WithCancel(w.Context())
		first, second := w.locker(quiet()), w.locker(quiet())
		endedFirst := w.campaign(ctx, first, 1, terms, redlock.WithExtension(false)) // so the leadership ends with its TTL
		one := <-terms
		endedSecond := w.campaign(ctx, second, 2, terms)
		two := <-terms
		if one.ctx.Err() == nil || !errors.Is(context.Cause(one.ctx), redlock.ErrLost) {
			t.Errorf("%d leads, and the context of %d ended with %v", two.who, one.who, context.Cause(one.ctx))
		}
		w.stop(0, 1)
		took, cause := w.ended(two.ctx, time.Minute)
		if !errors.Is(cause, redlock.ErrLost) || took > redlock.DefaultTTL {
			t.Errorf("without a majority: context ended after %v with %v", took, cause)
		}
		after(time.Minute)
		w.each(func(_ int, m *memory.Master) { m.Restart(true) }, 0, 1)
		after(time.Minute) // the quarantine; no client leads, since both functions hang
		if len(terms) != 0 {
			t.Error("one client leads twice at the same time")
		}
		two.leave <- errors.New("mine")
		three := <-terms
		if three.who != two.who || three.token <= two.token {
			t.Errorf("%d leads with token %d after %d", three.who, three.token, two.token)
		}
		cancel()
		one.leave <- ctx.Err()
		three.leave <- ctx.Err()
		w.isError(<-endedFirst, context.Canceled)
		w.isError(<-endedSecond, context.Canceled)
		w.free("boss")
	})
}

func TestVirtualALeaderThatPanicsGivesTheLeadershipUp(t *testing.T) {
	virtual(t, 3, func(w *world) {
		l := w.locker(quiet())
		func() {
			defer func() {
				if recover() != "mine" {
					t.Error("the panic did not propagate")
				}
			}()
			_ = l.Lead(w.Context(), "boss", func(context.Context) error { panic("mine") })
		}()
		w.free("boss")
	})
}

// Close ends a leader's context and a campaign.
func TestVirtualCloseEndsLeaders(t *testing.T) {
	virtual(t, 3, func(w *world) {
		terms := make(chan term, 2)
		first, second := w.locker(quiet()), w.locker(quiet())
		endedFirst, endedSecond := w.campaign(w.Context(), first, 1, terms), w.campaign(w.Context(), second, 2, terms)
		one := <-terms
		var wg sync.WaitGroup
		for _, l := range []*redlock.Locker{first, second} {
			wg.Go(func() { _ = l.Close(w.Context()) })
		}
		synctest.Wait()
		w.isError(context.Cause(one.ctx), redlock.ErrClosed)
		one.leave <- one.ctx.Err()
		wg.Wait()
		w.isError(<-endedFirst, redlock.ErrClosed)
		w.isError(<-endedSecond, redlock.ErrClosed)
		_, err := second.Lock(w.Context(), "x")
		w.isError(err, redlock.ErrClosed)
		for h, err := range second.Watch(w.Context(), "boss") {
			t.Errorf("Watch of a closed Locker reported %v, %v", h, err)
		}
	})
}

// A Watch reports each change once, and inspects once a second.
func TestVirtualAWatchTellsWhoLeads(t *testing.T) {
	virtual(t, 3, func(w *world) {
		l, observer := w.locker(redlock.WithOwner("the first")), w.locker(quiet())
		told := make(chan redlockinfo.Inspection, 9)
		failed := make(chan error, 9)
		ctx, cancel := context.WithCancel(w.Context())
		defer cancel()
		done := make(chan struct{})
		go func() {
			defer close(done)
			for h, err := range observer.Watch(ctx, "boss") {
				if err != nil {
					failed <- err
				} else {
					told <- h
				}
			}
		}()
		if h := <-told; h.ID != "" {
			t.Errorf("first report: %+v", h)
		}
		k := w.take(l, "boss")
		if h := <-told; h.Owner != "the first" || h.Token != k.Token() {
			t.Errorf("reported %+v for a leader with token %d", h, k.Token())
		}
		asked := w.count("inspect")
		after(10 * time.Second)
		if n := w.count("inspect") - asked; len(told) != 0 || n > 11*3 {
			t.Errorf("in ten seconds without changes: %d inspections, %d reports", n, len(told))
		}
		if err := k.Unlock(w.Context()); err != nil {
			t.Error(err)
		}
		if h := <-told; h.ID != "" {
			t.Errorf("reported %+v after the end", h)
		}
		w.stop(0, 1)
		after(20 * time.Second)
		if len(failed) != 1 {
			t.Errorf("without a majority: %d errors reported", len(failed))
		}
		cancel()
		<-done
		for _, err := range observer.Watch(w.Context(), "boss") {
			w.isError(err, redlock.ErrNoQuorum)
			break
		}
	})
}
