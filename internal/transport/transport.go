package transport

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/frame"
	"github.com/redlock-go/redlock/internal/transport/fault"
	"github.com/redlock-go/redlock/internal/transport/feed"
	"github.com/redlock-go/redlock/internal/transport/pipe"
)

// Transport is N masters, made by [New] or [Open]. All methods are safe for concurrent use.
type Transport struct {
	list     atomic.Pointer[[]*master] // by number; the list is replaced by a longer one, never changed
	watchers watchers
	claims   sync.Map // maps the run id of a server to the *master that is connected to it
	hub      feed.Hub
	common   []Option
	bucket   Bucket
	beats    *beats                 // shared by the Transports of the buckets of one cluster; nil: each master has its own
	name     atomic.Pointer[string] // set by SetClientName
	wg       sync.WaitGroup         // the goroutines of the masters

	changeMu sync.Mutex // held by Add, Retain, Release, and Close, and while a name is sent
	ended    bool       // guarded by changeMu
}

// Open calls [New] with masters given as URLs.
func Open(urls []string, opts ...Option) (*Transport, error) {
	masters := make([]Master, len(urls))
	for i, u := range urls {
		masters[i] = URL(u)
	}
	return New(masters, opts...)
}

// New connects to the masters in the background. It does not block, and succeeds even if no master is up. An error
// matches [ErrInvalid]; nothing has been dialled then. The Transport must be closed.
func New(masters []Master, opts ...Option) (*Transport, error) { return build(masters, nil, opts) }

// build implements New. If shared is not nil, sessions with the same server share heartbeats with all Transports that
// use shared.
func build(masters []Master, shared *beats, opts []Option) (*Transport, error) {
	common, configs, err := settings(masters, opts)
	switch {
	case err != nil:
		return nil, err
	case len(masters) == 0:
		return nil, fault.Invalid("there is no master: the list is empty")
	case common.TLS != nil && !slices.ContainsFunc(masters, func(m Master) bool { return m.useTLS }):
		return nil, fault.Invalid("a TLS configuration is given, but no master uses TLS: " +
			"write rediss:// in place of redis://")
	case (common.sentinels.Password != "" || common.sentinels.TLS != nil) &&
		!slices.ContainsFunc(masters, func(m Master) bool { return m.service != "" }):
		return nil, fault.Invalid("credentials or TLS of sentinels are given, but no master has a redis+sentinel:// URL")
	}
	p := &Transport{common: opts, beats: shared}
	name := library
	p.name.Store(&name)
	p.watchers.last, p.watchers.list = make(map[int]Event), make(map[*func(Event)]bool)
	p.list.Store(new([]*master))
	for i, named := range masters {
		p.begin(named, configs[i])
	}
	return p, nil
}

// begin adds the next master and starts it.
func (t *Transport) begin(named Master, cfg Config) (number int) {
	list := *t.list.Load()
	m := &master{Master: named, transport: t, index: len(list), cfg: cfg, beats: cmp.Or(t.beats, new(beats))}
	m.ctx, m.cancel = context.WithCancelCause(context.Background())
	m.state.Store(&connState{err: m.failure("connect", errFirst)})
	source := feed.Source{Target: &m.cfg.Target, Owner: m.owner(), Redial: m.cfg.redial}
	if cfg.Foreign == nil {
		source.IntroductionFunc = func() [][]string { return introduction(t.clientName()) }
	}
	if cfg.failover != nil {
		source.ServerFunc, source.AskFunc = m.server, askServer
	}
	runFeed := t.hub.Add(m.ctx, source)
	longer := append(list[:len(list):len(list)], m)
	t.list.Store(&longer)
	t.wg.Go(m.run)
	t.wg.Go(runFeed)
	if cfg.failover != nil && cfg.failover.finder != nil {
		t.wg.Go(m.follow)
	}
	return m.index
}

func (t *Transport) master(i int) *master { return (*t.list.Load())[i] }

// N returns the number of masters, including retired ones: a master keeps its number, from 0.
func (t *Transport) N() int { return len(*t.list.Load()) }

// Addr returns the name of master i: see [Master]. It contains no credentials.
func (t *Transport) Addr(i int) string { return t.master(i).Name }

// Clock returns the clock set by WithClock. If none was set, it returns nil, which is the real clock.
func (t *Transport) Clock() *clock.Clock { return t.master(0).cfg.clock }

// Timeout returns the timeout of master i; see [WithTimeout].
func (t *Transport) Timeout(i int) time.Duration { return t.master(i).cfg.timeout }

// QueueLimit returns the smallest queue limit of the masters; see [WithQueueLimit].
func (t *Transport) QueueLimit() int {
	by := func(a, b *master) int { return cmp.Compare(a.cfg.queueLimit, b.cfg.queueLimit) }
	return slices.MinFunc(*t.list.Load(), by).cfg.queueLimit
}

// Stamp is the part of a call that differs between masters: the stamp of the master's admission record, valid on one
// session only. Session 0 means any session.
type Stamp struct {
	Session uint64
	Text    string
}

// Receiver gets the reply of each Send that returned nil, exactly once, from the goroutine of the master's connection:
// as redigo decodes it, or an error, which is always a *[Error]. Reply must not block, and may call only the methods
// Send, AddPending, Pending, N and Addr of the Transport. No lock of the Transport is held.
type Receiver = pipe.Receiver

// Send queues one call to master i. It never blocks. If it returns an error, a *[Error], nothing will be written, and
// Reply will not be called: the master is down (with the reason), connecting or retired, its queue is full, the
// Transport is closed, or the session is not the stamped one. The call must not be changed afterwards.
//
// Calls to one master are written in the order of their Sends, except that a call which the master answers with
// NOSCRIPT is written again, with the script's text, after the calls that are queued by then. An acquire is not
// written again, because it could then run after its own release and take the lock for no holder. Instead, its
// Receiver gets NOSCRIPT, and the next acquire contains the script's text.
func (t *Transport) Send(i int, c *frame.Call, s Stamp, to Receiver) error {
	m := t.master(i)
	state := m.state.Load()
	if state.err != nil {
		return state.err
	}
	if s.Session != 0 && s.Session != state.sess.id {
		text := fmt.Sprintf("session is %d, the call is stamped for %d", state.sess.id, s.Session)
		return m.fail(c.Script.Name, fault.New(text, ErrSession), false)
	}
	if err := m.stale(state.sess); err != nil {
		return m.fail("send", err, false)
	}
	if err := state.sess.pipe.Send(c, s.Text, to); err != nil {
		return m.fail("send", err, false)
	}
	return nil
}

// Subscribe subscribes l to the channel on each master that can be reached, until the Subscription is closed. It never
// blocks: connections are made in the background, one per master for all channels, and are kept until a heartbeat finds
// no subscription. l is notified by Resubscribed for each master on which its subscription becomes active. It must not
// be nil, and the channel must have no other open Subscription.
func (t *Transport) Subscribe(channel string, l feed.Listener) *feed.Subscription {
	return t.hub.Subscribe(channel, l)
}

// Settle records that the quarantine of a prefix on master i was begun when the number of moves ([Info.Moves]) was
// moves. The record is also for other users of the Transport and for later sessions.
func (t *Transport) Settle(i int, moves uint64, prefix string) {
	t.master(i).settled.Store(prefix, moves)
}

// Settled reports whether a quarantine of the prefix on master i was begun after the given number of moves. It
// returns true if moves is 0, because no quarantine is needed then.
func (t *Transport) Settled(i int, moves uint64, prefix string) bool {
	last, known := t.master(i).settled.Load(prefix)
	//mutant:moves-of-prefix 3= true
	return moves == 0 || known && last.(uint64) >= moves
}

// AddPending adds a pending release for master i. It is merged with a pending release of the same Name: the leases are
// added, and the larger ballot is kept. The release is sent first on the next connection, before Send may use it, and
// again on each heartbeat, until the reply is not a transient error (see [Transient]).
//
// AddPending reports whether the release was added. For each master the bounds are 65536 names, 8192 leases per name,
// and 64 MiB; further releases are refused, and so are all releases after Close. A refused release is never sent. That
// is safe: the master frees the name when its TTL expires. AddPending never blocks, and keeps no reference to r.Leases.
func (t *Transport) AddPending(i int, r PendingRelease) bool { return t.master(i).pending.add(r) }

// Pending returns the number of pending releases of master i, including those in flight.
func (t *Transport) Pending(i int) int { return t.master(i).pending.count() }

// Unguarded returns the number of masters with guard=off in their URLs.
func (t *Transport) Unguarded() (n int) {
	for i := range t.N() {
		if t.master(i).noGuard {
			n++
		}
	}
	return n
}

// Add adds masters, and returns the number of each. A master whose name is already known keeps its number and its
// options. A retired master gets a new number. The options of [New] apply to the added masters too. Add does not
// block. An error matches [ErrInvalid] or [ErrClosed]; nothing has been dialled then.
func (t *Transport) Add(masters ...Master) (numbers []int, err error) {
	t.changeMu.Lock()
	defer t.changeMu.Unlock()
	if t.ended {
		return nil, ErrClosed
	}
	_, configs, err := settings(masters, t.common)
	if err != nil {
		return nil, err
	}
	for i, m := range masters {
		number, known := t.Find(m.Name)
		if !known {
			number = t.begin(m, configs[i])
		}
		numbers = append(numbers, number)
	}
	return numbers, nil
}

// Find returns the number of the master with this name, if there is one that is not retired.
func (t *Transport) Find(name string) (number int, ok bool) {
	m := slices.IndexFunc(*t.list.Load(), func(m *master) bool { return m.Name == name && m.ctx.Err() == nil })
	return m, m >= 0
}

// Retain adds a reference to a master, to be dropped with [Transport.Release].
func (t *Transport) Retain(i int) {
	t.changeMu.Lock()
	defer t.changeMu.Unlock()
	t.master(i).users++
}

// Release drops a reference. If retire is set and that was the last reference, the master is retired: its connections
// are closed, outstanding requests and every later Send fail with [ErrRetired], and its pending releases are dropped.
// Release does not block.
func (t *Transport) Release(i int, retire bool) {
	t.changeMu.Lock()
	defer t.changeMu.Unlock()
	m := t.master(i)
	if m.users = max(m.users-1, 0); m.users == 0 && retire {
		m.end(ErrRetired)
	}
}

// Close closes every connection and answers every outstanding request with an error that matches [ErrClosed]. It
// returns nil when every goroutine has ended, also when called again. Pending releases are dropped. Close must not be
// called from Reply or from a function given to [Transport.Watch].
func (t *Transport) Close() error {
	t.changeMu.Lock()
	t.ended = true
	t.changeMu.Unlock()
	for _, m := range *t.list.Load() {
		m.end(ErrClosed)
	}
	t.wg.Wait()
	return nil
}
