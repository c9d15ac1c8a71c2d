package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/long"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// The masters of a deployment are changed, on real servers, as the documentation says. Meanwhile one lock is held
// throughout, two clients lock one name in turns, and a third client is never reconfigured. The old servers are killed
// at the end.
func TestADeploymentChangesItsMasters(t *testing.T) {
	t.Parallel()
	if !long.Enabled() {
		t.Skip("needs -long: a change is complete after a minute")
	}
	const guard = 3 * time.Second
	for name, c := range map[string]struct{ servers, old, nextFrom, nextTo int }{
		"five others":        {10, 5, 5, 10},
		"three grow to five": {5, 3, 0, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newDeployment(t, c.servers)
			opts := []redlock.Option{redlock.WithMaxTTL(guard), redlock.WithTTL(guard)}
			old, next := f.urls[:c.old], f.urls[c.nextFrom:c.nextTo]
			states := []redlock.Configuration{{Masters: old}, {Epoch: 1, Masters: old, Next: next}, {Epoch: 2, Masters: next}}
			program := func(more ...redlock.Option) *redlock.Locker {
				p := must[*pool.Pool](t)(pool.Open(old, pool.WithTimeout(calm), pool.WithDialTimeout(calm)))
				t.Cleanup(func() { p.Close() })
				return locker(t, p, append(append(opts, redlock.WithConfiguration(states[0])), more...)...)
			}
			var told events
			a, b, never := program(redlock.WithTrace(told.trace("held throughout"))), program(), program()
			f.admit(a)
			operator := locker(t, f.dial(), append(opts, redlock.WithConfiguration(states[1]))...)
			f.admit(operator) // the new masters are admitted before any client uses them
			goTo := func(epoch int) {
				t.Helper()
				for _, l := range []*redlock.Locker{a, b} {
					if err := l.Admin().Reconfigure(bounded(t), states[epoch]); err != nil {
						t.Fatal(err)
					}
				}
			}
			lock := held(t)(a.Lock(bounded(t), "held throughout"))
			stop := inTurns(t, a, b, never)
			goTo(1)
			if err := operator.RaiseEpoch(bounded(t)); err != nil {
				t.Fatal(err)
			}
			if err := a.Admin().Reconfigure(bounded(t), states[2]); !errors.Is(err, redlock.ErrIncomplete) {
				t.Errorf("too early: %v", err)
			}
			if err := operator.FinishChange(bounded(t)); !errors.Is(err, redlock.ErrIncomplete) {
				t.Errorf("at once: %v", err)
			}
			eventually(t, longHang, func() string {
				if err := operator.FinishChange(bounded(t)); err != nil {
					return err.Error()
				}
				return ""
			})
			goTo(2)
			for i := range c.old {
				if i < c.nextFrom || i >= c.nextTo {
					f.kill(i)
				}
			}
			last := held(t)(a.Lock(bounded(t), "turns"))
			turns := last.Token()
			if n := stop(); n < 50 {
				t.Errorf("only %d turns", n)
			}
			if on, n := lock.HeldOn(); lock.Err() != nil || on < n/2+1 || n != len(next) {
				t.Errorf("the lock that was held: %v, on %d of %d\n%s", lock.Err(), on, n, told.String())
			}
			if turns <= lock.Token() {
				t.Errorf("token %d after %d", turns, lock.Token())
			}
			if _, err := never.TryLock(bounded(t), "turns"); !errors.Is(err, redlock.ErrNoQuorum) {
				t.Errorf("client that was never reconfigured: %v", err)
			}
			if err := errors.Join(last.Unlock(bounded(t)), lock.Unlock(bounded(t))); err != nil {
				t.Error(err)
			}
		})
	}
}

// inTurns makes Lockers lock one name in turns until the returned function is called, which returns the number of
// turns. It checks that no two hold the name at once, and that tokens grow.
func inTurns(t *testing.T, list ...*redlock.Locker) (stop func() int64) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	var inside, last, n atomic.Int64
	for _, l := range list {
		wg.Go(func() {
			for ctx.Err() == nil {
				wait, done := context.WithTimeout(ctx, time.Second)
				k, err := l.Lock(wait, "turns")
				done()
				if err != nil {
					continue // the client that is never reconfigured
				}
				if inside.Add(1) > 1 && k.Remaining() > 0 {
					t.Error("two clients hold the name at once")
				}
				if token := k.Token(); last.Swap(token) >= token {
					t.Errorf("token %d does not grow", token)
				}
				n.Add(1)
				inside.Add(-1)
				_ = k.Unlock(context.WithoutCancel(ctx)) // fails in the client that is never reconfigured
			}
		})
	}
	return func() int64 {
		cancel()
		wg.Wait()
		return n.Load()
	}
}

// events records the events of one lock, for the text of a failed test.
type events struct {
	mu    sync.Mutex
	lines []string
}

func (h *events) trace(name string) *redlockinfo.Trace {
	return &redlockinfo.Trace{Event: func(i redlockinfo.Event) {
		h.mu.Lock()
		defer h.mu.Unlock()
		switch i.Kind {
		case "extended", "lost":
			if i.Name != name {
				return
			}
		case "reconfigured":
		default:
			return
		}
		h.lines = append(h.lines, fmt.Sprintf("%s %s: token %d, %v left: %v",
			time.Now().Format("05.000"), i.Kind, i.Token, i.Left, i.Err))
	}}
}

func (h *events) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.lines, "\n")
}
