package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// A calls stores the events that report the end of a call.
type calls struct {
	mu    sync.Mutex
	ended []redlockinfo.Event
}

func (c *calls) trace() *redlockinfo.Trace {
	return redlock.On("call", func(i redlockinfo.Event) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ended = append(c.ended, i)
	})
}

// last returns the event of the call that ended last.
func (c *calls) last() redlockinfo.Event {
	synctest.Wait() // calls are reported shortly after their end
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended[len(c.ended)-1]
}

// The event of a call contains the time that the call took, its place in the queue, its attempts and votes, and how
// long the lock was held.
func TestTraceHasTimeOfCall(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		var c calls
		first, second := w.locker(redlock.WithTrace(c.trace())), w.locker(redlock.WithTrace(c.trace()))
		k := must(first.Lock(w.Context(), "n"))(w)
		if i := c.last(); i.Op != "lock" || i.Name != "n" || i.Attempts != 1 || i.Votes.Granted < 3 || i.Votes.N != 5 ||
			i.Token != k.Token() || i.Place != 0 || i.Elapsed != 0 || i.Err != nil {
			w.Errorf("the event of a lock that was free is %+v", i)
		}
		var waiting sync.WaitGroup
		for _, l := range []*redlock.Locker{second, second, first} {
			waiting.Go(func() {
				if k, err := l.Lock(w.Context(), "n"); err == nil {
					w.noError(k.Unlock(w.Context()))
				}
			})
			after(time.Millisecond)
		}
		after(2 * time.Second)
		w.noError(k.Unlock(w.Context()))
		waiting.Wait()
		synctest.Wait()
		c.mu.Lock()
		defer c.mu.Unlock()
		var places []int
		for _, i := range c.ended[1:] { // without the first lock
			if i.Op == "unlock" && i.Token == k.Token() && (i.Held < 2*time.Second || i.Held > 2100*time.Millisecond ||
				i.Err != nil) {
				w.Errorf("an unlock after two seconds: %+v", i)
			}
			if i.Op != "lock" {
				continue
			}
			places = append(places, i.Place)
			if i.Elapsed < 1900*time.Millisecond || i.Elapsed > 5*time.Second || i.Err != nil {
				w.Errorf("the event of a call that waited is %+v", i)
			}
		}
		// The first waiting call of each Locker has place 1. The other call waits behind a call of the same Locker, and has
		// place 2.
		if slices.Sort(places); !slices.Equal(places, []int{1, 1, 2}) {
			w.Errorf("the places are %v, want 1, 1 and 2", places)
		}
	})
}

// The event of a call contains its operation, which has names of its own for readers, and the error that the caller
// gets. Outcome returns the expected word for this error.
func TestTraceHasOutcomes(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		var c calls
		l := w.locker(redlock.WithTrace(c.trace()))
		k := must(l.Lock(w.Context(), "n"))(w)
		ends := func(op redlockinfo.Op, outcome string, err error) {
			w.Helper()
			i := c.last()
			if i.Op != op || redlock.Outcome(i.Err) != outcome || !errors.Is(err, i.Err) ||
				op == "set value" && (i.Name != "n" || i.Token != k.Token()) {
				w.Errorf("want op %s with outcome %s: %+v; the caller got %v", op, outcome, i, err)
			}
		}
		_, err := l.TryLock(w.Context(), "n")
		ends("try lock", "held", err)
		_, err = w.locker(redlock.WithTrace(c.trace())).TryLock(w.Context(), "n")
		ends("try lock", "held", err)
		_, err = l.Lock(w.Context(), "")
		ends("lock", "invalid", err)
		_, err = l.Lock(deadContext(), "m")
		ends("lock", "canceled", err)
		_, err = l.Import(w.Context(), "no handle")
		ends("import", "invalid", err)
		err = l.Do(w.Context(), "m", func(context.Context, *redlock.Lock) error { return errors.New("of the caller") })
		ends("do", "other", err)
		s := l.RWLock("x")
		r, err := s.RLock(w.Context())
		ends("rlock", "ok", err)
		_, err = s.TryLock(r.Context(w.Context()))
		ends("try lock", "invalid", err)
		w.isError(err, redlock.ErrUpgrade)
		_, err = l.TryLock(w.Context(), "x")
		ends("try lock", "kind", err)
		ends("unlock", "ok", r.Unlock(w.Context()))
		writer, err := s.Lock(w.Context())
		ends("lock", "ok", err)
		_, err = s.TryRLock(w.Context())
		ends("try rlock", "held", err)
		r, err = writer.Downgrade(w.Context())
		ends("downgrade", "ok", err)
		w.noError(r.Unlock(w.Context()))
		ends("set value", "ok", k.SetValue(w.Context(), "v1"))
		ends("set value", "invalid", k.SetValue(w.Context(), strings.Repeat("x", 1025)))
		after(time.Second)
		w.noError(k.Unlock(w.Context()))
		err = k.Unlock(w.Context())
		ends("unlock", "released", err)
		if i := c.last(); i.Held != 0 || i.Token != k.Token() {
			w.Errorf("the event of a second unlock is %+v", i)
		}
		err = k.Extend(w.Context())
		ends("extend", "released", err)
		if !recovered(func() {
			_ = l.Do(w.Context(), "m", func(context.Context, *redlock.Lock) error { panic("of the caller") })
		}) {
			w.Error("the panic did not reach the caller of Do")
		}
		if i := c.last(); i.Op != "do" || i.Err == nil {
			w.Errorf("the event of a call that has panicked is %+v", i)
		}
		k = must(l.Lock(w.Context(), "n"))(w)
		w.masters.Master(0).Hang()
		w.masters.Master(1).Hang()
		ends("set value", "canceled", k.SetValue(deadContext(), "v2"))
		after(20 * time.Second) // the lock is lost
		ends("set value", "lost", k.SetValue(w.Context(), "v3"))
		w.stop(0, 1)
		_, err = l.TryLock(w.Context(), "n")
		ends("try lock", "no_quorum", err)
		if i := c.last(); i.Votes.N != 3 {
			w.Errorf("the event of a call without a quorum is %+v", i)
		}
		w.noError(l.Close())
		_, err = l.Lock(w.Context(), "n")
		ends("lock", "closed", err)
	})
}

// Each of several traces gets every event, whether one option has them or several. The function that Do runs, and the
// calls in it, get a context to which each trace has added its values, in the order of the traces, also if the callback
// of another one panics or returns nil.
func TestSeveralTraces(t *testing.T) {
	type key struct{}
	virtual(t, 3, func(w *cluster) {
		var order []string
		above := func(ctx context.Context) string { return fmt.Sprint(ctx.Value(key{})) }
		trace := func(who string) *redlockinfo.Trace {
			return &redlockinfo.Trace{Do: func(ctx context.Context, _ string) context.Context {
				order = append(order, who+" begins")
				return context.WithValue(ctx, key{}, above(ctx)+who)
			}, Event: func(i redlockinfo.Event) {
				switch i.Kind {
				case "acquired":
					order = append(order, who+" acquired")
				case "call":
					order = append(order, who+" "+string(i.Op)+" in "+above(i.Context))
				}
			}}
		}
		bad := func(f func() context.Context) *redlockinfo.Trace {
			return &redlockinfo.Trace{Do: func(context.Context, string) context.Context { return f() }}
		}
		l := w.locker(redlock.WithTrace(trace("a"), nil, &redlockinfo.Trace{}, bad(func() context.Context { return nil })),
			redlock.WithTrace(bad(func() context.Context { panic("a trace") }), trace("b")))
		ctx := context.WithValue(w.Context(), key{}, "")
		w.must(l.Do(ctx, "n", func(ctx context.Context, _ *redlock.Lock) error {
			equal(w, above(ctx), "ab", "context of the function")
			synctest.Wait()
			return l.Do(ctx, "n", nothing, redlock.WithReentry())
		}))
		synctest.Wait()
		want := []string{
			"a begins", "b begins", "a acquired", "b acquired", "a lock in ab", "b lock in ab", "a begins", "b begins",
			"a lock in abab", "b lock in abab", "a unlock in abab", "b unlock in abab", "a do in abab", "b do in abab",
			"a unlock in ab", "b unlock in ab", "a do in ab", "b do in ab",
		}
		if !slices.Equal(order, want) {
			w.Errorf("the events are %q, want %q", order, want)
		}
	})
}

// Each vote is reported once, with the time that it took.
func TestVotesAreReportedOnce(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		var votes []redlockinfo.Event
		l := w.locker(redlock.WithTrace(redlock.On("vote", func(v redlockinfo.Event) {
			if v.Op == "lock" {
				votes = append(votes, v)
			}
		})))
		w.each(func(i int, m *memory.Master) { m.Delay(time.Duration(i+1) * 10 * time.Millisecond) })
		k := must(l.Lock(w.Context(), "a"))(w)
		after(200 * time.Millisecond)
		equal(w, len(votes), 5, "votes")
		for i, v := range votes {
			if late := v.Elapsed - time.Duration(i+1)*20*time.Millisecond; v.Master != w.masters.Master(i).Addr() ||
				v.Vote != "granted" || late < 0 || late > time.Millisecond {
				w.Errorf("the event of vote %d is %+v", i, v)
			}
		}
		w.noError(k.Unlock(w.Context()))
	})
}

// An eventCounter counts the holds and the calls of Do that have begun in a trace and not ended.
type eventCounter struct {
	mu       sync.Mutex
	held     map[string]int       // indexed by the id of the lease
	since    map[string]time.Time // start of the last hold
	dos      int
	outcomes map[string]int // of all calls
	wrong    []string
}

func (c *eventCounter) trace() *redlockinfo.Trace {
	c.held, c.since, c.outcomes = map[string]int{}, map[string]time.Time{}, map[string]int{}
	return &redlockinfo.Trace{Do: c.do, Event: c.event}
}

// do implements Trace.Do. The returned context contains a counter of the events that end the call.
func (c *eventCounter) do(ctx context.Context, _ string) context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dos++
	return context.WithValue(ctx, c, new(int))
}

func (c *eventCounter) event(e redlockinfo.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch e.Kind {
	case "acquired":
		c.held[e.ID]++
		c.since[e.ID] = e.Time
	case "released", "lost":
		if c.held[e.ID]--; c.held[e.ID] < 0 {
			c.wrong = append(c.wrong, e.ID+" ends more often than it begins")
		}
		if took := e.Time.Sub(c.since[e.ID]); e.Held != took {
			c.wrong = append(c.wrong, fmt.Sprintf("%s of %v ends after %v", e.ID, e.Held, took))
		}
	case "call":
		c.outcomes[redlock.Outcome(e.Err)]++
		if e.Time.IsZero() || e.Op != "do" {
			return
		}
		c.dos--
		if ends, ok := e.Context.Value(c).(*int); !ok || *ends > 0 {
			c.wrong = append(c.wrong, fmt.Sprintf("the end %+v has no beginning, or is a second end", e))
		} else {
			*ends++
		}
	}
	if c.held[e.ID] == 0 {
		delete(c.held, e.ID)
	}
}

// H71: in a trace each hold that begins also ends exactly once, whether it is released, lost, ended by its maximum
// hold, handed off to another goroutine, exported to another process, or ended by Close of its Locker.
func TestEachHoldEndsOnceInTrace(t *testing.T) {
	for name, steps := range map[string][]string{
		"release and loss": {"lock", "try", "unlock", "again", "lose", "limit", "wait"},
		"handoff":          {"lock", "unlock", "queue", "queue"},
		"export":           {"lock", "unlock", "export"},
		"calls that fail":  {"lock", "unlock", "do", "bad", "late", "panic", "queue"},
		"close":            {"lock", "unlock", "again"},
	} {
		subtest(t, name, 3, func(w *cluster) {
			for run := range 20 {
				var c eventCounter
				r := &randomRun{w: w, l: w.locker(redlock.WithTrace(c.trace())), other: w.locker(), random: seeded(uint64(run))}
				for range 12 {
					r.step(steps[r.random.IntN(len(steps))])
					synctest.Wait()
				}
				for k := r.pop(); k != nil && name != "close"; k = r.pop() {
					_ = k.Unlock(w.Context())
					synctest.Wait() // now the next call in the local queue has the lock
				}
				w.must(r.l.Close())
				r.step("lock") // on a closed Locker
				r.waiting.Wait()
				synctest.Wait()
				if len(c.held) != 0 || c.dos != 0 || len(c.wrong) > 0 || c.outcomes["closed"] == 0 {
					w.Fatalf("run %d: %d holds and %d calls have no end in the trace; %v; outcomes %v", run, len(c.held), c.dos,
						c.wrong, c.outcomes)
				}
			}
		})
	}
}

// A randomRun makes random calls and stores the acquired locks.
type randomRun struct {
	w        *cluster
	l, other *redlock.Locker
	random   *rand.Rand
	waiting  sync.WaitGroup

	mu    sync.Mutex
	locks []*redlock.Lock
	n     int
}

func (r *randomRun) keep(k *redlock.Lock, err error) {
	if err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.locks = append(r.locks, k)
	}
}

// pop removes and returns one of the locks, or nil if there is none.
func (r *randomRun) pop() *redlock.Lock {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.locks) == 0 {
		return nil
	}
	i := r.random.IntN(len(r.locks))
	k := r.locks[i]
	r.locks = slices.Delete(r.locks, i, i+1)
	return k
}

func (r *randomRun) name() string { return fmt.Sprintf("%p/%d", r, r.n) }

func (r *randomRun) step(what string) {
	ctx := r.w.withTimeout(time.Minute)
	switch what {
	case "lock":
		r.n++
		r.keep(r.l.Lock(ctx, r.name()))
	case "try":
		r.keep(r.l.TryLock(ctx, r.name()))
	case "do":
		_ = r.l.Do(ctx, "done", func(context.Context, *redlock.Lock) error { return errors.New("no") })
	case "panic":
		recovered(func() { _ = r.l.Do(ctx, "done", panics) })
	case "bad":
		r.keep(r.l.Lock(ctx, "n", redlock.WithTTL(-1)))
		r.keep(r.l.TryLock(ctx, ""))
		r.keep(r.l.Import(ctx, "no handle"))
	case "late":
		r.keep(r.l.Lock(deadContext(), "n"))
	case "wait":
		after(time.Duration(r.random.IntN(5)) * time.Second)
	case "limit":
		r.n++
		r.keep(r.l.Lock(ctx, r.name(), redlock.WithMaxHold(time.Second)))
		after(2 * time.Second)
	default:
		if k := r.pop(); k != nil {
			r.use(ctx, what, k)
		}
	}
}

// use performs the step named what on k.
func (r *randomRun) use(ctx context.Context, what string, k *redlock.Lock) {
	switch what {
	case "unlock":
		_ = k.Unlock(ctx)
		_, _ = k.Unlock(ctx), k.Extend(ctx)
	case "again":
		r.keep(r.l.Lock(k.Context(ctx), k.Name(), redlock.WithReentry()))
		r.keep(k, nil)
	case "lose":
		r.w.masters.Lose(k.Name())
		after(4 * time.Second)
		r.keep(k, nil)
	case "queue":
		r.waiting.Go(func() { r.keep(r.l.Lock(ctx, k.Name())) })
		synctest.Wait()
		_ = k.Unlock(ctx)
	case "export":
		handle, err := k.Export()
		if err != nil {
			r.keep(k, nil) // a lock that is held more than once cannot be exported
			return
		}
		r.keep([]*redlock.Locker{r.l, r.other}[r.random.IntN(2)].Import(ctx, handle))
	}
}
