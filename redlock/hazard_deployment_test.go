package redlock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/redlock"
)

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
