package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/admin"
)

// H14: a client was suspended for an hour. Its timers stopped, but at least one of its clocks went on. The context
// of its lock ends within a tenth of a second after the client wakes, and no extension is sent before that.
func TestSuspendedClientReportsLossOnWaking(t *testing.T) {
	for name, by := range map[string][2]time.Duration{
		"both clocks":             {time.Hour, time.Hour},
		"the boot clock alone":    {time.Hour, 0},
		"the wall clock alone":    {0, time.Hour},
		"the TTL, not the hour":   {10 * time.Second, 0},
		"wall back, boot forward": {time.Hour, -time.Hour},
	} {
		subtest(t, name, 3, func(w *cluster) {
			c := newShiftClock(1)
			l := w.locker(redlock.WithClock(c.clock()))
			ctx := must(l.Lock(w.Context(), "a"))(w).Context(w.Context())
			after(1234 * time.Millisecond)
			c.jump(by[0], by[1])
			w.ends(ctx, 100*time.Millisecond, redlock.ErrLost)
			equal(w, len(w.wire.sent("extend")), 0, "extensions")
			equal(w, context.Cause(ctx).Error(), `redlock: lock "a": the lock was lost: no extension was sent in time: `+
				"this process or machine was paused, or its clock has jumped", "the cause")
		})
	}
}

// H24: a timer reports the loss at the end of the validity, before the key is gone on any master.
func TestLossIsReportedBeforeKeyExpires(t *testing.T) {
	for _, rate := range []float64{1, 0.996, 1.004} {
		subtest(t, fmt.Sprint("client clock ", rate), 5, func(w *cluster) {
			c := newShiftClock(rate)
			l := w.locker(redlock.WithClock(c.clock()))
			w.each(func(_ int, m *memory.Master) { m.SetClock(0, 2-rate) })
			k := must(l.Lock(w.Context(), "a"))(w)
			ctx := k.Context(w.Context())
			after(5 * time.Second)
			until := validUntil(k)
			w.hang()
			w.ends(ctx, time.Minute, redlock.ErrLost)
			if late := time.Since(until); rate == 1 && late.Abs() > time.Millisecond || late > 100*time.Millisecond {
				w.Errorf("the loss was reported %v after the end of the validity", late)
			}
			w.each(func(i int, m *memory.Master) {
				if _, _, left := m.Holds("a"); left <= 0 {
					w.Errorf("the key is gone on master %d", i)
				}
			})
			if !isDone(k) {
				w.Error("Done is not closed")
			}
			w.resume()
		})
	}
}

// H169: at the max hold the name is released, long before the TTL has expired, and the next waiter gets it, also if the
// name is of an RWLock. The Unlock that follows returns ErrMaxHold and sends nothing.
func TestMaxHoldReleases(t *testing.T) {
	const ttl, most = 30 * time.Second, time.Second
	type locked interface {
		Unlock(ctx context.Context) error
	}
	hung := func(opts ...redlock.LockOption) func(w *cluster, p *peer) locked {
		return func(w *cluster, p *peer) locked {
			return must(p.Lock(w.Context(), "n", append(opts, redlock.WithMaxHold(most))...))(w)
		}
	}
	for how, hang := range map[string]func(w *cluster, p *peer) locked{
		"Lock":         hung(),
		"not extended": hung(redlock.WithExtension(false)),
		"async unlock": hung(redlock.WithAsyncUnlock()),
		"may linger":   hung(redlock.WithLinger(10 * time.Second)),
		"took over an idle lock": func(w *cluster, p *peer) locked {
			w.noError(p.Do(w.Context(), "n", nothing, redlock.WithLinger(10*time.Second)))
			return hung(redlock.WithLinger(10*time.Second))(w, p)
		},
		"handed off": func(w *cluster, p *peer) locked {
			first := must(p.Lock(w.Context(), "n"))(w)
			c := w.goLock(w.Context(), p, "n", redlock.WithMaxHold(most))
			w.noError(first.Unlock(w.Context()))
			return c.mustLock(time.Second)
		},
		"re-entered": func(w *cluster, p *peer) locked {
			k := hung()(w, p).(*redlock.Lock)
			must(p.Lock(k.Context(w.Context()), "n", redlock.WithReentry()))(w)
			must(p.Lock(k.Context(w.Context()), "n", redlock.WithReentry()))(w)
			return k
		},
		"LockAll": func(w *cluster, p *peer) locked {
			return must(p.LockAll(w.Context(), []string{"m", "n"}, redlock.WithMaxHold(most)))(w)
		},
		"imported": func(w *cluster, p *peer) locked {
			first := must(w.peer("first").Lock(w.Context(), "n"))(w)
			return must(p.Import(w.Context(), must(first.Export())(w), redlock.WithMaxHold(most)))(w)
		},
		"writer": func(w *cluster, p *peer) locked {
			return must(p.RWLock("n").Lock(w.Context(), redlock.WithMaxHold(most)))(w)
		},
		"reader": func(w *cluster, p *peer) locked {
			return must(p.RWLock("n").RLock(w.Context(), redlock.WithMaxHold(most)))(w)
		},
		"reader after a downgrade": func(w *cluster, p *peer) locked {
			return must(must(p.RWLock("n").Lock(w.Context()))(w).Downgrade(w.Context(), redlock.WithMaxHold(most)))(w)
		},
	} {
		subtest(t, how, 5, func(w *cluster) {
			p, other := w.peer("p", redlock.WithTTL(ttl)), w.peer("other")
			k, began := hang(w, p), time.Now()
			synctest.Wait() // until the last masters have the lock, too
			wait := other.RWLock("n").Lock
			if w.masters.Master(0).Kind("n") == "" {
				wait = func(ctx context.Context, opts ...redlock.LockOption) (*redlock.Lock, error) {
					return other.Lock(ctx, "n", opts...)
				}
			}
			next := must(wait(w.Context(), unpolled))(w)
			equal(w, time.Since(began), most, "time until the next client has the name")
			after(time.Millisecond)
			p.cluster.wire.clear()
			w.isError(k.Unlock(w.Context()), redlock.ErrMaxHold)
			equal(w, len(p.cluster.wire.sent("release", "shared release")), 0, "releases of the Unlock")
			w.noError(next.Unlock(w.Context()))
			w.nothingLeft("m", "n")
		})
	}
}

// H169: a fair call of the same Locker that waits for the name gets it at the max hold, before a later call of another
// client.
func TestMaxHoldWakesLocalWaiterFirst(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		p := w.peer("p")
		must(p.Lock(w.Context(), "n", redlock.WithMaxHold(10*time.Second)))(w)
		local := w.goLock(w.Context(), p, "n", redlock.WithFair())
		after(time.Second)
		other := w.goLock(w.Context(), w.peer("other"), "n", unpolled).mustWait()
		w.delay(time.Millisecond)
		w.noError(local.mustLock(10 * time.Second).Unlock(w.Context()))
		w.noError(other.mustLock(time.Second).Unlock(w.Context()))
	})
}

// H169: if the masters cannot be reached at the max hold, the release is sent when they are back. The log says that the
// lock reached its max hold, and does not call it lost.
func TestMaxHoldReleaseIsResent(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		var book logbook
		p, other := w.peer("p", redlock.WithTTL(30*time.Second), book.option()), w.locker()
		k := must(p.Lock(w.Context(), "n", redlock.WithMaxHold(5*time.Second)))(w)
		after(4 * time.Second)
		p.cut(0, 1, 2, 3, 4)
		after(3 * time.Second)
		w.isError(k.Err(), redlock.ErrMaxHold)
		w.wantOn("n", 5)
		book.wants(w, 1, "INFO", `msg="redlock: lock reached its max hold, releasing it"`, "lock=n", "held=5")
		book.wants(w, 0, "lock was lost")
		p.cut()
		w.noError(w.goLock(w.Context(), other, "n").mustLock(3 * time.Second).Unlock(w.Context()))
		w.nothingLeft("n")
	})
}

// H26: a master that restarted empty gets the complete hold back, and HeldOn reports the loss and the repair.
func TestLockReturnsToAllMasters(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		l := w.locker()
		k := must(l.Lock(w.Context(), "a"))(w)
		token := k.Token()
		inner := must(l.Lock(k.Context(w.Context()), "a", redlock.WithReentry()))(w)
		for i := range 5 { // a rolling restart of all masters, one within each TTL
			m := w.masters.Master(i)
			m.Stop()
			after(4 * time.Second)
			w.wantHeld(k, 4)
			m.Restart(false)
			after(8 * time.Second)
			on, _ := client.HeldOn(k)
			if id, depth, _ := m.Holds("a"); on != 5 || id == "" || depth != 2 {
				w.Errorf("master %d is back: held on %d masters, on this one by %q with depth %d", i, on, id, depth)
			}
		}
		if k.Err() != nil || k.Token() != token {
			w.Errorf("the lock ended with %v; its token is %d, want %d", k.Err(), k.Token(), token)
		}
		after(40 * time.Second) // the quarantines
		_, _ = inner.Unlock(w.Context()), k.Unlock(w.Context())
		next := must(w.locker().Lock(w.Context(), "a"))(w)
		if on, _ := client.HeldOn(next); next.Token() <= token || on < 3 {
			w.Errorf("the next token is %d after %d", next.Token(), token)
		}
	})
}

// The error of a failed extension contains the reason for each master: which masters were down, and how many
// answered but did not have the lock.
func TestFailedExtensionCountsMissing(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		k := must(w.locker(redlock.WithExtension(false)).Lock(w.Context(), "a"))(w)
		synctest.Wait()
		w.masters.Master(0).Evict("a")
		w.stop(1, 2)
		w.says(k.Extend(w.Context()), redlock.ErrNoQuorum, "quorum is 3, and 1 did not have it",
			w.masters.Master(1).Addr(), w.masters.Master(2).Addr())
	})
}

// pause simulates that the client's machine, with both of its clocks, was suspended for d: it sets the clocks of the
// given masters, or of all masters, ahead of the client's by d.
func (w *cluster) pause(d time.Duration, which ...int) {
	w.each(func(_ int, m *memory.Master) { m.SetClock(time.Until(m.Time())+d, 1) }, which...)
}

// H118: a client whose machine has stopped, with both of its clocks, learns this from the masters' clocks. A lock
// whose validity has passed in the meantime ends at the next heartbeat, long before its next extension. A lock with
// more validity loses only the time of the stop.
func TestFreezeOfBothClocksLosesLock(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		l, other := w.locker(), w.locker()
		k := must(l.Lock(w.Context(), "a", redlock.WithTTL(30*time.Second)))(w)
		ctx := k.Context(w.Context())
		manual := must(l.Lock(w.Context(), "manual", redlock.WithTTL(30*time.Second), redlock.WithExtension(false)))(w)
		after(time.Second)
		w.pause(10 * time.Second)
		after(3100 * time.Millisecond)
		if left := manual.Remaining(); left > 16*time.Second || left < 15*time.Second || manual.Err() != nil {
			w.Errorf("the lock is valid for %v, want 15 to 16 s; its error is %v", left, manual.Err())
		}
		w.pause(40 * time.Second)
		after(3200 * time.Millisecond)
		w.isError(k.Err(), redlock.ErrLost)
		if ctx.Err() == nil {
			w.Error("the context of the lock has not ended")
		}
		next := must(other.Lock(w.Context(), "a"))(w)
		w.wantLater(next, k)
	})
}

// H118: the reply that refuses an acquire shows the freeze of both clocks even before the next heartbeat.
func TestRefusalShowsFreezeOfBothClocks(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		l, other := w.locker(redlock.WithExtension(false)), w.locker()
		k := must(l.Lock(w.Context(), "a", redlock.WithTTL(30*time.Second)))(w)
		must(other.Lock(w.Context(), "b", redlock.WithTTL(30*time.Second)))(w)
		w.isError(errOf(l.TryLock(w.Context(), "b")), redlock.ErrHeld) // now the client knows the masters' time well
		after(3 * time.Second)
		w.pause(20 * time.Second)
		w.isError(errOf(l.TryLock(w.Context(), "b")), redlock.ErrHeld)
		atMost(w, k.Remaining(), 8*time.Second, "remaining validity")
	})
}

// H118: a lock does not end when the clocks of a minority are set forward, or the clocks of a majority one after the
// other.
func TestClocksOfAMinorityEndNoLock(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		k := must(w.locker().Lock(w.Context(), "a", redlock.WithTTL(10*time.Second)))(w)
		for step := range 8 {
			i := step % 5
			w.pause(12*time.Second, i)
			if step == 0 {
				w.pause(12*time.Second, 4)
			}
			after(15 * time.Second)
			if k.Err() != nil || k.Remaining() < 5*time.Second {
				w.Errorf("step %d: the lock is valid for %v; its error is %v", step, k.Remaining(), k.Err())
			}
		}
	})
}

// H76: after a freeze, Err of a lock and of its contexts reports their end before any timer has run.
func TestFirstErrAfterFreezeReportsLoss(t *testing.T) {
	for name, look := range map[string]func(k *redlock.Lock, ctx context.Context) error{
		"lock":    func(k *redlock.Lock, _ context.Context) error { return k.Err() },
		"context": func(_ *redlock.Lock, ctx context.Context) error { return ctx.Err() },
	} {
		bubble(t, 3, func(w *cluster) {
			c := newShiftClock(1)
			k := must(w.locker(redlock.WithClock(c.clock())).Lock(w.Context(), "n"))(w)
			ctx := k.Context(w.Context())
			after(time.Second)
			c.jump(time.Minute, time.Minute)
			if look(k, ctx) == nil {
				w.Errorf("%s: the validity ended %v ago, but the first Err after the freeze is nil", name, -k.Remaining())
			}
		})
	}
}

// H77: the first lock of a client is on all masters as soon as the client is connected to all of them, although
// connecting to two of them takes slightly longer. From then on the restart of any single master does not end the
// lock.
func TestFirstLockIsOnAllMasters(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		random := seeded(77)
		for run := range rounds(40, 10) {
			slow := map[string]time.Duration{}
			for _, i := range random.Perm(5)[:2] {
				slow[w.masters.Master(i).Addr()] = time.Duration(1+random.IntN(20)) * time.Millisecond
			}
			k := must(w.newLocker(w.pool(pool.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
				select {
				case <-time.After(slow[addr]):
					return w.masters.Dial(ctx, network, addr)
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}))).Lock(w.Context(), fmt.Sprint("n", run)))(w)
			after(100 * time.Millisecond)
			if on, n := client.HeldOn(k); on != n || w.on(k.Name()) != n {
				w.Errorf("run %d: the lock is on %d of %d masters", run, on, n)
			}
			m := w.masters.Master(run % 5)
			m.Restart(false)
			m.Admit(redlock.DefaultPrefix, redlock.DefaultMaxTTL) // without a quarantine, which would only delay this test
			after(11 * time.Second)
			if isDone(k) {
				w.Fatalf("run %d: the lock is lost with the restart of one master: %v", run, k.Err())
			}
			w.noError(k.Unlock(w.Context()))
		}
	})
}

// H78: the error of a call with a short deadline contains the masters that hang, each with the time for which it has
// not answered.
func TestErrorNamesHangingMasters(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		l := w.locker()
		for _, d := range []time.Duration{20 * time.Millisecond, 100 * time.Millisecond, 450 * time.Millisecond} {
			w.hang(1, 2, 4)
			err := errOf(l.TryLock(w.withTimeout(d), fmt.Sprint("n", d)))
			w.isError(err, context.DeadlineExceeded)
			w.each(func(_ int, m *memory.Master) {
				said := regexp.MustCompile(regexp.QuoteMeta(m.Addr()) + `[,:] [^;]*?\d(ms|s)\b`)
				if !said.MatchString(fmt.Sprint(err)) {
					w.Errorf("with %v the error does not say for how long %s has not answered: %v", d, m.Addr(), err)
				}
			}, 1, 2, 4)
			w.resume() // before the pool's own timeout expires
			after(time.Second)
		}
	})
}

// H79, H163: if a foreign key has the name of a lock's key, the error contains the name of the key, says that another
// program wrote it, and advises another name. It does not advise to delete the key.
func TestForeignKeyIsExplained(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		key := defaultPrefix.Lock("n")
		w.each(func(_ int, m *memory.Master) { m.Set(key, "not a lock") })
		l := w.locker()
		for _, err := range []error{
			errOf(l.TryLock(w.Context(), "n")), errOf(l.RWLock("n").TryRLock(w.Context())),
		} {
			w.isError(err, redlock.ErrNoQuorum)
			w.says(err, redlock.ErrForeign, key, "another program", "use another name")
			if strings.Contains(fmt.Sprint(err), "delete") {
				w.Errorf("the error advises to delete the key: %v", err)
			}
		}
	})
}

// Over a closed pool every call fails immediately, even if the context of the call allows a wait, because a closed
// pool stays closed. The log says that the pool was closed before its Locker.
func TestCallsOverClosedPoolFail(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		var h logbook
		p := w.pool()
		l := w.newLocker(p, h.option())
		client.SetOf(l).AwaitKnown(w.Context())
		held, exported := must(l.Lock(w.Context(), "held"))(w), must(w.locker().Lock(w.Context(), "exported"))(w)
		handle := must(exported.Export())(w)
		w.must(p.Close())
		ctx := w.withTimeout(time.Hour)
		for name, call := range map[string]func() (*redlock.Lock, error){
			"Lock":    func() (*redlock.Lock, error) { return l.Lock(ctx, "n") },
			"TryLock": func() (*redlock.Lock, error) { return l.TryLock(ctx, "n") },
			"re-entry": func() (*redlock.Lock, error) {
				return l.Lock(held.Context(ctx), "held", redlock.WithReentry())
			},
			"Import": func() (*redlock.Lock, error) { return l.Import(ctx, handle) },
		} {
			began := time.Now()
			err := errOf(call())
			if !errors.Is(err, redlock.ErrClosed) && !errors.Is(err, pool.ErrClosed) || time.Since(began) > time.Second {
				w.Errorf("%s returned %v after %v, want ErrClosed immediately", name, err, time.Since(began))
			}
		}
		after(time.Second)
		h.wants(w, 1, "pool was closed before its Locker", "hint=")
		h.wants(w, 0, "master is down")
	})
}

// A change of the masters during Close causes no data race. Run it with -race.
func TestCloseDuringReconfigure(t *testing.T) {
	virtual(t, 6, func(w *cluster) {
		for d := range 5 {
			l := w.readyLocker(w.poolOf(0, 1, 2))
			done := make(chan struct{})
			go func() {
				defer close(done)
				both := redlock.Configuration{Epoch: 1, Masters: w.urls(0, 1, 2), Next: w.urls(3, 4, 5)}
				_ = admin.Of(l).Reconfigure(w.Context(), both)
			}()
			for range d {
				runtime.Gosched()
			}
			_ = l.Close()
			<-done
		}
	})
}

// H148: a virtual machine is started several times from one snapshot of its memory. The copies of a Locker have the
// same UUID and the same counter of leases, but only one copy at a time holds the name.
func TestCopiesOfOneClientExcludeEachOther(t *testing.T) { //nolint:paralleltest // it sets the source of all UUIDs
	t.Cleanup(func() { uuid.SetRand(nil) })
	bubble(t, 5, func(w *cluster) {
		var copies []*redlock.Locker
		for range 3 {
			uuid.SetRand(rand.NewChaCha8([32]byte{}))
			copies = append(copies, w.locker())
		}
		uuid.SetRand(nil)
		w.delay(time.Millisecond)
		var holders atomic.Int64
		var wg sync.WaitGroup
		for i, l := range copies {
			wg.Go(func() {
				after(time.Duration(i) * 10 * time.Microsecond) // separate machines never act at exactly the same time
				for range 20 {
					k := must(l.Lock(w.Context(), "n"))(w)
					if n := holders.Add(1); n > 1 {
						w.Errorf("%d copies hold the name", n)
					}
					<-time.After(5 * time.Millisecond)
					w.noError(k.Err())
					holders.Add(-1)
					w.noError(k.Unlock(w.Context()))
				}
			})
		}
		wg.Wait()
	})
}
