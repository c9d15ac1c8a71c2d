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

// extend extends k in the background.
func (w *world) extend(k *redlock.Lock) chan error {
	done := make(chan error, 1)
	go func() { done <- k.Extend(w.Context()) }()
	return done
}

// An attempt is a call for a lock in the background.
type attempt chan *redlock.Lock

func (w *world) try(l *redlock.Locker, take lockFunc, opts ...redlock.LockOption) attempt {
	got := make(attempt, 1)
	go func() {
		k, err := take(l, context.WithoutCancel(w.Context()), opts...)
		if err != nil {
			w.Logf("the second client: %v", err)
		}
		got <- k
	}()
	return got
}

// excludes fails the test if the attempt has won while k is held.
func (a attempt) excludes(w *world, k *redlock.Lock) {
	w.Helper()
	select {
	case other := <-a:
		if other != nil && other.Err() == nil && k.Err() == nil {
			w.Errorf("two holders: the first for another %v, the second for %v", k.Remaining(), other.Remaining())
		}
	default:
	}
}

// H96: a master may lose a vote after it has reported that it lacks a lock, and before the round of that report is
// confirmed. The repair of that round must not make it count for the lock: the other client relies on the vote.
func TestRepair(t *testing.T) {
	opts := []redlock.LockOption{redlock.WithTTL(600 * time.Millisecond), redlock.WithExtension(false)}
	for name, c := range map[string]struct{ first, second lockFunc }{
		"Plain":        {plainLock, plainLock},
		"WriterWriter": {writerLock, writerLock},
		"ReaderWriter": {readerLock, writerLock},
		"WriterReader": {writerLock, readerLock},
	} {
		for how, forget := range map[string]func(m *memory.Master){
			"Flushed":   (*memory.Master).Flush,
			"Restarted": func(m *memory.Master) { m.Restart(false) },
		} {
			t.Run("RejectedBy"+how+"Master/"+name, func(t *testing.T) {
				virtual(t, 3, func(w *world) {
					start, set := time.Now(), redlock.Configuration{Masters: w.masters.URLs()}
					at := func(ms int) { after(time.Duration(ms)*time.Millisecond - time.Since(start)) }
					a, ar := w.client(set)
					b, br := w.client(set)
					ar.disconnect(2)
					held, err := c.first(a, w.Context(), opts...)
					w.must(err)
					ar.connect(2)
					at(50)
					// A round of extensions: 0 confirms and 2 lacks the lock. The confirmation of 1 arrives late.
					ar.holdReplies(1)
					first := w.extend(held)
					at(400)
					// 0 refuses the second client, 2 grants it, and its message to 1 is late.
					br.hold(1)
					got := w.try(b, c.second, opts...)
					at(410)
					br.disconnect(2)
					forget(w.masters.Master(2))
					at(450)
					ar.release(1)
					w.must(<-first)
					at(460)
					ar.hold(1)
					second := w.extend(held)
					at(660) // the lock on 1 has expired
					br.release(1)
					got.excludes(w, held)
					ar.release(1)
					w.Log(<-second) // it may have failed: the lock may have ended
				})
			})
		}
	}
}

// H123: during a change of the masters, a master loses its vote for a client that uses one set alone. The holder uses
// both sets, and only the other set confirms its lock: it must not repair the master, which is in quarantine.
func TestRepairByOneSet(t *testing.T) {
	kept := func(_ *world, k *redlock.Lock) *redlock.Lock { return k }
	downgraded := func(w *world, k *redlock.Lock) *redlock.Lock {
		ctx, cancel := context.WithTimeout(w.Context(), 350*time.Millisecond)
		defer cancel()
		reader, err := k.Downgrade(ctx)
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
		then          func(w *world, k *redlock.Lock) *redlock.Lock
	}{
		"Plain":     {plainLock, plainLock, nil, kept},
		"Writer":    {writerLock, writerLock, nil, kept},
		"Reader":    {readerLock, writerLock, nil, kept},
		"Downgrade": {writerLock, writerLock, manual, downgraded},
	} {
		for _, flush := range []bool{false, true} {
			for _, next := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/Flush=%v/Next=%v", name, flush, next), func(t *testing.T) {
					virtual(t, 4, func(w *world) {
						both, one := w.changing(next)
						h, hr := w.client(both)
						l, lr := w.client(one)
						start := time.Now()
						at := func(ms int) { after(time.Duration(ms)*time.Millisecond - time.Since(start)) }
						hr.disconnect(2)
						held, err := c.first(h, w.Context(), c.opts...)
						w.must(err)
						at(10)
						hr.disconnect(1) // the holder reaches only 0 and 3
						at(9540)
						w.must(held.Err())
						// 2 grants the client of one set, whose message to 1 is late.
						lr.hold(1)
						got := w.try(l, c.second)
						at(9545)
						lr.disconnect(2)
						if m := w.masters.Master(2); flush {
							m.Flush()
						} else {
							m.Restart(false)
						}
						hr.connect(2)
						at(9650)
						held = c.then(w, held)
						_ = held.Extend(w.Context())
						at(10030) // the lock on 1 has expired
						lr.release(1)
						got.excludes(w, held)
					})
				})
			}
		}
	}
}

// changing returns the configuration of a change from masters 0 to 2 to master 3, and that of the clients that follow
// the old set alone; or with next those of the change back, once its first half is complete, and the next set.
func (w *world) changing(next bool) (both, one redlock.Configuration) {
	w.Helper()
	if !next {
		first, both, _ := w.states([]int{0, 1, 2}, []int{3})
		return both, first
	}
	_, both, last := w.states([]int{3}, []int{0, 1, 2})
	operator, _ := w.client(both)
	w.must(operator.RaiseEpoch(w.Context()))
	after(75 * time.Second)
	w.must(operator.FinishChange(w.Context()))
	synctest.Wait()
	return both, last
}

// H97: one master that loses a vote is enough for two holders, if a master is repaired before a majority has confirmed
// the lock: 2 loses its vote for the second client, and counts for the first instead of 1, which the extension has not
// reached.
func TestRepairNeedsMajority(t *testing.T) {
	opts := []redlock.LockOption{redlock.WithTTL(600 * time.Millisecond), redlock.WithExtension(false)}
	for name, c := range map[string]struct{ first, second lockFunc }{
		"Plain":        {plainLock, plainLock},
		"WriterWriter": {writerLock, writerLock},
		"ReaderWriter": {readerLock, writerLock},
		"WriterReader": {writerLock, readerLock},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, 3, func(w *world) {
				start, set := time.Now(), redlock.Configuration{Masters: w.masters.URLs()}
				at := func(ms int) { after(time.Duration(ms)*time.Millisecond - time.Since(start)) }
				a, ar := w.client(set)
				b, br := w.client(set)
				ar.disconnect(2)
				held, err := c.first(a, w.Context(), opts...)
				w.must(err)
				at(360)
				br.hold(1)
				got := w.try(b, c.second, opts...)
				at(370)
				br.disconnect(2)
				w.masters.Master(2).Restart(false)
				ar.connect(2)
				at(450)
				ar.hold(1)
				first := w.extend(held)
				at(460)
				second := w.extend(held)
				at(610) // the lock on 1 has expired
				br.release(1)
				got.excludes(w, held)
				ar.release(1)
				w.Log(<-first)  // it may have failed: the lock may have ended
				w.Log(<-second) // it may have failed: the lock may have ended
			})
		})
	}
}
