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
	n        int
	cfg      config
	warnings []string
	slowest  time.Duration // the pool's longest timeout: by then every call has its reply

	ballots  *ballots
	guard    *guard
	schedule *schedule
	sequence atomic.Uint64 // of the ids of holds

	calls       atomic.Int64  // calls under way
	outstanding atomic.Int64  // releases and rollbacks with votes still to come
	idle        chan struct{} // cap 1: told when one of the two may have come to 0 while closing
	closing     chan struct{} // closed when Close begins: waiting calls give up
	closed      chan struct{} // closed when nothing is held any more: the schedule ends
	closeOnce   sync.Once
	closeTurn   chan struct{}  // cap 1: one Close at a time drains
	joined      sync.WaitGroup // the goroutines
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
	if p.N() > maxMasters {
		return nil, invalid("%d masters; %d are the most", p.N(), maxMasters)
	}
	if cfg.id == "" {
		id, err := uuid.NewRandom()
		if err != nil {
			return nil, err
		}
		cfg.id = id.String()
	}
	l := &Locker{
		pool: p, n: p.N(), cfg: cfg, ballots: newBallots(p.N()),
		idle: make(chan struct{}, 1), closing: make(chan struct{}), closed: make(chan struct{}),
		closeTurn: make(chan struct{}, 1),
	}
	l.guard, l.schedule = newGuard(l), newSchedule(l)
	for i := range l.n {
		l.slowest = max(l.slowest, p.Timeout(i))
	}
	l.warn()
	l.joined.Add(2)
	go l.guard.run()
	go l.schedule.run()
	return l, nil
}

// warn collects what is unwise in an allowed configuration.
func (l *Locker) warn() {
	switch {
	case l.n == 1:
		l.warnings = append(l.warnings, "redlock: one master: no failure of it is survived, and the lock is as safe as that one server")
	case l.n%2 == 0:
		l.warnings = append(l.warnings, "redlock: "+strconv.Itoa(l.n)+" masters survive the loss of "+strconv.Itoa((l.n-1)/2)+", as "+strconv.Itoa(l.n-1)+" would; use an odd number")
	}
	if l.cfg.guard == 0 && l.n > 1 {
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
// ends or the tries are used up ([WithTries]). With a context of [Lock.Context] that owns the name it re-enters the
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

// TryLock takes the lock of name in one attempt. It waits for the answers of a quorum, not for another holder. Errors
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
	own := ownerOf(ctx, l, name)
	if own != nil && !l.cfg.reentry {
		return nil, &LockError{Op: "lock", Name: name, Decision: ErrReentry}
	}
	var keys scripts.Keys
	if own == nil {
		keys = scripts.Prefix(l.cfg.prefix).Keys(name)
	}
	var backoff Backoff
	for try := 1; ; try++ {
		if ctx.Err() != nil {
			return nil, &LockError{Op: "lock", Name: name, Cause: contextError(ctx)}
		}
		var lock *Lock
		var err error
		sent := true
		if own != nil {
			lock, err = own.reenter(ctx, cfg)
		} else {
			lock, sent, err = l.try(ctx, name, keys, cfg)
		}
		if err == nil || !wait || !worthAnother(err) || try == cfg.tries {
			return lock, err
		}
		if backoff == nil {
			if backoff = cfg.start(); backoff == nil {
				return nil, invalid("the function given to WithBackoff returned nil")
			}
		}
		if err := l.pause(ctx, backoff, err, sent); err != nil {
			return nil, err
		}
	}
}

// try makes one attempt with a new hold.
func (l *Locker) try(ctx context.Context, name string, keys scripts.Keys, cfg lockConfig) (lock *Lock, sent bool, err error) {
	h := l.newHold(name, keys, cfg, "")
	a := attempt{l: l, name: name, op: "lock", mode: scripts.ModeAcquire, cfg: &h.cfg, h: h}
	if sent, err = a.run(ctx); err != nil {
		return nil, sent, err
	}
	return l.publish(h), true, nil
}

func (l *Locker) newHold(name string, keys scripts.Keys, cfg lockConfig, previous string) *hold {
	id := l.cfg.id + ":" + strconv.FormatUint(l.sequence.Add(1), 10)
	return &hold{l: l, name: name, id: scripts.NewHold(keys, id, previous), cfg: cfg, index: -1}
}

// publish makes a won hold live and returns its first Lock.
func (l *Locker) publish(h *hold) *Lock {
	k := &h.first
	k.h = h
	h.mu.Lock()
	h.depth = 1
	h.handles = append(h.handles, k)
	if h.cfg.maxHold > 0 {
		h.maxEnd = h.lease.start.Add(h.cfg.maxHold)
	}
	at := h.nextLocked()
	l.schedule.add(h, at)
	h.mu.Unlock()
	l.traceHold(onAcquired, h, nil)
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
//
// This is the one place at which a blocked call waits for anything but the decision of a round.
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
	var e *LockError
	if errors.As(failed, &e) {
		with := *e
		with.Cause = cause
		return &with
	}
	return cause
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
	return l.drain(ctx, &l.outstanding)
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
