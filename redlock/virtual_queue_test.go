package redlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/redlock"
)

// H41: goroutines of one client that wait for one name cost the masters as much as one contender, and get it in the
// order in which they called.
func TestVirtualOneContenderForHundredGoroutines(t *testing.T) {
	virtual(t, 5, func(w *world) {
		holder := w.take(w.peer("holder").Locker, "n", redlock.WithTTL(30*time.Second))
		p := w.peer("p")
		before := w.count("acquire")
		var calls []*call
		for range 100 {
			calls = append(calls, w.call(w.Context(), p.Locker, "n", unpolled, redlock.WithHandoff(0, 0)))
		}
		after(900 * time.Millisecond)                  // the head of the queue tries again after a second
		if n := w.count("acquire") - before; n > 3*5 { // refused; queued after the subscription; and at most one more
			w.Errorf("%d acquires of a hundred goroutines on 5 masters", n)
		}
		w.delay(time.Millisecond)
		go w.unlock(holder)
		for i, c := range calls {
			k, took := c.gets(time.Second)
			if took > 8*time.Millisecond {
				w.Errorf("goroutine %d got it after %v", i, took)
			}
			go w.unlock(k)
		}
		w.delay(0)
		w.nothingLeft("n")
	})
}

// A contender that gives up at any step leaves no trace: the call parked behind it goes on at once, and the masters
// have no keys of it.
func TestVirtualAContenderThatGivesUpLeavesNothing(t *testing.T) {
	for step, at := range map[string]struct {
		deaf, release bool
		queued        time.Duration // until the release
		cancel        time.Duration // after the call, or after the release
	}{
		"first attempt under way": {cancel: 10 * time.Millisecond},
		"refused on half the way": {cancel: 30 * time.Millisecond},
		"subscribing":             {cancel: 45 * time.Millisecond},
		"asking again":            {cancel: 70 * time.Millisecond},
		"queued":                  {cancel: time.Second},
		"deaf":                    {cancel: time.Second, deaf: true},
		"being released":          {release: true, queued: 500 * time.Millisecond, cancel: 10 * time.Millisecond},
		"told":                    {release: true, queued: 500 * time.Millisecond, cancel: 30 * time.Millisecond},
		"taking it":               {release: true, queued: 2 * time.Second, cancel: 50 * time.Millisecond},
		"granted":                 {release: true, queued: 2 * time.Second, cancel: 70 * time.Millisecond},
	} {
		t.Run(step, func(t *testing.T) {
			virtual(t, 5, func(w *world) {
				holder := w.take(w.peer("holder").Locker, "n", redlock.WithTTL(30*time.Second))
				p, other := w.peer("p"), w.peer("other")
				if at.deaf {
					p.deafen()
				}
				w.delay(20 * time.Millisecond)
				ctx, cancel := context.WithCancel(w.Context())
				head := w.call(ctx, p.Locker, "n", unpolled)
				if at.release {
					after(at.queued)
					go w.unlock(holder)
				}
				after(at.cancel)
				next := w.call(w.Context(), p.Locker, "n", unpolled)
				start := time.Now()
				cancel()
				err := head.fails(time.Second)
				w.isError(err, context.Canceled)
				if took := time.Since(start); took != 0 {
					w.Errorf("it returned after %v", took)
				}
				p.hear()
				if !at.release {
					after(time.Second)
					go w.unlock(holder)
				}
				k, took := next.gets(time.Minute)
				if took > 500*time.Millisecond {
					w.Errorf("the one behind it got it after %v", took)
				}
				go w.unlock(k)
				last, _ := w.call(w.Context(), other.Locker, "n").gets(time.Second)
				w.delay(0)
				w.unlock(last)
				w.nothingLeft("n")
			})
		})
	}
}

// A parked call that gives up costs the masters nothing, and the others keep their order.
func TestVirtualAParkedCallThatGivesUpLeavesNoTrace(t *testing.T) {
	virtual(t, 3, func(w *world) {
		p := w.peer("p")
		k := w.take(p.Locker, "n")
		ctx, cancel := context.WithTimeout(w.Context(), time.Second)
		defer cancel()
		first := w.call(w.Context(), p.Locker, "n")
		gone := w.call(ctx, p.Locker, "n")
		last := w.call(w.Context(), p.Locker, "n")
		before := w.count("acquire") + w.count("release")
		err := gone.fails(2 * time.Second)
		w.isError(err, context.DeadlineExceeded, redlock.ErrHeld)
		w.notError(err, context.Canceled, redlock.ErrNoQuorum)
		if n := w.count("acquire") + w.count("release"); n != before {
			w.Errorf("%d scripts were run for calls that are parked", n-before)
		}
		w.unlock(k)
		k, _ = first.gets(time.Second)
		if last.over() {
			w.Error("two holders")
		}
		w.unlock(k)
		k, _ = last.gets(time.Second)
		w.unlock(k)
		w.nothingLeft("n")
	})
}

// When the context of a parked call ends, its error has the reason why the contender in front of it waits: the name is
// held, or no quorum, with the failed masters.
func TestVirtualParkedCallGetsReasonOfContender(t *testing.T) {
	virtual(t, 5, func(w *world) {
		p := w.peer("p")
		w.each(func(_ int, m *memory.Master) { m.Refuse("OOM command not allowed") }, 0, 1, 2)
		head := w.call(w.Context(), p.Locker, "n")
		ctx, cancel := context.WithTimeout(w.Context(), time.Second)
		defer cancel()
		err := w.call(ctx, p.Locker, "n").fails(2 * time.Second)
		w.isError(err, context.DeadlineExceeded, redlock.ErrNoQuorum)
		w.notError(err, redlock.ErrHeld)
		var m *transport.Error
		if !asError(err, &m) {
			w.Errorf("no master is named in %v", err)
		}
		w.each(func(_ int, m *memory.Master) { m.Refuse("") })
		k, _ := head.gets(5 * time.Second)
		w.unlock(k)
		w.nothingLeft("n")
	})
}

// A call with an ended context neither queues nor sends a message.
func TestVirtualADeadContextJoinsNoLine(t *testing.T) {
	virtual(t, 3, func(w *world) {
		p := w.peer("p")
		before := w.count("acquire")
		w.isError(w.call(deadContext(), p.Locker, "n").fails(time.Second), context.Canceled)
		if n := w.count("acquire"); n != before {
			w.Errorf("%d acquires", n-before)
		}
		w.nothingLeft()
	})
}

// Close ends the waits of contenders and of parked calls with ErrClosed, and leaves no keys on the masters.
func TestVirtualCloseEndsEveryWait(t *testing.T) {
	virtual(t, 5, func(w *world) {
		holder := w.take(w.peer("holder").Locker, "n")
		p := w.peer("p")
		mine := w.take(p.Locker, "own")
		var calls []*call
		for i := range 12 {
			calls = append(calls, w.call(w.Context(), p.Locker, []string{"n", "own"}[i%2]))
			calls = append(calls, w.call(w.Context(), p.Locker, "n", redlock.WithPriority(i)))
		}
		after(time.Second)
		if n := w.queued("n"); n != 5 {
			w.Fatalf("queued on %d", n)
		}
		start := time.Now()
		if err := p.Close(w.Context()); err != nil {
			w.Error(err)
		}
		if took := time.Since(start); took != 0 {
			w.Errorf("Close took %v", took)
		}
		for _, c := range calls {
			w.isError(c.fails(time.Second), redlock.ErrClosed)
		}
		w.isError(mine.Unlock(w.Context()), redlock.ErrClosed)
		w.unlock(holder)
		w.nothingLeft("n", "own")
	})
}
