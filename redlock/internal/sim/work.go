package sim

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/redlock-go/redlock/redlock"
)

// run takes locks until the run ends.
func (k *worker) run() {
	p := &k.c.w.plan
	for k.sleep(k.upTo(p.idle), nil) {
		k.waitAwake()
		k.one()
	}
}

// one takes one lock, uses it for a while, and gives it back in one of several ways.
func (k *worker) one() {
	w := k.c.w
	p := &w.plan
	if p.together && k.random.IntN(3) > 0 {
		k.together()
		return
	}
	name := p.names[k.random.IntN(len(p.names))]
	if p.together && k.random.IntN(2) == 0 {
		k.lead(name)
		return
	}
	guard := p.guards[k.c.index]
	least, most := min(p.least, guard/2), min(p.most, guard)
	ttl := least + k.upTo(most-least)
	opts := []redlock.LockOption{redlock.WithTTL(ttl), redlock.WithExtension(k.chance(p.extend))}
	opts = append(opts, k.manner()...)
	wanted := ttl / 2
	if k.random.IntN(4) == 0 || p.kind == lapses {
		wanted = ttl / 10
		opts = append(opts, redlock.WithMinValidity(wanted))
	}
	if k.random.IntN(10) == 0 {
		limit := k.upTo(ttl) + time.Millisecond
		wanted = math.MinInt64
		opts = append(opts, redlock.WithMaxHold(limit))
	}
	if p.readers {
		k.shared(k.c.now(), name, opts)
		return
	}
	minimum := k.minimum()
	opts = append(opts, redlock.WithMinHold(minimum))
	ctx, cancel := k.within(k.ctx, k.upTo(2*most))
	defer cancel()
	if k.random.IntN(12) == 0 { // somebody changes his mind
		stop := time.AfterFunc(time.Until(w.instant(time.Now().Add(k.upTo(20*time.Millisecond)), k.slot)), cancel)
		defer stop.Stop()
	}
	asked := w.now()
	var lock *redlock.Lock
	l := k.c.now()
	err := k.call("Lock", ctx, func() (err error) {
		if k.random.IntN(4) == 0 {
			lock, err = l.TryLock(ctx, name, opts...)
		} else {
			lock, err = l.Lock(ctx, name, opts...)
		}
		w.checkGiven("Lock", lock, err)
		return err
	})
	if err != nil {
		return
	}
	b := k.begin(l, lock, asked, wanted)
	b.minimum = minimum
	k.hold(b, opts)
}

// manner is how a call waits.
func (k *worker) manner() []redlock.LockOption {
	p := &k.c.w.plan
	switch {
	case k.chance(p.retry):
		return []redlock.LockOption{redlock.WithBackoff(func() redlock.Backoff { return &backoff{k: k} })}
	case k.chance(p.fair):
		return []redlock.LockOption{redlock.WithPriority(k.random.IntN(3) - 1)}
	case k.chance(p.handOn):
		return nil
	}
	return []redlock.LockOption{redlock.WithHandOn(k.random.IntN(3), k.upTo(p.most))}
}

// A span is a stretch of true time for which one Lock was believed to be held.
type span struct {
	name     string
	client   int
	token    int64
	asked    time.Time // when the call began that has won the hold, which may have been handed on since
	granted  time.Time // when the first master granted it
	from, to time.Time
	minimum  time.Duration // the minimum hold
	reads    bool          // it is a reader's
	follows  int64         // the token of the writer's lock that became this one; 0: none did
	unaware  time.Time     // until then its client may not know yet that its machine was paused
}

// A win is a token that one client got for a name.
type win struct {
	client int
	name   string
	token  int64
}

// won takes note of which hold a token belongs to.
func (w *world) won(client int, i redlock.LockInfo) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wins[win{client, i.Name, i.Token}] = i.ID
}

// minimum draws a minimum hold, 0 in most kinds.
func (k *worker) minimum() time.Duration {
	if !k.c.w.plan.minHold || k.random.IntN(3) == 0 {
		return 0
	}
	w := k.c.w
	w.mu.Lock()
	w.loose = true // the masters keep the name
	w.mu.Unlock()
	return k.upTo(w.plan.guards[k.c.index] * 9 / 10)
}

// askedLocked is when the call began that has won the hold of t; the zero time where that is not known. The first one
// who has a hold is the one who won it.
func (w *world) askedLocked(t span) time.Time {
	id := w.wins[win{t.client, t.name, t.token}]
	if first, known := w.asked[id]; known {
		return first
	}
	for other, of := range w.wins {
		if of == id && other.token < t.token {
			t.asked = time.Time{} // it was handed on by one who did not take it
		}
	}
	w.asked[id] = t.asked
	return t.asked
}

// A belief is a span under way.
type belief struct {
	span
	c      *client
	locker *redlock.Locker
	lock   *redlock.Lock
	ctx    context.Context // of the lock
	seen   time.Time       // the last moment at which validity was left for sure
	over   time.Time       // when its context ended; guarded by world.mu
	late   bool            // validity was over when the call returned, since the client was suspended in it
	stop   func() bool
	shared *redlock.Shared // what it is a lock of; nil: it is a plain one
}

func (k *worker) begin(l *redlock.Locker, lock *redlock.Lock, asked time.Time, wanted time.Duration) *belief {
	w := k.c.w
	now := w.now()
	b := &belief{c: k.c, locker: l, lock: lock, seen: now,
		span: span{name: lock.Name(), client: k.c.index, token: lock.Token(), asked: asked, from: now}}
	b.ctx = lock.Context(context.Background())
	b.stop = context.AfterFunc(b.ctx, func() {
		left := lock.Remaining()
		w.mu.Lock()
		defer w.mu.Unlock()
		b.over = w.now()
		b.checkTold(left)
	})
	w.mu.Lock()
	slept := k.c.woken.After(asked) || k.c.turned
	w.count.Locks++
	b.asked = w.askedLocked(b.span)
	b.granted = w.start.Add(w.seen.grant(w.wins[win{k.c.index, b.name, b.token}]).granted)
	w.note(k.c.index, -1, "holds", b.name, b.token)
	k.c.beliefs = append(k.c.beliefs, b)
	closed := k.c.left[l]
	w.mu.Unlock()
	if closed {
		b.checkClosed()
	}
	left := lock.Remaining()
	b.late = slept && left <= 0
	if left < wanted && lock.Err() == nil && !slept {
		w.problem("%s: handed out with %v of validity left, at least %v was wanted", b.name, left, wanted)
	}
	return b
}

// look takes note that validity is left, if it is.
func (b *belief) look() {
	if b.lock.Remaining() > 0 {
		b.seen = b.c.w.now()
	}
}

// end books the span: it ends now, or when the validity was over.
func (k *worker) end(b *belief) {
	w := k.c.w
	now := w.now()
	b.to = now
	left := b.lock.Remaining()
	if left <= 0 {
		b.to = now.Add(time.Duration(float64(left) / k.c.watch.rate))
		if b.to.Before(b.seen) {
			b.to = b.seen
		}
	}
	b.stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	if b.over.IsZero() {
		b.checkTold(left)
	} else if b.over.Before(b.to) {
		b.to = b.over
	}
	k.c.beliefs = slices.DeleteFunc(k.c.beliefs, func(o *belief) bool { return o == b })
	if aware := k.c.woken.Add(w.plan.shownAfter()); w.plan.kind == paused && aware.After(b.from) {
		b.unaware = aware
	}
	if !b.late {
		w.spans = append(w.spans, b.span)
	}
	w.note(k.c.index, -1, "has held", b.name, b.token)
}

// hold uses a lock for a while, and gives it back.
func (k *worker) hold(b *belief, opts []redlock.LockOption) {
	p := &k.c.w.plan
	if k.chance(p.reenter) {
		k.inner(b, opts)
	}
	long := k.upTo(p.dwell)
	if k.chance(p.toEnd) {
		long = max(2*p.guard, p.longest)
	}
	for end := time.Now().Add(long); ; {
		b.look()
		b.checkErr()
		if k.chance(p.write) {
			k.c.w.write(b)
		}
		step := min(time.Until(end), 1+k.upTo(p.dwell/2))
		if step <= 0 || !k.sleep(step, b.lock.Done()) {
			break
		}
		if k.waitAwake() && k.chance(p.hurry) || k.random.IntN(12) == 0 || p.byHand > 0 && k.chance(p.byHand) {
			k.extend(b)
		}
	}
	k.waitAwake()
	b.look()
	k.end(b)
	k.giveBack(b, opts)
}

// extend extends a lock by hand, several times in a row, as one does who has slept and fears for it.
func (k *worker) extend(b *belief) {
	for range 1 + k.random.IntN(4) {
		ctx, cancel := k.within(k.ctx, k.upTo(20*time.Millisecond))
		err := k.call("Extend", ctx, func() error {
			err := b.lock.Extend(ctx)
			k.c.w.checkGiven("Extend", b.lock, err)
			return err
		})
		cancel()
		if err == nil {
			b.look()
		}
		if b.lock.Err() != nil || !k.sleep(k.upTo(3*time.Millisecond), nil) {
			return
		}
	}
}

// inner locks what is held once more.
func (k *worker) inner(b *belief, opts []redlock.LockOption) {
	ctx, cancel := k.within(b.lock.Context(k.ctx), k.upTo(100*time.Millisecond))
	defer cancel()
	var inner *redlock.Lock
	err := k.call("Lock (inner)", ctx, func() (err error) {
		if b.shared != nil {
			inner, err = k.innerOf(ctx, b, opts)
		} else {
			inner, err = k.c.now().Lock(ctx, b.name, opts...)
		}
		k.c.w.checkGiven("a re-entry", inner, err)
		return err
	})
	if err != nil {
		return
	}
	if inner.Token() != b.token {
		k.c.w.problem("%s: a re-entry has token %d, its hold %d", b.name, inner.Token(), b.token)
	}
	k.sleep(k.upTo(20*time.Millisecond), inner.Done())
	k.unlock(inner)
}

func (k *worker) unlock(lock *redlock.Lock) {
	ctx, cancel := k.within(context.Background(), k.upTo(100*time.Millisecond))
	defer cancel()
	_ = k.call("Unlock", ctx, func() error { return lock.Unlock(ctx) })
}

// giveBack releases a lock, exports it to another client, or leaves it to its end; and may write once more, as one does
// who has not heard that it is over.
func (k *worker) giveBack(b *belief, opts []redlock.LockOption) {
	w := k.c.w
	p := &w.plan
	switch {
	case b.shared != nil && !b.reads && k.chance(p.hand):
		k.downgrade(b, opts)
	case b.shared == nil && k.chance(p.hand):
		k.export(b)
	case k.chance(p.keep) && b.lock.Err() != nil: // nobody cleans up after a lock that was lost
		w.mu.Lock()
		w.loose = true
		w.mu.Unlock()
	default:
		k.unlock(b.lock)
	}
	if k.chance(p.write) {
		w.write(b)
	}
}

// export exports a lock, and has a worker of another client import it and hold it. The handle may be delivered twice:
// then one more client imports it, or tries to, a while later.
func (k *worker) export(b *belief) {
	w := k.c.w
	handle, err := b.lock.Export()
	if err != nil {
		k.unlock(b.lock)
		return
	}
	w.mu.Lock()
	w.loose = true // where the import did not reach a master, or nobody imports it, the key lives on to its TTL
	w.mu.Unlock()
	hold := k.importIt(handle, b.name)
	if k.chance(w.plan.again) {
		k.sleep(k.upTo(w.plan.most), k.ctx.Done())
		again := k.importIt(handle, b.name)
		defer again()
	}
	hold()
}

// importIt has a client import the handle, and returns what holds the lock then.
func (k *worker) importIt(handle, name string) (hold func()) {
	w := k.c.w
	other := w.clients[k.random.IntN(len(w.clients))]
	ttl := min(w.plan.most, w.plan.guards[other.index])
	next := &worker{c: other, slot: k.slot, random: k.random, ctx: k.ctx}
	w.mu.Lock()
	w.note(k.c.index, other.index, "exports, to the client of the master's number,", name, 0)
	w.mu.Unlock()
	next.waitAwake()
	ctx, cancel := next.within(k.ctx, k.upTo(w.plan.most))
	defer cancel()
	asked := w.now()
	opts := []redlock.LockOption{
		redlock.WithTTL(ttl), redlock.WithBackoff(func() redlock.Backoff { return &backoff{k: next} }),
	}
	var lock *redlock.Lock
	l := other.now()
	err := next.call("Import", ctx, func() (err error) {
		lock, err = l.Import(ctx, handle, opts...)
		w.checkGiven("Import", lock, err)
		return err
	})
	if err != nil {
		return func() {}
	}
	w.mu.Lock()
	w.count.Imports++
	w.mu.Unlock()
	b := next.begin(l, lock, asked, ttl/2)
	return func() {
		next.waitAwake() // who sleeps looks at nothing
		next.hold(b, opts)
	}
}
