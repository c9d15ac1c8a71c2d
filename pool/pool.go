package pool

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
)

// Pool is N masters. Make it with [New] or [Dial]. All methods are safe for concurrent use.
type Pool struct {
	list     atomic.Pointer[[]*master] // by number; the list is replaced by a longer one, never changed
	watchers watchers
	hub      hub

	common []Option
	ctx    context.Context // the life of its goroutines, for those that begin later
	cancel context.CancelFunc
	wg     sync.WaitGroup // the goroutines of the masters
	once   sync.Once      // Close

	changeMu sync.Mutex // Add, Retain, Release, and the end
	ended    bool       // guarded by changeMu
	users    map[int]int

	claimMu sync.Mutex
	claims  map[string]*master // run id -> the master whose connection has it
}

// Dial is [New] for masters named by URLs alone.
func Dial(urls []string, opts ...Option) (*Pool, error) {
	masters := make([]Master, len(urls))
	for i, u := range urls {
		masters[i] = URL(u)
	}
	return New(masters, opts...)
}

// New checks everything it is given, and then connects to the masters in the background. It does not block and needs
// no live master. An error matches [ErrInvalid], and nothing has been dialled. The Pool must be closed.
func New(masters []Master, opts ...Option) (*Pool, error) {
	configs, err := resolve(masters, opts)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &Pool{common: opts, ctx: ctx, cancel: cancel, users: make(map[int]int), claims: make(map[string]*master)}
	p.hub.init(func(f *feed) { p.wg.Go(func() { f.run(f.m.ctx) }) })
	p.list.Store(new([]*master))
	for i, named := range masters {
		p.begin(named, configs[i])
	}
	return p, nil
}

// begin makes the next master and starts it.
func (p *Pool) begin(named Master, cfg config) (number int) {
	list := *p.list.Load()
	m := newMaster(p, len(list), named, cfg)
	m.ctx, m.cancel = context.WithCancel(p.ctx)
	p.watchers.add()
	p.hub.add(m)
	longer := append(list[:len(list):len(list)], m)
	p.list.Store(&longer)
	p.wg.Go(func() { m.run(m.ctx) })
	return m.index
}

func (p *Pool) master(i int) *master { return (*p.list.Load())[i] }

// N is the number of masters that were named, by New and by [Pool.Add], those that were retired included: a master keeps
// its number, from 0.
func (p *Pool) N() int { return len(*p.list.Load()) }

// Addr names master i in errors and traces: host:port, the path of a socket, or the name given to [FromRedisPool]. It
// never contains credentials.
func (p *Pool) Addr(i int) string { return p.master(i).name }

// Timeout is the age at which an outstanding request of master i makes the master count as down.
func (p *Pool) Timeout(i int) time.Duration { return p.master(i).cfg.timeout }

// Stamp is what differs from master to master in one round: the text put into Call.Args[Call.Stamp], valid on one
// session only. Session 0 means any session.
type Stamp struct {
	Session uint64
	Text    string
}

// Receiver gets the reply of each Send that returned nil, exactly once, from the goroutine of the master's connection
// (or of whoever closes it). Reply must not block, and of the Pool it may call only Send, Owe, Owed, N and Addr: no
// lock of the Pool is held while it runs.
type Receiver interface {
	// Reply gets what the master answered, as redigo decodes it, or an error, which is always a *[Error].
	Reply(master int, value any, err error)
}

// Send queues one call to master i. It never blocks. A non-nil error is a *[Error] and means that nothing was queued,
// nothing will be written, and Reply will not be called: the master is down (with the reason), connecting, its queue
// is full, the Pool is closed, or the session is not the stamped one. The call must not be changed afterwards.
//
// Calls to one master are written in the order of their Sends, except that a call which the master answers by
// NOSCRIPT is written once more, with the script's text, after the calls that are queued by then. A stamped call is
// only ever written on the session of its stamp.
func (p *Pool) Send(i int, c *scripts.Call, s Stamp, to Receiver) error {
	if err := p.master(i).send(c, s, to); err != nil {
		return err
	}
	return nil
}

// Close closes every connection, answers everything outstanding with an error that matches [ErrClosed], and returns
// when every goroutine has ended. Debts are forgotten. It returns nil, also when called again; a second call waits for
// the first. It must not be called from Reply or from a function given to [Pool.Watch].
func (p *Pool) Close() error {
	p.once.Do(func() {
		p.changeMu.Lock()
		p.ended = true
		p.changeMu.Unlock()
		for _, m := range *p.list.Load() {
			m.shut(ErrClosed)
		}
		p.hub.shut()
		p.cancel()
		p.wg.Wait()
		p.watchers.close()
	})
	return nil
}

// claim books that the connection of m has this run id, or returns the master whose connection has it already.
func (p *Pool) claim(runID string, m *master) (other *master) {
	p.claimMu.Lock()
	defer p.claimMu.Unlock()
	if other := p.claims[runID]; other != nil && other != m {
		return other
	}
	p.claims[runID] = m
	return nil
}

func (p *Pool) unclaim(runID string, m *master) {
	p.claimMu.Lock()
	defer p.claimMu.Unlock()
	if p.claims[runID] == m {
		delete(p.claims, runID)
	}
}
