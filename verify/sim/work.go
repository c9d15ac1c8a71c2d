package sim

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	clients "github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
	"github.com/redlock-go/redlock/verify/sim/trace"
)

// longestLinger is the longest linger time of a lock. It must be less than plan.rest, after which nothing may be left
// of ended locks.
const longestLinger = 300 * time.Millisecond

// run acquires locks until the run ends.
func (k *worker) run() {
	p := &k.c.w.plan
	for k.sleep(k.upTo(p.idle), nil) {
		k.waitAwake()
		k.one()
	}
}

// one acquires one lock, uses it for a while, and releases it in one of several ways.
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
	most := min(p.most, p.guards[k.c.index])
	opts, wanted := k.options(most)
	if p.readers {
		k.shared(k.c.now(), name, opts)
		return
	}
	minimum := k.minimum()
	opts = append(opts, redlock.WithMinHold(minimum))
	ctx, cancel := k.within(k.ctx, k.upTo(2*most))
	defer cancel()
	if k.random.IntN(12) == 0 { // the call is cancelled
		stop := time.AfterFunc(time.Until(w.instant(time.Now().Add(k.upTo(20*time.Millisecond)), k.slot)), cancel)
		defer stop.Stop()
	}
	asked := w.now()
	var lock *redlock.Lock
	l := k.c.now()
	if p.kinds && k.random.IntN(4) > 0 {
		name = p.names[0] // most calls use one size
	}
	err := k.call("Lock", ctx, func() (err error) {
		name, lock, err = acquire(ctx, l, name, k.random.IntN(4) > 0, opts...)
		w.checkGiven("Lock", lock, err)
		return err
	})
	if err != nil {
		return
	}
	w.sawTakeover(asked)
	w.sawSlots(name)
	b := k.begin(l, name, lock, asked, wanted)
	b.minimum = minimum
	k.hold(b, opts)
}

// options returns the options of a call, and the minimum validity that must be left when the call returns.
func (k *worker) options(most time.Duration) (opts []redlock.LockOption, wanted time.Duration) {
	p := &k.c.w.plan
	least := min(p.least, p.guards[k.c.index]/2)
	ttl := least + k.upTo(most-least)
	opts = append(opts, redlock.WithTTL(ttl), redlock.WithExtension(k.chance(p.extend)))
	opts = append(opts, k.manner()...)
	if p.linger && k.random.IntN(4) > 0 {
		opts = append(opts, redlock.WithLinger(max(time.Millisecond, k.upTo(longestLinger))))
	}
	wanted = ttl / 2
	if k.random.IntN(4) == 0 || p.kind == lapses {
		wanted = ttl / 10
		opts = append(opts, clients.WithMinValidity(wanted))
	}
	if k.random.IntN(10) == 0 {
		limit := k.upTo(ttl) + time.Millisecond
		wanted = math.MinInt64
		opts = append(opts, redlock.WithMaxHold(limit))
	}
	return opts, wanted
}

// sawTakeover detects that a call, which began at asked, took over an idle lock. Only such a call takes no time.
func (w *simulation) sawTakeover(asked time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen.reach(takenOver, w.plan.linger && w.now().Equal(asked))
}

// manner returns the options that determine how a call waits.
func (k *worker) manner() []redlock.LockOption {
	p := &k.c.w.plan
	switch {
	case k.chance(p.retry):
		return []redlock.LockOption{k.spinning()}
	case k.chance(p.fair):
		return []redlock.LockOption{redlock.WithPriority(k.random.IntN(3) - 1)}
	case k.chance(p.handoff):
		return nil
	}
	return []redlock.LockOption{clients.WithHandoffs(k.random.IntN(3), k.upTo(p.most))}
}

// A span is a period of true time in which a client believed that it held a Lock.
type span struct {
	name     string
	client   int
	token    int64
	asked    time.Time // when the call that acquired the lease began, perhaps for an earlier holder
	granted  time.Time // when the first master granted the lease
	from, to time.Time
	minimum  time.Duration // the minimum hold
	reads    bool          // held by a reader
	follows  int64         // token of the writer's lock that was downgraded to this one; 0 for none
	unaware  time.Time     // before this time the client may not know that its machine was paused
}

// A win identifies a token that a client got for a name.
type win struct {
	client int
	name   string
	slot   int // number of the slot of a semaphore; 0 for other locks
	token  int64
}

// won records the lease to which a token belongs.
func (w *simulation) won(client int, i redlockinfo.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wins[win{client, i.Name, i.Slot, i.Token}] = i.ID
}

// minimum chooses the minimum hold of a call. In most kinds it is 0.
func (k *worker) minimum() time.Duration {
	if !k.c.w.plan.minHold || k.random.IntN(3) == 0 {
		return 0
	}
	w := k.c.w
	w.mu.Lock()
	w.loose = true // the masters reserve the name after an early unlock
	w.mu.Unlock()
	return max(time.Millisecond, k.upTo(w.plan.guards[k.c.index]*9/10))
}

// askedLocked returns when the call that acquired the lease of t began, or the zero time if unknown. After local
// hand-offs, that call is the call of the first holder of the lease.
func (w *simulation) askedLocked(t span) time.Time {
	id := w.wins[winOf(t.client, t.name, t.token)]
	if id == "" {
		return time.Time{} // a callback that blocks delays the report of the lease
	}
	if first, known := w.asked[id]; known {
		return first
	}
	for other, of := range w.wins {
		if of == id && other.token < t.token {
			t.asked = time.Time{} // handed off by an earlier holder, whose call is not known
		}
	}
	w.asked[id] = t.asked
	return t.asked
}

// A belief is a span that has not ended.
type belief struct {
	span
	c      *client
	locker *redlock.Locker
	lock   *redlock.Lock
	ctx    context.Context // of the lock
	seen   time.Time       // last time at which validity was certainly left
	over   time.Time       // when ctx ended; guarded by simulation.mu
	late   bool            // the validity had expired when the call returned, because the client was suspended
	stop   func() bool
	shared *redlock.RWLock // the RWLock of lock; nil for a plain lock
}

// begin records that a client has the lock of a name.
func (k *worker) begin(
	l *redlock.Locker, name string, lock *redlock.Lock, asked time.Time, wanted time.Duration,
) *belief {
	w := k.c.w
	now := w.now()
	b := &belief{c: k.c, locker: l, lock: lock, seen: now,
		span: span{name: name, client: k.c.index, token: lock.Token(), asked: asked, from: now}}
	b.ctx = lock.Context(context.Background())
	b.stop = context.AfterFunc(b.ctx, func() {
		left := lock.Remaining()
		w.mu.Lock()
		defer w.mu.Unlock()
		b.over = w.now()
		b.checkNotified(left)
	})
	w.mu.Lock()
	slept := k.c.woken.After(asked) || k.c.turned
	w.count.Locks++
	w.seen.reach(heldBesideBlocked, w.plan.callbacks[k.c.index] == blocks)
	w.seen.reach(heldBesidePanic, w.plan.callbacks[k.c.index] == panics)
	b.asked = w.askedLocked(b.span)
	b.granted = w.start.Add(w.seen.grant(w.wins[winOf(k.c.index, b.name, b.token)]).granted)
	w.note(k.c.index, -1, "holds", b.name, b.token)
	w.traced(&trace.Event{Kind: trace.Hold, Name: prefix.Lock(b.name), Token: b.token})
	k.c.beliefs = append(k.c.beliefs, b)
	closed := k.c.left[l]
	w.mu.Unlock()
	if closed {
		b.checkClosed()
	}
	left := lock.Remaining()
	b.late = slept && left <= 0
	if left < wanted && lock.Err() == nil && !slept {
		w.problem("%s: the call returned a lock with %v of validity left, want at least %v", b.name, left, wanted)
	}
	return b
}

// look sets b.seen to the current time if validity is left.
func (b *belief) look() {
	if b.lock.Remaining() > 0 {
		b.seen = b.c.w.now()
	}
}

// end records the end of the span: the current time or, if earlier, the end of the validity or of the lock's context.
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
		b.checkNotified(left)
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

// hold uses a lock for a while, and releases it.
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
		k.showValue(b)
		step := min(time.Until(end), 1+k.upTo(p.dwell/2))
		if step <= 0 || !k.sleep(step, b.lock.Done()) || b.requested() {
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
	if p.values > 0 && b.shared == nil { // after the sleep, the next holder often has the lock
		k.sleep(k.upTo(2*time.Millisecond), nil)
		k.lookAt(b.name)
	}
}

// requested reports whether another client has requested the release of the lock. In plans with such requests, three
// quarters of the holders check this, and only those are subscribed.
func (b *belief) requested() bool {
	if b.c.w.plan.weights[notify] == 0 || b.token%4 == 0 {
		return false
	}
	select {
	case <-b.lock.ReleaseRequested():
		return true
	default:
		return false
	}
}

// extend calls Extend several times in a row, like a client that was suspended and may lose its lock.
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

// inner acquires a held lock again, as a re-entry.
func (k *worker) inner(b *belief, opts []redlock.LockOption) {
	ctx, cancel := k.within(b.lock.Context(k.ctx), k.upTo(100*time.Millisecond))
	defer cancel()
	var inner *redlock.Lock
	err := k.call("Lock (inner)", ctx, func() (err error) {
		if b.shared != nil {
			inner, err = k.innerOf(ctx, b, append(opts, redlock.WithReentry()))
		} else {
			_, inner, err = acquire(ctx, k.c.now(), b.name, true, append(opts, redlock.WithReentry())...)
		}
		k.c.w.checkGiven("a re-entry", inner, err)
		return err
	})
	if err != nil {
		return
	}
	if inner.Token() != b.token {
		k.c.w.problem("%s: a re-entry has token %d, want token %d of its hold", b.name, inner.Token(), b.token)
	}
	k.sleep(k.upTo(20*time.Millisecond), inner.Done())
	k.unlock(inner)
}

func (k *worker) unlock(lock *redlock.Lock) {
	ctx, cancel := k.within(context.Background(), k.upTo(100*time.Millisecond))
	defer cancel()
	_ = k.call("Unlock", ctx, func() error { return lock.Unlock(ctx) })
}

// giveBack releases, downgrades or exports a lock, or leaves a lost lock until it expires. Afterwards giveBack may
// write once more, like a client that has not noticed the end of its hold.
func (k *worker) giveBack(b *belief, opts []redlock.LockOption) {
	w := k.c.w
	p := &w.plan
	switch {
	case b.shared != nil && !b.reads && k.chance(p.hand):
		k.downgrade(b, opts)
	case b.shared == nil && k.chance(p.hand):
		k.export(b)
	case k.chance(p.keep) && b.lock.Err() != nil: // a lost lock is not released
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

// export exports a lock, and makes a client, perhaps the same one, import and hold the lock. Sometimes the handle is
// delivered twice: a client tries to import it again later.
func (k *worker) export(b *belief) {
	w := k.c.w
	handle, err := b.lock.Export()
	if err != nil {
		k.unlock(b.lock)
		return
	}
	w.mu.Lock()
	w.loose = true // a master that does not receive the import keeps the key until its TTL expires
	w.mu.Unlock()
	hold := k.importIt(handle, b.name)
	if k.chance(w.plan.again) {
		k.sleep(k.upTo(w.plan.most), k.ctx.Done())
		again := k.importIt(handle, b.name)
		defer again()
	}
	hold()
}

// importIt makes a client import the handle. It returns a function that uses the imported lock, or does nothing if the
// import failed.
func (k *worker) importIt(handle, name string) (hold func()) {
	w := k.c.w
	other := w.clients[k.random.IntN(len(w.clients))]
	ttl := min(w.plan.most, w.plan.guards[other.index])
	next := &worker{c: other, slot: k.slot, random: k.random, ctx: k.ctx}
	w.mu.Lock()
	w.note(k.c.index, -1, fmt.Sprintf("exports to client %d:", other.index), name, 0)
	w.mu.Unlock()
	next.waitAwake()
	ctx, cancel := next.within(k.ctx, k.upTo(w.plan.most))
	defer cancel()
	asked := w.now()
	opts := []redlock.LockOption{
		redlock.WithTTL(ttl), next.spinning(),
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
	b := next.begin(l, name, lock, asked, ttl/2)
	return func() {
		next.waitAwake() // a suspended client cannot check its lock
		next.hold(b, opts)
	}
}
