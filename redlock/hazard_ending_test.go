package redlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

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
