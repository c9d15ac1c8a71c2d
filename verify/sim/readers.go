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

// shared acquires the reader's or the writer's lock of a name, and uses the lock.
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
	b := k.begin(l, name, lock, asked, 0)
	b.reads, b.shared = reads, s
	k.hold(b, opts)
}

// innerOf re-enters the RWLock of b. If b is a reader's lock, innerOf also checks that a call for the writer's lock
// fails with ErrInvalid.
func (k *worker) innerOf(ctx context.Context, b *belief, opts []redlock.LockOption) (*redlock.Lock, error) {
	if !b.reads && k.random.IntN(2) == 0 {
		return b.shared.Lock(ctx, opts...)
	}
	if b.reads {
		_, err := b.shared.Lock(ctx, opts...)
		if !errors.Is(err, redlock.ErrInvalid) && !errors.Is(err, redlock.ErrClosed) && ctx.Err() == nil {
			k.c.w.problem("%s: Lock by a reader returned: %v; want ErrInvalid", b.name, err)
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
		k.unlock(b.lock) // removes the leftovers of a lock that was lost before
		return
	}
	next := k.begin(b.locker, b.name, lock, b.asked, 0)
	next.reads, next.shared, next.follows = true, b.shared, b.token
	w.mu.Lock()
	w.seen.reach(downgraded, true)
	w.mu.Unlock()
	k.hold(next, opts)
}

// inGap returns a violation for each writer's token between the token of a writer's lock and the token of the reader's
// lock to which that lock was downgraded.
func inGap(list []span) (problems []string) {
	for _, t := range list {
		for _, o := range list {
			if t.follows > 0 && o.name == t.name && !o.reads && o.token > t.follows && o.token < t.token {
				problems = append(problems, fmt.Sprintf("%s: writer of client %d has token %d, between the tokens %d and %d "+
					"of a downgrade", t.name, o.client, o.token, t.follows, t.token))
			}
		}
	}
	return problems
}

// checkEndless reports a writer that does not get the lock in time while readers arrive endlessly. The first contender
// acquires the writer's lock a few times; all other contenders read, so that there is always a reader.
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
					w.problem("the writer is starved: Lock took %v, want at most %v, while readers arrive endlessly: %v", took,
						longestWait, err)
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

// sawShares detects situations in the reply to an acquire of a reader's or writer's lock. ended reports whether the
// master had already executed the release of the lease.
func (o *observer) sawShares(m *message, kind quorum.Outcome, ended bool) {
	role, _ := scripts.ShareOf(m.id)
	by, _ := scripts.ShareOf(m.by)
	held := kind == quorum.Held && by == scripts.Reader
	o.reach(writerBehindReaders, held && role == scripts.Writer)
	o.reach(readerBehindWriter, held && role == scripts.Reader)
	o.reach(lateReader, kind == quorum.Stale && role == scripts.Reader && ended)
}

// writeShared is like write, for an RWLock. The resource refuses tokens smaller than the token of the last writer.
func (w *simulation) writeShared(b *belief, last span, wrote bool) {
	if wrote && b.from.Before(last.from) {
		w.problemLocked("%s: the resource accepted token %d of client %d, whose hold began before that of writer %d with "+
			"token %d", b.name, b.token, b.client, last.client, last.token)
	}
	if !b.reads {
		w.written[b.name] = b.span
	}
}
