package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/internal/lease"
	"github.com/redlock-go/redlock/internal/monitor"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/sharding"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/internal/transport/fault"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// A Set has the clients of one Locker: one for each shard. A name belongs to one of them.
type Set struct {
	Clients []*Client
	work    work
	shards  monitor.Shards
	Public  func(error) error // returns an error of a client in the form that users see

	closing   atomic.Bool   // whether Close was called
	closed    chan struct{} // closed when the first Close has ended
	closeErr  error         // the result of Close; set before closed is closed
	ownsPools bool          // whether Close closes the transports

	FileUnusable atomic.Bool // whether redlockfile.Follow cannot use its file
}

// A work counts the calls that acquire locks, for Shutdown. A call counts until it returns, on whichever clients it
// acquires locks, and even while it runs a function of the caller.
type work struct {
	stops        atomic.Bool // whether Shutdown was called
	began, ended atomic.Int64
}

// A Handle gives this module the Set of a public type that embeds the Handle. Users of that type see neither.
type Handle struct{ s *Set }

// Handle returns the Handle of s.
func (s *Set) Handle() Handle { return Handle{s} }

func (h Handle) set() *Set { return h.s }

// locker is implemented by the types that embed a [Handle]: *redlock.Locker.
type locker[T any] interface {
	*T
	set() *Set
}

// SetOf returns the Set of l. It panics if l is nil, for example because the error of redlock.Open was ignored.
func SetOf[T any, L locker[T]](l L) *Set {
	if l == nil || l.set() == nil {
		panic("redlock: the Locker is nil, or not made by Open or New: see the error of the call that makes it")
	}
	return l.set()
}

// New returns a Set with one client for each transport. If sharded is true, or the transports are those of a cluster,
// it numbers the clients, even a single one. If owned is true, Close closes the transports.
func New(given []*transport.Transport, cfg *Config, sharded, owned bool) (*Set, error) {
	ordered, err := inOrder(given)
	sharded = sharded || err == nil && ordered[0].Bucket().Of > 0
	switch {
	case err != nil:
		return nil, err
	case sharded && cfg.Shard.Of > 0:
		return nil, Invalid("WithShard excludes several shards")
	case len(cfg.Initial) > 0 && len(cfg.Initial) != len(given):
		return nil, Invalid("WithConfiguration has %d configurations, but there are %d shards: give one for each",
			len(cfg.Initial), len(given))
	}
	s := &Set{Public: cfg.Public, ownsPools: owned, closed: make(chan struct{})}
	for i, t := range ordered {
		own := *cfg
		if sharded {
			own.Shard = scripts.Shard{Number: i + 1, Of: len(ordered)}
		}
		if len(cfg.Initial) > 0 {
			own.Initial = cfg.Initial[i : i+1]
		}
		own.Prefix += t.Bucket().Tag()
		c, err := s.newClient(t, own)
		if err != nil {
			s.abandon()
			return nil, err
		}
		s.Clients = append(s.Clients, c)
	}
	s.warn(cfg)
	for _, c := range s.Clients {
		c.start()
	}
	return s, nil
}

// inOrder returns the transports by bucket if they are those of a cluster, and otherwise in the given order.
func inOrder(given []*transport.Transport) ([]*transport.Transport, error) {
	n := len(given)
	if n == 0 || n > sharding.Most {
		return nil, Invalid("the number of pools is %d: it must be from 1 to %d", n, sharding.Most)
	}
	ordered := make([]*transport.Transport, n)
	for k, t := range given {
		if t == nil {
			return nil, Invalid("pool %d of %d is nil", k+1, n)
		}
		if b := t.Bucket(); b.Of > 0 {
			if b.Of != n {
				return nil, Invalid("a pool is bucket %d of %d of a cluster, but %d pools are given", b.Number, b.Of, n)
			}
			k = b.Number - 1
		}
		if ordered[k] != nil || slices.Contains(ordered, t) {
			return nil, Invalid("two shards have the same pool or the same bucket of a cluster")
		}
		ordered[k] = t
	}
	return ordered, nil
}

// abandon closes the clients of a Set that New could not complete.
func (s *Set) abandon() {
	for _, c := range s.Clients {
		c.start()
		_ = c.close() // the client holds no locks
	}
}

// warn logs and traces the risks of a valid configuration.
func (s *Set) warn(cfg *Config) {
	var known []string
	for i, c := range s.Clients {
		now := c.monitor.View().Config
		for _, m := range now.Order {
			known = append(known, c.pool.Addr(m))
		}
		if i == 0 || c.pool.Bucket().Of == 0 { // all buckets of a cluster have the same warnings
			c.warnings = configWarnings(&c.cfg, now, c.pool)
		}
	}
	for _, name := range cfg.Durable {
		if !slices.Contains(known, name) {
			s.Clients[0].warnings = append(s.Clients[0].warnings, warning{level: slog.LevelWarn,
				text: fmt.Sprintf("redlock: WithDurableMasters: unknown master %q (have %q)", name, known), list: true})
		}
	}
	for _, c := range s.Clients {
		for _, w := range c.warnings {
			c.events.Log(w.level, w.text)
			c.events.post(redlockinfo.Event{Kind: redlockinfo.KindWarning, Err: errors.New(w.text)})
		}
	}
}

// Of returns the client of a name.
func (s *Set) Of(name string) *Client {
	if len(s.Clients) == 1 {
		return s.Clients[0]
	}
	return s.Clients[sharding.Pick(name, len(s.Clients))-1]
}

// each calls f for all clients concurrently, and joins the errors, in the form that users see.
func (s *Set) each(f func(i int, c *Client) error) error {
	if len(s.Clients) == 1 {
		return s.Public(f(0, s.Clients[0]))
	}
	return Join(Concurrently(len(s.Clients), func(i int) error {
		c := s.Clients[i]
		if err := s.Public(f(i, c)); err != nil {
			return fmt.Errorf("%s: %w", c.Deployment(), err)
		}
		return nil
	})...)
}

// EachIn is each for a call with a context, which must not be nil.
func (s *Set) EachIn(ctx context.Context, op redlockinfo.Op, f func(i int, c *Client) error) error {
	if err := CheckContext(ctx, op, s.Clients[0].cfg.Prefix); err != nil {
		return err
	}
	return s.each(f)
}

// shutdownPoll is the interval at which Shutdown checks whether all locks and calls have ended.
const shutdownPoll = 10 * time.Millisecond

// Shutdown implements Shutdown of package redlock.
func (s *Set) Shutdown(ctx context.Context) error {
	if ctx == nil {
		return Invalid("shutdown: the context is nil")
	}
	s.work.stops.Store(true)
	for _, c := range s.Clients {
		c.queue.StopLingering()
	}
	for !s.unused() {
		if err := s.Clients[0].Rest(ctx, shutdownPoll); err != nil && !errors.Is(err, lease.ErrClosed) {
			return Join(fmt.Errorf("redlock: shutdown ended early, with %s: %w", s.busy(), err), s.Close())
		} else if err != nil {
			break
		}
	}
	return s.Close()
}

// busy describes what Shutdown waits for: the held locks and the calls under way, with some of the names.
func (s *Set) busy() string {
	var held, waited []string
	calls := max(0, s.work.began.Load()-s.work.ended.Load()) // a call may end between the two
	for _, c := range s.Clients {
		held = append(held, c.Counts().Held...)
		for _, name := range c.queue.WaitedFor() {
			name, _ = scripts.CutSlot(name)
			waited = append(waited, name)
		}
	}
	var texts []string
	if len(held) > 0 || calls == 0 {
		texts = append(texts, transport.Count(len(held), "lock")+" held"+someOf("", held))
	}
	if calls > 0 {
		texts = append(texts, transport.Count(int(calls), "call")+" under way"+someOf("waiting for ", waited))
	}
	return strings.Join(texts, " and ")
}

// someOf returns the first three names in parentheses, after a space, or "" if there are none.
func someOf(what string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	names = slices.Compact(names)
	some := make([]string, 0, 4)
	for _, name := range names[:min(3, len(names))] {
		some = append(some, fmt.Sprintf("%.80q", name))
	}
	if len(names) > 3 {
		some = append(some, "...")
	}
	return " (" + what + strings.Join(some, ", ") + ")"
}

// unused reports whether no lock is held and no call is under way, in any client. This remains so once Shutdown was
// called: then only a call under way, or the context of a held lock, can acquire another lock.
func (s *Set) unused() bool {
	began := s.work.began.Load()
	if s.work.ended.Load() != began {
		return false
	}
	for _, c := range s.Clients { // after all calls have ended, since a call leaves its lock behind
		if c.calls.Load() > 1 || len(c.leases.All()) > 0 {
			return false
		}
	}
	return s.work.began.Load() == began
}

// Close implements Close of package redlock.
func (s *Set) Close() error {
	if s.closing.CompareAndSwap(false, true) {
		s.closeErr = s.close()
		close(s.closed)
	}
	<-s.closed // unlike a sync.Once, this lets the time of a testing/synctest bubble pass
	return s.closeErr
}

// close implements the first Close.
func (s *Set) close() error {
	err := s.each(func(_ int, c *Client) error { return c.close() })
	for _, c := range s.Clients {
		switch {
		case s.ownsPools:
			_ = c.pool.Close() // returns nil
		case c.pool.Closed():
			return errPoolClosed
		}
	}
	return err
}

var errPoolClosed = fmt.Errorf("%w: close the Locker first; its locks were not released, and expire with their TTLs",
	fault.ErrPoolClosed)
