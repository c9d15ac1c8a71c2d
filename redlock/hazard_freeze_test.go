package redlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/redlock-go/redlock/redlock"
)

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
