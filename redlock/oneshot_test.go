package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/redlock"
)

// lateUpTo delays each message of p by a random time.
func (p *peer) lateUpTo(most time.Duration, seed uint64) {
	random := seeded(seed)
	p.lateBy(func(int) time.Duration {
		p.mu.Lock()
		defer p.mu.Unlock()
		return time.Duration(random.Int64N(int64(most) + 1))
	})
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

// oneWinner fails the test unless exactly one caller has the lock, the others were refused because it is held, and
// each call took at most limit.
func (w *cluster) oneWinner(what string, shots []shot, limit time.Duration) {
	w.Helper()
	winners := 0
	for _, s := range shots {
		var e *redlock.LockError
		switch {
		case s.err == nil:
			winners++
		case !errors.Is(s.err, redlock.ErrHeld) || !errors.As(s.err, &e) || e.Holder == "" || e.Since.IsZero():
			w.Errorf("%s: a call was refused with %v, want ErrHeld and the holder", what, s.err)
		}
		if s.took > limit {
			w.Errorf("%s: a call took %v, want at most %v", what, s.took, limit)
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

// H103: if any number of callers call TryLock at one instant, one wins, and the others are refused within half a
// second because the winner holds the lock.
func TestSimultaneousTryLocksHaveOneWinner(t *testing.T) {
	for _, masters := range []int{3, 5} {
		for _, most := range []time.Duration{0, 3 * time.Millisecond, 12 * time.Millisecond} {
			subtest(t, fmt.Sprint(masters, " masters, delays up to ", most), masters, func(w *cluster) {
				var lockers []*peer
				for i := range 20 {
					p := w.peer(fmt.Sprint("host-", i))
					p.lateUpTo(most, uint64(i))
					lockers = append(lockers, p)
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
		}
	}
}

// H167: each TryLock has its own limit, although the calls of a Locker share attempts. Here the holder is dead, and its
// lock may be lingering.
func TestTryLockHasItsOwnLimit(t *testing.T) {
	const half = 500 * time.Millisecond
	within := func(d time.Duration) []redlock.LockOption { return []redlock.LockOption{redlock.WithWaitLimit(d)} }
	for _, c := range []struct {
		first, second []redlock.LockOption
		took          time.Duration // of the second call
	}{
		{within(20 * time.Second), nil, half},
		{within(20 * time.Second), within(300 * time.Millisecond), 300 * time.Millisecond},
		{nil, within(5 * time.Second), 5 * time.Second},
		{nil, nil, half},
	} {
		subtest(t, fmt.Sprint(c.took), 5, func(w *cluster) {
			p, other := w.peer("p"), w.peer("other")
			w.delay(time.Millisecond)
			must(p.Lock(w.Context(), "n", redlock.WithTTL(30*time.Second), redlock.WithLinger(time.Second),
				redlock.WithExtension(false)))(w)
			p.tampering(lost)
			after(time.Second)
			first := make(chan error, 1)
			go func() { first <- errOf(other.TryLock(w.Context(), "n", c.first...)) }()
			after(100 * time.Millisecond)
			before, began := w.count("acquire"), time.Now()
			shots := atOneInstant(20, func(int) (*redlock.Lock, error) { return other.TryLock(w.Context(), "n", c.second...) })
			for _, s := range shots {
				w.says(s.err, redlock.ErrHeld, `"p"`)
				if s.took > c.took || s.took < c.took*3/4 {
					w.Errorf("a call with a limit of %v took %v", c.took, s.took)
				}
			}
			most := int(time.Since(began)/(2*time.Millisecond)) + 2 // as many as one after the other
			atMost(w, (w.count("acquire")-before)/5, most, "attempts")
			w.isError(<-first, redlock.ErrHeld)
		})
	}
}

// H167: a TryLock with a long limit outlasts the calls with which it shares attempts, and gets the name when it is
// free.
func TestTryLockOutlastsOthers(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		p, other := w.peer("p"), w.peer("other")
		must(p.Lock(w.Context(), "n", redlock.WithTTL(10*time.Second), redlock.WithLinger(time.Second),
			redlock.WithExtension(false)))(w)
		p.tampering(lost)
		after(time.Second)
		patient := make(chan error, 1)
		go func() { patient <- errOf(other.TryLock(w.Context(), "n", redlock.WithWaitLimit(time.Minute))) }()
		for range 20 {
			w.isError(errOf(other.TryLock(w.Context(), "n", redlock.WithWaitLimit(100*time.Millisecond))), redlock.ErrHeld)
		}
		w.noError(<-patient)
	})
}

// H103: callers that have just started also have one winner, because they wait a moment for masters that are still
// connecting.
func TestSimultaneousNewClientsHaveOneWinner(t *testing.T) {
	for _, most := range []time.Duration{0, 12 * time.Millisecond} {
		subtest(t, fmt.Sprint("delays up to ", most), 5, func(w *cluster) {
			for round := range rounds(500, 5) {
				n := []int{2, 3, 5, 10, 20}[round%5]
				var peers [20]*peer
				shots := atOneInstant(n, func(i int) (*redlock.Lock, error) {
					peers[i] = w.newPeer(fmt.Sprint("host-", i)).open(w.masters.URLs())
					peers[i].lateUpTo(most, uint64(100*round+i))
					return peers[i].TryLock(w.Context(), "cron")
				})
				w.oneWinner(fmt.Sprint("round ", round), shots, time.Second)
				for _, p := range peers[:n] {
					w.must(p.Close(), p.pool.Close())
				}
				after(100 * time.Millisecond)
			}
		})
	}
}

// H103: while the votes are split so that no client can get a majority, a call that does not wait is refused as
// undecided after half a second, or after the limit of its wait. No client holds the name, and the error names no
// holder. A call that waits has waited for the other clients: its outcome is ErrHeld.
func TestSplitVotesAreNotHeld(t *testing.T) {
	for _, c := range []struct {
		limit time.Duration
		opts  []redlock.LockOption
	}{
		{500 * time.Millisecond, nil},
		{50 * time.Millisecond, []redlock.LockOption{redlock.WithWaitLimit(50 * time.Millisecond)}},
	} {
		subtest(t, fmt.Sprint(c.limit), 5, func(w *cluster) {
			l := w.locker()
			w.split("a")
			began := time.Now()
			_, err := l.TryLock(w.Context(), "a", c.opts...)
			w.isError(err, redlock.ErrNoQuorum)
			w.notError(err, redlock.ErrHeld)
			var e *redlock.LockError
			if !errors.As(err, &e) || e.Holder != "" || e.Left != 0 {
				w.Errorf("the error names a holder: %v", err)
			}
			if took := time.Since(began); took > c.limit || took < c.limit/2 {
				w.Errorf("TryLock took %v, which is too short or too long", took)
			}
			_, err = l.TryLock(w.withTimeout(20*time.Millisecond), "a", c.opts...)
			w.isError(err, context.DeadlineExceeded)
			w.notError(err, redlock.ErrHeld)
			_, err = l.Lock(w.Context(), "a", redlock.WithTries(2))
			w.isError(err, redlock.ErrNoQuorum)
			w.notError(err, redlock.ErrHeld)
			_, err = l.Lock(w.Context(), "a", redlock.WithWaitLimit(time.Second)) // it waits for the others
			w.isError(err, redlock.ErrHeld)
			w.notError(err, redlock.ErrNoQuorum)
		})
	}
}

func subtest(t *testing.T, name string, n int, f func(w *cluster), opts ...memory.Option) {
	t.Run(name, func(t *testing.T) { virtual(t, n, f, opts...) })
}

// split leaves the votes of a client that has died on two of five masters, and stops one of the other three.
func (w *cluster) split(name string) {
	w.masters.Take(name, time.Minute)
	for _, i := range []int{2, 3, 4} {
		w.masters.Master(i).Evict(name)
	}
	w.stop(4)
}

// H103: while the masters keep a free name for a waiter that has died, another client is refused, but not with
// ErrHeld.
func TestNameKeptForDeadWaiterIsNotHeld(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		waiter := w.peer("waiter")
		holder, other := w.locker(), w.locker()
		lock := must(holder.Lock(w.Context(), "a"))(w)
		ctx, cancel := context.WithCancel(w.Context())
		dead := w.goLock(ctx, waiter, "a")
		after(100 * time.Millisecond)
		waiter.silence(true)
		_ = lock.Unlock(w.Context())
		_, err := other.TryLock(w.Context(), "a")
		w.isError(err, redlock.ErrNoQuorum)
		w.notError(err, redlock.ErrHeld)
		if !strings.Contains(err.Error(), "kept for up to a second for its first waiter") {
			w.Errorf("the error does not say why: %v", err)
		}
		after(time.Second) // the second for which the masters keep the name
		k := must(other.TryLock(w.Context(), "a"))(w)
		_ = k.Unlock(w.Context())
		waiter.silence(false)
		cancel()
		_ = dead.mustFail(time.Second)
	})
}

// Two masters of five are down, and one answers late. A call that does not wait reports the holder, not a split vote.
func TestTryLockWithLateMasterReportsHolder(t *testing.T) {
	for _, late := range []time.Duration{20 * time.Millisecond, 60 * time.Millisecond, 200 * time.Millisecond} {
		subtest(t, late.String(), 5, func(w *cluster) {
			a, b := w.locker(), w.locker()
			for i := range 2 {
				w.masters.Master(i).Stop()
			}
			k := must(a.Lock(w.Context(), "n"))(w)
			w.masters.Master(4).Delay(late)
			w.isError(errOf(b.TryLock(w.Context(), "n")), redlock.ErrHeld)
			w.noError(k.Unlock(w.Context()))
		})
	}
}

// Calls of one Locker share an attempt, but not a refusal that is caused by the options of the call that made the
// attempt.
func TestSharedAttemptIsRefusedByItsOwnTerms(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l, other := w.locker(), w.locker()
		held := must(other.Lock(w.Context(), "a"))(w)
		w.delay(20*time.Millisecond, 0, 1, 2) // a round takes 40 ms
		var wg sync.WaitGroup
		wg.Go(func() { w.isError(errOf(l.TryLock(w.Context(), "a")), redlock.ErrHeld) })
		after(time.Millisecond)
		wg.Go(func() { w.noError(held.Unlock(w.Context())) })
		short := redlock.WithTTL(50 * time.Millisecond)
		wg.Go(func() { _, _ = l.TryLock(w.Context(), "a", short) })
		after(time.Millisecond)
		w.noError(l.TryDo(w.Context(), "a", nothing))
		wg.Wait()
	})
}
