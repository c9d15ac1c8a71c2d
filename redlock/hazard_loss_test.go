package redlock_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// The max TTL of the deployment of these tests, and the time within which a holder learns of a loss from a heartbeat.
const (
	longGuard  = time.Minute
	toldWithin = transport.DefaultHeartbeat + time.Second
)

// allForget plays H75: a lock is held for a minute, which is the max TTL of the deployment, when all masters restart
// without their data. A client with half of that max TTL connects first, so its value determines the quarantine.
func (s *stage) allForget(opts ...redlock.LockOption) (k *redlock.Lock, other *program) {
	s.Helper()
	var pause atomic.Int64
	a := s.starting(nil, []pool.Option{pool.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
		<-time.After(time.Duration(pause.Load()))
		return s.masters.Dial(ctx, network, addr)
	})}, redlock.WithMaxTTL(longGuard), redlock.WithTTL(longGuard))
	k = a.take("n", opts...)
	other = s.program(redlock.WithMaxTTL(longGuard / 2))
	after(time.Second)
	pause.Store(int64(500 * time.Millisecond))
	s.each(func(m *memory.Master) { m.Restart(false) })
	return k, other
}

// H75: no other client gets the lock while its first holder believes that it holds it.
func TestHazardAShorterGuardTimeAdmitsNoSecondHolder(t *testing.T) {
	onStage(t, 5, func(s *stage) {
		k, other := s.allForget()
		s.tellsBeforeAnother(k, other)
	}, memory.MaxTTL(longGuard))
}

// H75: the masters that granted a lock are new servers. The loss is reported as soon as the holder can detect it, with
// the masters in a quarantine shorter than its TTL, and whether or not the lock is extended.
func TestHazardAHolderWhoseMastersLostTheirMemoryIsToldAtOnce(t *testing.T) {
	for id, extend := range map[string]bool{"H75 told at once": true, "H75 without extension": false} {
		t.Run(id, func(t *testing.T) {
			onStage(t, 5, func(s *stage) {
				k, _ := s.allForget(redlock.WithExtension(extend))
				after(toldWithin)
				if extend { // then a manual extension may detect the loss as well
					_ = k.Extend(s.within(time.Second))
				}
				synctest.Wait()
				if !over(k) {
					s.Errorf("%v after all masters lost the lock it is held, for another %v", toldWithin, k.Remaining())
				}
			}, memory.MaxTTL(longGuard))
		})
	}
}

// H75: if a minority has lost its data, the lock stays held.
func TestHazardAMinorityThatLostItsMemoryEndsNoLock(t *testing.T) {
	onStage(t, 5, func(s *stage) {
		k := s.program().take("n")
		synctest.Wait()
		for i := range 2 {
			s.masters.Master(i).Restart(false)
		}
		after(3 * longGuard)
		if over(k) {
			s.Errorf("it ended: %v", k.Err())
		}
	})
}

// late starts a program whose connections to two of the masters are established slightly later than the others.
func (s *stage) late(random *rand.Rand) *program {
	s.Helper()
	slow := map[string]time.Duration{}
	for _, i := range random.Perm(s.masters.N())[:2] {
		slow[s.masters.Master(i).Addr()] = time.Duration(1+random.IntN(20)) * time.Millisecond
	}
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		select {
		case <-time.After(slow[addr]):
			return s.masters.Dial(ctx, network, addr)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return s.starting(nil, []pool.Option{pool.WithDialer(dial)})
}

// firstLocks is the number of runs in which a new client acquires its first lock.
func firstLocks() int { return rounds(40, 10) }

// H77: the first lock of a client is on all masters as soon as the client is connected to all of them.
func TestHazardTheFirstLockIsOnAllMastersAtOnce(t *testing.T) {
	onStage(t, 5, func(s *stage) {
		bad := 0
		for run := range firstLocks() {
			k := s.late(rand.New(rand.NewPCG(uint64(run), 77))).take(fmt.Sprint("n", run))
			after(100 * time.Millisecond)
			if on, n := k.HeldOn(); on != n || s.on(k.Name()) != n {
				bad++
			}
		}
		if bad > 0 {
			s.Errorf("in %d of %d runs the first lock is not on all masters", bad, firstLocks())
		}
	})
}

// H77: shortly after the start the restart of any single master loses no first lock.
func TestHazardOneRestartLosesNoFirstLock(t *testing.T) {
	onStage(t, 5, func(s *stage) {
		for run := range firstLocks() {
			k := s.late(rand.New(rand.NewPCG(uint64(run), 770))).take(fmt.Sprint("n", run))
			after(100 * time.Millisecond)
			m := s.masters.Master(run % s.masters.N())
			m.Restart(false)
			m.Admit(redlock.DefaultPrefix, redlock.DefaultMaxTTL) // another story
			after(11 * time.Second)
			if over(k) {
				s.Fatalf("run %d: the lock is lost with the restart of one master: %v", run, k.Err())
			}
			_ = k.Unlock(s.Context())
		}
	})
}
