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
func TestHazardFirstErrAfterFreezeReportsLoss(t *testing.T) {
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
