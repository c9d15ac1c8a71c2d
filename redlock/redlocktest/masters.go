package redlocktest

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/sharding"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// NewLocker returns a Locker over n new masters, and the masters. The masters are admitted for the prefix and the max
// TTL of the options, and are connected, so locks can be acquired immediately. The Locker and the masters are closed
// when the test ends. NewLocker fails the test if an option is invalid. Inside a testing/synctest bubble the Locker
// and the masters follow the clock of the bubble.
func NewLocker(t testing.TB, n int, opts ...redlock.Option) (*redlock.Locker, *Masters) {
	t.Helper()
	prefix, maxTTL := scripts.DefaultPrefix, scripts.DefaultMaxTTL
	if c, err := client.Configure(opts); err == nil { // otherwise New reports err
		prefix, maxTTL = c.Prefix, c.MaxTTL
	}
	if err := scripts.CheckPrefix(prefix); err != nil {
		t.Fatalf("redlocktest: %v", err)
	}
	masters := New(n, Prefix(prefix), option(memory.MaxTTL(maxTTL))) // redlock.New checks the max TTL
	t.Cleanup(masters.Close)
	p, err := masters.Pool()
	if err != nil {
		t.Fatalf("redlocktest: %v", err)
	}
	t.Cleanup(func() { _ = p.Close() }) // Close of a pool always returns nil
	locker, err := redlock.New(p, opts...)
	if err != nil {
		t.Fatalf("redlocktest: %v", err)
	}
	// Close fails only if releases are not confirmed, which is irrelevant when the masters end.
	t.Cleanup(func() { _ = locker.Close() })
	if err := locker.WaitReady(context.Background()); err != nil {
		t.Fatalf("redlocktest: %v", err)
	}
	return locker, masters
}

// An Option configures New.
type Option func(*options)

type options struct{ list []memory.Option }

func option(o memory.Option) Option { return func(all *options) { all.list = append(all.list, o) } }

// Fresh makes masters that have not been admitted, like real masters after their first start: a Locker puts them into
// quarantine before they vote.
func Fresh() Option { return option(memory.Fresh()) }

// Prefix sets the prefix of the keys, which must be the prefix of the Lockers. The default is "redlock".
func Prefix(prefix string) Option { return option(memory.Prefix(prefix)) }

// MaxTTL sets the max TTL for which the masters are admitted, which must be the max TTL of the Lockers. The default is
// 30 s.
func MaxTTL(d time.Duration) Option {
	checkUnit("MaxTTL", d)
	return option(memory.MaxTTL(d))
}

// Shard makes masters that are admitted as the shard with this number, from 1, of count shards: see
// [redlock.NewSharded]. By default the masters are not part of a sharded deployment.
func Shard(number, count int) Option {
	if err := sharding.Check(scripts.Shard{Number: number, Of: count}); err != nil {
		panic(fmt.Sprintf("redlocktest: Shard(%d, %d): %v", number, count, err))
	}
	return option(memory.Shard(number, count))
}

// Masters is a set of in-memory masters.
type Masters struct {
	set  *memory.Masters
	list []*Master
}

// New returns n masters that are up and empty. The caller must close them. New panics if n is below 1 or the prefix is
// invalid.
func New(n int, opts ...Option) *Masters {
	var all options
	for _, o := range opts {
		o(&all)
	}
	m := &Masters{set: memory.New(n, all.list...)}
	for i := range n {
		m.list = append(m.list, &Master{m.set.Master(i)})
	}
	return m
}

// Master returns master i, counted from 0 in the order of the pool.
func (m *Masters) Master(i int) *Master { return m.list[i] }

// URLs returns redis://master-1:6379 and so on: the addresses for [Masters.Dial].
func (m *Masters) URLs() []string { return m.set.URLs() }

// Pool returns a new pool of these masters. The pool, and any Locker over it, follows the time package, as the masters
// do. opts are applied after the options that set the dialer and the clock. The caller must close the pool.
func (m *Masters) Pool(opts ...pool.Option) (*pool.Pool, error) { return m.set.Pool(opts...) }

// Dial connects to one of the addresses in URLs without leaving the process. Use it with [pool.WithDialer]. A stopped
// master refuses the connection. A hanging master accepts it, as the kernel does for a process that hangs.
func (m *Masters) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return m.set.Dial(ctx, network, addr)
}

// Listen opens a port on 127.0.0.1 for each master and returns the masters' URLs, for clients that need real
// connections. From then on the admission records contain these addresses, so clients that use [Masters.Dial] no longer
// work. Listen cannot be used in synctest bubbles. If Listen returns an error, no port is open.
func (m *Masters) Listen() ([]string, error) { return m.set.Listen() }

// Take makes another client hold the plain lock of name on every master for ttl, even if the name was held. The
// previous holder notices at its next extension. To hold a slot of a semaphore, or a name of an RWLock, use a second
// Locker over [Masters.Pool]. Take panics if the name is invalid or ttl is below 1 ms.
func (m *Masters) Take(name string, ttl time.Duration) {
	checkName("Take", name)
	if ttl < time.Millisecond {
		panic(fmt.Sprintf("redlocktest: Take %.80q for %v: must be at least 1ms; a number without a unit is in nanoseconds",
			name, ttl))
	}
	m.set.Take(name, ttl)
}

// Free ends the lock of name on every master like the Unlock of its holder: the masters notify the first subscribed
// waiter, which then gets the lock. Free panics if no plain lock, reader or writer has the name.
func (m *Masters) Free(name string) {
	checkName("Free", name)
	if id, _ := m.set.Holder(name); id == "" {
		panic(fmt.Sprintf("redlocktest: Free %.80q: nobody holds the name, or it is a semaphore", name))
	}
	m.set.Free(name)
}

// Lose deletes the lock of name on every master without notification, as if its TTL had expired. The holder learns of
// the loss at its next extension, a third of the TTL after the previous extension. Lose panics if nobody has the
// name.
func (m *Masters) Lose(name string) {
	checkName("Lose", name)
	if !m.set.Lose(name) {
		panic(fmt.Sprintf("redlocktest: Lose %.80q: nobody holds the name", name))
	}
}

// checkName panics if a name is invalid.
func checkName(call, name string) {
	if err := scripts.CheckName(name); err != nil {
		panic(fmt.Sprintf("redlocktest: %s %.80q: %v", call, name, err))
	}
}

// Close cuts every connection, closes every listener, and returns when all goroutines have ended. Clients cannot
// connect afterwards. A second Close does nothing.
func (m *Masters) Close() { m.set.Close() }
