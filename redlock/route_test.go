package redlock_test

import (
	"context"
	"net"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// A route is the network between one client and the masters. For each master it can be cut, or hold messages back.
type route struct {
	w *world

	mu    sync.Mutex
	cut   map[int]bool
	gates map[gate]chan struct{} // of the held directions; closed to let the messages pass
	conns map[int][]net.Conn
}

// A gate is one direction of the network to a master.
type gate struct {
	master int
	back   bool // from the master to the client
}

// client returns a Locker with the configuration set, over its own route and pool. It reconnects after 10 ms.
func (w *world) client(set redlock.Configuration, opts ...redlock.Option) (*redlock.Locker, *route) {
	w.Helper()
	r := &route{w: w, cut: map[int]bool{}, gates: map[gate]chan struct{}{}, conns: map[int][]net.Conn{}}
	p, err := pool.Open(slices.Concat(set.Masters, set.Next), pool.WithDialer(r.dial),
		transport.WithClock(clock.Runtime()), pool.WithRedial(10*time.Millisecond, 10*time.Millisecond))
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = p.Close() })
	l := w.over(p, append(opts, redlock.WithConfiguration(set))...)
	w.Cleanup(r.restore) // before the Locker is closed
	return l, r
}

func (r *route) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	i := slices.Index(r.w.masters.URLs(), "redis://"+addr)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cut[i] {
		return nil, errBlocked
	}
	nc, err := r.w.masters.Dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	r.conns[i] = append(r.conns[i], nc)
	c := &routeConn{Conn: nc, r: r, master: i, out: make(chan []byte, 1<<12), closed: make(chan struct{})}
	go c.forward()
	return c, nil
}

// disconnect ends the connections to master i, and refuses new ones until restore or connect.
func (r *route) disconnect(i int) {
	r.mu.Lock()
	r.cut[i] = true
	conns := r.conns[i]
	delete(r.conns, i)
	r.mu.Unlock()
	for _, nc := range conns {
		_ = nc.Close()
	}
	synctest.Wait()
}

func (r *route) connect(i int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.cut, i)
}

// hold keeps messages of the client to master i in transit, until release.
func (r *route) hold(i int) { r.close(gate{master: i}) }

// holdReplies keeps replies of master i in transit, until release.
func (r *route) holdReplies(i int) { r.close(gate{i, true}) }

func (r *route) close(g gate) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gates[g] = make(chan struct{})
}

// release delivers the held messages between the client and master i.
func (r *route) release(i int) {
	r.mu.Lock()
	for _, g := range []gate{{i, false}, {i, true}} {
		if ch, held := r.gates[g]; held {
			close(ch)
			delete(r.gates, g)
		}
	}
	r.mu.Unlock()
	synctest.Wait()
}

// restore ends every fault of the route.
func (r *route) restore() {
	for i := range r.w.masters.N() {
		r.connect(i)
		r.release(i)
	}
}

// pass waits while g is held.
func (r *route) pass(g gate) {
	r.mu.Lock()
	held := r.gates[g]
	r.mu.Unlock()
	if held != nil {
		<-held
	}
}

// A routeConn is one connection over a route.
type routeConn struct {
	net.Conn
	r      *route
	master int
	out    chan []byte
	once   sync.Once
	closed chan struct{}
}

// Write implements net.Conn. It does not wait for held messages.
func (c *routeConn) Write(b []byte) (int, error) {
	select {
	case c.out <- slices.Clone(b):
		return len(b), nil
	case <-c.closed:
		return 0, net.ErrClosed
	}
}

// Read implements net.Conn.
func (c *routeConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.r.pass(gate{c.master, true})
	return n, err
}

// Close implements net.Conn.
func (c *routeConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

func (c *routeConn) forward() {
	for {
		select {
		case b := <-c.out:
			c.r.pass(gate{master: c.master})
			if _, err := c.Conn.Write(b); err != nil {
				return
			}
		case <-c.closed:
			return
		}
	}
}
