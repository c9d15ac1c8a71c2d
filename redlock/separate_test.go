package redlock_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/redlock"
)

// H12: the masters get durations only, so a client whose wall clock is hours off locks for as long as any other.
func TestTheWallClockOfTheClientIsInNoTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMasters(t, 3)
		for _, off := range []time.Duration{-5 * time.Hour, 5 * time.Hour} {
			origin := time.Now()
			skewed := clock.New(func() clock.Instant {
				now := time.Now()
				return clock.At(int64(now.Sub(origin))+1, now.Add(off).UnixNano())
			})
			c := newParty(t, m, nil, redlock.WithClock(skewed))
			lock := c.lock()
			synctest.Wait() // the slowest master has it too
			for i := range m.N() {
				if _, _, left := m.Master(i).Holds("x"); left <= 0 || left > redlock.DefaultTTL {
					t.Errorf("clock off by %v: master %d keeps the lock for %v", off, i, left)
				}
			}
			if left := lock.Remaining(); left <= 9*time.Second || left > redlock.DefaultTTL {
				t.Errorf("clock off by %v: %v of validity", off, left)
			}
			if err := lock.Unlock(t.Context()); err != nil {
				t.Error(err)
			}
			synctest.Wait() // and the slowest has let it go, before another connection asks for it
		}
	})
}

// H27: a name whose extension fails on every master, and a master that hangs, delay the extension of no other name.
func TestOneNameThatFailsDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMasters(t, 5)
		c := newParty(t, m, nil)
		var locks []*redlock.Lock
		for i := range 100 {
			k, err := c.Lock(t.Context(), fmt.Sprint("name", i))
			if err != nil {
				t.Fatal(err)
			}
			locks = append(locks, k)
		}
		bad := c.lock()
		synctest.Wait()
		for i := range m.N() {
			m.Master(i).Evict("x")
			m.Master(i).Set("redlock:{x}", "a client's data")
		}
		m.Master(4).Hang()
		passes(time.Minute)
		for _, k := range locks {
			if left := k.Remaining(); k.Err() != nil || left < redlock.DefaultTTL/3 {
				t.Errorf("%s: %v left, %v", k.Name(), left, k.Err())
			}
		}
		if !errors.Is(bad.Err(), redlock.ErrLost) {
			t.Errorf("the lock whose keys are gone: %v", bad.Err())
		}
		m.Master(4).Resume()
	})
}
