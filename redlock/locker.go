package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock/internal/admission"
	"github.com/redlock-go/redlock/redlock/internal/ballot"
	"github.com/redlock-go/redlock/redlock/internal/dispatch"
	"github.com/redlock-go/redlock/redlock/internal/grant"
	"github.com/redlock-go/redlock/redlock/internal/queue"
	"github.com/redlock-go/redlock/redlock/internal/quorum"
	"github.com/redlock-go/redlock/redlock/internal/round"
	"github.com/redlock-go/redlock/redlock/internal/spread"
	"github.com/redlock-go/redlock/redlock/internal/voters"
)

// A Locker takes locks over the masters of one pool. It has two goroutines of its own, whatever the number of locks:
// one finds out which masters may vote, one extends what is held. A third runs while there are log records or events of
// a [Trace] to deliver. All methods are safe for concurrent use.
type Locker struct {
	pool     *pool.Pool
	cfg      config
	warnings []string

	ballots *ballot.Ballots
	voters  *voters.Voters
	sender  *round.Sender
	grants  *grant.Keeper
	queue   *queue.Queue
	events  *events
	journal *journal

	connectBy time.Time // until then TryLock waits for masters that are still connecting

	changing chan struct{}  // cap 1: one change of the masters at a time
	member   *spread.Member // of its group; nil: there are no groups
	life
}

// A life is what the end of a Locker needs.
type life struct {
	calls   atomic.Int64  // under way, messages not answered, and one until Close has released what is held
	drains  atomic.Bool   // Drain was called
	closing chan struct{} // closed when Close begins: waiting calls give up
	idle    func()        // closes the channel that Close waits for, as calls come to 0
	once    sync.Once     // Close
	closed  chan struct{} // closed when nothing of the Locker is left
}

// New makes a Locker over the masters of p. It checks the options, fails with [ErrInvalidOption] where one is out of
// range, and otherwise neither blocks nor needs a living master. The pool stays the caller's: several Lockers may
// share it, and it is closed after them.
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
	if b := p.Bucket(); b.Of > 0 {
		if cfg.group.Of > 0 {
			return nil, invalid("WithGroup does not go with a bucket of a cluster, which is a group already")
		}
		cfg.group, cfg.prefix = scripts.Group(b), cfg.prefix+b.Tag()
	}
	if cfg.clock == nil {
		cfg.clock = p.Clock()
	}
	if err := cfg.check(); err != nil {
		return nil, err
	}
	first, err := firstConfig(p, &cfg)
	if err != nil {
		return nil, err
	}
	timeout := time.Duration(0)
	for _, i := range first.Order {
		timeout = max(timeout, p.Timeout(i))
		if p.FailsOver(i) && (cfg.guard == 0 || cfg.remembers(p.Addr(i))) {
			return nil, invalid("%s is behind sentinels: a failover loses the last writes, so it needs the restart guard; "+
				"leave out WithoutGuard, and WithDurableMasters for it", p.Addr(i))
		}
	}
	id, err := uuid.NewRandom()
	if err != nil {
		return nil, err
	}
	l := &Locker{
		pool: p, cfg: cfg, ballots: ballot.New(first.Rule.All()), changing: make(chan struct{}, 1),
		connectBy: time.Now().Add(timeout),
		life:      life{closing: make(chan struct{}), closed: make(chan struct{})},
	}
	l.cfg.clock = l.ballots.Counting(cfg.clock)
	l.build(first, id.String())
	l.warnings = unwise(&l.cfg, first, p)
	for _, w := range l.warnings {
		l.events.Log(slog.LevelWarn, w)
		post(l.events, l.cfg.trace.Warning, w)
	}
	l.journal.watch(l.voters.View())
	idle := make(chan struct{})
	l.calls.Store(1)
	l.idle = sync.OnceFunc(func() { close(idle) })
	go func() {
		defer close(l.closed)
		l.voters.Run()
		<-idle
		<-l.grants.Ended()
		<-l.events.Idle()
	}()
	return l, nil
}

// build makes the parts of l and joins them.
func (l *Locker) build(first *quorum.Config, id string) {
	prefix := scripts.Prefix(l.cfg.prefix)
	l.events = &events{
		Queue: dispatch.New(l.cfg.log.Handler(), slog.String("owner", l.cfg.label)),
		trace: l.cfg.trace, clock: l.cfg.clock, addr: l.pool.Addr,
	}
	l.journal = &journal{Queue: l.events.Queue, addr: l.pool.Addr, quorumFunc: l.noQuorum}
	if l.cfg.group.Of > 0 {
		l.member = &spread.Member{Group: l.cfg.group, AgainFunc: func() { l.voters.Again() }}
	}
	l.voters = voters.New(voters.Settings{
		Pool: l.pool, Clock: l.cfg.clock, Clocks: l.ballots.Clocks, Prefix: prefix, Guard: l.cfg.guard,
		Durable: l.cfg.remembers, Observer: l.cfg.observer, OnView: l.viewed, Closed: ErrClosed,
		Group: l.cfg.group, AgreedFunc: l.member.Agreed,
	}, first)
	l.sender = &round.Sender{Pool: l.pool, Clock: l.cfg.clock, Doubt: l.voters.Doubt}
	if l.cfg.trace.Vote != nil {
		l.sender.OnVote = l.events.vote
	}
	l.grants = grant.NewKeeper(grant.Env{
		Sender: l.sender, Clock: l.cfg.clock, Drift: l.cfg.drift, Ballots: l.ballots, View: l.voters.View, Prefix: prefix,
		Owner: id, Label: l.cfg.label, Closing: l.closing, Events: l.events,
		Enter: func() { l.calls.Add(1) }, Leave: l.leave,
	})
	l.queue = queue.New(queue.Env{
		Keeper: l.grants, Ready: l.voters.Ready, Changed: l.voters.Changed,
		Listen: func() queue.Subscription { return l.pool.Subscribe(prefix.Inbox(id), &listener{l.queue, prefix}) },
	})
	l.grants.Waiters = l.queue
}

// viewed is told of each new View. It tells of the masters whose state has changed.
func (l *Locker) viewed(last, next *admission.View) {
	l.grants.Changed(last, next)
	if l.member != nil {
		l.member.See(next.Named, next.Begun, next.Other)
	}
	l.journal.viewed(last, next)
	if l.cfg.trace.Master == nil {
		return
	}
	for i := range (next.Config.Rule.All() | next.Config.Follow.All()).All() {
		if st := &next.Masters[i]; i >= len(last.Masters) || last.Masters[i].Phase != st.Phase {
			post(l.events, l.cfg.trace.Master, l.masterInfo(i, st))
		}
	}
}

// noQuorum says which masters do not vote, and why. It reports false once l is closed.
func (l *Locker) noQuorum() (*round.Failure, bool) {
	if !l.enter() {
		return nil, false
	}
	defer l.leave()
	return l.sender.NoQuorum(l.voters.View(), "vote", nil), true
}

// A listener passes what the inbox gets on to the queue.
type listener struct {
	*queue.Queue // for Gap
	prefix       scripts.Prefix
}

// Message implements pool.Listener.
func (l *listener) Message(master int, _, payload string) {
	if h, ok := l.prefix.ParseHint(payload); ok {
		l.Hint(master, h)
	}
}

// unwise tells what is unwise in an allowed configuration over these masters.
func unwise(c *config, first *quorum.Config, p *pool.Pool) (warnings []string) {
	var known []string
	for _, i := range first.Order {
		known = append(known, p.Addr(i))
	}
	add := func(format string, args ...any) {
		warnings = append(warnings, fmt.Sprintf("redlock: "+format, args...))
	}
	if p.Bucket().Number > 1 {
		return nil // the first bucket has said it
	}
	for _, set := range first.Rule.Sets() { // two while the masters are changed: a majority of each is needed
		switch n := set.Len(); {
		case n == 1 && slices.ContainsFunc(first.Order, p.FailsOver):
			add("one master, which others replace: no lock can be taken for the guard time after each failover")
		case n == 1:
			add("one master: no failure of it is survived, and the lock is as safe as that one server")
		case n%2 == 0:
			add("%d masters survive the loss of %d, as %d would; use an odd number", n, (n-1)/2, n-1)
		}
	}
	if c.guard == 0 && len(known) > 1 {
		add("the restart guard is off: a master that restarts empty can give a held lock away")
	}
	for _, name := range c.durable {
		if !slices.Contains(known, name) {
			add("%q is named by WithDurableMasters, and is none of the masters %q", name, known)
		}
	}
	return append(warnings, p.Warnings()...)
}

// Warnings tells what is unwise about the configuration, a sentence each; none is the usual case.
func (l *Locker) Warnings() []string { return slices.Clone(l.warnings) }

// enter begins a call and reports whether the Locker is open. leave ends the call; where enter reports false it is
// ended already.
func (l *life) enter() bool {
	l.calls.Add(1)
	select {
	case <-l.closing:
		l.leave()
		return false
	default:
		return true
	}
}

func (l *life) leave() {
	if l.calls.Add(-1) == 0 {
		l.idle()
	}
}

// Lock takes the lock of name. It waits while another holds it, and while no quorum of masters can be had, until ctx
// ends, [WithWaitLimit] is over, or its tries are used up ([WithTries], [WithBackoff]). Calls without a bound of tries
// wait their turn, first behind those of this Locker, then in the masters' queues. A call that gives up leaves the
// queues; a master that cannot be told forgets it 20 s after its last ask. With a context of [Lock.Context]
// that owns the name it re-enters the lock instead: one more Unlock is then needed, and of the options the TTL, the
// minimum validity and the retries apply, while extension and maximum hold stay those of the outermost Lock.
//
// Errors: ErrInvalidOption before anything is sent; an error that wraps that of ctx where ctx ended the wait,
// together with what the masters said last; ErrHeld, ErrNoQuorum or ErrTooSlow when the tries are used up;
// ErrGuardTime at once where a quorum refuses the TTL; ErrLost, ErrReleased or ErrExported for a context whose lock
// has ended; ErrClosed. On failure nothing is held: what some masters granted is being rolled back. A master that
// cannot be told of it frees the name when the TTL is over.
func (l *Locker) Lock(ctx context.Context, name string, opts ...LockOption) (*Lock, error) {
	return l.take(ctx, name, scripts.Plain, opts, true)
}

// TryLock takes the lock of name without waiting for another holder. It gets a free name only if no other client waits
// for it, and sends nothing if this Locker holds the name.
//
// Of any number of clients that call TryLock at one instant, one gets a free name. If the votes are split between them,
// so that no client has a majority, TryLock asks again after short random pauses, for half a second at most, or for
// [WithWaitLimit]. A new Locker also waits for masters that are still connecting, for one timeout of the pool at most.
//
// Errors are those of [Locker.Lock]. [ErrHeld] means that another lease has a majority of the masters; [ErrNoQuorum]
// that too few masters can vote, or that the votes stayed split.
//
// A Locker has a bounded number of attempts under way, 64 to 1024, fewer the longer their replies take. Beyond that
// Lock waits until ctx ends, and TryLock for as long as a silent master counts as up ([pool.WithTimeout]); then TryLock
// fails with [ErrOverloaded].
func (l *Locker) TryLock(ctx context.Context, name string, opts ...LockOption) (*Lock, error) {
	return l.take(ctx, name, scripts.Plain, opts, false)
}

// Do runs f while holding the lock of name. The context that f gets ends when the lock is lost, with the cause
// [ErrLost], and owns the name. A panic of f releases the lock.
//
// Do returns the error of f, joined with a [*LockError] of the Op "do" if the lock ended before f returned: ErrLost, or
// ErrClosed. If the lock could not be acquired, f does not run, and Do returns the error of Lock. So a LockError in the
// result is about this lock: errors of this package that f returns are about other locks, and errors.Is and errors.As do
// not find them in the result, which has their text. A release that no quorum confirmed in time is no error of Do: it is
// delivered in the background, logged and counted ([Stats.Unconfirmed]).
//
// ctx bounds the wait and the work. For work that goes on when the client of a request has gone, give Do
// context.WithoutCancel(ctx) and [WithWaitLimit].
func (l *Locker) Do(
	ctx context.Context, name string, f func(ctx context.Context) error, opts ...LockOption,
) error {
	return l.do(ctx, name, scripts.Plain, f, opts)
}

// do is Do, of Shared too.
func (l *Locker) do(
	ctx context.Context, name string, role scripts.Role, f func(ctx context.Context) error, opts []LockOption,
) error {
	ctx = l.events.within(ctx, name)
	if l.cfg.trace.Call == nil {
		return l.within(ctx, name, role, f, opts)
	}
	return l.events.call(ctx, "do", name, func(*tracedCall) error {
		return l.within(ctx, name, role, f, opts)
	})
}

// within is do without its trace.
func (l *Locker) within(
	ctx context.Context, name string, role scripts.Role, f func(ctx context.Context) error, opts []LockOption,
) error {
	lock, err := l.take(ctx, name, role, opts, true)
	if err != nil {
		return err
	}
	return lock.during(ctx, f)
}

// take is Lock and TryLock, of Shared too.
func (l *Locker) take(
	ctx context.Context, name string, role scripts.Role, opts []LockOption, wait bool,
) (*Lock, error) {
	if l.cfg.trace.Call == nil {
		return l.acquire(ctx, name, role, opts, wait, nil)
	}
	return l.events.acquiring(ctx, opOf(role, wait), name, func(c *grant.Course) (*Lock, error) {
		return l.acquire(ctx, name, role, opts, wait, c)
	})
}

// acquire is take without its trace.
func (l *Locker) acquire(
	ctx context.Context, name string, role scripts.Role, opts []LockOption, wait bool, course *grant.Course,
) (*Lock, error) {
	called := l.cfg.clock.Now() // first of all: a caller that the system stops later keeps its turn
	if err := l.checkName(name); err != nil {
		return nil, err
	}
	cfg, err := l.cfg.lock.with(opts, &l.cfg)
	if err == nil && role != scripts.Plain {
		cfg, err = cfg.shared()
	}
	if err != nil {
		return nil, err
	}
	if !l.enter() {
		return nil, ErrClosed
	}
	defer l.leave()
	if l.drains.Load() && !grant.Owns(ctx, l.grants) {
		return nil, ErrClosed
	}
	if ctx.Err() != nil {
		return nil, &LockError{Op: "lock", Name: name, Cause: contextError(ctx)}
	}
	if wait && grant.OutOfOrder(ctx, l.grants, name) {
		return nil, &LockError{Op: "lock", Name: name, Decision: ErrOrder}
	}
	own := grant.Owner(ctx, l.grants, name)
	if err := mayEnter(own, role); err != nil {
		return nil, &LockError{Op: "lock", Name: name, Decision: err}
	}
	caller := ctx
	ctx, cancel := cfg.limited(caller)
	defer cancel()
	for {
		k, waits := &Lock{l: l, keys: scripts.Prefix(l.cfg.prefix).KeysOf(name, role)}, false
		switch {
		case own != nil && !l.cfg.reentry:
			return nil, &LockError{Op: "lock", Name: name, Decision: ErrReentry}
		case own != nil:
			err = l.repeat(ctx, "re-enter", name, cfg, !wait, func() error {
				return own.Reenter(ctx, &k.handle, &cfg.Terms)
			})
		case wait && !cfg.bounded():
			waits = true
			err = l.queue.Lock(ctx, &queue.Call{
				Name: name, Keys: &k.keys, Terms: &cfg.Terms, Handle: &k.handle, Priority: cfg.priority,
				Fair: cfg.fair || cfg.MinHold > 0, Called: called, PausesFunc: cfg.delays.pauses, Course: course,
			})
		default:
			err = l.repeat(ctx, "lock", name, cfg, !wait, func() error { return l.try(ctx, name, cfg, k, course, wait) })
		}
		if err == nil {
			if k, err = l.stillGood(k, cfg); err == nil {
				return k, nil
			}
		}
		if err = l.refusal(name, err); !waits || !l.again(ctx, err) {
			return nil, waited(caller, ctx, err)
		}
	}
}

// again reports, after a pause, whether a call without a bound goes on: it had won, and that was over before it could
// return.
func (l *Locker) again(ctx context.Context, err error) bool {
	var e *LockError
	if !errors.As(err, &e) || e.Cause != nil || errors.Is(err, ErrMaxHold) ||
		!errors.Is(err, ErrLost) && !errors.Is(err, ErrTooSlow) {
		return false
	}
	select {
	case <-time.After(DefaultDelays.Fixed):
	case <-ctx.Done():
	case <-l.closing:
	}
	return true
}

// refusal is the error of a call that did not get the lock. Where this Locker itself holds the name, it says so.
func (l *Locker) refusal(name string, err error) error {
	err = failed("lock", name, err)
	var e *LockError
	held := errors.As(err, &e) && errors.Is(e.Decision, ErrHeld) && !errors.Is(err, ErrKind)
	if g := l.queue.Holder(name); g != nil && held {
		i := g.Info()
		e.Here, e.Left, e.Since = true, max(0, i.Left), time.UnixMicro(i.Token)
		_, e.Holder = scripts.GrantLabel(g.ID)
	}
	return err
}

// stillGood returns k if it still has the wanted validity at this instant, whatever has passed since it was granted.
// Else it releases k.
func (l *Locker) stillGood(k *Lock, cfg *lockConfig) (*Lock, error) {
	if k.good(cfg) {
		return k, nil
	}
	closed := errors.Is(k.Err(), ErrClosed)
	k.drop()
	if closed {
		return nil, ErrClosed
	}
	return nil, &LockError{Op: "lock", Name: k.Name(), Decision: ErrTooSlow}
}

// good reports whether k has at least the wanted validity at this instant.
func (k *Lock) good(cfg *lockConfig) bool {
	return k.Remaining() > 0 && k.handle.Validity() >= cfg.Least
}

// try makes one decided attempt without waiting in the queues. A call that does not wait gives up with ErrOverloaded if
// it has no turn within the time after which a silent master counts as down.
func (l *Locker) try(
	ctx context.Context, name string, cfg *lockConfig, k *Lock, course *grant.Course, wait bool,
) error {
	view, err := l.settled(ctx)
	if err != nil {
		return l.sender.NoQuorum(view, "lock", err)
	}
	a := &grant.Ask{Op: "lock", Name: name, Keys: &k.keys, Terms: &cfg.Terms, Course: course}
	if !wait {
		a.Patience = view.Config.Slowest
	}
	if k.keys.Role() != scripts.Plain {
		return l.attempt(ctx, a, k, cfg)
	}
	if err := l.heldHere(name); err != nil {
		return err
	}
	return l.queue.Share(ctx, name, func() error {
		if err := l.heldHere(name); err != nil {
			return err
		}
		return l.attempt(ctx, a, k, cfg)
	})
}

// heldHere returns the failure of a call for a name that this Locker holds: the masters need not be asked.
func (l *Locker) heldHere(name string) error {
	g := l.queue.Holder(name)
	if g == nil {
		return nil
	}
	i, rule := g.Info(), l.voters.View().Config.Rule
	return &round.Failure{
		Decision: ErrHeld, Quorum: rule.Least(), N: rule.N(), Left: i.Left, Holder: g.ID, Token: i.Token,
	}
}

// attempt asks until the votes decide, and makes k the first lock of what was granted.
func (l *Locker) attempt(ctx context.Context, a *grant.Ask, k *Lock, cfg *lockConfig) error {
	g, err := l.queue.Try(ctx, a, cmp.Or(cfg.waitLimit, queue.DefaultUndecided))
	if err != nil {
		return err
	}
	return l.begin(g, k, cfg)
}

// settled returns the view once a quorum votes or none can be expected. A new Locker also waits for the masters that are
// still connecting, for one timeout at most: votes of all masters decide more often than those of a bare quorum.
func (l *Locker) settled(ctx context.Context) (*admission.View, error) {
	if left := time.Until(l.connectBy); left > 0 {
		connecting, cancel := context.WithTimeout(ctx, left)
		defer cancel()
		_, _ = l.voters.Await(connecting, (*admission.View).Settled)
	}
	return l.voters.Ready(ctx)
}

// begin makes k the first lock of g, which a quorum has granted.
func (l *Locker) begin(g *grant.Grant, k *Lock, cfg *lockConfig) error {
	if g.Role() == scripts.Plain {
		l.queue.Held(g)
	}
	err := g.Begin(&k.handle, &cfg.Terms)
	if err != nil {
		l.queue.Over(g)
	}
	return err
}

// Close frees the locks of functions of [Locker.Do] that are still running: their contexts end with the cause
// [ErrClosed], and another client may hold the name at once. To shut down, stop the work first, and then close:
//
//	server.Shutdown(ctx) // or cancel the context of the work, and wait for it
//	locker.Drain(ctx)    // waits for the locks that are still held
//	pool.Close()
//
// Close releases every lock that is held, all at once, and joins the goroutines of the Locker. Calls that wait return
// ErrClosed.
//
// The releases are sent first, whatever the state of ctx. Then Close waits until each master has answered to them and
// the calls under way have returned, or until ctx ends: then it returns the error of ctx, and what a master has not
// got is owed to it by the pool. A second Close waits like the first. The pool stays open.
func (l *Locker) Close(ctx context.Context) error {
	l.once.Do(func() {
		close(l.closing)
		l.grants.EndAll()
		l.queue.Close()
		l.journal.close()
		l.voters.Close()
		l.leave()
	})
	select {
	case <-l.closed:
		return nil
	case <-ctx.Done():
		return l.stopped("close", contextError(ctx))
	}
}

// drainPoll is how often Drain looks whether the locks have ended.
const drainPoll = 10 * time.Millisecond

// Drain waits until no lock is held and no call is under way, and then closes the Locker as [Locker.Close] does.
//
// From now on new calls that acquire a lock return [ErrClosed]. Those with a context of a lock that is held
// ([Lock.Context], or that of a function of [Locker.Do]) still work, so that the work under way can finish, and calls
// that wait for a lock go on. [Locker.Lead] ends with its context: cancel that before. If ctx ends first, the locks
// that are left end as by Close, and Drain returns the error of ctx. Drain may be called more than once, and
// concurrently with Close.
func (l *Locker) Drain(ctx context.Context) error {
	l.drains.Store(true)
	tick := time.NewTicker(drainPoll)
	defer tick.Stop()
	for len(l.grants.All()) > 0 || l.calls.Load() > 1 {
		select {
		case <-tick.C:
			continue
		case <-ctx.Done():
		case <-l.closing:
		}
		break
	}
	return l.Close(ctx)
}
