package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/redlock-go/redlock/internal/admission"
	"github.com/redlock-go/redlock/internal/ballot"
	"github.com/redlock-go/redlock/internal/dispatch"
	"github.com/redlock-go/redlock/internal/lease"
	"github.com/redlock-go/redlock/internal/monitor"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/round"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/internal/transport/fault"
	"github.com/redlock-go/redlock/internal/waitqueue"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// A shard acquires locks on the masters of one pool. A Locker has one or more shards.
type shard struct {
	pool     *transport.Transport
	cfg      config
	warnings []warning

	ballots *ballot.Ballots
	voters  *monitor.Monitor
	sender  *round.Sender
	leases  *lease.Manager
	queue   *waitqueue.Queue
	events  *events
	journal *journal

	connectBy time.Time // until this time, calls that do not queue wait for masters that are still connecting

	outage        outage
	warnedGuarded bool // whether warnGuarded has warned; only onView uses it

	probing  chan struct{} // cap 1: one probe at a time
	rechecks atomic.Bool   // whether a call of recheck is scheduled
	changing chan struct{} // cap 1: one change of the masters at a time
	work     *work         // of the Locker
	lifecycle
}

// A work counts the calls of a Locker that acquire locks, for Shutdown. A call counts until it returns, on whichever
// shards it acquires locks, and even while it runs a function of the caller. All shards of the Locker share one work.
type work struct {
	stops        atomic.Bool // whether Shutdown was called
	began, ended atomic.Int64
}

// A lifecycle tracks the calls under way in one shard, for Close.
type lifecycle struct {
	calls    atomic.Int64  // number of calls under way and unanswered messages, plus 1 until Close has sent all releases
	answered atomic.Int64  // number of messages that have been answered
	closing  chan struct{} // closed when Close begins: waiting calls give up
	idle     func()        // is called when calls reaches 0; Close waits for that
	closed   chan struct{} // closed when all goroutines of the Locker have ended
}

// newShard returns a shard over the masters of t. The caller must call its start method.
func newShard(t *transport.Transport, cfg config) (*shard, error) {
	if cfg.clock == nil {
		cfg.clock = t.Clock()
	}
	switch n := t.Unguarded(); {
	case n > 0 && n < t.N():
		return nil, invalid("guard=off is in the URLs of %d of %d masters: give it to all of them or to none", n, t.N())
	case n > 0:
		cfg.guard, cfg.noGuard = 0, true
	}
	if cfg.noGuard && cfg.layout.Of > 0 {
		return nil, invalid("shards exclude WithoutRestartGuard and guard=off: the admission records keep clients with " +
			"different numbers of shards apart")
	}
	if err := cfg.check(); err != nil {
		return nil, err
	}
	first, err := firstConfig(t, &cfg)
	if err != nil {
		return nil, err
	}
	defer leave(t, first)
	for _, i := range first.Order {
		if t.FailsOver(i) && (cfg.guard == 0 || cfg.remembers(t.Addr(i))) {
			return nil, invalid("%s is behind sentinels: a failover loses the last writes, so it needs the restart guard; "+
				"leave out WithoutRestartGuard, and WithDurableMasters for it", t.Addr(i))
		}
	}
	id, err := uuid.NewRandom()
	if err != nil {
		return nil, err
	}
	l := &shard{
		pool: t, cfg: cfg, ballots: ballot.New(first.Rule), changing: make(chan struct{}, 1),
		probing:   make(chan struct{}, 1),
		connectBy: time.Now().Add(first.Slowest),
		lifecycle: lifecycle{closing: make(chan struct{}), closed: make(chan struct{})},
	}
	l.cfg.clock = l.ballots.Counting(cfg.clock)
	l.introduce(first)
	l.build(first, id.String())
	return l, nil
}

// start starts the monitor of the masters. After Close, when the monitor has stopped and all calls, leases and events
// have ended, l.closed is closed.
func (l *shard) start() {
	idle := make(chan struct{})
	l.calls.Store(1)
	l.idle = sync.OnceFunc(func() { close(idle) })
	l.noteQuorum()
	l.journal.watch()
	go func() {
		defer close(l.closed)
		l.voters.Run()
		<-idle
		<-l.leases.Stopped()
		<-l.events.Idle()
	}()
}

// build makes the components of l and connects them. id identifies the Locker on the masters.
func (l *shard) build(first *quorum.Config, id string) {
	prefix := scripts.Prefix(l.cfg.prefix)
	l.events = &events{
		Queue: dispatch.New(l.cfg.log.Handler(), slog.String("label", l.cfg.label)),
		trace: l.cfg.trace, clock: l.cfg.clock, addr: l.pool.Addr,
	}
	l.journal = &journal{Queue: l.events.Queue, shortage: l.shortage, addr: l.pool.Addr, lossy: map[int]string{},
		away: map[int]*time.Timer{}}
	l.voters = monitor.New(monitor.Settings{
		Pool: l.pool, Clock: l.cfg.clock, Clocks: l.ballots.Clocks, Prefix: prefix, MaxTTL: l.cfg.guard,
		Durable: l.cfg.remembers, Observer: l.cfg.observer, OnView: l.onView, Closed: errClosed,
		Shard: l.cfg.layout, Shards: l.cfg.shards, OnRefused: func(i int) { l.sender.Health.Doubt(i) },
	}, first)
	l.journal.view = l.voters.View
	l.sender = &round.Sender{
		Pool: l.pool, Clock: l.cfg.clock, Doubt: l.voters.Doubt, Quarantine: l.quarantineLeft,
		Health: round.NewHealth(l.healthChanged),
	}
	if l.cfg.trace.Event != nil {
		l.sender.OnVote = l.events.vote
	}
	l.leases = lease.NewManager(lease.Env{
		Sender: l.sender, Clock: l.cfg.clock, Ballots: l.ballots, View: l.voters.View, Prefix: prefix,
		Owner: id, Label: l.cfg.label, Closing: l.closing, Events: l.events,
		Enter: func() { l.calls.Add(1) }, Leave: l.messageAnswered,
	})
	l.queue = waitqueue.New(waitqueue.Env{
		Manager: l.leases, Ready: l.voters.Ready, Changed: l.voters.Changed,
		Subscribe: func() waitqueue.Subscription { return l.pool.Subscribe(prefix.Inbox(id), &listener{l.queue, prefix}) },
		Starved:   l.journal.starved, OwnHold: l.events.ownHold,
	})
	l.leases.Waiters = l.queue
}

// onView handles a new View. It informs the leases, and logs and traces each master whose state has changed.
func (l *shard) onView(last, next *admission.View) {
	l.leases.Changed(last, next)
	if last.Config != next.Config {
		l.introduce(next.Config)
	}
	for i := range (next.Config.Rule.All() | next.Config.Tracked.All()).All() {
		st, before := &next.Masters[i], admission.State{}
		if i < len(last.Masters) {
			before = last.Masters[i]
		}
		if i >= len(last.Masters) || before.Phase != st.Phase || clockChanged(&before, st) {
			m := l.masterInfo(i, st)
			l.journal.changed(i, &before, st, &m)
			l.events.master(&m)
		}
	}
	l.noteQuorum()
	l.journal.durable(next)
	l.journal.watch()
	l.warnGuarded(next)
}

// warnGuarded warns once if the restart guard of l is off, but admission records show clients that have it on.
func (l *shard) warnGuarded(next *admission.View) {
	var guarded []string
	for _, i := range next.Config.Order {
		if next.Masters[i].Guarded {
			guarded = append(guarded, l.pool.Addr(i))
		}
	}
	if len(guarded) > 0 && !l.warnedGuarded {
		l.warnedGuarded = true
		l.events.Log(slog.LevelWarn, guardedByOthers, slog.String("master", strings.Join(guarded, ", ")),
			slog.String("hint", "after a restart of a master two clients may hold a lock: turn the guard on or off in all "+
				"clients; if it is off in all, delete the admission records"))
		l.events.post(redlockinfo.Event{Kind: "warning", Err: errors.New(guardedByOthers)})
	}
}

const guardedByOthers = "redlock: the restart guard is off here, but admission records show clients with the guard on"

// hash returns the hash of everything in c on which two clients must agree.
func (l *shard) hash(c *quorum.Config) string {
	return scripts.Configuration{Shard: l.cfg.layout, Masters: c.Masters, Next: c.Next, Epoch: c.Epoch}.Hash()
}

// introduce names the connections of the pool after this client and its configuration c.
func (l *shard) introduce(c *quorum.Config) {
	n := &transport.ClientName{
		Label: l.cfg.label, Prefix: l.cfg.prefix, Epoch: c.Epoch, Observer: l.cfg.observer,
		List: l.hash(c),
	}
	if l.cfg.layout.Of > 0 {
		n.Shard = l.cfg.layout.String()
	}
	l.pool.SetClientName(l, n)
}

// shortage returns the attributes of a log record that explain why no lock can be acquired: no majority of the masters
// can grant a lock, or calls wait without a quorum. It returns nil if locks can be acquired, or if l is closed.
func (l *shard) shortage() []slog.Attr {
	if !l.enter() {
		return nil
	}
	defer l.leave()
	view := l.voters.View()
	able, waiting := l.sender.Able(view), l.queue.Waiting()
	quorate := view.Config.Rule.Won(able)
	if quorate && waiting.NoQuorum == 0 {
		return nil
	}
	var unable troubles
	known := map[string]bool{} // the masters in unable
	for _, i := range view.Config.Order {
		if m := l.masterInfo(i, &view.Masters[i]); m.State != admission.Voting.String() {
			unable.add(troubleOf(&m))
			known[m.Addr] = true
		}
	}
	attrs := []slog.Attr{
		slog.Int("able", able.Len()), slog.Int("needed", view.Config.Rule.Least()),
		slog.Int("waiting", waiting.NoQuorum), slog.Any("masters", unable),
	}
	if f := waiting.Failure; f != nil { // why one of the calls waits, unless the states of the masters say it
		others := slices.DeleteFunc(slices.Clone(f.Masters), func(err error) bool {
			name, _ := addressed(err)
			return known[name]
		})
		if len(others) > 0 || len(f.Masters) == 0 {
			reasons := strings.Join(append([]string{plain(f.Decision)}, joined(others)...), "; ")
			attrs = append(attrs, slog.String("reason", shortened(reasons, 2*mostReason)))
		}
	}
	if !quorate && !view.Voted && errors.Is(l.sender.NoQuorum(view, "vote", nil), errQuarantine) {
		attrs = append(attrs, slog.String("hint", mayAdmit))
	}
	return attrs
}

// A listener passes messages of the Locker's inbox to the queue.
type listener struct {
	*waitqueue.Queue // implements Resubscribed
	prefix           scripts.Prefix
}

// Message implements feed.Listener.
func (l *listener) Message(master int, _, payload string) {
	if h, ok := l.prefix.ParseWakeUp(payload); ok {
		l.WakeUp(master, h)
	}
}

// enter begins a call and reports whether the Locker is open. The caller must call leave only if enter returns true.
func (l *lifecycle) enter() bool {
	l.calls.Add(1)
	select {
	case <-l.closing:
		l.leave()
		return false
	default:
		return true
	}
}

func (l *lifecycle) leave() {
	if l.calls.Add(-1) == 0 {
		l.idle()
	}
}

// messageAnswered ends a message.
func (l *lifecycle) messageAnswered() {
	l.answered.Add(1)
	l.leave()
}

// beginWork begins a call that acquires locks, for which Shutdown waits. If Shutdown was called before, and ctx owns no
// lock of the Locker, beginWork returns ErrClosed. Otherwise the caller must call endWork.
func (l *shard) beginWork(ctx context.Context, op, name string) error {
	l.work.began.Add(1)
	if l.work.stops.Load() && !lease.Owns(ctx, l.leases) {
		l.work.began.Add(-1)
		return l.events.call(ctx, op, name, func(*tracedCall) error { return errClosed })
	}
	return nil
}

// endWork ends a call that has begun.
func (l *shard) endWork() { l.work.ended.Add(1) }

// rest waits for d. If ctx ends or Close is called first, it returns the reason.
func (l *lifecycle) rest(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return contextError(ctx)
	case <-l.closing:
		return errClosed
	}
}

// A lockAndCall is a Lock and the waiting call for it, in one allocation.
type lockAndCall struct {
	Lock
	waitqueue.Call
}

// take implements Lock and TryLock of Locker and RWLock. stats records the rounds of the call. If stats is nil, the
// call is not part of a larger call, and take traces it.
func (l *shard) take(
	ctx context.Context, name string, role scripts.Role, opts []LockOption, wait bool, stats *lease.AcquireStats,
) (*Lock, error) {
	if stats == nil && l.cfg.trace.Event != nil {
		return l.events.acquiring(ctx, opOf(role, wait), name, func(s *lease.AcquireStats) (*Lock, error) {
			return l.take(ctx, name, role, opts, wait, s)
		})
	}
	called := l.cfg.clock.Now() // read first: a caller that is paused later keeps its place in the queues
	cfg, err := l.configOf(name, role, opts)
	if err != nil {
		return nil, err
	}
	if !l.enter() {
		return nil, errClosed
	}
	defer l.leave()
	own, err := l.owned(ctx, name, role, cfg, wait)
	if err != nil {
		return nil, err
	}
	caller := ctx
	ctx, cancel := l.limited(caller, cfg)
	defer cancel()
	for {
		both, waits := &lockAndCall{}, false
		k, call := &both.Lock, &both.Call
		k.init(l, name, role)
		switch {
		case own != nil:
			err = l.repeat(ctx, "re-enter", name, cfg, !wait, func() error {
				return own.Reenter(ctx, &k.hold, &cfg.Terms, l.patience(wait))
			})
		case wait && !cfg.bounded():
			waits = true
			*call = waitqueue.Call{
				Name: name, Keys: &k.keys, Terms: &cfg.Terms, Hold: &k.hold, Priority: cfg.priority,
				Fair: cfg.fair || cfg.MinHold > 0, Called: cmp.Or(cfg.called, called), Poll: cfg.poll, Stats: stats,
			}
			err = l.queue.Lock(ctx, call)
		default:
			err = l.repeat(ctx, "lock", name, cfg, !wait, func() error { return l.try(ctx, name, cfg, k, stats, wait) })
		}
		if err == nil {
			if k, err = l.stillGood(k, cfg); err == nil {
				return k, nil
			}
		}
		if err = l.refusal(name, err); !waits || !l.again(ctx, err) {
			return nil, l.waited(caller, ctx, err)
		}
	}
}

// owned returns the lock of the name that ctx owns, for a re-entry, or nil if ctx owns none. It fails if ctx has ended,
// or if a call with ctx must not lock the name. It sends nothing.
func (l *shard) owned(
	ctx context.Context, name string, role scripts.Role, cfg *lockConfig, wait bool,
) (*lease.Hold, error) {
	own, has := lease.InnermostOf(ctx, l.leases, name), role
	if own != nil {
		has = own.Lease().Role()
		if ended := own.Err(); ended != nil && (ctx.Err() == nil || errors.Is(context.Cause(ctx), ended)) {
			return nil, lockError("lock", name, fromEnded(ended, ctx))
		}
	}
	switch {
	case ctx.Err() != nil:
		return nil, failed("lock", name, &round.Failure{Cause: contextError(ctx)})
	case wait && lease.LockOutOfOrder(ctx, l.leases, name):
		return nil, lockError("lock", name, errOrder)
	case (has == scripts.Plain) != (role == scripts.Plain):
		return nil, lockError("lock", name, ErrKind)
	case has == scripts.Reader && role == scripts.Writer:
		return nil, lockError("lock", name, errUpgrade)
	//mutant:reentry-on-request = false
	case own != nil && !cfg.reentry:
		return nil, lockError("lock", name, ErrReentry)
	}
	return own, nil
}

// fromEnded returns the error of a call whose context is that of a lock of the requested name, which has ended because
// of reason. The error also matches the error of ctx if ctx has ended.
func fromEnded(reason error, ctx context.Context) error {
	text := "redlock: the context is that of a lock of this name, which has ended (" + plain(reason) +
		"): to lock the name again, pass a context that is not derived from the context of that lock"
	if ended := ctx.Err(); ended != nil {
		return fault.New(text, reason, ended)
	}
	return fault.New(text, reason)
}

// again reports whether a waiting call tries again after err: it does if it had won the lock, but the lock ended before
// the call returned. again pauses before it returns true.
func (l *shard) again(ctx context.Context, err error) bool {
	var e *LockError
	if !errors.As(err, &e) || e.failure.Cause != nil || errors.Is(err, ErrMaxHold) ||
		!errors.Is(err, ErrLost) && !errors.Is(err, errTooSlow) {
		return false
	}
	_ = l.rest(ctx, shortestPause) // ignore the error: the next try fails with it
	return true
}

// refusal returns the error of a call that did not get the lock. If this Locker itself holds the name, the error
// describes that lock.
func (l *shard) refusal(name string, err error) error {
	err = failed("lock", name, err)
	var e *LockError
	held := errors.As(err, &e) && errors.Is(e.failure.Decision, ErrHeld)
	if g := l.queue.Holder(name); g != nil && held {
		i := g.Info()
		e.here, e.Left, e.failure.Holder, e.failure.Token = true, max(0, i.Left), g.ID, i.Token
		_, e.Holder = scripts.LeaseLabel(g.ID)
	}
	return err
}

// stillGood returns k if k has the required validity now, since the call may have been paused after the grant.
// Otherwise it releases k.
func (l *shard) stillGood(k *Lock, cfg *lockConfig) (*Lock, error) {
	//mutant:recheck = true
	if k.hold.HasLeft(cfg.Least) {
		return k, nil
	}
	closed := errors.Is(k.Err(), errClosed)
	k.drop()
	if closed {
		return nil, errClosed
	}
	return nil, lockError("lock", k.Name(), errTooSlow)
}

// try makes attempts until the votes decide, without waiting in the queues. If wait is false, it returns ErrOverloaded
// when the limit of concurrent attempts delays an attempt for turnTimeouts timeouts.
func (l *shard) try(
	ctx context.Context, name string, cfg *lockConfig, k *Lock, stats *lease.AcquireStats, wait bool,
) error {
	view, err := l.settled(ctx)
	if err != nil {
		return l.sender.NoQuorum(view, "lock", err)
	}
	a := &lease.Attempt{Op: "lock", Name: name, Keys: &k.keys, Terms: &cfg.Terms, Stats: stats}
	a.Patience = l.patience(wait)
	held := func() error { return nil }
	if k.keys.Role() == scripts.Plain {
		if l.queue.TakeOver(name, &k.hold, &cfg.Terms) {
			return nil
		}
		held = func() error { return l.heldHere(name) }
	}
	if err := held(); err != nil {
		return err
	}
	limit := cmp.Or(cfg.waitLimit, waitqueue.DefaultUndecided)
	if cfg.once {
		limit = 0
	}
	return l.queue.Try(ctx, a, limit, held, func(g *lease.Lease) error { return l.begin(g, k, cfg) })
}

// patience returns how long an attempt may wait for the limit of concurrent attempts; 0 means until its context ends.
func (l *shard) patience(wait bool) time.Duration {
	if wait {
		return 0
	}
	return turnTimeouts * l.voters.View().Config.Slowest
}

// heldHere returns the failure of a call for a name that this Locker itself holds, or nil if it does not hold the name.
// Such a call sends nothing.
func (l *shard) heldHere(name string) error {
	g := l.queue.Holder(name)
	if g == nil {
		return nil
	}
	i, rule := g.Info(), l.voters.View().Config.Rule
	return &round.Failure{
		Decision: ErrHeld, Quorum: rule.Least(), N: rule.N(), Left: i.Left, Holder: g.ID, Token: i.Token,
	}
}

// settled returns the view once a quorum votes, or none can be expected. A new Locker first waits for masters that are
// still connecting, for at most one timeout: the votes of all masters decide more often than those of a bare quorum.
func (l *shard) settled(ctx context.Context) (*admission.View, error) {
	if left := time.Until(l.connectBy); left > 0 {
		connecting, cancel := context.WithTimeout(ctx, left)
		defer cancel()
		_, _ = l.voters.Await(connecting, (*admission.View).AllKnown)
	}
	return l.voters.Ready(ctx)
}

// begin makes k the first lock of g, which a quorum has granted.
func (l *shard) begin(g *lease.Lease, k *Lock, cfg *lockConfig) error {
	if g.Role() == scripts.Plain {
		l.queue.RecordHold(g)
	}
	return k.hold.Start(g, &cfg.Terms)
}

// close ends the shard: see [Locker.Close].
func (l *shard) close() error {
	l.journal.close()
	close(l.closing)
	l.leases.EndAll()
	l.queue.Close()
	l.voters.Close()
	l.pool.SetClientName(l, nil)
	l.leave()
	// The pool answers each message within a timeout, unless it waits in a queue while earlier ones are answered.
	patience := closeTimeouts * l.voters.View().Config.Slowest
	for {
		before := l.answered.Load()
		select {
		case <-l.closed:
			return nil
		case <-time.After(patience):
		}
		if l.answered.Load() == before {
			return fmt.Errorf("redlock: Close gave up after %v: a call or a callback has not returned", patience)
		}
	}
}

// closeTimeouts is the number of timeouts of the pool after which Close gives up if no master has answered meanwhile.
const closeTimeouts = 2

// shutdownPoll is the interval at which Shutdown checks whether all locks and calls have ended.
const shutdownPoll = 10 * time.Millisecond

// unused reports whether no lock is held and no call is under way, in any shard. This remains so once Shutdown was
// called: then only a call under way, or the context of a held lock, can acquire another lock.
func (l *Locker) unused() bool {
	w := l.shards[0].work
	began := w.began.Load()
	if w.ended.Load() != began {
		return false
	}
	for _, s := range l.shards { // after all calls have ended, since a call leaves its lock behind
		if s.calls.Load() > 1 || len(s.leases.All()) > 0 {
			return false
		}
	}
	return w.began.Load() == began
}
