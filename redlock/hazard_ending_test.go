package redlock_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// endings is the number of repetitions of the tests of Close whose failures are not deterministic.
var endings = flag.Int("hazard.endings", 40, "how often the tests of H64 close a Locker")

// hasEnded checks, after a Close, that the locks have ended, are gone on the masters that answer now, and are no longer
// extended.
func (s *stage) hasEnded(run int, locks ...*redlock.Lock) {
	s.Helper()
	synctest.Wait()
	for _, k := range locks {
		if n := s.on(k.Name()); !over(k) || n != 0 {
			s.Errorf("run %d: %q ended: %v; held on %d masters", run, k.Name(), over(k), n)
		}
	}
	n := s.count("extend")
	after(10 * time.Second)
	if more := s.count("extend") - n; more > 0 {
		s.Errorf("run %d: %d extensions after Close", run, more)
	}
	if s.Failed() {
		s.FailNow() // one failed run is enough
	}
}

// H64: Close with a context that has ended still releases all locks, in each run.
func TestHazardCloseWithAnEndedContextReleasesEverything(t *testing.T) {
	onStage(t, 5, func(s *stage) {
		ended, cancel := context.WithCancel(s.Context())
		cancel()
		for run := range rounds(*endings, 15) {
			p := s.program()
			a, b := p.take(fmt.Sprint("a", run)), p.take(fmt.Sprint("b", run))
			_ = p.Close(ended)
			s.hasEnded(run, a, b)
		}
	})
}

// H64: the context of Close ends while an Unlock waits for masters that hang. The other locks are still released, once
// the masters answer.
func TestHazardCloseDuringAnUnlockReleasesEverything(t *testing.T) {
	onStage(t, 5, func(s *stage) {
		for run := range rounds(*endings, 15) {
			p := s.program()
			a, b, c := p.take(fmt.Sprint("a", run)), p.take(fmt.Sprint("b", run)), p.take(fmt.Sprint("c", run))
			s.each((*memory.Master).Hang)
			unlocked := make(chan error, 1)
			go func() { unlocked <- c.Unlock(s.within(time.Minute)) }()
			synctest.Wait()
			_ = p.Close(s.within(100 * time.Millisecond))
			if !over(a) || !over(b) {
				s.Errorf("run %d: Close has returned, and the locks go on", run)
			}
			s.each((*memory.Master).Resume)
			if err := <-unlocked; err != nil {
				s.Logf("%v", err) // any error is fine: the masters hung
			}
			after(2 * time.Second) // the pending releases are sent on the next connection
			s.hasEnded(run, a, b, c)
		}
	})
}

// closesInTime checks that Close returns with its context, although code of the caller hangs until release.
func (s *stage) closesInTime(p *program, release func()) {
	s.Helper()
	const bound = 100 * time.Millisecond
	closed := make(chan error, 1)
	ctx := s.within(bound)
	go func() { closed <- p.Close(ctx) }()
	after(bound + time.Millisecond)
	select {
	case err := <-closed:
		if !errors.Is(err, context.DeadlineExceeded) {
			s.Errorf("Close returned %v while something of the Locker's was still running", err)
		}
		closed <- nil
	default:
		s.Errorf("Close has not returned after its context")
	}
	release()
	if err := <-closed; err != nil {
		s.Logf("%v", err) // it was looked at
	}
}

// H67: a retry policy hangs. Close does not wait for it beyond its context.
func TestHazardCloseDoesNotWaitForABackoffThatHangs(t *testing.T) {
	onStage(t, 3, func(s *stage) {
		s.program().take("n")
		hang := make(chan struct{})
		p := s.program()
		failed := make(chan error, 1)
		go func() {
			_, err := p.Lock(s.within(time.Minute), "n", hanging(hang))
			failed <- err
		}()
		after(time.Second)
		s.closesInTime(p, func() { close(hang) })
		if err := <-failed; err != nil {
			s.Logf("%v", err) // any error is fine: the backoff hung
		}
	})
}

// hanging returns a retry policy whose pause hangs until the gate is closed.
func hanging(gate <-chan struct{}) redlock.LockOption {
	return redlock.WithRetry(redlock.Retry{Pause: func(int) time.Duration {
		<-gate
		return -1
	}})
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
