package pool

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/pool/internal/fault"
	"github.com/redlock-go/redlock/pool/internal/feed"
)

// Pool is N masters. Make it with [New] or [Dial]. All methods are safe for concurrent use.
type Pool struct {
	list     atomic.Pointer[[]*master] // by number; the list is replaced by a longer one, never changed
	watchers watchers
	claims   sync.Map // the *master whose connection has a run id
	hub      feed.Hub
	common   []Option
	bucket   Bucket
	wg       sync.WaitGroup // the goroutines of the masters

	changeMu sync.Mutex // Add, Retain, Release, and the end
	ended    bool       // guarded by changeMu
}

// Dial is [New] for masters named by URLs alone.
//
// All clients name the same masters; a client with another list acquires no lock, with an error that shows both lists. A
// master is replaced by "redlock set", see docs/masters.md.
//
// A URL, but for that of a master behind Sentinel, must lead to one server at any time. Two servers behind one name, by
// DNS or by a virtual IP address, are not safe: each may vote for the same master in another program, and two programs
// may hold one lock. Nor is it promised that a program with a smaller guard time than its fleet is safe when a majority
// of the masters loses its data at once; see "What is not guaranteed" in package redlock.
func Dial(urls []string, opts ...Option) (*Pool, error) {
	masters := make([]Master, len(urls))
	for i, u := range urls {
		masters[i] = URL(u)
	}
	return New(masters, opts...)
}

// New connects to the masters in the background. It does not block and needs no live master. An error matches
// [ErrInvalid], and nothing has been dialled. The Pool must be closed. The rule for names in [Dial] applies here, too.
func New(masters []Master, opts ...Option) (*Pool, error) {
	common, configs, err := settings(masters, opts)
	switch {
	case err != nil:
		return nil, err
	case len(masters) == 0:
		return nil, fault.Invalid("there is no master: the list is empty")
	case common.TLS != nil && !slices.ContainsFunc(masters, func(m Master) bool { return m.useTLS }):
		return nil, fault.Invalid("a TLS configuration is given and no master uses TLS: write rediss:// in place of redis://")
	case (common.sentinels.Password != "" || common.sentinels.TLS != nil) &&
		!slices.ContainsFunc(masters, func(m Master) bool { return m.service != "" }):
		return nil, fault.Invalid("credentials or TLS of sentinels are given, and no master is named by redis+sentinel://")
	}
	p := &Pool{common: opts}
	p.watchers.init()
	p.list.Store(new([]*master))
	for i, named := range masters {
		p.begin(named, configs[i])
	}
	return p, nil
}

// begin makes the next master and starts it.
func (p *Pool) begin(named Master, cfg config) (number int) {
	list := *p.list.Load()
	m := &master{Master: named, pool: p, index: len(list), cfg: cfg}
	m.ctx, m.cancel = context.WithCancelCause(context.Background())
	m.gate.Store(&gate{err: &Error{Addr: m.Name, Op: "connect", Err: errFirst}})
	hear := p.hub.Add(m.ctx, feed.Source{Target: &m.cfg.Target, Owner: m.owner(), Redial: m.cfg.redial})
	longer := append(list[:len(list):len(list)], m)
	p.list.Store(&longer)
	p.wg.Go(m.run)
	p.wg.Go(hear)
	if cfg.failover != nil {
		p.wg.Go(m.follow)
	}
	return m.index
}

func (p *Pool) master(i int) *master { return (*p.list.Load())[i] }

// N is the number of masters that were named, retired ones included: a master keeps its number, from 0.
func (p *Pool) N() int { return len(*p.list.Load()) }

// Addr returns the name of master i: see [Master]. It contains no credentials.
func (p *Pool) Addr(i int) string { return p.master(i).Name }

// Clock is what WithClock has set; nil, the real one, where it was not given.
func (p *Pool) Clock() *clock.Clock { return p.master(0).cfg.clock }

// Timeout is the age at which an outstanding request of master i makes the master count as down.
func (p *Pool) Timeout(i int) time.Duration { return p.master(i).cfg.timeout }

// Stamp is what differs from master to master: the stamp of its admission record, valid on one session only.
// Session 0 means any.
type Stamp struct {
	Session uint64
	Text    string
}

// Receiver gets the reply of each Send that returned nil, exactly once, from the goroutine of the master's connection.
// Reply must not block, and of the Pool it may call only Send, Owe, Owed, N and Addr. No lock of the Pool is held.
type Receiver interface {
	// Reply gets what the master answered, as redigo decodes it, or an error, which is always a *[Error].
	Reply(master int, value any, err error)
}

// Send queues one call to master i. It never blocks. An error is a *[Error] and means that nothing will be written, and
// Reply will not be called: the master is down (with the reason), connecting or retired, its queue is full, the Pool is
// closed, or the session is not the stamped one. The call must not be changed afterwards.
//
// Calls to one master are written in the order of their Sends, except that a call which the master answers by
// NOSCRIPT is written once more, with the script's text, after the calls that are queued by then. An acquire is not:
// behind its own release it would take the lock for nobody. It gets NOSCRIPT, and the next one brings the text.
func (p *Pool) Send(i int, c *scripts.Call, s Stamp, to Receiver) error {
	m := p.master(i)
	g := m.gate.Load()
	if g.err != nil {
		return g.err
	}
	if s.Session != 0 && s.Session != g.sess.id {
		text := fmt.Sprintf("session is %d, the call is stamped for %d", g.sess.id, s.Session)
		return m.fail(c.Script.Name, fault.New(text, ErrSession), false)
	}
	if err := m.stale(g.sess); err != nil {
		return m.fail("send", err, false)
	}
	if err := g.sess.pipe.Send(c, s.Text, to); err != nil {
		return m.fail("send", err, false)
	}
	return nil
}

// Owe books a release that master i is owed. It is merged with one of the same Name: grants are added, and the largest
// ballot counts. It is paid first thing on the next connection, before Send is let in, and tried again on each
// heartbeat, until a reply comes that is no error which may pass (see [Transient]).
//
// Owe reports whether the release was booked. For each master the bounds are 65536 names, 8192 grants a name, and
// 64 MiB; beyond them the newest is refused, and after Close every one. A release that is refused is never sent: the
// master frees the name when its TTL is over, so that is safe. Owe never blocks, and keeps no reference to r.Grants.
func (p *Pool) Owe(i int, r OwedRelease) bool { return p.master(i).owed.owe(r) }

// Owed is the number of releases that master i is owed, with those whose payment is under way.
func (p *Pool) Owed(i int) int { return p.master(i).owed.count() }

// Add makes further masters known, and returns the number of each. One whose name is known already keeps its number and
// its options; one that has been retired gets a further number. The options of [New] hold for new ones too. It does not
// block. An error matches [ErrInvalid] or [ErrClosed], and nothing has been dialled.
func (p *Pool) Add(masters ...Master) (numbers []int, err error) {
	p.changeMu.Lock()
	defer p.changeMu.Unlock()
	if p.ended {
		return nil, ErrClosed
	}
	_, configs, err := settings(masters, p.common)
	if err != nil {
		return nil, err
	}
	for i, m := range masters {
		number, known := p.Find(m.Name)
		if !known {
			number = p.begin(m, configs[i])
		}
		numbers = append(numbers, number)
	}
	return numbers, nil
}

// Find returns the number of the master of this name, and whether there is one that is not retired.
func (p *Pool) Find(name string) (number int, ok bool) {
	m := slices.IndexFunc(*p.list.Load(), func(m *master) bool { return m.Name == name && m.ctx.Err() == nil })
	return m, m >= 0
}

// Retain counts one more user of a master, who gives it back by [Pool.Release].
func (p *Pool) Retain(i int) {
	p.changeMu.Lock()
	defer p.changeMu.Unlock()
	p.master(i).users++
}

// Release counts one user less. With retire, and where that was the last one, the master is retired: its connections
// are closed, what is outstanding is answered with an error that matches [ErrRetired], as is every Send from here on,
// and what it is owed is forgotten. It does not block.
func (p *Pool) Release(i int, retire bool) {
	p.changeMu.Lock()
	defer p.changeMu.Unlock()
	m := p.master(i)
	if m.users = max(m.users-1, 0); m.users == 0 && retire {
		m.end(ErrRetired)
	}
}

// Close closes every connection, answers everything outstanding with an error that matches [ErrClosed], and returns nil
// when every goroutine has ended, also when called again. Owed releases are forgotten. It must not be called from Reply
// or from a function given to [Pool.Watch].
func (p *Pool) Close() error {
	p.changeMu.Lock()
	p.ended = true
	p.changeMu.Unlock()
	for _, m := range *p.list.Load() {
		m.end(ErrClosed)
	}
	p.wg.Wait()
	p.watchers.close()
	return nil
}
