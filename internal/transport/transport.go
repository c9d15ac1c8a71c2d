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

// A Transport connects to N masters. [New] and [Open] make a Transport. All methods are safe for concurrent use.
type Transport struct {
	list     atomic.Pointer[[]*master] // by number; never changed: adding a master replaces the list
	watchers watchers
	claims   sync.Map // maps the run id of a server to the *master that is connected to it
	hub      feed.Hub
	common   []Option
	bucket   Bucket
	beats    *beats                 // shared by the Transports of OpenBuckets; nil if each master has its own
	name     atomic.Pointer[string] // the name of the connections; see SetClientName
	wg       sync.WaitGroup         // counts the goroutines of the masters

	changeMu sync.Mutex // held by Use, Retain, Release and Close, and while a client name is sent
	ended    bool       // whether Close was called; guarded by changeMu

	nameMu sync.Mutex
	named  []namedClient // the clients that use the Transport; guarded by nameMu, and name is stored under it
}

// Open calls [New] with masters given as URLs.
func Open(urls []string, opts ...Option) (*Transport, error) {
	masters := make([]Master, len(urls))
	for i, u := range urls {
		masters[i] = URL(u)
	}
	return New(masters, opts...)
}

// New connects to the masters in the background. New does not block, and succeeds even if no master is up. If a master
// or an option is invalid, New dials nothing and returns an error that matches [fault.ErrInvalid]. The caller must
// close the Transport.
func New(masters []Master, opts ...Option) (*Transport, error) { return build(masters, nil, opts) }

// build implements New. If shared is not nil, all Transports built with the same value share the heartbeats of their
// sessions with the same server.
func build(masters []Master, shared *beats, opts []Option) (*Transport, error) {
	common, configs, err := settings(masters, opts)
	switch {
	case err != nil:
		return nil, err
	case len(masters) == 0:
		return nil, fault.Invalid("the list of masters is empty")
	case common.TLS != nil && !slices.ContainsFunc(masters, func(m Master) bool { return m.useTLS }):
		return nil, fault.Invalid("a TLS configuration is given, but no master uses TLS: " +
			"write rediss:// in place of redis://")
	}
	if err := checkSentinels(&common, masters); err != nil {
		return nil, err
	}
	t := &Transport{common: opts, beats: shared}
	name := library
	t.name.Store(&name)
	t.watchers.last, t.watchers.list = make(map[int]Event), make(map[*func(Event)]bool)
	t.list.Store(new([]*master))
	for i, named := range masters {
		t.add(named, configs[i])
	}
	return t, nil
}

// add adds a master to the list, and starts its goroutines.
func (t *Transport) add(named Master, cfg Config) {
	list := *t.list.Load()
	m := &master{Master: named, transport: t, index: len(list), cfg: cfg, beats: cmp.Or(t.beats, new(beats))}
	m.ctx, m.cancel = context.WithCancelCause(context.Background())
	m.state.Store(&connState{err: m.failure("connect", errFirst)})
	source := feed.Source{Target: &m.cfg.Target, Settings: m.pipeSettings(), Redial: m.cfg.Redial}
	if cfg.Foreign == nil {
		source.IntroductionFunc = func() [][]string { return introduction(t.clientName()) }
	}
	if by := cfg.failover; by != nil {
		source.ServerFunc = m.server
		t.wg.Go(func() { by.follow(m) })
	}
	runFeed := t.hub.Add(m.ctx, source)
	longer := append(list[:len(list):len(list)], m)
	t.list.Store(&longer)
	t.wg.Go(m.run)
	t.wg.Go(runFeed)
}

// A Subject is a master that package diagnose examines.
type Subject struct {
	Name   string // as [Transport.Addr] returns it
	Config *Config
}

// Subjects returns the masters that are not retired.
func (t *Transport) Subjects() (list []Subject) {
	for _, m := range *t.list.Load() {
		if m.ctx.Err() == nil {
			list = append(list, Subject{m.Name, &m.cfg})
		}
	}
	return list
}

func (t *Transport) master(i int) *master { return (*t.list.Load())[i] }

// N returns the number of masters, including retired ones. Masters are numbered from 0 and keep their numbers.
func (t *Transport) N() int { return len(*t.list.Load()) }

// Addr returns the name of master i; see [Master]. The name contains no credentials.
func (t *Transport) Addr(i int) string { return t.master(i).Name }

// Clock returns the clock set with [WithClock], or nil, which is the system clock.
func (t *Transport) Clock() *clock.Clock { return t.master(0).cfg.Clock }

// Timeout returns the timeout of master i; see [Config].
func (t *Transport) Timeout(i int) time.Duration { return t.master(i).cfg.Timeout }

// QueueLimit returns the smallest queue limit of the masters; see [Config].
func (t *Transport) QueueLimit() int {
	by := func(a, b *master) int { return cmp.Compare(a.cfg.QueueLimit, b.cfg.QueueLimit) }
	return slices.MinFunc(*t.list.Load(), by).cfg.QueueLimit
}

// A Condition is the part of a call that differs between masters: on which session it may be sent, and with which stamp
// of the admission record, which the script compares.
type Condition struct {
	Session uint64 // the only session on which the call may be sent; 0 for any session
	Stamp   string // the stamp of the admission record
}

// A Receiver gets the reply to a call. For each Send that returned nil, the goroutine of the master's connection calls
// Reply exactly once, with the reply as redigo decodes it or with a *[Error]. Reply must not block. Of the methods of
// the Transport, Reply may call only Send, AddPending, Pending, N and Addr. No lock of the Transport is held during
// Reply.
type Receiver = pipe.Receiver

// Send queues a call to master i. Send never blocks. The call must not be changed afterwards. If the master is down,
// connecting or retired, its queue is full, the Transport is closed, or the session is not that of the condition, Send
// returns a *[Error] with the reason. The call is then not written, and Reply is not called.
//
// Calls to one master are written in the order of their Sends, except that a call which the master answers with
// NOSCRIPT is written again, with the script's text, after the calls that are queued at that time. An acquire is not
// written again: it could run after its own release, and the lock would be taken without a holder. Instead, the
// Receiver of the acquire gets NOSCRIPT, and the next acquire contains the script's text.
func (t *Transport) Send(i int, c *frame.Call, on Condition, receiver Receiver) error {
	m := t.master(i)
	state := m.state.Load()
	if state.err != nil {
		return state.err
	}
	if on.Session != 0 && on.Session != state.sess.id {
		text := fmt.Sprintf("the session is %d, but the call is for session %d", state.sess.id, on.Session)
		return m.failure(c.Script.Name, fault.New(text, fault.ErrSession))
	}
	if err := m.stale(state.sess); err != nil {
		return m.failure("send", err)
	}
	if err := state.sess.pipe.Send(c, on.Stamp, receiver); err != nil {
		return m.failure("send", err)
	}
	return nil
}

// Subscribe subscribes listener to the channel on each reachable master until the Subscription is closed. Subscribe
// never blocks. Connections are made in the background, one per master for all channels. When no subscription is left,
// the next heartbeat closes the connections. For each master on which the subscription becomes active, Resubscribed of
// listener is called. listener must not be nil, and the channel must have no other open Subscription.
func (t *Transport) Subscribe(channel string, listener feed.Listener) *feed.Subscription {
	return t.hub.Subscribe(channel, listener)
}

// RecordQuarantine records that a quarantine of prefix on master i began when [Info.Moves] was moves. The record
// applies to all users and all later sessions of the Transport.
func (t *Transport) RecordQuarantine(i int, moves uint64, prefix string) {
	t.master(i).quarantined.Store(prefix, moves)
}

// Quarantined reports whether master i has begun a quarantine under the key prefix since [Info.Moves] reached moves. If
// moves is 0, no quarantine is needed, and Quarantined returns true.
func (t *Transport) Quarantined(i int, moves uint64, prefix string) bool {
	last, known := t.master(i).quarantined.Load(prefix)
	return moves == 0 || known && last.(uint64) >= moves
}

// AddPending adds a pending release for master i. If the master has a pending release of the same Name, the two are
// merged: the result has all leases of the two and the larger ballot. The next connection sends the release before Send
// may use that connection. The release is sent again on each heartbeat until the master replies with anything but a
// transient error (see [Transient]).
//
// AddPending reports whether the release was added. The limits for each master are 65536 names, 8192 leases per name,
// and 64 MiB. A release beyond these limits, or after Close, is refused and never sent, which is safe because the
// master frees the name when the TTL expires. AddPending never blocks, and keeps no reference to r.Leases.
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

// Use returns the number of each of these masters, and takes a reference to each, to be dropped with
// [Transport.Release]. A master that is not in the Transport, or is retired, is added with a new number and with the
// options of [New]. A master whose name is in use keeps its number and its options. Use does not block. If Use returns
// an error, which matches [fault.ErrInvalid] or [fault.ErrPoolClosed], it has added no master and has taken no
// reference.
func (t *Transport) Use(masters ...Master) (numbers []int, err error) {
	t.changeMu.Lock()
	defer t.changeMu.Unlock()
	if t.ended {
		return nil, fault.ErrPoolClosed
	}
	added := slices.DeleteFunc(slices.Clone(masters), func(m Master) bool {
		_, known := t.Find(m.Name)
		return known
	})
	_, configs, err := settings(added, t.common)
	if err != nil {
		return nil, err
	}
	if n := t.N(); n+len(added) > most {
		return nil, fault.Invalid("the pool has had %d masters and %d more are to be added, but a pool has at most %d over "+
			"its lifetime: make a new pool and Locker", n, len(added), most)
	}
	for i, m := range added {
		t.add(m, configs[i])
	}
	for _, m := range masters {
		number, _ := t.Find(m.Name)
		t.master(number).users++
		numbers = append(numbers, number)
	}
	return numbers, nil
}

// most is the maximum number of masters of a Transport, since sets of masters have 64 bits.
const most = 64

// Find returns the number of the master with this name. If there is none, or only a retired one, ok is false. A master
// without a reference can be retired at any time; see [Transport.Use].
func (t *Transport) Find(name string) (number int, ok bool) {
	number = slices.IndexFunc(*t.list.Load(), func(m *master) bool { return m.Name == name && m.ctx.Err() == nil })
	return number, number >= 0
}

// Retain adds a reference to a master to which the caller has a reference, to be dropped with [Transport.Release].
func (t *Transport) Retain(i int) {
	t.changeMu.Lock()
	defer t.changeMu.Unlock()
	t.master(i).users++
}

// Release drops a reference. If retire is true and no reference is left, the master is retired: its connections are
// closed, outstanding requests and every later Send fail with [fault.ErrRetired], and its pending releases are dropped.
// Release does not block.
func (t *Transport) Release(i int, retire bool) {
	t.changeMu.Lock()
	defer t.changeMu.Unlock()
	m := t.master(i)
	if m.users = max(m.users-1, 0); m.users == 0 && retire {
		m.end(fault.ErrRetired)
	}
}

// Closed reports whether Close was called.
func (t *Transport) Closed() bool {
	t.changeMu.Lock()
	defer t.changeMu.Unlock()
	return t.ended
}

// Close closes every connection and answers every outstanding request with an error that matches [fault.ErrPoolClosed].
// Pending releases are dropped. Close waits until every goroutine has ended, even when called again, and returns nil.
// Close must not be called from Reply or from a function given to [Transport.Watch].
func (t *Transport) Close() error {
	t.changeMu.Lock()
	t.ended = true
	t.changeMu.Unlock()
	for _, m := range *t.list.Load() {
		m.end(fault.ErrPoolClosed)
	}
	t.wg.Wait()
	return nil
}
