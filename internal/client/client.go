package client

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

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

// A Client acquires locks on one set of masters. A Locker has one or, if it is sharded, several. All methods are safe
// for concurrent use.
type Client struct {
	set      *Set // to which the client belongs
	pool     *transport.Transport
	cfg      Config
	warnings []warning

	ballots *ballot.Ballots
	monitor *monitor.Monitor
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
	lifecycle
}

// A lifecycle tracks the calls under way in one client, for Close.
type lifecycle struct {
	calls   atomic.Int64  // number of calls under way and unanswered messages, plus 1 until Close has sent all releases
	closing chan struct{} // closed when Close begins: waiting calls give up
	idle    func()        // is called when calls reaches 0; Close waits for that
	closed  chan struct{} // closed when all goroutines of the client have ended
}

// newClient returns a client of s for the masters of t. The caller must call its start method.
func (s *Set) newClient(t *transport.Transport, cfg Config) (*Client, error) {
	if cfg.Clock == nil {
		cfg.Clock = t.Clock()
	}
	switch n := t.Unguarded(); {
	case n > 0 && n < t.N():
		return nil, Invalid("guard=off is in the URLs of %d of %d masters: give it to all of them or to none", n, t.N())
	case n > 0:
		cfg.MaxTTL, cfg.Unguarded = 0, true
	}
	if cfg.Unguarded && cfg.Shard.Of > 0 {
		return nil, Invalid("shards exclude WithoutRestartGuard and guard=off: the admission records keep clients with " +
			"different numbers of shards apart")
	}
	if t.Closed() {
		return nil, fault.New("redlock: the pool is closed", fault.ErrInvalid, fault.ErrClosed)
	}
	if err := cfg.check(); err != nil {
		return nil, err
	}
	first, err := firstConfig(t, &cfg)
	if err != nil {
		return nil, err
	}
	defer releaseMasters(t, first)
	for _, i := range first.Order {
		if t.FailsOver(i) && (cfg.MaxTTL == 0 || cfg.remembers(t.Addr(i))) {
			return nil, Invalid("%s is behind sentinels: a failover loses the last writes, so it needs the restart guard; "+
				"leave out WithoutRestartGuard, and WithDurableMasters for it", t.Addr(i))
		}
	}
	id, err := uuid.NewRandom()
	if err != nil {
		return nil, err
	}
	c := &Client{
		set: s, pool: t, cfg: cfg, ballots: ballot.New(first.Rule), changing: make(chan struct{}, 1),
		probing:   make(chan struct{}, 1),
		connectBy: time.Now().Add(first.Slowest),
		lifecycle: lifecycle{closing: make(chan struct{}), closed: make(chan struct{})},
	}
	c.cfg.Clock = c.ballots.Counting(cfg.Clock)
	c.introduce(first)
	c.build(first, id.String())
	return c, nil
}

// start starts the monitor of the masters. After Close, when the monitor has stopped and all calls, leases and events
// have ended, c.closed is closed.
func (c *Client) start() {
	idle := make(chan struct{})
	c.calls.Store(1)
	c.idle = sync.OnceFunc(func() { close(idle) })
	c.noteQuorum()
	c.journal.watch()
	go func() {
		defer close(c.closed)
		c.monitor.Run()
		<-idle
		<-c.leases.Stopped()
		<-c.events.Idle()
	}()
}

// build makes the components of c and connects them. id identifies the client on the masters.
func (c *Client) build(first *quorum.Config, id string) {
	prefix := scripts.Prefix(c.cfg.Prefix)
	c.events = &events{
		Queue: dispatch.New(c.cfg.Log.Handler(), slog.String("label", c.cfg.Label)),
		event: c.cfg.Event, clock: c.cfg.Clock, addr: c.pool.Addr,
	}
	c.journal = &journal{
		Queue: c.events.Queue, shortage: c.shortage, addr: c.pool.Addr, info: c.masterInfo,
		lossy: map[int]string{}, away: map[int]*time.Timer{},
	}
	c.monitor = monitor.New(monitor.Settings{
		Pool: c.pool, Clock: c.cfg.Clock, Clocks: c.ballots.Clocks, Prefix: prefix, MaxTTL: c.cfg.MaxTTL,
		Durable: c.cfg.remembers, Observer: c.cfg.Observer, OnView: c.onView, Closed: lease.ErrClosed,
		Shard: c.cfg.Shard, Shards: &c.set.shards, OnRefused: func(i int) { c.sender.Health.Doubt(i) },
	}, first)
	c.journal.view = c.monitor.View
	c.sender = &round.Sender{
		Pool: c.pool, Clock: c.cfg.Clock, Doubt: c.monitor.Doubt, Quarantine: c.quarantineLeft,
		Health: round.NewHealth(c.healthChanged),
	}
	if c.Traced() {
		c.sender.OnVote = c.events.vote
	}
	c.leases = lease.NewManager(lease.Env{
		Sender: c.sender, Clock: c.cfg.Clock, Ballots: c.ballots, View: c.monitor.View, Prefix: prefix,
		Owner: id, Locker: c.set, Label: c.cfg.Label, Closing: c.closing, Events: c.events,
		Enter: func() { c.calls.Add(1) }, Leave: c.leave,
	})
	c.queue = waitqueue.New(waitqueue.Env{
		Manager: c.leases, Ready: c.monitor.Ready, Changed: c.monitor.Changed,
		Subscribe: func() waitqueue.Subscription { return c.pool.Subscribe(prefix.Inbox(id), c.queue) },
		Starved:   c.journal.starved, OwnHold: c.events.ownHold,
	})
	c.leases.LocalQueue = c.queue
}

// enter begins a call and reports whether the client is open. The caller must call leave only if enter returns true.
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

// Begin begins a call that acquires locks, for which a shutdown of the Set waits. It refuses a nil context. If the
// shutdown has begun before, and ctx owns no lock of the Set, Begin returns ErrClosed, and posts the event of the call.
// After nil, the caller must call [Client.End].
func (c *Client) Begin(ctx context.Context, op redlockinfo.Op, name string) error {
	if err := CheckContext(ctx, op, name); err != nil {
		return err
	}
	c.set.work.began.Add(1)
	if !c.set.work.stops.Load() || lease.Owns(ctx, c.leases) {
		return nil
	}
	c.set.work.began.Add(-1)
	c.Post(redlockinfo.Event{Kind: redlockinfo.KindCall, Context: ctx, Op: op, Name: name, Err: lease.ErrClosed})
	return lease.ErrClosed
}

// BeginInner begins a call on behalf of a held lock, which a shutdown does not refuse.
func (c *Client) BeginInner() { c.set.work.began.Add(1) }

// End ends a call that has begun.
func (c *Client) End() { c.set.work.ended.Add(1) }

// Rest waits for d. If ctx ends or Close is called first, it returns the reason.
func (l *lifecycle) Rest(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return fault.ContextError(ctx)
	case <-l.closing:
		return lease.ErrClosed
	}
}

// close ends the client: see Close of package redlock.
func (c *Client) close() error {
	c.journal.close()
	close(c.closing)
	c.leases.EndAll()
	c.queue.Close()
	c.monitor.Close()
	c.pool.SetClientName(c, nil)
	c.leave()
	// The pool answers each message within a timeout, unless it waits in a queue while earlier ones are answered.
	patience := closeTimeouts * c.monitor.View().Config.Slowest
	for {
		before := c.sender.Health.Answers.Load()
		select {
		case <-c.closed:
			return nil
		case <-time.After(patience):
		}
		if c.sender.Health.Answers.Load() == before {
			return fmt.Errorf("redlock: Close gave up after %v: a call or a callback has not returned", patience)
		}
	}
}

// closeTimeouts is the number of timeouts of the pool after which Close gives up if no master has answered meanwhile.
const closeTimeouts = 2
