package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// A jitterConn delays each write by a random time, and keeps their order.
type jitterConn struct {
	net.Conn

	mu     sync.Mutex
	random *rand.Rand
	most   time.Duration
	last   time.Time // due time of the last write
	queue  chan delayed
	closed chan struct{}
	once   sync.Once
}

type delayed struct {
	b  []byte
	at time.Time
}

func (c *jitterConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	at := time.Now().Add(time.Duration(c.random.Int64N(int64(c.most) + 1)))
	if at.Before(c.last) {
		at = c.last
	}
	c.last = at
	c.mu.Unlock()
	select {
	case c.queue <- delayed{append([]byte(nil), b...), at}:
		return len(b), nil
	case <-c.closed:
		return 0, net.ErrClosed
	}
}

func (c *jitterConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

func (c *jitterConn) run() {
	for {
		select {
		case p := <-c.queue:
			if wait := time.Until(p.at); wait > 0 { // with -race, Go 1.26 crashes in a select on a timer that has fired
				select {
				case <-time.After(wait):
				case <-c.closed:
					return
				}
			}
			if _, err := c.Conn.Write(p.b); err != nil {
				return
			}
		case <-c.closed:
			return
		}
	}
}

type dialer = func(ctx context.Context, network, addr string) (net.Conn, error)

// jitteryDial returns a dialer whose connections delay each write by up to most.
func jitteryDial(most time.Duration, seed uint64, dial dialer) dialer {
	random := rand.New(rand.NewPCG(seed, 103))
	var mu sync.Mutex
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		mu.Lock()
		defer mu.Unlock()
		c := &jitterConn{
			Conn: nc, random: rand.New(rand.NewPCG(random.Uint64(), 0)), most: most,
			queue: make(chan delayed, 1000), closed: make(chan struct{}),
		}
		go c.run()
		return c, nil
	}
}

// jittery returns the option of a pool whose connections delay each write by up to most.
func (w *world) jittery(most time.Duration, seed uint64) pool.Option {
	return pool.WithDialer(jitteryDial(most, seed, w.masters.Dial))
}

// A shot is the outcome of one TryLock.
type shot struct {
	lock *redlock.Lock
	err  error
	took time.Duration
}

// atOneInstant calls f for each of n callers at one instant.
func atOneInstant(n int, f func(i int) (*redlock.Lock, error)) []shot {
	shots := make([]shot, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			began := time.Now()
			lock, err := f(i)
			shots[i] = shot{lock, err, time.Since(began)}
		})
	}
	wg.Wait()
	return shots
}

// oneWinner checks that one caller has the lock and that the others were refused because of it, in time.
func (w *world) oneWinner(what string, shots []shot, within time.Duration) {
	w.Helper()
	winners := 0
	for _, s := range shots {
		var e *redlock.LockError
		switch {
		case s.err == nil:
			winners++
		case !errors.Is(s.err, redlock.ErrHeld) || !errors.As(s.err, &e) || e.Holder == "":
			w.Errorf("%s: refused for %v", what, s.err)
		}
		if s.took > within {
			w.Errorf("%s: a call took %v", what, s.took)
		}
	}
	if winners != 1 {
		w.Errorf("%s: %d of %d callers hold the lock", what, winners, len(shots))
	}
	for _, s := range shots {
		if s.lock != nil {
			_ = s.lock.Unlock(w.Context())
		}
	}
}

// H103: of any number of callers of TryLock at one instant one wins, and the others are refused because it holds the
// lock, within half a second.
func TestVirtualOneShotCallsAtOneInstantHaveOneWinner(t *testing.T) {
	for _, masters := range []int{3, 5} {
		for _, most := range []time.Duration{0, 3 * time.Millisecond, 12 * time.Millisecond} {
			t.Run(fmt.Sprint(masters, " masters, delays up to ", most), func(t *testing.T) {
				virtual(t, masters, func(w *world) {
					var lockers []*redlock.Locker
					for i := range 20 {
						label := redlock.WithOwner(fmt.Sprint("host-", i))
						lockers = append(lockers, w.over(w.pool(w.jittery(most, uint64(i))), label))
					}
					for round := range rounds(1000/6+1, 10) {
						n := []int{2, 3, 5, 10, 20}[round%5]
						shots := atOneInstant(n, func(i int) (*redlock.Lock, error) {
							return lockers[i].TryLock(w.Context(), "cron")
						})
						w.oneWinner(fmt.Sprint("round ", round), shots, 500*time.Millisecond)
						after(100 * time.Millisecond)
					}
				})
			})
		}
	}
}

// H103: the same for callers that have just started: they wait a moment for masters that are still connecting.
func TestVirtualNewClientsAtOneInstantHaveOneWinner(t *testing.T) {
	for _, most := range []time.Duration{0, 12 * time.Millisecond} {
		t.Run(fmt.Sprint("delays up to ", most), func(t *testing.T) {
			virtual(t, 5, func(w *world) {
				for round := range rounds(500, 5) {
					n := []int{2, 3, 5, 10, 20}[round%5]
					var pools [20]*pool.Pool
					var lockers [20]*redlock.Locker
					shots := atOneInstant(n, func(i int) (*redlock.Lock, error) {
						pools[i] = w.dial(w.jittery(most, uint64(100*round+i)))
						var err error
						lockers[i], err = redlock.New(pools[i], redlock.WithOwner(fmt.Sprint("host-", i)))
						if err != nil {
							return nil, err
						}
						return lockers[i].TryLock(w.Context(), "cron")
					})
					w.oneWinner(fmt.Sprint("round ", round), shots, time.Second)
					for i := range n {
						_ = lockers[i].Close(w.Context())
						_ = pools[i].Close()
					}
					after(100 * time.Millisecond)
				}
			})
		})
	}
}

// dial returns a pool that the test closes.
func (w *world) dial(opts ...pool.Option) *pool.Pool {
	p, err := pool.Open(w.masters.URLs(), append([]pool.Option{transport.WithClock(clock.Runtime())}, opts...)...)
	if err != nil {
		w.Error(err)
	}
	return p
}

// H103: as long as the votes leave no majority to any client, a call that does not wait is refused as undecided after
// half a second, or after the limit of its wait. No client holds the name, and the error names no holder.
func TestVirtualSplitVotesAreNotHeld(t *testing.T) {
	for _, c := range []struct {
		limit time.Duration
		opts  []redlock.LockOption
	}{
		{500 * time.Millisecond, nil},
		{50 * time.Millisecond, []redlock.LockOption{redlock.WithWaitLimit(50 * time.Millisecond)}},
	} {
		virtualSub(t, fmt.Sprint(c.limit), 5, func(w *world) {
			l := w.locker()
			w.split("a")
			began := time.Now()
			_, err := l.TryLock(w.Context(), "a", c.opts...)
			w.isError(err, redlock.ErrNoQuorum)
			w.notError(err, redlock.ErrHeld)
			var e *redlock.LockError
			if !asError(err, &e) || e.Holder != "" || e.Left != 0 {
				w.Errorf("%v", err)
			}
			if took := time.Since(began); took > c.limit || took < c.limit/2 {
				w.Errorf("it took %v", took)
			}
			ctx, cancel := context.WithTimeout(w.Context(), 20*time.Millisecond)
			defer cancel()
			_, err = l.TryLock(ctx, "a", c.opts...)
			w.isError(err, context.DeadlineExceeded)
			w.notError(err, redlock.ErrHeld)
			_, err = l.Lock(w.Context(), "a", redlock.WithTries(2))
			w.isError(err, redlock.ErrNoQuorum)
			w.notError(err, redlock.ErrHeld)
		})
	}
}

func virtualSub(t *testing.T, name string, n int, f func(w *world), opts ...memory.Option) {
	t.Run(name, func(t *testing.T) { virtual(t, n, f, opts...) })
}

// split leaves the votes of a client that has died on two of five masters, and stops a third.
func (w *world) split(name string) {
	w.masters.Take(name, time.Minute)
	for _, i := range []int{2, 3, 4} {
		w.masters.Master(i).Evict(name)
	}
	w.stop(4)
}

// H103, H93: masters whose clocks are off cannot vote. That does not count as another holder, and the error names those
// masters.
func TestVirtualClocksThatAreOffAreNotHeld(t *testing.T) {
	virtual(t, 5, func(w *world) {
		for i, off := range []time.Duration{0, 0, -time.Hour, time.Hour, 2 * time.Hour} {
			w.masters.Master(i).SetClock(off, 1)
		}
		l := w.locker()
		began := time.Now()
		_, err := l.TryLock(w.Context(), "a")
		w.isError(err, redlock.ErrNoQuorum)
		w.notError(err, redlock.ErrHeld)
		if text := err.Error(); !strings.Contains(text, "its clock is 1h0m0s ahead of the median of the masters") ||
			!strings.Contains(text, w.masters.Master(3).Addr()) {
			w.Errorf("%v", err)
		}
		if took := time.Since(began); took > 100*time.Millisecond {
			w.Errorf("it took %v", took)
		}
		synctest.Wait()
	})
}

// A muteConn drops writes while mute is set: its client has stopped, and the master does not know.
type muteConn struct {
	net.Conn
	mute *atomic.Bool
}

func (c muteConn) Write(b []byte) (int, error) {
	if c.mute.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// H103: while the masters keep a free name for a waiter that has died, no client holds it.
func TestVirtualANameKeptForADeadWaiterIsNotHeld(t *testing.T) {
	virtual(t, 3, func(w *world) {
		var mute atomic.Bool
		waiter := w.over(w.pool(pool.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			nc, err := w.masters.Dial(ctx, network, addr)
			return muteConn{nc, &mute}, err
		})))
		holder, other := w.locker(), w.locker()
		lock := w.take(holder, "a")
		ctx, cancel := context.WithCancel(w.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = waiter.Lock(ctx, "a")
		}()
		after(100 * time.Millisecond)
		mute.Store(true)
		_ = lock.Unlock(w.Context())
		_, err := other.TryLock(w.Context(), "a")
		w.isError(err, redlock.ErrNoQuorum)
		w.notError(err, redlock.ErrHeld)
		after(time.Second) // the waiter has missed its second
		k, err := other.TryLock(w.Context(), "a")
		if err != nil {
			w.Fatal(err)
		}
		_ = k.Unlock(w.Context())
		mute.Store(false)
		cancel()
		<-done
	})
}

// Two masters of five are down, and one answers late. A call that does not wait reports the holder, not a split vote.
func TestVirtualTryLockBehindAHolderWithALateMaster(t *testing.T) {
	for _, late := range []time.Duration{20 * time.Millisecond, 60 * time.Millisecond, 200 * time.Millisecond} {
		t.Run(late.String(), func(t *testing.T) {
			virtual(t, 5, func(w *world) {
				a, b := w.locker(), w.locker()
				for i := range 2 {
					w.masters.Master(i).Stop()
				}
				k := w.take(a, "n")
				w.masters.Master(4).Delay(late)
				_, err := b.TryLock(w.Context(), "n")
				w.isError(err, redlock.ErrHeld)
				w.must(k.Unlock(w.Context()))
			})
		})
	}
}
