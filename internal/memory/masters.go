package memory

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/scripts/reference"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/pool"
)

// Masters is a set of in-memory masters.
type Masters struct {
	list   []*Master
	prefix scripts.Prefix
	maxTTL time.Duration
	shard  scripts.Shard

	wg sync.WaitGroup // all goroutines of all masters

	mu        sync.Mutex // guards the fields below
	names     string     // list of masters in the admission records
	listeners []net.Listener
	closed    bool
}

// An Option configures New.
type Option func(*options)

type options struct {
	prefix string
	maxTTL time.Duration
	fresh  bool
	shard  scripts.Shard
}

// Fresh creates masters that have not been admitted, like real masters after their first start: a Locker keeps them in
// quarantine before they vote.
func Fresh() Option { return func(o *options) { o.fresh = true } }

// Prefix sets the prefix of the keys, which must equal the prefix of the Lockers. The default is "redlock". Methods
// with the name of a lock as an argument use this prefix.
func Prefix(prefix string) Option { return func(o *options) { o.prefix = prefix } }

// Shard makes masters that are admitted as shard number of the given number of shards: see redlock.NewSharded. The
// default is that names are not sharded.
func Shard(number, of int) Option {
	return func(o *options) { o.shard = scripts.Shard{Number: number, Of: of} }
}

// MaxTTL sets the max TTL in the admission records, which must equal the max TTL of the Lockers. The default is 30 s.
func MaxTTL(d time.Duration) Option { return func(o *options) { o.maxTTL = d } }

// New starts n empty masters, which the caller must close. It panics if n is below 1 or the prefix is invalid.
func New(n int, opts ...Option) *Masters {
	o := options{prefix: scripts.DefaultPrefix, maxTTL: scripts.DefaultMaxTTL}
	for _, f := range opts {
		f(&o)
	}
	if n < 1 {
		panic(fmt.Sprintf("redlocktest: %d masters: the number must be at least 1", n))
	}
	if err := scripts.CheckPrefix(o.prefix); err != nil {
		panic("redlocktest: " + err.Error())
	}
	m := &Masters{prefix: scripts.Prefix(o.prefix), maxTTL: o.maxTTL, shard: o.shard}
	names := make([]string, n)
	for i := range n {
		m.list = append(m.list, newMaster(m, i))
		names[i] = m.list[i].addr
	}
	m.names = scripts.List(names)
	if !o.fresh {
		for _, one := range m.list {
			one.Readmit()
		}
	}
	return m
}

// N returns the number of masters.
func (m *Masters) N() int { return len(m.list) }

// Master returns master i, counted from 0 in the order of the pool.
func (m *Masters) Master(i int) *Master { return m.list[i] }

// URLs returns redis://master-1:6379 and so on: URLs for a pool that connects with [Masters.Dial].
func (m *Masters) URLs() []string {
	urls := make([]string, len(m.list))
	for i, one := range m.list {
		urls[i] = "redis://" + one.addr
	}
	return urls
}

// Pool returns a new pool of these masters. The pool, and a Locker that uses the pool, read the time from package time,
// as the masters do. opts are applied after the options that set the dialer and the clock. The caller must close the
// pool.
func (m *Masters) Pool(opts ...pool.Option) (*pool.Pool, error) {
	ours := []pool.Option{pool.WithDialer(m.Dial), transport.WithClock(clock.Runtime())}
	return pool.Open(m.URLs(), append(ours, opts...)...)
}

// Dial connects, within the process, to the master at addr, which must be an address of URLs. It is a dialer for
// [pool.WithDialer]. A stopped master refuses the connection; a master that hangs accepts the connection, as the kernel
// does for a process that hangs.
func (m *Masters) Dial(ctx context.Context, _, addr string) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for _, one := range m.list {
		if one.addr == addr {
			client, server := net.Pipe()
			if err := one.serve(server); err != nil {
				return nil, &net.OpError{Op: "dial", Net: "pipe", Err: errors.Join(err, client.Close(), server.Close())}
			}
			return client, nil
		}
	}
	return nil, fmt.Errorf("redlocktest: unknown master %q (have %s)", addr, strings.Join(m.URLs(), ", "))
}

// Listen opens a port on 127.0.0.1 for each master and returns the URLs of the ports, for clients that need real
// connections. From then on the admission records contain these addresses, so clients that use [Masters.Dial] no longer
// work. Listen cannot be used in synctest bubbles. If it fails, it opens no port.
func (m *Masters) Listen() ([]string, error) {
	var ls []net.Listener
	for range m.list {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			for _, l := range ls {
				err = errors.Join(err, l.Close())
			}
			return nil, fmt.Errorf("redlocktest: %w", err)
		}
		ls = append(ls, l)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		for _, l := range ls {
			_ = l.Close()
		}
		return nil, errClosed
	}
	m.listeners = append(m.listeners, ls...)
	names := make([]string, len(ls))
	for i, l := range ls {
		names[i] = l.Addr().String()
	}
	m.names = scripts.List(names)
	for _, one := range m.list {
		one.rename(m.names)
	}
	urls := make([]string, len(ls))
	for i, l := range ls {
		urls[i] = "redis://" + l.Addr().String()
		m.wg.Go(func() { m.list[i].accept(l) })
	}
	return urls, nil
}

var (
	errClosed = errors.New("redlocktest: the masters are closed")
	errDown   = errors.New("connection refused: the master is stopped")
)

// stranger is the lease id that Take writes.
const stranger = "stranger:1:stranger"

// Take makes another client hold name on every master for ttl, even if name is held. The previous holder notices the
// loss at its next extension.
func (m *Masters) Take(name string, ttl time.Duration) {
	for _, one := range m.list {
		one.change(func(now int64, s *reference.State) {
			s.SetLease(now, m.prefix.Lock(name), stranger, scripts.Millis(ttl))
		})
	}
}

// Free ends the lock of name on every master like the Unlock of its holder: waiters are notified, and the first
// subscribed waiter gets the lock.
func (m *Masters) Free(name string) {
	for _, one := range m.list {
		one.free(name)
	}
}

// Lose deletes the lock of name on every master without notifying the waiters, as if the TTL of the lock had expired.
// The holder has lost the lock, and notices the loss at its next extension, a third of the TTL after the last one. Lose
// reports whether a master had the lock.
func (m *Masters) Lose(name string) (had bool) {
	for _, one := range m.list {
		had = one.Evict(name) || had
	}
	return had
}

// Holder returns the id of the lease that holds name on the largest number of masters, and that number. It returns ""
// and 0 if the name is free.
func (m *Masters) Holder(name string) (id string, on int) {
	count := map[string]int{}
	for _, one := range m.list {
		if held, _, _ := one.Holds(name); held != "" {
			count[held]++
			if n := count[held]; n > on || n == on && held < id {
				id, on = held, n
			}
		}
	}
	return id, on
}

// Close cuts every connection, closes every listener, and returns when all goroutines have ended. Clients cannot
// connect afterwards. A second Close does nothing.
func (m *Masters) Close() {
	m.mu.Lock()
	m.closed = true
	ls := m.listeners
	m.listeners = nil
	m.mu.Unlock()
	for _, l := range ls {
		_ = l.Close()
	}
	for _, one := range m.list {
		one.close()
	}
	m.wg.Wait()
}
