package redlock_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlocktest"
)

// The tests in files named virtual_* run the real coordinator and the real pool over in-memory masters, in a bubble
// whose time moves only when everything in it waits: a second of theirs takes microseconds, and times are exact.

// A world is one bubble: masters, and what stands between them and the Lockers.
type world struct {
	*testing.T
	masters *redlocktest.Masters
	wire    *wire
}

// virtual runs f in a bubble with n masters, which are admitted unless an option says otherwise. Pools and Lockers that
// f makes are closed after it.
func virtual(t *testing.T, n int, f func(w *world), opts ...redlocktest.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, masters: redlocktest.New(n, opts...)}
		w.wire = &wire{masters: w.masters}
		t.Cleanup(w.masters.Close)
		f(w)
	})
}

// after waits for d of the bubble's time, and then until everything in it waits.
func after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// pool makes a pool whose connections are recorded by the wire.
func (w *world) pool(opts ...pool.Option) *pool.Pool {
	w.Helper()
	common := []pool.Option{pool.WithDialer(w.wire.dial), pool.WithClock(clock.Runtime())}
	p, err := pool.Dial(w.masters.URLs(), append(common, opts...)...)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = p.Close() })
	return p
}

// over makes a Locker over p and waits until it knows the masters.
func (w *world) over(p *pool.Pool, opts ...redlock.Option) *redlock.Locker {
	w.Helper()
	l, err := redlock.New(p, append([]redlock.Option{redlock.WithClock(clock.Runtime())}, opts...)...)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		if err := l.Close(context.WithoutCancel(w.Context())); err != nil {
			w.Errorf("close: %v", err)
		}
	})
	l.Ready(w.Context())
	synctest.Wait()
	return l
}

// locker makes a Locker with a pool of its own, as a program of its own has.
func (w *world) locker(opts ...redlock.Option) *redlock.Locker {
	w.Helper()
	return w.over(w.pool(), opts...)
}

// take locks name and fails the test where that fails.
func (w *world) take(l *redlock.Locker, name string, opts ...redlock.LockOption) *redlock.Lock {
	w.Helper()
	k, err := l.Lock(w.Context(), name, opts...)
	if err != nil {
		w.Fatalf("lock %s: %v", name, err)
	}
	return k
}

// each calls f for the masters named, or for all where none is.
func (w *world) each(f func(i int, m *redlocktest.Master), which ...int) {
	if len(which) == 0 {
		for i := range w.masters.N() {
			which = append(which, i)
		}
	}
	for _, i := range which {
		f(i, w.masters.Master(i))
	}
}

func (w *world) hang(which ...int) {
	w.each(func(_ int, m *redlocktest.Master) { m.Hang() }, which...)
}

func (w *world) resume(which ...int) {
	w.each(func(_ int, m *redlocktest.Master) { m.Resume() }, which...)
}

func (w *world) delay(d time.Duration, which ...int) {
	w.each(func(_ int, m *redlocktest.Master) { m.Delay(d) }, which...)
}

func (w *world) stop(which ...int) {
	w.each(func(_ int, m *redlocktest.Master) { m.Stop() }, which...)
	synctest.Wait()
}

// on is the number of masters on which somebody holds name.
func (w *world) on(name string) (n int) {
	w.each(func(_ int, m *redlocktest.Master) {
		if id, _, _ := m.Holds(name); id != "" {
			n++
		}
	})
	return n
}

// count is how often the masters together have executed a command.
func (w *world) count(command string) (n int) {
	w.each(func(_ int, m *redlocktest.Master) { n += m.Commands()[command] })
	return n
}

// isError fails the test where err does not match all of want.
func (w *world) isError(err error, want ...error) {
	w.Helper()
	for _, e := range want {
		if !errors.Is(err, e) {
			w.Errorf("got %v; want %v in it", err, e)
		}
	}
}

// notError fails the test where err matches one of others.
func (w *world) notError(err error, others ...error) {
	w.Helper()
	for _, e := range others {
		if errors.Is(err, e) {
			w.Errorf("%v matches %v", err, e)
		}
	}
}

// A sent is a command as a pool wrote it.
type sent struct {
	master int
	at     time.Time
	args   []string
}

// script is the name of the script that it runs, or the command.
func (s *sent) script() string {
	if s.args[0] == "EVALSHA" {
		for _, one := range scripts.All {
			if one.SHA == s.args[1] {
				return one.Name
			}
		}
	}
	return s.args[0]
}

// hold is the id of the hold that it is about; "" where it is about none.
func (s *sent) hold() string {
	switch s.script() {
	case "acquire", "extend":
		return s.args[7]
	case "release":
		return s.args[10]
	}
	return ""
}

// A wire dials masters and records what is written to them, in order. A Locker behind it can be frozen, as if its
// machine were suspended, or kept from some masters.
type wire struct {
	masters *redlocktest.Masters

	mu      sync.Mutex
	log     []sent
	quiet   bool          // nothing is recorded
	frozen  chan struct{} // not nil while nothing passes; closed by thaw
	blocked map[int]bool  // masters that cannot be reached
}

var errBlocked = errors.New("no route to the master")

func (v *wire) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	i := slices.Index(v.masters.URLs(), "redis://"+addr)
	v.mu.Lock()
	blocked, gate := v.blocked[i], v.frozen
	v.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if blocked {
		return nil, errBlocked
	}
	nc, err := v.masters.Dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &wireConn{Conn: nc, v: v, master: i, closed: make(chan struct{})}, nil
}

// block keeps the Lockers behind the wire from masters, from their next connection on.
func (v *wire) block(which ...int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.blocked = map[int]bool{}
	for _, i := range which {
		v.blocked[i] = true
	}
}

func (v *wire) freeze() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.frozen == nil {
		v.frozen = make(chan struct{})
	}
}

func (v *wire) thaw() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.frozen != nil {
		close(v.frozen)
		v.frozen = nil
	}
}

// sent returns the scripts of these names, or all, that were written so far; clear forgets them.
func (v *wire) sent(names ...string) (list []sent) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, s := range v.log {
		if len(names) == 0 || slices.Contains(names, s.script()) {
			list = append(list, s)
		}
	}
	return list
}

func (v *wire) clear() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.log = nil
}

// A wireConn is one connection of a wire.
type wireConn struct {
	net.Conn
	v      *wire
	master int
	rest   []byte // the beginning of a command that is not complete
	once   sync.Once
	closed chan struct{}
}

// pass waits while the wire is frozen, and reports whether the connection is still there.
func (c *wireConn) pass() bool {
	for {
		c.v.mu.Lock()
		gate := c.v.frozen
		c.v.mu.Unlock()
		if gate == nil {
			return true
		}
		select {
		case <-gate:
		case <-c.closed:
			return false
		}
	}
}

func (c *wireConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if !c.pass() {
		return 0, net.ErrClosed
	}
	return n, err
}

func (c *wireConn) Write(b []byte) (int, error) {
	if !c.pass() {
		return 0, net.ErrClosed
	}
	c.v.mu.Lock()
	if !c.v.quiet {
		c.rest = append(c.rest, b...)
		for {
			args, used := parseCommand(c.rest)
			if used == 0 {
				break
			}
			c.rest = c.rest[used:]
			c.v.log = append(c.v.log, sent{c.master, time.Now(), args})
		}
	}
	c.v.mu.Unlock()
	return c.Conn.Write(b)
}

func (c *wireConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// parseCommand reads one command, an array of bulk strings, and how many bytes it took; 0 where it is not complete.
func parseCommand(b []byte) (args []string, used int) {
	line := func() (int, bool) {
		end := bytes.Index(b[used:], []byte("\r\n"))
		if end < 1 {
			return 0, false
		}
		n, err := strconv.Atoi(string(b[used+1 : used+end]))
		used += end + 2
		return n, err == nil
	}
	n, ok := line()
	if !ok {
		return nil, 0
	}
	for range n {
		size, ok := line()
		if !ok || used+size+2 > len(b) {
			return nil, 0
		}
		args = append(args, string(b[used:used+size]))
		used += size + 2
	}
	return args, used
}

// replay sends a recorded command once more, on a connection of its own, and returns the reply.
func (w *world) replay(s sent) any {
	w.Helper()
	nc, err := w.masters.Dial(w.Context(), "tcp", w.masters.Master(s.master).Addr())
	if err != nil {
		w.Fatal(err)
	}
	c := redis.NewConn(nc, 0, 0)
	defer c.Close()
	args := make([]any, len(s.args)-1)
	for i, a := range s.args[1:] {
		args[i] = a
	}
	reply, err := c.Do(s.args[0], args...)
	if err != nil {
		w.Fatalf("the replay of %s: %v", s.script(), err)
	}
	return reply
}

// A client's clock follows the bubble's time at a rate, and can be set forward or be stopped.
type shiftClock struct {
	mu      sync.Mutex
	base    time.Time
	rate    float64
	boot    time.Duration // by how much each of the two clocks is ahead
	wall    time.Duration
	stopped bool
	at      time.Time // when it was stopped
}

func newShiftClock(rate float64) *shiftClock { return &shiftClock{base: time.Now(), rate: rate} }

func (c *shiftClock) clock() *clock.Clock {
	return clock.New(func() clock.Instant {
		c.mu.Lock()
		defer c.mu.Unlock()
		now := time.Now()
		if c.stopped {
			now = c.at
		}
		run := int64(float64(now.Sub(c.base)) * c.rate)
		return clock.At(run+int64(c.boot)+1, c.base.UnixNano()+run+int64(c.wall))
	})
}

// jump sets the two clocks forward.
func (c *shiftClock) jump(boot, wall time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.boot += boot
	c.wall += wall
}

// suspend stops the clock, and resume lets it show again what it would without.
func (c *shiftClock) suspend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped, c.at = true, time.Now()
}

func (c *shiftClock) resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = false
}

// ended waits for the end of ctx, at most for the bound, and returns its cause and after what time it came.
func (w *world) ended(ctx context.Context, bound time.Duration) (cause error, took time.Duration) {
	w.Helper()
	start := time.Now()
	select {
	case <-ctx.Done():
		return context.Cause(ctx), time.Since(start)
	case <-time.After(bound):
		w.Fatalf("the context has not ended within %v", bound)
		return nil, 0
	}
}

const defaultPrefix = scripts.Prefix(redlock.DefaultPrefix)

// asError is errors.As.
func asError[T error](err error, to *T) bool { return errors.As(err, to) }

// seeded is a source of numbers that is the same in each run.
func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x5eed)) }
