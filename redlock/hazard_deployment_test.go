package redlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/redlock"
)

// H63: one client names three masters, another five, with the same prefix and epoch. The second is refused, and its
// error shows both lists. Here the lock of the client with three is on two masters, which the other does not need.
func TestHazardProgramsThatNameAnotherNumberOfMastersAreRefused(t *testing.T) {
	three, five := "[master-1:6379 master-2:6379 master-3:6379]",
		"[master-1:6379 master-2:6379 master-3:6379 master-4:6379 master-5:6379]"
	for id, c := range map[string]struct{ first, second int }{
		"H63 three before five": {3, 5},
		"H63 five before three": {5, 3},
	} {
		t.Run(id, func(t *testing.T) {
			onStage(t, 5, func(s *stage) {
				a := s.over(s.masters.URLs()[:c.first])
				if err := a.Admin().Admit(s.within(time.Minute)); err != nil {
					s.Fatal(err)
				}
				s.masters.Master(2).Refuse("OOM command not allowed when used memory > 'maxmemory'.")
				k := a.take("n", redlock.WithExtension(false), redlock.WithTTL(30*time.Second))
				synctest.Wait()
				s.masters.Master(2).Refuse("")
				if c.first > 3 { // the second has a majority of the five, and none of the three
					s.masters.Master(0).Evict("n")
				}
				b := s.over(s.masters.URLs()[:c.second])
				_ = b.Admin().Admit(s.within(time.Second))
				_, err := b.TryLock(s.within(time.Minute), "n")
				switch {
				case err == nil && k.Err() == nil:
					s.Errorf("both hold the name")
				case !errors.Is(err, redlock.ErrMasterList) || !strings.Contains(err.Error(), three) ||
					!strings.Contains(err.Error(), five):
					s.Errorf("the error does not show both lists: %v", err)
				}
			}, memory.Fresh())
		})
	}
}

// labelled returns the option that gives a client a label. Labels must not distinguish the locks of clients.
func labelled(label string) redlock.Option { return redlock.WithOwner(label) }

// H68: two clients with the same label are two owners.
func TestHazardProgramsWithOneLabelAreTwoOwners(t *testing.T) {
	onStage(t, 3, func(s *stage) {
		a, b := s.program(labelled("web-1")), s.program(labelled("web-1"))
		a.take("n")
		if _, err := b.TryLock(s.Context(), "n"); !errors.Is(err, redlock.ErrHeld) {
			s.Errorf("the other program with this label: %v, want ErrHeld", err)
		}
	})
}

// H70: the deployment allows 30 s, and a client uses a longer TTL. The call fails at once, with the limit and the
// command that changes it.
func TestHazardATTLAboveWhatTheDeploymentAllowsIsToldAtOnce(t *testing.T) {
	calls := map[string]func(p *program, ctx context.Context) (*redlock.Lock, error){
		"H70 Lock": func(p *program, ctx context.Context) (*redlock.Lock, error) {
			return p.Lock(ctx, "n")
		},
		"H70 TryLock": func(p *program, ctx context.Context) (*redlock.Lock, error) { return p.TryLock(ctx, "n") },
	}
	for id, call := range calls {
		t.Run(id, func(t *testing.T) {
			onStage(t, 5, func(s *stage) {
				p := s.program(redlock.WithMaxTTL(2*time.Minute), redlock.WithTTL(time.Minute))
				start := time.Now()
				_, err := call(p, s.within(time.Minute))
				if took := time.Since(start); took > 100*time.Millisecond || !errors.Is(err, redlock.ErrTTLTooLong) {
					s.Errorf("after %v: %v; want ErrGuardTime at once", took, err)
				}
				for _, word := range []string{"30s", "redlock guard"} {
					if err == nil || !strings.Contains(err.Error(), word) {
						s.Errorf("the error does not say %q: %v", word, err)
					}
				}
			}, memory.MaxTTL(30*time.Second))
		})
	}
}

// H66: the wall clock is set back by an hour while the voter goroutine pauses because the masters answered with an
// error. The first lock succeeds when the quarantine has ended.
func TestHazardAWallClockSetBackDelaysNoAdmission(t *testing.T) {
	onStage(t, 5, func(s *stage) {
		s.each(func(m *memory.Master) { m.Refuse("LOADING Redis is loading the dataset in memory") })
		p := s.program()
		after(5*time.Second + time.Millisecond)
		p.host.jump(0, -time.Hour)
		s.each(func(m *memory.Master) { m.Refuse("") })
		start := time.Now()
		if _, err := p.Lock(s.within(2*time.Minute), "n"); err != nil {
			s.Errorf("%v after %v", err, time.Since(start))
		} else if took := time.Since(start); took > 40*time.Second {
			s.Errorf("the first lock came after %v", took)
		}
	}, memory.Fresh())
}

// H66: the wall clock is set back by an hour, once at each stage of a quarantine.
func TestHazardAWallClockSetBackAgainAndAgainDelaysNoAdmission(t *testing.T) {
	onStage(t, 5, func(s *stage) {
		p := s.program()
		for range 60 {
			after(501 * time.Millisecond)
			p.host.jump(0, -time.Hour)
		}
		if _, err := p.Lock(s.within(15*time.Second), "n"); err != nil {
			s.Errorf("45 s after the start: %v", err)
		}
	}, memory.Fresh())
}

// H66: a change of the masters waits for the quarantine of the next ones, and for the last locks on the old ones alone,
// regardless of the wall clock. Then it drops the old ones.
func TestHazardAWallClockSetBackDelaysNoChangeOfMasters(t *testing.T) {
	onStage(t, 6, func(s *stage) {
		urls := s.masters.URLs()
		both := redlock.Configuration{Epoch: 1, Masters: urls[:3], Next: urls[3:]}
		next := redlock.Configuration{Epoch: 2, Masters: urls[3:]}
		p := s.over(urls[:3])
		if err := p.Admin().Admit(s.within(time.Minute)); err != nil {
			s.Fatal(err)
		}
		p.take("held")
		start := time.Now()
		step := func(what string, bound time.Duration, f func(ctx context.Context) error) {
			s.Helper()
			time.AfterFunc(bound/8, func() { p.host.jump(0, -time.Hour) })
			if err := f(s.within(bound)); err != nil {
				s.Fatalf("%s: %v, %v after the start", what, err, time.Since(start))
			}
		}
		step("to both", 45*time.Second, func(ctx context.Context) error { return p.Admin().Reconfigure(ctx, both) })
		step("raised", 45*time.Second, p.RaiseEpoch)
		after(61 * time.Second)
		step("finished", 45*time.Second, p.FinishChange)
		step("to the next", 45*time.Second, func(ctx context.Context) error { return p.Admin().Reconfigure(ctx, next) })
		after(10 * time.Second)
		p.host.jump(0, -time.Hour)
		after(time.Minute)
		for i := range 3 {
			if n := s.masters.Master(i).Connections(); n != 0 {
				s.Errorf("%d connections to the old master %d a minute later", n, i)
			}
		}
	}, memory.Fresh())
}

// H66: a waiter gets the lock when it is released, or soon after it has expired, regardless of the wall clock.
func TestHazardAWallClockSetBackDelaysNoWaiter(t *testing.T) {
	onStage(t, 5, func(s *stage) {
		for name, end := range map[string]func(k *redlock.Lock){
			"released": func(k *redlock.Lock) { _ = k.Unlock(s.Context()) },
			"run out":  func(k *redlock.Lock) { s.masters.Lose(k.Name()) },
		} {
			a, b := s.program(), s.program()
			k := a.take(name)
			got := make(chan error, 1)
			go func() {
				_, err := b.Lock(s.within(3*time.Minute), name)
				got <- err
			}()
			after(time.Second)
			b.host.jump(0, -time.Hour)
			end(k)
			start := time.Now()
			err := <-got
			if took := time.Since(start); err != nil || took > 15*time.Second || name == "released" && took > time.Second {
				s.Errorf("%s: %v, %v later", name, err, took)
			}
		}
	})
}

// H66: the pool redials a master that is back within its longest pause, regardless of the wall clock.
func TestHazardAWallClockSetBackDelaysNoRedial(t *testing.T) {
	onStage(t, 3, func(s *stage) {
		h := &host{base: time.Now()}
		p, err := s.masters.Pool(transport.WithClock(h.clock()))
		if err != nil {
			s.Fatal(err)
		}
		s.Cleanup(func() { _ = p.Close() })
		after(time.Second)
		s.masters.Master(0).Stop()
		after(5 * time.Second)
		h.jump(0, -time.Hour)
		s.masters.Master(0).Restart(true)
		after(transport.DefaultRedialMax)
		synctest.Wait()
		if s.masters.Master(0).Connections() == 0 {
			s.Errorf("not connected after %v", transport.DefaultRedialMax)
		}
	})
}
