package redlock

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/pool"
)

// maxMasters is the largest number of masters of a Locker; sets of masters are kept in the bits of one word.
const maxMasters = 64

// A Locker takes locks over the masters of one pool. It has two goroutines of its own, whatever the number of locks:
// one admits masters, one extends what is held. All methods are safe for concurrent use.
type Locker struct {
	pool     *pool.Pool
	set      atomic.Pointer[members]
	cfg      config
	warnings []string

	ballots  *ballots
	guard    *guard
	schedule *schedule
	lines    lines
	inbox    *inbox
	sequence atomic.Uint64 // of the ids of holds

	calls       atomic.Int64  // calls under way
	outstanding atomic.Int64  // releases and rollbacks with votes still to come
	idle        chan struct{} // cap 1: told when one of the two may have come to 0 while closing
	closing     chan struct{} // closed when Close begins: waiting calls give up
	closed      chan struct{} // closed when nothing is held any more: the schedule ends
	closeOnce   sync.Once
	closeTurn   chan struct{}  // cap 1: one Close at a time drains
	joined      sync.WaitGroup // the goroutines

	changeTurn chan struct{} // cap 1: one change of the masters at a time
	retained   uint64        // masters that the pool is told are in use; owned by the one whose turn it is, and by Close
}

// New makes a Locker over the masters of p. It checks the options, fails with [ErrInvalidOption] where one is out of
// range, and otherwise neither blocks nor needs a living master. The pool stays the caller's: several Lockers may share
// it, and it is closed after them.
func New(p *pool.Pool, opts ...Option) (*Locker, error) {
	if p == nil {
		return nil, invalid("no masters: the pool is nil")
	}
	cfg := defaultConfig()
	for _, o := range opts {
		if o == nil {
			return nil, invalid("a nil option")
		}
		o.applyLocker(&cfg)
	}
	if err := cfg.check(); err != nil {
		return nil, err
	}
	set, err := firstSet(p, &cfg)
	if err != nil {
		return nil, err
	}
	if cfg.id == "" {
		id, err := uuid.NewRandom()
		if err != nil {
			return nil, err
		}
		cfg.id = id.String()
	}
	l := &Locker{
		pool: p, cfg: cfg, ballots: newBallots(set.slots),
		idle: make(chan struct{}, 1), closing: make(chan struct{}), closed: make(chan struct{}),
		closeTurn: make(chan struct{}, 1), changeTurn: make(chan struct{}, 1),
	}
	l.set.Store(set)
	l.ballots.change(set.rule.all(), set.slots)
	l.retain(set.rule.all())
	l.guard, l.schedule, l.inbox = newGuard(l), newSchedule(l), newInbox(l)
	l.warnOfHomes()
	l.warn()
	l.joined.Add(2)
	go l.guard.run()
	go l.schedule.run()
	if cfg.source != nil {
		l.joined.Go(func() { l.obey(cfg.source) })
	}
	return l, nil
}

// warn collects what is unwise in an allowed configuration.
func (l *Locker) warn() {
	n := l.set.Load().n()
	switch {
	case n == 1:
		l.warnings = append(l.warnings, "redlock: one master: no failure of it is survived, and the lock is as safe as that one server")
	case n%2 == 0:
		l.warnings = append(l.warnings, "redlock: "+strconv.Itoa(n)+" masters survive the loss of "+strconv.Itoa((n-1)/2)+", as "+strconv.Itoa(n-1)+" would; use an odd number")
	}
	if l.cfg.guard == 0 && n > 1 {
		l.warnings = append(l.warnings, "redlock: the restart guard is off: a master that restarts empty can give a held lock away")
	}
	if t := l.cfg.trace; t != nil && t.Warning != nil {
		for _, w := range l.warnings {
			t.Warning(w)
		}
	}
}

// Warnings tells what is unwise about the configuration, a sentence each; none is the usual case.
func (l *Locker) Warnings() []string { return append([]string(nil), l.warnings...) }

func (l *Locker) now() clock.Instant { return l.cfg.clock.Now() }

// enter begins a call and reports whether the Locker is open. leave ends the call, in either case.
func (l *Locker) enter() bool {
	l.calls.Add(1)
	select {
	case <-l.closing:
		l.leave()
		return false
	default:
		return true
	}
}

func (l *Locker) leave() {
	if l.calls.Add(-1) == 0 {
		l.tellIdle()
	}
}

// settle ends a release or a rollback.
func (l *Locker) settle() {
	if l.outstanding.Add(-1) == 0 {
		l.tellIdle()
	}
}

func (l *Locker) tellIdle() {
	select {
	case <-l.closing:
		select {
		case l.idle <- struct{}{}:
		default:
		}
	default:
	}
}

// Lock takes the lock of name. It waits while another holds it, and while no quorum of masters can be had, until ctx
// ends or the tries are used up ([WithTries]). Calls that are not bounded in number stand in line, first behind those of
// this Locker, then in the masters' queues, and are told when it is their turn; see the package documentation. A call
// that gives up leaves no trace there. With a context of [Lock.Context] that owns the name it re-enters the
// hold instead: one more Unlock is then needed, and of the options the TTL, the minimum validity and the retries apply,
// while extension and maximum hold stay those of the outermost Lock.
//
// Errors: ErrInvalidOption before anything is sent; an error that wraps that of ctx where ctx ended the wait, together
// with what the masters said last; ErrHeld, ErrNoQuorum or ErrTooSlow when the tries are used up; ErrLost, ErrReleased
// or ErrExported for a context whose lock has ended; ErrClosed. On failure nothing is held: what some masters granted
// is being rolled back, and is gone there no later than one TTL after that master has read its last message.
func (l *Locker) Lock(ctx context.Context, name string, opts ...LockOption) (*Lock, error) {
	return l.take(ctx, name, opts, true)
}

// TryLock takes the lock of name in one attempt. It waits for the answers of a quorum, not for another holder, and may
// overtake those who wait; where this Locker holds the name it asks nobody. Errors
// are those of [Locker.Lock]; errors.Is(err, ErrHeld) tells that another holds the name.
func (l *Locker) TryLock(ctx context.Context, name string, opts ...LockOption) (*Lock, error) {
	return l.take(ctx, name, opts, false)
}

// Do runs f while holding the lock of name. The context that f gets ends when the lock is lost, with the cause
// [ErrLost], and owns the name. Do returns the error of f; where the lock could not be taken, was lost, or its release
// could not be confirmed, that error is joined behind it. A panic of f releases the lock.
func (l *Locker) Do(ctx context.Context, name string, f func(ctx context.Context) error, opts ...LockOption) (err error) {
	lock, err := l.Lock(ctx, name, opts...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock(ctx)) }()
	return f(lock.Context(ctx))
}

func (l *Locker) take(ctx context.Context, name string, opts []LockOption, wait bool) (*Lock, error) {
	var called clock.Instant
	if wait { // first of all: who is stopped by the system later on keeps its turn
		called = l.now()
	}
	if err := scripts.CheckName(name); err != nil {
		return nil, invalid("%v", err)
	}
	cfg, err := l.cfg.lock.with(opts, &l.cfg)
	if err != nil {
		return nil, err
	}
	if !l.enter() {
		return nil, ErrClosed
	}
	defer l.leave()
	if own := ownerOf(ctx, l, name); own != nil {
		return l.takeAgain(ctx, own, cfg, wait)
	}
	keys := scripts.Prefix(l.cfg.prefix).Keys(name)
	switch {
	case !wait:
		lock, _, err := l.tryAlone(ctx, name, keys, cfg)
		return lock, err
	case cfg.bounded():
		return l.repeat(ctx, name, cfg, func() (*Lock, bool, error) { return l.tryAlone(ctx, name, keys, cfg) })
	}
	return l.stand(ctx, name, keys, cfg, called)
}

// takeAgain re-enters the hold of own.
func (l *Locker) takeAgain(ctx context.Context, own *Lock, given *lockConfig, wait bool) (*Lock, error) {
	if !l.cfg.reentry {
		return nil, &LockError{Op: "lock", Name: own.h.name, Decision: ErrReentry}
	}
	cfg := *given
	if !wait {
		cfg.tries = 1
	}
	return l.repeat(ctx, own.h.name, &cfg, func() (*Lock, bool, error) {
		lock, err := own.reenter(ctx, cfg)
		return lock, true, err
	})
}

// repeat tries until try succeeds, ctx ends or the tries are used up.
func (l *Locker) repeat(ctx context.Context, name string, cfg *lockConfig, try func() (lock *Lock, sent bool, err error)) (*Lock, error) {
	var backoff Backoff
	for n := 1; ; n++ {
		if ctx.Err() != nil {
			return nil, &LockError{Op: "lock", Name: name, Cause: contextError(ctx)}
		}
		lock, sent, err := try()
		if err == nil || !worthAnother(err) || n == cfg.tries {
			return lock, err
		}
		if backoff == nil {
			if backoff = cfg.start(); backoff == nil {
				return nil, errNoBackoff
			}
		}
		if err := l.pause(ctx, backoff, err, sent); err != nil {
			return nil, err
		}
	}
}

var errNoBackoff = invalid("the function given to WithBackoff returned nil")

// tryAlone makes one attempt outside of the line. What is held here need not be asked of the masters.
func (l *Locker) tryAlone(ctx context.Context, name string, keys scripts.Keys, cfg *lockConfig) (lock *Lock, sent bool, err error) {
	if ctx.Err() != nil {
		return nil, false, &LockError{Op: "lock", Name: name, Cause: contextError(ctx)}
	}
	if h := l.lines.holder(name); h != nil {
		return nil, true, l.heldHere(h)
	}
	h := l.newHold(name, keys, cfg, "")
	a := attempt{l: l, name: name, op: "lock", mode: scripts.ModeAcquire, cfg: cfg, h: h}
	if sent, err = a.known(ctx); err != nil {
		return nil, sent, err
	}
	l.lines.hold(a.h)
	return l.publish(a.h), true, nil
}

// heldHere is the refusal of a name that this Locker holds.
func (l *Locker) heldHere(h *hold) error {
	rule := l.set.Load().rule
	h.mu.Lock()
	left := max(0, h.lease.left(l.now()))
	h.mu.Unlock()
	return &LockError{Op: "lock", Name: h.name, Decision: ErrHeld, Quorum: rule.least(), N: rule.n(), Left: left}
}

func (l *Locker) newHold(name string, keys scripts.Keys, cfg *lockConfig, previous string) *hold {
	h := &hold{l: l, name: name, seq: l.sequence.Add(1), index: -1}
	h.goBy(cfg)
	h.words.Store(l.wordsOf(keys, h.seq, previous))
	return h
}

// wordsOf is how the masters know hold number seq.
func (l *Locker) wordsOf(keys scripts.Keys, seq uint64, previous string) *scripts.Hold {
	var room [64]byte
	id := scripts.AppendID(room[:0], l.cfg.id, seq)
	w := scripts.NewHold(keys, string(id), previous)
	return &w
}

// goBy takes from the options of a call what counts while the hold is live.
func (h *hold) goBy(cfg *lockConfig) {
	h.ttl, h.handOnTime, h.maxHold, h.extend = cfg.ttl, cfg.handOnTime, cfg.maxHold, cfg.extend
}

// publish makes a won hold live and returns its first Lock.
func (l *Locker) publish(h *hold) *Lock {
	k := l.enliven(h)
	l.traceHold(onAcquired, h, nil)
	return k
}

// enliven is publish that tells no trace.
func (l *Locker) enliven(h *hold) *Lock {
	k := &h.first
	k.h = h
	h.mu.Lock()
	h.depth = 1
	h.handles, h.fresh = append(h.alone[:0], k), true
	if h.maxHold > 0 && h.maxEnd.IsZero() {
		h.maxEnd = h.lease.start.Add(h.maxHold)
	}
	at := h.nextLocked()
	l.schedule.add(h, at)
	h.mu.Unlock()
	return k
}

// worthAnother reports whether a blocked call should try again after err.
func worthAnother(err error) bool {
	var e *LockError
	if !errors.As(err, &e) || e.Cause != nil {
		return false
	}
	return errors.Is(e.Decision, ErrHeld) || errors.Is(e.Decision, ErrNoQuorum) || errors.Is(e.Decision, ErrTooSlow)
}

// pause waits between two attempts of a blocked call, and returns nil when it is time for the next. failed is how the
// last one failed; where nothing was sent, because too few masters vote, the pause ends as soon as that may be over.
func (l *Locker) pause(ctx context.Context, b Backoff, failed error, sent bool) error {
	delay, again := b.Next()
	if !again {
		return failed
	}
	var moved <-chan struct{}
	if !sent {
		moved = l.guard.changes()
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	var cause error
	select {
	case <-timer.C:
		return nil
	case <-moved:
		return nil
	case <-ctx.Done():
		cause = contextError(ctx)
	case <-l.closing:
		cause = ErrClosed
	}
	return withCause(failed, cause)
}

// Close releases every lock that is still held, all at once, ends their contexts with the cause [ErrClosed], and joins
// the goroutines of the Locker. Calls that wait return ErrClosed.
//
// It returns when each master has answered to the releases, or when ctx ends: then with the error of ctx, the releases
// having been sent, and whatever a master has not got being owed to it by the pool. A second Close waits like the
// first. The pool stays open.
func (l *Locker) Close(ctx context.Context) error {
	l.closeOnce.Do(func() { close(l.closing) })
	select {
	case l.closeTurn <- struct{}{}:
		defer func() { <-l.closeTurn }()
	case <-ctx.Done():
		return &LockError{Op: "close", Name: l.cfg.prefix, Cause: contextError(ctx)}
	}
	if err := l.drain(ctx, &l.calls); err != nil {
		return err
	}
	l.inbox.close()
	for _, h := range l.schedule.all() {
		if h.end(ErrClosed) {
			h.release("unlock", h.sent)
		}
	}
	if err := l.drain(ctx, &l.calls); err != nil { // an Unlock that was quicker with one of them
		return err
	}
	select {
	case <-l.closed:
	default:
		close(l.closed)
	}
	l.joined.Wait()
	err := l.drain(ctx, &l.outstanding)
	l.releaseAll()
	return err
}

// drain waits until what n counts has come to an end.
func (l *Locker) drain(ctx context.Context, n *atomic.Int64) error {
	for n.Load() > 0 {
		select {
		case <-l.idle:
		case <-ctx.Done():
			if n.Load() == 0 {
				return nil
			}
			return &LockError{Op: "close", Name: l.cfg.prefix, Cause: contextError(ctx)}
		}
	}
	return nil
}
