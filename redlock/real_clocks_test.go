package redlock_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/admin"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// H176: a lock is on exactly three of five masters, and the clock of one of these jumps while the server runs. No
// second client gets the lock while the first one holds it, and the next token is larger.
func TestOneClockThatJumps(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what string
		by   time.Duration
		back time.Duration // after this time the clock is right again; 0: it stays wrong
		seen bool          // whether it is right again only when the rival has seen it, too
	}{
		{"forward within the window", 8 * time.Second, 0, false},
		{"forward and back within the window", 12 * time.Second, time.Second, false},
		{"forward beyond the window", 20 * time.Second, 0, false},
		{"an hour forward", time.Hour, 0, false},
		{"an hour forward, until the clients have seen it", time.Hour, time.Second, true},
		{"an hour back", -time.Hour, 0, false},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			f := &deployment{tester: tester{t}}
			shifted := redistest.Shifted(t, 5, redisproc.Config{})
			for _, s := range shifted {
				f.servers, f.urls = append(f.servers, s.Server), append(f.urls, s.URL())
			}
			holder, rival := f.admitted(), f.locker()
			f.must(rival.WaitReady(f.withTimeout(hang)))
			lock, err := holder.Lock(f.withTimeout(hang), "n", redlock.WithTTL(10*time.Second), redlock.WithExtension(false))
			f.must(err)
			eventually(f, hang, func() string { // until then a late acquire may be on its way to a master
				if h, err := holder.Inspect(f.withTimeout(hang), "n"); err != nil || h.On < 5 {
					return fmt.Sprintf("the lock is on %d masters, %v", h.On, err)
				}
				return ""
			})
			for _, i := range []int{3, 4} {
				f.do(i, "DEL", redlock.DefaultPrefix+":{n}")
			}
			shifted[0].Shift(c.by)
			wrong := time.Now()
			for lock.Err() == nil {
				seen := !c.seen || admin.Of(rival).Masters()[0].State == redlockinfo.StateBlocked
				if c.back > 0 && time.Since(wrong) > c.back && seen {
					shifted[0].Shift(0)
				}
				second, err := rival.TryLock(f.withTimeout(hang), "n", redlock.WithTTL(time.Second))
				if err == nil {
					if lock.Err() == nil {
						t.Errorf("after %v there are two holders, with %v left of the first", time.Since(wrong), lock.Remaining())
					}
					f.must(second.Unlock(f.withTimeout(hang)))
					break
				}
				if !errors.Is(err, redlock.ErrHeld) && !errors.Is(err, redlock.ErrNoQuorum) {
					t.Error(err)
				}
			}
			shifted[0].Shift(0)
			next, err := rival.Lock(f.withTimeout(hang), "n")
			f.must(err)
			if next.Token() <= lock.Token() {
				t.Errorf("the token %d is not larger than %d", next.Token(), lock.Token())
			}
			f.must(next.Unlock(f.withTimeout(hang)))
		})
	}
}
