package sim

import (
	"slices"
	"time"

	"github.com/redlock-go/redlock/redlock"
)

// together locks some of the names as one, in whatever order, uses them for a while, and gives them back. Each is a
// tenure of its own; all of them must be held at once.
func (k *worker) together() {
	w := k.c.w
	p := &w.plan
	names := slices.Clone(p.names)
	k.random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	names = names[:1+k.random.IntN(len(names))]
	ttl := p.least + k.upTo(p.most-p.least)
	minimum := k.minimum()
	opts := []redlock.LockOption{redlock.WithTTL(ttl), redlock.WithMinHold(minimum)}
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
	for i, name := range locks.Names() {
		held[i] = k.begin(l, locks.Of(name), asked, ttl/2)
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
			w.problem("client %d: one of %q is lost, and the context of all goes on", k.c.index, names)
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
