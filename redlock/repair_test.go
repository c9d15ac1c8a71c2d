package redlock_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/redlock"
)

// lockFunc acquires a lock of the name "orders" in one attempt.
type lockFunc = func(l *redlock.Locker, ctx context.Context, opts ...redlock.LockOption) (*redlock.Lock, error)

func plainLock(l *redlock.Locker, ctx context.Context, opts ...redlock.LockOption) (*redlock.Lock, error) {
	return l.TryLock(ctx, "orders", opts...)
}

func writerLock(l *redlock.Locker, ctx context.Context, opts ...redlock.LockOption) (*redlock.Lock, error) {
	return l.RWLock("orders").TryLock(ctx, opts...)
}

func readerLock(l *redlock.Locker, ctx context.Context, opts ...redlock.LockOption) (*redlock.Lock, error) {
	return l.RWLock("orders").TryRLock(ctx, opts...)
}

// lockPairs are the locks of two clients that exclude each other.
var lockPairs = map[string]struct{ first, second lockFunc }{
	"Plain":        {plainLock, plainLock},
	"WriterWriter": {writerLock, writerLock},
	"ReaderWriter": {readerLock, writerLock},
	"WriterReader": {writerLock, readerLock},
}

// brief are the options of locks that a repair must not prolong.
var brief = []redlock.LockOption{redlock.WithTTL(600 * time.Millisecond), redlock.WithExtension(false)}

// extend extends k in the background.
func (w *cluster) extend(k *redlock.Lock) chan error {
	done := make(chan error, 1)
	go func() { done <- k.Extend(w.Context()) }()
	return done
}

// wantNotBeside fails the test if the call has acquired a lock that is still held, while k is held.
func (c *call) wantNotBeside(k *redlock.Lock) {
	c.w.Helper()
	if c.returned() && c.err == nil && c.lock.Err() == nil && k.Err() == nil {
		c.w.Errorf("two holders: the first for another %v, the second for %v", k.Remaining(), c.lock.Remaining())
	}
}

// H96: a master may lose its vote for another client after it has reported that it lacks a lock, and before a
// majority confirms that lock in the same round. The repair of that round must not give the lock to this master,
// because the other client relies on the lost vote.
func TestRepair(t *testing.T) {
	for name, c := range lockPairs {
		for how, forget := range map[string]func(m *memory.Master){
			"Flushed":   (*memory.Master).Flush,
			"Restarted": func(m *memory.Master) { m.Restart(false) },
		} {
			subtest(t, "RejectedBy"+how+"Master/"+name, 3, func(w *cluster) {
				start, set := time.Now(), redlock.Configuration{Masters: w.masters.URLs()}
				at := func(ms int) { after(time.Duration(ms)*time.Millisecond - time.Since(start)) }
				a := w.configured(set)
				b := w.configured(set)
				a.cut(2)
				held, err := c.first(a.Locker, w.Context(), brief...)
				w.must(err)
				a.cluster.wire.block()
				at(50)
				// In a round of extensions master 0 confirms the lock, master 2 lacks it, and the reply of master 1 is late.
				a.holdReplies(1)
				first := w.extend(held)
				at(400)
				// Master 0 refuses the second client, and master 2 grants it the lock. The message of the second client to master
				// 1 is late.
				b.hold(1)
				got := w.background(func() (*redlock.Lock, error) {
					return c.second(b.Locker, w.Context(), brief...)
				})
				at(410)
				b.cut(2)
				forget(w.masters.Master(2))
				at(450)
				a.release()
				w.must(<-first)
				at(460)
				a.hold(1)
				second := w.extend(held)
				at(660) // the lock on master 1 has expired
				b.release()
				got.wantNotBeside(held)
				a.release()
				w.Log(<-second) // the extension may fail, since the lock may have ended
			})
		}
	}
}

// H123: during a change of the masters, a master loses its vote for a client that uses only one set. The holder uses
// both sets, and only the other set confirms its lock, so the holder must not repair the master, which is in
// quarantine.
func TestRepairByOneSet(t *testing.T) {
	kept := func(_ *cluster, k *redlock.Lock) *redlock.Lock { return k }
	downgraded := func(w *cluster, k *redlock.Lock) *redlock.Lock {
		reader, err := k.Downgrade(w.withTimeout(350 * time.Millisecond))
		if err != nil {
			w.Logf("downgrade: %v", err)
			return k
		}
		return reader
	}
	manual := []redlock.LockOption{redlock.WithExtension(false)}
	for name, c := range map[string]struct {
		first, second lockFunc
		opts          []redlock.LockOption
		then          func(w *cluster, k *redlock.Lock) *redlock.Lock
	}{
		"Plain":     {plainLock, plainLock, nil, kept},
		"Writer":    {writerLock, writerLock, nil, kept},
		"Reader":    {readerLock, writerLock, nil, kept},
		"Downgrade": {writerLock, writerLock, manual, downgraded},
	} {
		for _, flush := range []bool{false, true} {
			for _, next := range []bool{false, true} {
				subtest(t, fmt.Sprintf("%s/Flush=%v/Next=%v", name, flush, next), 4, func(w *cluster) {
					both, one := w.changing(next)
					h := w.configured(both)
					l := w.configured(one)
					start := time.Now()
					at := func(ms int) { after(time.Duration(ms)*time.Millisecond - time.Since(start)) }
					h.cut(2)
					held, err := c.first(h.Locker, w.Context(), c.opts...)
					w.must(err)
					at(10)
					h.cut(1, 2) // the holder reaches only masters 0 and 3
					at(9540)
					w.must(held.Err())
					// Master 2 grants the lock to the client of one set. The message of this client to master 1 is late.
					l.hold(1)
					got := w.background(func() (*redlock.Lock, error) { return c.second(l.Locker, w.Context()) })
					at(9545)
					l.cut(2)
					if m := w.masters.Master(2); flush {
						m.Flush()
					} else {
						m.Restart(false)
					}
					h.cluster.wire.block(1)
					at(9650)
					held = c.then(w, held)
					_ = held.Extend(w.Context())
					at(10030) // the lock on master 1 has expired
					l.release()
					got.wantNotBeside(held)
				})
			}
		}
	}
}

// changing returns the joint configuration of a change, and the configuration of a client that uses only one set.
// Without next, the masters change from 0, 1 and 2 to 3, and that client uses the old set. With next, they change
// from 3 to 0, 1 and 2, the change is finished, and that client uses the next set.
func (w *cluster) changing(next bool) (both, one redlock.Configuration) {
	w.Helper()
	if !next {
		first, both, _ := w.states([]int{0, 1, 2}, []int{3})
		return both, first
	}
	_, both, last := w.states([]int{3}, []int{0, 1, 2})
	operator := w.configured(both)
	w.must(operator.RaiseEpoch(w.Context()))
	after(75 * time.Second)
	w.must(operator.FinishChange(w.Context()))
	synctest.Wait()
	return both, last
}

// H97: one master that loses a vote would be enough for two holders if a master were repaired before a majority has
// confirmed the lock. Master 2 loses its vote for the second client, and would then vote for the first client in
// place of master 1, which the extension has not reached.
func TestRepairNeedsMajority(t *testing.T) {
	for name, c := range lockPairs {
		subtest(t, name, 3, func(w *cluster) {
			start, set := time.Now(), redlock.Configuration{Masters: w.masters.URLs()}
			at := func(ms int) { after(time.Duration(ms)*time.Millisecond - time.Since(start)) }
			a := w.configured(set)
			b := w.configured(set)
			a.cut(2)
			held, err := c.first(a.Locker, w.Context(), brief...)
			w.must(err)
			at(360)
			b.hold(1)
			got := w.background(func() (*redlock.Lock, error) {
				return c.second(b.Locker, w.Context(), brief...)
			})
			at(370)
			b.cut(2)
			w.restart(false, 2)
			a.cluster.wire.block()
			at(450)
			a.hold(1)
			first := w.extend(held)
			at(460)
			second := w.extend(held)
			at(610) // the lock on master 1 has expired
			b.release()
			got.wantNotBeside(held)
			a.release()
			w.Log(<-first)  // the extension may fail, since the lock may have ended
			w.Log(<-second) // the extension may fail, since the lock may have ended
		})
	}
}
