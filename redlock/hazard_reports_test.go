package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// H78: the error of a call with a short deadline contains the masters that hang, each with the time for which it has
// not answered.
func TestHazardMastersThatDoNotAnswerAreNamed(t *testing.T) {
	onStage(t, 5, func(s *stage) {
		p := s.program()
		silent := []*memory.Master{s.masters.Master(1), s.masters.Master(2), s.masters.Master(4)}
		for _, m := range silent {
			m.Hang()
		}
		for _, d := range []time.Duration{20 * time.Millisecond, 100 * time.Millisecond, 450 * time.Millisecond} {
			_, err := p.TryLock(s.within(d), fmt.Sprint("n", d))
			if !errors.Is(err, context.DeadlineExceeded) {
				s.Fatalf("after %v: %v", d, err)
			}
			for _, m := range silent {
				said := regexp.MustCompile(regexp.QuoteMeta(m.Addr()) + `[,:] [^;]*?\d(ms|s)\b`)
				if !said.MatchString(err.Error()) {
					s.Errorf("with %v it does not say that %s has not answered, and for how long: %v", d, m.Addr(), err)
				}
			}
			for _, m := range silent { // the pool's own timeout must not have expired
				m.Resume()
			}
			after(time.Second)
			for _, m := range silent {
				m.Hang()
			}
		}
		s.each((*memory.Master).Resume)
	})
}

// H79: the error for a foreign key under the name of a lock's key contains the key, its master, and a remedy.
func TestHazardAForeignKeyIsExplained(t *testing.T) {
	onStage(t, 3, func(s *stage) {
		p := s.program()
		k := p.take("n")
		synctest.Wait() // the lock is on each of them
		var key string  // the key as the library names it
		for _, text := range s.masters.Master(0).Keys() {
			if strings.HasSuffix(text, "}") {
				key = text
			}
		}
		if err := k.Unlock(s.Context()); err != nil || key == "" {
			s.Fatalf("%v; the key is %q", err, key)
		}
		s.each(func(m *memory.Master) { m.Set(key, "not a lock") })
		_, err := p.TryLock(s.Context(), "n")
		for _, word := range []string{key, "another type"} {
			if err == nil || !strings.Contains(err.Error(), word) {
				s.Errorf("it does not say %q: %v", word, err)
			}
		}
	})
}

// A gauge counts the locks and the calls that have begun and not ended in a trace; locks by the id of the hold.
type gauge struct {
	mu    sync.Mutex
	held  map[string]int
	calls int
	ended map[string]int // calls, by their outcomes
	odd   []string
}

func (g *gauge) trace() *redlockinfo.Trace {
	g.held, g.ended = map[string]int{}, map[string]int{}
	count := func(i redlockinfo.Event, by int) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.held[i.ID] += by
		if n := g.held[i.ID]; n < 0 {
			g.odd = append(g.odd, fmt.Sprintf("%s ends more often than it begins", i.ID))
		}
		if g.held[i.ID] == 0 {
			delete(g.held, i.ID)
		}
	}
	return &redlockinfo.Trace{Do: g.do, Event: func(i redlockinfo.Event) {
		switch i.Kind {
		case "acquired":
			count(i, 1)
		case "released", "lost":
			count(i, -1)
		case "call":
			g.call(i)
		}
	}}
}

// do implements Trace.Do. The returned context counts the ends of its call.
func (g *gauge) do(ctx context.Context, _ string) context.Context {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls++
	return context.WithValue(ctx, g, new(int))
}

// call checks that each Do ends once.
func (g *gauge) call(i redlockinfo.Event) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended[redlock.Outcome(i.Err)]++
	if i.Time.IsZero() || i.Op != "do" {
		return
	}
	g.calls--
	if ends, ok := i.Context.Value(g).(*int); !ok || *ends > 0 {
		g.odd = append(g.odd, fmt.Sprintf("the end %+v has no begin, or is the second", i))
	} else {
		*ends++
	}
}

// open returns the holds and the calls that have begun and not ended.
func (g *gauge) open() (holds, calls int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.held), g.calls
}

// H71: in a trace each hold that begins ends exactly once: released, lost, at its maximum hold, handed off to a
// goroutine or exported to a process, or closed with its Locker.
func TestHazardInATraceEachBeginHasOneEnd(t *testing.T) {
	for id, steps := range map[string][]string{
		"H71 release and loss": {"lock", "try", "unlock", "again", "lose", "limit", "wait"},
		"H71 handoff":          {"lock", "unlock", "queue", "queue"},
		"H71 export":           {"lock", "unlock", "export"},
		"H71 calls that fail":  {"lock", "unlock", "do", "bad", "late", "panic", "queue"},
	} {
		t.Run(id, func(t *testing.T) {
			onStage(t, 3, func(s *stage) { randomRuns(s, steps, true) })
		})
	}
	t.Run("H71 close", func(t *testing.T) {
		onStage(t, 3, func(s *stage) { randomRuns(s, []string{"lock", "unlock", "again"}, false) })
	})
}

// randomRuns makes runs of random steps, and checks the gauge after each. A run unlocks its remaining locks, or leaves
// them to Close.
func randomRuns(s *stage, steps []string, unlock bool) {
	const runs, length = 20, 12
	for run := range runs {
		random := rand.New(rand.NewPCG(uint64(run), 71))
		var g gauge
		p := s.program(redlock.WithTrace(g.trace()))
		w := &walk{s: s, p: p, other: s.program(), random: random}
		for range length {
			w.step(steps[random.IntN(len(steps))])
			synctest.Wait()
		}
		if unlock {
			w.unlockAll()
		}
		if err := p.Close(s.within(time.Minute)); err != nil {
			s.Fatal(err)
		}
		w.step("lock") // on a closed Locker
		w.waiting.Wait()
		synctest.Wait()
		if holds, calls := g.open(); holds != 0 || calls != 0 || len(g.odd) > 0 {
			s.Fatalf("run %d: %d holds and %d calls have no end in the trace; %v", run, holds, calls, g.odd)
		}
		if g.ended["closed"] == 0 {
			s.Errorf("run %d: no call of a Locker that is closed has an end: %v", run, g.ended)
		}
	}
}

// A walk is one random run.
type walk struct {
	s        *stage
	p, other *program
	random   *rand.Rand
	waiting  sync.WaitGroup

	mu    sync.Mutex
	locks []*redlock.Lock
	n     int
}

func (w *walk) keep(k *redlock.Lock, err error) {
	if err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.locks = append(w.locks, k)
	}
}

// pop removes and returns one of the locks, or nil if there is none.
func (w *walk) pop() *redlock.Lock {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.locks) == 0 {
		return nil
	}
	i := w.random.IntN(len(w.locks))
	k := w.locks[i]
	w.locks = append(w.locks[:i], w.locks[i+1:]...)
	return k
}

func (w *walk) unlockAll() {
	for k := w.pop(); k != nil; k = w.pop() {
		_ = k.Unlock(w.s.Context())
		synctest.Wait() // the next call in the local queue has the lock
	}
}

func (w *walk) name() string { return fmt.Sprintf("%p/%d", w, w.n) }

func (w *walk) step(what string) {
	ctx := w.s.within(time.Minute)
	switch what {
	case "lock":
		w.n++
		w.keep(w.p.Lock(ctx, w.name()))
		return
	case "try":
		w.keep(w.p.TryLock(ctx, w.name()))
		return
	case "do":
		_ = w.p.Do(ctx, "done", func(context.Context) error { return errors.New("no") })
		return
	case "panic":
		recovered(func() { _ = w.p.Do(ctx, "done", func(context.Context) error { panic("of the program") }) })
		return
	case "bad":
		w.keep(w.p.Lock(ctx, "n", redlock.WithTTL(-1)))
		w.keep(w.p.TryLock(ctx, ""))
		w.keep(w.p.Import(ctx, "no handle"))
		return
	case "late":
		w.keep(w.p.Lock(deadContext(), "n"))
		return
	case "wait":
		after(time.Duration(w.random.IntN(5)) * time.Second)
		return
	}
	k := w.pop()
	if k == nil {
		return
	}
	switch what {
	case "unlock":
		_ = k.Unlock(ctx)
		_, _ = k.Unlock(ctx), k.Extend(ctx)
	case "again":
		w.keep(w.p.Lock(k.Context(ctx), k.Name()))
		w.keep(k, nil)
	case "lose":
		w.s.masters.Lose(k.Name())
		after(4 * time.Second)
		w.keep(k, nil)
	case "limit":
		w.n++
		w.keep(w.p.Lock(ctx, w.name(), redlock.WithMaxHold(time.Second)))
		after(2 * time.Second)
		w.keep(k, nil)
	case "queue":
		w.waiting.Go(func() { w.keep(w.p.Lock(ctx, k.Name())) })
		synctest.Wait()
		_ = k.Unlock(ctx)
	case "export":
		handle, err := k.Export()
		if err != nil {
			w.keep(k, nil) // the lock is held more than once
			return
		}
		to := w.p
		if w.random.IntN(2) == 0 {
			to = w.other
		}
		w.keep(to.Import(ctx, handle))
	}
}

// Over a closed pool every call fails at once, with a context that never ends: the pool will have no masters again.
func TestHazardOverAClosedPoolEveryCallSaysSo(t *testing.T) {
	for id, prepare := range map[string]func(s *stage, p *program) func() error{
		"closed pool: Lock": func(_ *stage, p *program) func() error {
			return func() error { _, err := p.Lock(p.never, "n"); return err }
		},
		"closed pool: TryLock": func(_ *stage, p *program) func() error {
			return func() error { _, err := p.TryLock(p.never, "n"); return err }
		},
		"closed pool: re-entry": func(_ *stage, p *program) func() error {
			k := p.take("n")
			return func() error { _, err := p.Lock(k.Context(p.never), "n"); return err }
		},
		"closed pool: Import": func(s *stage, p *program) func() error {
			handle, err := s.program().take("n").Export()
			if err != nil {
				s.Fatal(err)
			}
			return func() error { _, err := p.Import(p.never, handle); return err }
		},
	} {
		t.Run(id, func(t *testing.T) {
			onStage(t, 3, func(s *stage) {
				p := s.program()
				var cancel context.CancelFunc
				p.never, cancel = context.WithCancel(context.Background())
				call := prepare(s, p)
				if err := p.pool.Close(); err != nil {
					s.Fatal(err)
				}
				got := make(chan error, 1)
				go func() { got <- call() }()
				after(time.Second)
				select {
				case err := <-got:
					if !errors.Is(err, redlock.ErrClosed) && !errors.Is(err, pool.ErrClosed) {
						s.Errorf("%v, want ErrClosed", err)
					}
					got <- nil
				default:
					s.Errorf("it has not returned after a second")
				}
				cancel()
				if err := <-got; err != nil {
					s.Logf("%v", err) // it was looked at
				}
			})
		})
	}
}
