package sim

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/redlock-go/redlock/redlock"
)

// together locks some of the names together, in any order, uses them for a while, and releases them. Each name has
// its own span. All names must be held at the same time.
func (k *worker) together() {
	w := k.c.w
	p := &w.plan
	names := slices.Clone(p.names)
	k.random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	names = names[:1+k.random.IntN(len(names))]
	ttl := p.least + k.upTo(p.most-p.least)
	minimum := k.minimum()
	opts := append(k.terms(ttl), redlock.WithTTL(ttl), redlock.WithMinHold(minimum))
	ctx, cancel := k.within(k.ctx, k.upTo(4*p.most))
	defer cancel()
	asked := w.now()
	l := k.c.now()
	var locks *redlock.Locks
	err := k.call("LockAll", ctx, func() (err error) {
		if k.random.IntN(4) == 0 {
			locks, err = l.TryLockAll(ctx, names, opts...)
		} else {
			locks, err = l.LockAll(ctx, names, opts...)
		}
		return err
	})
	if err != nil {
		return
	}
	held := make([]*belief, len(names))
	for i, name := range slices.Sorted(slices.Values(names)) {
		held[i] = k.begin(l, name, locks.Of(name), asked, ttl/2)
		held[i].minimum = minimum
	}
	all := locks.Context(k.ctx)
	for end := time.Now().Add(k.upTo(p.dwell)); ; {
		lost := false
		for _, b := range held {
			b.look()
			b.checkErr()
			lost = lost || b.lock.Err() != nil
			if k.chance(p.write) {
				w.write(b)
			}
		}
		if lost && all.Err() == nil {
			w.problem("client %d: one of the locks %q is lost, but their common context has not ended", k.c.index, names)
		}
		step := min(time.Until(end), 1+k.upTo(p.dwell/2))
		if step <= 0 || !k.sleep(step, all.Done()) {
			break
		}
		k.waitAwake()
	}
	k.waitAwake()
	for _, b := range held {
		b.look()
		k.end(b)
	}
	over, done := k.within(k.ctx, k.upTo(100*time.Millisecond))
	defer done()
	_ = k.call("Unlock (all)", over, func() error { return locks.Unlock(over) })
}

// terms returns options that LockAll applies only when all names are held.
func (k *worker) terms(ttl time.Duration) []redlock.LockOption {
	switch k.random.IntN(4) {
	case 0:
		return []redlock.LockOption{redlock.WithExtension(false)}
	case 1:
		return []redlock.LockOption{redlock.WithMaxHold(ttl + k.upTo(2*k.c.w.plan.most))}
	}
	return nil
}

// lead campaigns for a name for a while. As the leader, it re-enters the leader's lock and uses the inner lock. This
// lock must end before another client leads, which is checked as for every lock.
func (k *worker) lead(name string) {
	w := k.c.w
	p := &w.plan
	ctx, cancel := context.WithCancel(k.ctx)
	defer cancel()
	over := time.AfterFunc(time.Until(w.instant(time.Now().Add(k.upTo(8*p.most)), k.slot)), cancel)
	defer over.Stop()
	asked := w.now()
	l := k.c.now()
	ttl := redlock.WithTTL(p.least + k.upTo(p.most-p.least))
	_ = k.call("Lead", ctx, func() error {
		return l.Lead(ctx, name, func(ctx context.Context, outer *redlock.Lock) error {
			lock, err := l.Lock(ctx, name, ttl, redlock.WithReentry())
			if err != nil {
				return err
			}
			b := k.begin(l, name, lock, asked, 0)
			k.showValue(b)
			if b.token != outer.Token() {
				w.problem("client %d leads %s with token %d, but its re-entry has token %d", k.c.index, name,
					outer.Token(), b.token)
			}
			k.sleep(k.upTo(p.dwell), ctx.Done())
			k.waitAwake()
			b.look()
			b.checkErr()
			if k.chance(p.write) {
				w.write(b)
			}
			k.end(b)
			k.unlock(lock)
			w.note(k.c.index, -1, "has led", name, b.token)
			if k.random.IntN(4) == 0 {
				return errFailed
			}
			return nil
		}, ttl)
	})
}

// errFailed is the error that the function of a leader sometimes returns.
var errFailed = errors.New("the leader has failed")
