package redlock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/redlock"
)

// tellsBeforeAnother makes another client acquire the name. The loss must be reported by then.
func (s *stage) tellsBeforeAnother(k *redlock.Lock, other *program) {
	s.Helper()
	for range 6000 {
		if got, err := other.TryLock(s.Context(), k.Name()); err == nil {
			synctest.Wait()
			if !over(k) {
				s.Errorf("another holds %q, and the first holder is not notified: valid for another %v", k.Name(), k.Remaining())
			}
			_ = got.Unlock(s.Context())
			return
		}
		after(20 * time.Millisecond)
	}
	s.Fatalf("no other client got %q", k.Name())
}

// H61: the machine freezes for less than the validity of a lock that is not extended. The loss is reported in time.
func TestHazardAFreezeShorterThanTheValidityDelaysNoLoss(t *testing.T) {
	onStage(t, 5, func(s *stage) {
		for name, suspend := range map[string]bool{"suspended": true, "stopped": false} {
			a, b := s.program(), s.program()
			k := a.take(name, redlock.WithExtension(false))
			after(2 * time.Second)
			s.freeze(a, 4*time.Second, suspend)
			s.tellsBeforeAnother(k, b)
		}
	})
}

// H61: several freezes do not prolong the maximum hold.
func TestHazardFreezesDoNotProlongTheLongestHold(t *testing.T) {
	onStage(t, 5, func(s *stage) {
		const longest, frozen = 26 * time.Second, 4 * time.Second
		a, b := s.program(), s.program()
		k := a.take("n", redlock.WithMaxHold(longest))
		for range 5 {
			after(time.Second)
			s.freeze(a, frozen, false)
		}
		after(longest - 5*(time.Second+frozen) + 150*time.Millisecond)
		if !over(k) {
			s.Errorf("held for longer than %v without a reported loss", longest)
		}
		s.tellsBeforeAnother(k, b)
	})
}

// H61: the wall clock jumps by a part of the validity. The client cannot know which clock is right, so the loss is
// reported by the wall clock.
func TestHazardAJumpOfTheWallClockCountsAgainstTheValidity(t *testing.T) {
	onStage(t, 5, func(s *stage) {
		a := s.program()
		k := a.take("n", redlock.WithExtension(false))
		after(2 * time.Second)
		a.host.jump(0, 4*time.Second)
		after(4*time.Second - 200*time.Millisecond)
		if over(k) {
			s.Fatal("loss reported too early")
		}
		after(300 * time.Millisecond)
		if !over(k) {
			s.Errorf("loss not reported; %v left", k.Remaining())
		}
	})
}

// H76: after a freeze a lock and its contexts report their end before any timer has run.
func TestHazardAfterAFreezeTheFirstLookSaysThatTheLockIsLost(t *testing.T) {
	for id, look := range map[string]func(k *redlock.Lock, ctx context.Context) error{
		"H76 lock":    func(k *redlock.Lock, _ context.Context) error { return k.Err() },
		"H76 context": func(_ *redlock.Lock, ctx context.Context) error { return ctx.Err() },
	} {
		t.Run(id, func(t *testing.T) {
			onStage(t, 3, func(s *stage) {
				a := s.program()
				k := a.take("n")
				ctx := k.Context(s.Context())
				after(time.Second)
				s.freeze(a, time.Minute, true)
				if look(k, ctx) == nil { // no timer has run since the clocks leapt
					s.Errorf("the lock ended %v ago, and the first look after the freeze says that it is held", -k.Remaining())
				}
			})
		})
	}
}
