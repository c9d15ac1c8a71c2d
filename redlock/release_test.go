package redlock_test

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// H92: a release over the connection of its acquire carries no ballot, and raises no fence. Otherwise a near client
// that tries again and again would keep the ballots of a distant client stale forever.
func TestReleaseOnSameConnectionRaisesNoFence(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		w.masters.Take("n", time.Hour)
		w.evict("n", 3, 4)
		w.delay(100 * time.Microsecond)
		near, before := w.peer("near"), w.masters.Master(0).Fence("n")
		for range 50 { // two masters grant each attempt, which is rolled back there
			w.isError(errOf(near.TryLock(w.Context(), "n")), redlock.ErrHeld)
			after(10 * time.Millisecond)
		}
		releases := near.cluster.wire.sent("release")
		for _, s := range releases {
			if s.ballot() != "0" || s.master < 3 {
				w.Fatalf("a release on master %d with the ballot %s", s.master, s.ballot())
			}
		}
		if len(releases) != 2*50 {
			w.Errorf("there were %d releases, want 100", len(releases))
		}
		w.each(func(i int, m *memory.Master) {
			if fence := m.Fence("n"); fence != before {
				w.Errorf("master %d, which has refused all acquires, has the fence %s, before %s", i, fence, before)
			}
		}, 0, 1, 2)
	})
}

// H02, H94: a pending release carries the ballot, since the acquire may still arrive. It names no waiter, since a
// late release would restore a waiter that has left, or remove a waiter that has tried again.
func TestPendingReleaseNamesNoWaiter(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		w.masters.Take("n", time.Hour)
		w.evict("n", 3, 4)
		w.delay(100 * time.Microsecond)
		p := w.peer("p")
		first := w.goLock(w.Context(), p, "other") // this opens the inbox, so the acquire of n has a ticket
		k := first.mustLock(time.Second)
		w.masters.Take("queued", time.Hour)
		ctx, cancel := context.WithCancel(w.Context())
		defer cancel()
		waiting := w.goLock(ctx, p, "queued")
		after(time.Second)
		p.cluster.wire.clear()
		w.masters.Master(3).DropReplies(1) // the master grants, its reply is lost, and the connection ends
		c := w.goLock(w.Context(), p, "n")
		after(3 * time.Second)
		pending := 0
		for _, s := range p.cluster.wire.sent("release") {
			if s.ballot() == "0" {
				continue
			}
			pending++
			if s.waiter() != "" || s.master != 3 {
				w.Errorf("the release on master %d carries the ballot %s and names the waiter %q", s.master, s.ballot(), s.waiter())
			}
			w.replay(s) // the release is delivered once more, even later
		}
		if pending == 0 {
			w.Error("no release was pending, so this test shows nothing")
		}
		for i := range 5 {
			if n := len(w.waiters(i, "n")); n != 1 {
				w.Errorf("%d waiters on master %d, want 1", n, i)
			}
		}
		w.masters.Free("n")
		next := c.mustLock(time.Second)
		cancel()
		_ = waiting.mustFail(time.Second)
		w.masters.Lose("queued")
		w.noError(next.Unlock(w.Context()))
		w.noError(k.Unlock(w.Context()))
		w.nothingLeft("n", "other", "queued")
	})
}

// H90: masters restart one after the other, each with its data, and the lock is confirmed or repaired in between.
// Only restarts after the last confirmation matter, so the lock survives any number of restarts.
func TestRestartsCountSinceLastConfirmation(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		k := must(w.locker().Lock(w.Context(), "a"))(w)
		for n := range 15 {
			w.masters.Master(n % 5).Restart(true)
			after(6 * time.Second) // an extension; the quarantine continues
			w.wantHeld(k, 5)
		}
	})
}

// With WithAsyncUnlock, Unlock does not wait for the masters, and otherwise works like an Unlock that waits.
func TestAsyncUnlock(t *testing.T) {
	for _, c := range []struct {
		name string
		run  func(w *cluster, p *peer)
	}{
		{"returns before the masters have answered", func(w *cluster, p *peer) {
			k := must(p.Lock(w.Context(), "n"))(w)
			began := time.Now()
			w.noError(k.Unlock(w.Context()))
			equal(w, time.Since(began), 0, "elapsed time")
			w.isError(k.Err(), redlock.ErrReleased)
			if w.on("n") != 5 {
				w.Error("the masters have freed the name already, so this test shows nothing")
			}
			after(trip)
			w.nothingLeft("n")
			w.isError(k.Unlock(w.Context()), redlock.ErrReleased)
		}},
		{"the next lock is granted behind the release", func(w *cluster, p *peer) {
			for range 3 {
				w.noError(must(p.Lock(w.Context(), "n"))(w).Unlock(w.Context()))
			}
			after(trip)
			w.nothingLeft("n")
		}},
		{"the inner lock of two", func(w *cluster, p *peer) {
			k := must(p.Lock(w.Context(), "n"))(w)
			inner := must(p.Lock(k.Context(w.Context()), "n", redlock.WithReentry()))(w)
			began := time.Now()
			w.noError(inner.Unlock(w.Context()))
			equal(w, time.Since(began), 0, "elapsed time")
			w.noError(k.Unlock(w.Context()))
			after(trip)
			w.nothingLeft("n")
		}},
		{"Close waits for the release", func(w *cluster, p *peer) {
			w.noError(must(p.Lock(w.Context(), "n"))(w).Unlock(w.Context()))
			w.must(p.Close())
			w.nothingLeft("n")
		}},
		{"a lock that was lost", func(w *cluster, p *peer) {
			k := must(p.Lock(w.Context(), "n", redlock.WithExtension(false)))(w)
			after(redlock.DefaultTTL)
			w.isError(k.Unlock(w.Context()), redlock.ErrLost)
		}},
		{"masters that are down are sent the release later", func(w *cluster, p *peer) {
			k := must(p.Lock(w.Context(), "n", redlock.WithTTL(20*time.Second)))(w)
			w.cutConnections(0, 1, 2)
			w.noError(k.Unlock(w.Context()))
			after(2 * time.Second)
			w.nothingLeft("n")
		}},
	} {
		subtest(t, c.name, 5, func(w *cluster) {
			w.delay(trip / 2)
			c.run(w, w.peer("p", redlock.WithAsyncUnlock()))
		})
	}
}

// A picture is the state of a name on one master.
type picture struct {
	id, fence string
	depth     int
	left      time.Duration
	keys      []string
}

func pictureOf(m *memory.Master, name string) (p picture) {
	p.id, p.depth, p.left = m.Holds(name)
	p.fence = m.Fence(name)
	p.keys = m.Keys()
	return p
}

// H01: a message that is delivered twice changes neither the state nor the answer, at any depth.
func TestRepeatedMessageChangesNothing(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l := w.locker(redlock.WithTTL(9 * time.Second))
		repeat := func(script string, answer string) {
			w.Helper()
			synctest.Wait()
			all := w.wire.sent(script)
			if len(all) == 0 {
				w.Fatalf("no %s was sent", script)
			}
			for _, s := range all[len(all)-3:] {
				m := w.masters.Master(s.master)
				before := pictureOf(m, "a")
				for range 2 {
					if got := fmt.Sprint(w.replay(s)); got != answer {
						w.Errorf("the repeated %s on master %d returned %s, want %s", script, s.master, got, answer)
					}
				}
				if now := pictureOf(m, "a"); !reflect.DeepEqual(now, before) {
					w.Errorf("the repeated %s on master %d left %+v, and before it was %+v", script, s.master, now, before)
				}
			}
		}
		k := must(l.Lock(w.Context(), "a"))(w)
		repeat("acquire", "1")
		after(3 * time.Second)
		repeat("extend", "1")
		inner := must(l.Lock(k.Context(w.Context()), "a", redlock.WithReentry()))(w)
		repeat("extend", "1") // depth 2
		repeat("acquire", "1")
		w.noError(inner.Unlock(w.Context()))
		repeat("extend", "1") // depth 1
		w.noError(k.Unlock(w.Context()))
		repeat("release", "0")
		w.wantOn("a", 0)
	})
}

// H10, H11, H188: an acquire whose quorum is reached too late, or after more than 15 s, returns ErrTooSlow and is
// rolled back. The start is measured for each attempt, so the validity of the next attempt, when the masters are fast
// again, is the TTL minus the time of that attempt and the drift.
func TestTooLittleValidityIsRolledBack(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		l := w.readyLocker(w.pool(pool.WithTimeout(20 * time.Second)))
		w.delay(3 * time.Second)
		start := time.Now()
		_, err := l.TryLock(w.Context(), "a")
		w.isError(err, redlock.ErrTooSlow)
		w.isError(err, redlock.ErrNoQuorum)
		w.notError(err, redlock.ErrHeld)
		equal(w, time.Since(start), 6*time.Second, "elapsed time")
		after(6 * time.Second)
		w.wantOn("a", 0)
		timer := time.AfterFunc(5*time.Second, func() { w.delay(0) }) // during the first attempt: its replies are late
		defer timer.Stop()
		w.wire.clear()
		k := must(l.Lock(w.Context(), "a"))(w)
		first := w.wire.sent("acquire")[0].at
		if age := time.Since(first); age < 5*time.Second {
			w.Errorf("the first attempt began only %v ago", age)
		}
		if left := k.Remaining(); left < 9*time.Second {
			w.Errorf("only %v of validity: the start is that of an earlier attempt", left)
		}
		w.delay(100 * time.Millisecond)
		k = must(l.Lock(w.Context(), "b"))(w)
		equal(w, k.Remaining(), (10000-200-102)*time.Millisecond, "validity after a round trip of 200 ms")
		w.delay(7500*time.Millisecond + time.Millisecond)
		_, err = l.TryLock(w.Context(), "c", redlock.WithTTL(25*time.Second), redlock.WithMinValidity(time.Second))
		w.isError(err, redlock.ErrTooSlow)
		w.delay(0)
	})
}

// H15: the validity after an extension is measured from the start of the extension, not from its reply, and a reply
// after the end does not revive the lock.
func TestLateExtensionReplyCountsFromStart(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l := w.readyLocker(w.pool(pool.WithTimeout(20*time.Second)), redlock.WithTTL(3*time.Second))
		k := must(l.Lock(w.Context(), "a"))(w)
		ctx := k.Context(w.Context())
		start := time.Now()
		w.delay(500 * time.Millisecond)
		after(2100 * time.Millisecond) // extension sent at 1 s, answered at 2 s
		if until, want := validUntil(k).Sub(start), 4*time.Second-32*time.Millisecond; until != want {
			w.Errorf("the lock is valid until %v after its start, want %v", until, want)
		}
		w.delay(3 * time.Second)
		w.ends(ctx, 10*time.Second, redlock.ErrLost)
		lost := time.Now()
		after(10 * time.Second)
		w.isError(k.Err(), redlock.ErrLost)
		if left := k.Remaining(); left > 0 || validUntil(k).After(time.Now()) {
			w.Errorf("%v left of a lock that was lost %v ago", left, time.Since(lost))
		}
		w.delay(0)
	})
}

// A caller that a majority of the masters has refused sends no roll-back to masters that have not answered yet,
// except to a master that grants the lock later.
func TestRollbackOnlyWhereGranted(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		a, b := w.peer("a"), w.peer("b")
		w.delay(10 * time.Microsecond) // attempts at one instant have the same ballot
		k := must(a.Lock(w.Context(), "n", redlock.WithTTL(30*time.Second)))(w)
		after(time.Millisecond) // all masters have the lock
		w.delay(20*time.Millisecond, 3, 4)
		refused := func(releases, on int) {
			w.Helper()
			before := len(b.cluster.wire.sent("release"))
			w.isError(errOf(b.Locker.TryLock(w.Context(), "n")), redlock.ErrHeld)
			after(100 * time.Millisecond)
			if n := len(b.cluster.wire.sent("release")) - before; n != releases {
				w.Errorf("%d roll-backs, want %d", n, releases)
			}
			if n := w.on("n"); n != on {
				w.Errorf("the lock is on %d masters, want %d", n, on)
			}
		}
		refused(0, 5)
		w.replay(sent{master: 4, args: []string{"DEL", defaultPrefix.Lock("n")}})
		refused(1, 4)
		w.noError(k.Unlock(w.Context()))
		w.nothingLeft("n")
	})
}

// H101, H121: Unlock waits no longer than the lock is valid, also when the masters answer, but take long to reach the
// release in a full queue. Otherwise the keys expire first, and Unlock and Do return that the lock was lost, although
// it was valid until it was unlocked. At the end of the test, Close does not give up either while masters answer.
func TestUnlockInQueueEndsWithValidity(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l := w.locker()
		const ttl = 2 * time.Second
		w.masters.Master(2).ScriptTime(50 * time.Millisecond) // its acquires take five seconds, before its releases
		var locked, wg sync.WaitGroup
		locked.Add(100)
		begin := make(chan struct{})
		for i := range 100 {
			wg.Go(func() {
				var began time.Time
				err := l.Do(w.Context(), fmt.Sprint("n", i), func(context.Context, *redlock.Lock) error {
					locked.Done()
					<-begin
					began = time.Now()
					return nil
				}, redlock.WithTTL(ttl))
				if took := time.Since(began); err != nil || took > ttl {
					w.Errorf("the release took %v, and Do returned %v", took, err)
				}
			})
		}
		locked.Wait()
		w.scriptTime(50 * time.Millisecond) // so the releases take five seconds
		close(begin)
		wg.Wait()
	})
}

// H37, H101: a client may hold more locks than a queue to a master has room for. Close sends their releases as the
// masters answer. When it sent them all at once, the queues refused most of them, and Close returned nil although the
// names stayed locked for a TTL if the pool was closed next.
func TestCloseReleasesMoreLocksThanAQueueHolds(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l := w.readyLocker(w.pool(transport.WithQueueLimit(1200)))
		var locks []*redlock.Lock
		for i := range 3000 {
			locks = append(locks, must(l.Lock(w.Context(), fmt.Sprint("n", i)))(w))
		}
		synctest.Wait()                // for the acquires that are still queued
		w.scriptTime(time.Millisecond) // so the releases take three seconds
		w.must(l.Close())
		for _, k := range locks {
			w.isError(k.Err(), redlock.ErrClosed)
			if on := w.on(k.Name()); on != 0 {
				w.Errorf("after Close %s is on %d masters", k.Name(), on)
			}
		}
	})
}

// H64: Close sends the releases of all locks that the queues have room for before it waits.
func TestCloseSendsReleasesAtOnce(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l := w.locker()
		var names []string
		for i := range 3000 {
			names = append(names, fmt.Sprint("n", i))
			must(l.Lock(w.Context(), names[i]))(w)
		}
		w.delay(trip / 2)
		closed := make(chan error)
		go func() { closed <- l.Close() }()
		after(trip / 2)
		for _, name := range names {
			if w.idOf(name) != "" {
				w.Errorf("half a round trip after Close %s is held", name)
			}
		}
		w.noError(<-closed)
	})
}
