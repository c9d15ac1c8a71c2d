package sim

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock"
)

// shared acquires the lock of a reader or of the writer of a name.
func (k *worker) shared(l *redlock.Locker, name string, opts []redlock.LockOption) {
	w := k.c.w
	ctx, cancel := k.within(k.ctx, k.upTo(2*w.plan.most))
	defer cancel()
	s, reads, try := l.RWLock(name), k.chance(w.plan.reads), k.random.IntN(4) == 0
	asked := w.now()
	var lock *redlock.Lock
	err := k.call("Lock of Shared", ctx, func() (err error) {
		switch {
		case reads && try:
			lock, err = s.TryRLock(ctx, opts...)
		case reads:
			lock, err = s.RLock(ctx, opts...)
		case try:
			lock, err = s.TryLock(ctx, opts...)
		default:
			lock, err = s.Lock(ctx, opts...)
		}
		w.checkGiven("Lock of Shared", lock, err)
		return err
	})
	if err != nil {
		return
	}
	b := k.begin(l, lock, asked, 0)
	b.reads, b.shared = reads, s
	k.hold(b, opts)
}

// innerOf acquires the RWLock of b again. A reader that requests the writer's lock must be refused immediately.
func (k *worker) innerOf(ctx context.Context, b *belief, opts []redlock.LockOption) (*redlock.Lock, error) {
	if !b.reads && k.random.IntN(2) == 0 {
		return b.shared.Lock(ctx, opts...)
	}
	if b.reads {
		_, err := b.shared.Lock(ctx, opts...)
		if !errors.Is(err, redlock.ErrInvalid) && !errors.Is(err, redlock.ErrClosed) && ctx.Err() == nil {
			k.c.w.problem("%s: a reader asks for the writer's lock, and gets: %v", b.name, err)
		}
	}
	return b.shared.RLock(ctx, opts...)
}

// downgrade turns a writer's lock into a reader's lock, and uses the reader's lock.
func (k *worker) downgrade(b *belief, opts []redlock.LockOption) {
	w := k.c.w
	ctx, cancel := k.within(k.ctx, k.upTo(w.plan.most))
	defer cancel()
	w.mu.Lock()
	w.note(k.c.index, -1, "downgrades", b.name, b.token)
	w.mu.Unlock()
	var lock *redlock.Lock
	err := k.call("Downgrade", ctx, func() (err error) {
		lock, err = b.lock.Downgrade(ctx, opts...)
		w.checkGiven("Downgrade", lock, err)
		return err
	})
	if err != nil {
		k.unlock(b.lock) // if the lock was lost before, this removes its leftovers
		return
	}
	next := k.begin(b.locker, lock, b.asked, 0)
	next.reads, next.shared, next.follows = true, b.shared, b.token
	w.mu.Lock()
	w.seen.reach(downgraded, true)
	w.mu.Unlock()
	k.hold(next, opts)
}

// inGap returns the violations by writers that held between a writer's lock and the reader's lock to which it was
// downgraded.
func inGap(list []span) (problems []string) {
	for _, t := range list {
		for _, o := range list {
			if t.follows > 0 && o.name == t.name && !o.reads && o.token > t.follows && o.token < t.token {
				problems = append(problems, fmt.Sprintf("%s: client %d has token %d in the gap of a downgrade, from %d to %d",
					t.name, o.client, o.token, t.follows, t.token))
			}
		}
	}
	return problems
}

// checkEndless reports a writer that does not get the lock while readers arrive endlessly. The first worker writes a
// few times. All others read, so that there is always a reader.
func (w *simulation) checkEndless() {
	if !w.plan.endless {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	reading, stop := context.WithCancel(ctx)
	var readers, writers sync.WaitGroup
	for i, c := range w.contenders(ctx) {
		s := c.l.RWLock(w.plan.names[0])
		ttl := redlock.WithTTL(w.plan.guards[c.c.index])
		if i > 0 {
			readers.Go(func() {
				for reading.Err() == nil {
					if lock, err := s.RLock(ctx, ttl); err == nil {
						c.sleep(20*time.Millisecond+c.upTo(50*time.Millisecond), nil)
						c.unlock(lock)
					}
				}
			})
			continue
		}
		writers.Go(func() {
			for range servings {
				c.sleep(100*time.Millisecond, nil)
				asked := time.Now()
				lock, err := s.Lock(ctx, ttl)
				if took := time.Since(asked); took > longestWait || err != nil {
					w.problem("the writer is starved: %v while readers come without an end: %v", took, err)
				}
				if err == nil {
					c.unlock(lock)
				}
			}
		})
	}
	writers.Wait()
	stop()
	readers.Wait()
}

// sawShares examines the reply to an acquire of a reader's or writer's lock.
func (o *observer) sawShares(m *message, kind quorum.Outcome, over bool) {
	role, _ := scripts.ShareOf(m.id)
	by, _ := scripts.ShareOf(m.by)
	held := kind == quorum.Held && by == scripts.Reader
	o.reach(writerBehindReaders, held && role == scripts.Writer)
	o.reach(readerBehindWriter, held && role == scripts.Reader)
	o.reach(lateReader, kind == quorum.Stale && role == scripts.Reader && over)
}

// writeShared is like write for an RWLock, whose resource refuses tokens smaller than that of the last writer.
func (w *simulation) writeShared(b *belief, last span, wrote bool) {
	if wrote && b.from.Before(last.from) {
		w.problemLocked("%s: the resource has accepted token %d of client %d, older than token %d of the writer %d", b.name,
			b.token, b.client, last.token, last.client)
	}
	if !b.reads {
		w.written[b.name] = b.span
	}
}
