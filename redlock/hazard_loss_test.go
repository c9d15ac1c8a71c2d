package redlock_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

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

// firstLocks returns the number of runs in which a new client acquires its first lock.
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
