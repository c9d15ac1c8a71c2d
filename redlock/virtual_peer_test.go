package redlock_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// A peer is one client: a Locker with its own pool and wire. It can be killed, hung, or prevented from subscribing, and
// the messages that the masters publish to it can be lost, duplicated or reordered.
type peer struct {
	*redlock.Locker
	id    string
	world *world // with the peer's own wire

	mu     sync.Mutex
	conns  map[*peerConn]bool // true: of subscriptions
	dead   bool
	deaf   bool
	frozen chan struct{}                             // not nil while the client hangs
	tamper func(master int, payload string) []string // nil: all messages pass
}

var errKilled = errors.New("the program is dead")

// peer starts a client whose Locker has this label, and waits until it knows the masters.
func (w *world) peer(id string, opts ...redlock.Option) *peer {
	w.Helper()
	own := &world{T: w.T, masters: w.masters, wire: &wire{masters: w.masters}}
	p := &peer{id: id, world: own, conns: map[*peerConn]bool{}}
	pl := p.world.pool(pool.WithDialer(p.dial), pool.WithRedial(10*time.Millisecond, 40*time.Millisecond))
	p.Locker = p.world.over(pl, append([]redlock.Option{redlock.WithOwner(id)}, opts...)...)
	w.peers = append(w.peers, p)
	return p
}

func (p *peer) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	p.mu.Lock()
	dead, gate := p.dead, p.frozen
	p.mu.Unlock()
	if dead {
		return nil, errKilled
	}
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	nc, err := p.world.wire.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	master := slices.Index(p.world.masters.URLs(), "redis://"+addr)
	c := &peerConn{Conn: nc, p: p, master: master, in: bufio.NewReader(nc), closed: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[c] = false
	return c, nil
}

// kill ends the client like SIGKILL: its connections end, and it has no further effect on others. Its calls continue
// without success until the test ends.
func (p *peer) kill() {
	p.mu.Lock()
	p.dead = true
	all := maps.Clone(p.conns)
	p.mu.Unlock()
	for c := range all {
		_ = c.Close()
	}
	synctest.Wait()
}

// hang stops the client while its connections stay open, and wake resumes it.
func (p *peer) hang() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frozen = make(chan struct{})
}

func (p *peer) wake() {
	p.mu.Lock()
	gate := p.frozen
	p.frozen = nil
	p.mu.Unlock()
	if gate != nil {
		close(gate)
	}
	synctest.Wait()
}

// pass waits while the client hangs, and reports whether c is still open.
func (c *peerConn) pass() bool {
	c.p.mu.Lock()
	gate := c.p.frozen
	c.p.mu.Unlock()
	if gate == nil {
		return true
	}
	select {
	case <-gate:
		return true
	case <-c.closed:
		return false
	}
}

// deafen ends the subscriptions, and makes every new one end, until hear is called.
func (p *peer) deafen() {
	p.mu.Lock()
	p.deaf = true
	all := maps.Clone(p.conns)
	p.mu.Unlock()
	for c, subscribed := range all {
		if subscribed {
			_ = c.Close()
		}
	}
	synctest.Wait()
}

func (p *peer) hear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deaf = false
}

// tampering makes f replace each message by those that it returns.
func (p *peer) tampering(f func(master int, payload string) []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tamper = f
}

// lost drops every message, for tampering.
func lost(int, string) []string { return nil }

// A peerConn is one connection of a peer.
type peerConn struct {
	net.Conn
	p      *peer
	master int
	in     *bufio.Reader
	out    bytes.Buffer // read from the master, and tampered with
	once   sync.Once
	closed chan struct{}
}

func (c *peerConn) Write(b []byte) (int, error) {
	if !c.pass() {
		return 0, net.ErrClosed
	}
	if bytes.Contains(b, []byte("\r\nSUBSCRIBE\r\n")) {
		c.p.mu.Lock()
		c.p.conns[c] = true
		deaf := c.p.deaf
		c.p.mu.Unlock()
		if deaf {
			_ = c.Close()
			return 0, net.ErrClosed
		}
	}
	return c.Conn.Write(b)
}

func (c *peerConn) Read(b []byte) (int, error) {
	for c.out.Len() == 0 {
		value, err := readValue(c.in)
		if err != nil {
			return 0, err
		}
		c.p.mu.Lock()
		tamper := c.p.tamper
		c.p.mu.Unlock()
		channel, payload, isMessage := asMessage(value)
		if !isMessage || tamper == nil {
			c.out.Write(value)
			continue
		}
		for _, one := range tamper(c.master, payload) {
			c.out.WriteString("*3\r\n" + bulk("message") + bulk(channel) + bulk(one))
		}
	}
	if !c.pass() {
		return 0, net.ErrClosed
	}
	return c.out.Read(b)
}

func (c *peerConn) Close() error {
	c.p.mu.Lock()
	delete(c.p.conns, c)
	c.p.mu.Unlock()
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

func bulk(text string) string { return "$" + strconv.Itoa(len(text)) + "\r\n" + text + "\r\n" }

// readValue returns the bytes of one reply.
func readValue(r *bufio.Reader) ([]byte, error) {
	head, err := r.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	n, _ := strconv.Atoi(string(bytes.TrimSpace(head[1:])))
	switch {
	case head[0] == '$' && n >= 0:
		rest := make([]byte, n+2)
		if _, err := io.ReadFull(r, rest); err != nil {
			return nil, err
		}
		head = append(head, rest...)
	case head[0] == '*':
		for range max(n, 0) {
			one, err := readValue(r)
			if err != nil {
				return nil, err
			}
			head = append(head, one...)
		}
	}
	return head, nil
}

// asMessage parses a message of a subscription.
func asMessage(value []byte) (channel, payload string, ok bool) {
	args, used := parseCommand(value)
	if used == 0 || len(args) != 3 || args[0] != "message" {
		return "", "", false
	}
	return args[1], args[2], true
}

// A call is a Lock call in progress.
type call struct {
	w    *world
	done chan struct{}
	lock *redlock.Lock
	err  error
	took time.Duration
}

// call starts to lock name, and returns once the call waits.
func (w *world) call(ctx context.Context, l *redlock.Locker, name string, opts ...redlock.LockOption) *call {
	c := &call{w: w, done: make(chan struct{})}
	start := time.Now()
	go func() {
		defer close(c.done)
		c.lock, c.err = l.Lock(ctx, name, opts...)
		c.took = time.Since(start)
	}()
	synctest.Wait()
	return c
}

// waits starts to lock name, and returns once the call is queued on all masters that it can reach.
func (p *peer) waits(name string, opts ...redlock.LockOption) *call {
	p.world.Helper()
	c := p.world.call(p.world.Context(), p.Locker, name, opts...)
	after(time.Second)
	if c.over() {
		p.world.Fatalf("%s is not waited for: %v", name, c.err)
	}
	return c
}

func (c *call) over() bool {
	synctest.Wait()
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// gets waits for the lock, at most for the bound, and returns it with the elapsed time.
func (c *call) gets(bound time.Duration) (*redlock.Lock, time.Duration) {
	c.w.Helper()
	start := time.Now()
	select {
	case <-c.done:
	case <-time.After(bound):
		c.w.Fatalf("still waiting after %v", bound)
	}
	if c.err != nil {
		c.w.Fatal(c.err)
	}
	return c.lock, time.Since(start)
}

// fails waits for the error, at most for the bound.
func (c *call) fails(bound time.Duration) error {
	c.w.Helper()
	select {
	case <-c.done:
	case <-time.After(bound):
		c.w.Fatalf("still waiting after %v", bound)
	}
	if c.err == nil {
		c.w.Fatal("it got the lock")
	}
	return c.err
}

// unlock releases k.
func (w *world) unlock(k *redlock.Lock) {
	w.Helper()
	if err := k.Unlock(w.Context()); err != nil {
		w.Errorf("unlock: %v", err)
	}
}

// queued returns the number of masters that have a queue of waiters for name.
func (w *world) queued(name string) (n int) {
	w.each(func(_ int, m *memory.Master) {
		if slices.Contains(m.Keys(), defaultPrefix.Queue(name)) {
			n++
		}
	})
	return n
}

// nothingLeft fails the test if the masters have more than fences and records, or any client is still subscribed
// after the time for which inboxes stay open.
func (w *world) nothingLeft(names ...string) {
	w.Helper()
	after(100 * time.Millisecond) // for messages in transit
	allowed := []string{defaultPrefix.Admission()}
	for _, name := range names {
		allowed = append(allowed, defaultPrefix.Fence(name))
	}
	w.each(func(i int, m *memory.Master) {
		for _, key := range m.Keys() {
			if !slices.Contains(allowed, key) && !isProbeFence(key) {
				w.Errorf("master %d still has %s", i, key)
			}
		}
	})
	after(inboxIdle + time.Second)
	w.each(func(i int, _ *memory.Master) {
		for _, p := range w.peers {
			if p.inbox() == "" {
				continue
			}
			if n := w.replay(sent{master: i, args: []string{"PUBLISH", p.inbox(), "anybody"}}); n != int64(0) {
				w.Errorf("master %d: the inbox of %s is still heard %v after the last wait", i, p.id, inboxIdle)
			}
		}
	})
}

// isProbeFence reports whether a key is the fence of a health check.
func isProbeFence(key string) bool {
	return strings.HasPrefix(key, string(defaultPrefix)+":{redlock-probe:") && strings.HasSuffix(key, "}:fence")
}

// inboxIdle is the time for which the inbox of a Locker stays open after its last wait.
const inboxIdle = 10 * time.Second
