package redlock_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"strconv"
	"sync"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// A peer is one client: a Locker with its own pool and wire. It can be killed, hung, cut off from masters, or
// prevented from subscribing. Its messages can be late, held back or lost, and the messages that the masters publish
// to it can be lost, duplicated or reordered.
type peer struct {
	*redlock.Locker
	id      string
	cluster *cluster // with the peer's own wire
	pool    *pool.Pool

	mu     sync.Mutex
	conns  map[*peerConn]bool // true: has a subscription
	dead   bool
	deaf   bool
	mute   bool                                      // the client's messages are lost, but its connections stay open
	frozen chan struct{}                             // not nil while the client hangs
	tamper func(master int, payload string) []string // nil: all messages pass
	late   func(master int) time.Duration            // delays of the client's messages; nil: none
	held   map[int]chan struct{}                     // by master; closed to let the messages to it pass
	answer lie                                       // replaces replies; nil: none
}

var errKilled = errors.New("the client is dead")

// peer starts a client whose Locker has this label, and waits until the client knows the masters.
func (w *cluster) peer(id string, opts ...redlock.Option) *peer {
	w.Helper()
	return w.newPeer(id).open(w.masters.URLs(), opts...).ready()
}

// cutOff starts a client that cannot reach the given master.
func (w *cluster) cutOff(master int, opts ...redlock.Option) *peer {
	w.Helper()
	p := w.newPeer("client")
	p.cluster.wire.block(master)
	return p.open(w.masters.URLs(), opts...).ready()
}

// configured starts a client with this configuration.
func (w *cluster) configured(c redlock.Configuration) *peer {
	w.Helper()
	return w.newPeer("client").open(slices.Concat(c.Masters, c.Next), redlock.WithConfiguration(c)).ready()
}

// newPeer returns a client that is not open yet, so that a test can first disturb its network.
func (w *cluster) newPeer(id string) *peer {
	own := &cluster{tester: w.tester, masters: w.masters, wire: &wire{masters: w.masters}}
	p := &peer{id: id, cluster: own, conns: map[*peerConn]bool{}, held: map[int]chan struct{}{}}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.peers = append(w.peers, p)
	return p
}

// open creates the pool of p, over the masters with these URLs, and the Locker. It does not wait for the masters.
func (p *peer) open(urls []string, opts ...redlock.Option) *peer {
	p.cluster.Helper()
	p.pool = p.cluster.poolOver(urls, pool.WithDialer(p.dial),
		transport.WithRedial(10*time.Millisecond, 40*time.Millisecond))
	p.Locker = p.cluster.newLocker(p.pool, append([]redlock.Option{redlock.WithLabel(p.id)}, opts...)...)
	return p
}

// ready waits until p knows the masters. It also registers a cleanup that fails the test unless Close succeeds.
func (p *peer) ready() *peer {
	w := p.cluster
	w.Cleanup(func() {
		p.release()
		if err := p.Close(); err != nil && len(w.wire.blocked) == 0 {
			w.Errorf("Close at the end of the test returned %v", err)
		}
	})
	client.SetOf(p).AwaitKnown(w.Context())
	synctest.Wait()
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
	nc, err := p.cluster.wire.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	master := slices.Index(p.cluster.masters.URLs(), "redis://"+addr)
	c := &peerConn{Conn: nc, p: p, master: master, in: bufio.NewReader(nc), closed: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[c] = false
	return c, nil
}

// lateTo delays what p writes to master i.
func (p *peer) lateTo(i int, d time.Duration) {
	p.lateBy(func(master int) time.Duration {
		if master == i {
			return d
		}
		return 0
	})
}

func (p *peer) lateBy(f func(master int) time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.late = f
}

// silence starts the loss of all messages of p, or ends it if on is false. The connections of p stay open, as if its
// process had stopped.
func (p *peer) silence(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mute = on
}

// hold keeps messages to master i in transit until release is called.
func (p *peer) hold(i int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held[i] = make(chan struct{})
}

// release delivers the messages that were held back.
func (p *peer) release() {
	p.mu.Lock()
	for i, ch := range p.held {
		close(ch)
		delete(p.held, i)
	}
	p.mu.Unlock()
	synctest.Wait()
}

// kill ends the client like SIGKILL: its connections end, and the client has no further effect on other clients. Its
// calls continue without success until the test ends.
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

// pass waits while the client hangs, or while a message that is sent is held back, and reports whether c is still open.
func (c *peerConn) pass(sent bool) bool {
	c.p.mu.Lock()
	gates := []chan struct{}{c.p.frozen}
	if sent {
		gates = append(gates, c.p.held[c.master])
	}
	c.p.mu.Unlock()
	for _, gate := range gates {
		if gate == nil {
			continue
		}
		select {
		case <-gate:
		case <-c.closed:
			return false
		}
	}
	return true
}

// cut ends a peer's connections to some masters and blocks new ones until the next call of wire.block.
func (p *peer) cut(which ...int) {
	p.cluster.wire.block(which...)
	p.mu.Lock()
	all := maps.Clone(p.conns)
	p.mu.Unlock()
	for c := range all {
		if slices.Contains(which, c.master) {
			_ = c.Close()
		}
	}
}

// deafen ends the subscriptions of p, and every new subscription until hear is called.
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

// tampering replaces each published message with the messages that f returns for it.
func (p *peer) tampering(f func(master int, payload string) []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tamper = f
}

// lost is a function for tampering that drops every message.
func lost(int, string) []string { return nil }

// A peerConn is one connection of a peer.
type peerConn struct {
	net.Conn
	p      *peer
	master int
	in     *bufio.Reader
	out    bytes.Buffer // bytes from the master, after tampering

	mu     sync.Mutex
	rest   []byte // the start of an incomplete command
	open   []sent // commands without a reply yet, for answer
	once   sync.Once
	closed chan struct{}
}

func (c *peerConn) Write(b []byte) (int, error) {
	if !c.pass(true) {
		return 0, net.ErrClosed
	}
	c.p.mu.Lock()
	late, mute := c.p.late, c.p.mute
	c.p.mu.Unlock()
	if late != nil {
		if d := late(c.master); d > 0 {
			<-time.After(d)
		}
	}
	if mute {
		return len(b), nil
	}
	if c.p.answer != nil {
		c.record(b)
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

// record adds the commands in b to c.open.
func (c *peerConn) record(b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rest = append(c.rest, b...)
	for args, used := parseCommand(c.rest); used > 0; args, used = parseCommand(c.rest) {
		c.rest = c.rest[used:]
		c.open = append(c.open, sent{master: c.master, args: args})
	}
}

// replaced returns the text that replaces a reply, or the reply itself.
func (c *peerConn) replaced(reply string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.open) == 0 { // a message of a subscription
		return reply
	}
	s := c.open[0]
	c.open = c.open[1:]
	if text, ok := c.p.answer(&s, reply); ok {
		return text
	}
	return reply
}

func (c *peerConn) Read(b []byte) (int, error) {
	for c.out.Len() == 0 {
		value, err := redistest.ReadReply(c.in)
		if err != nil {
			return 0, err
		}
		c.p.mu.Lock()
		tamper := c.p.tamper
		c.p.mu.Unlock()
		if c.p.answer != nil {
			c.out.WriteString(c.replaced(value))
			continue
		}
		channel, payload, isMessage := asMessage(value)
		if !isMessage || tamper == nil {
			c.out.WriteString(value)
			continue
		}
		for _, one := range tamper(c.master, payload) {
			c.out.WriteString("*3\r\n" + bulk("message") + bulk(channel) + bulk(one))
		}
	}
	if !c.pass(false) {
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

// asMessage parses a message of a subscription.
func asMessage(value string) (channel, payload string, ok bool) {
	args, used := parseCommand([]byte(value))
	if used == 0 || len(args) != 3 || args[0] != "message" {
		return "", "", false
	}
	return args[1], args[2], true
}

// inboxIdle is the time for which the inbox of a Locker stays open after its last wait.
const inboxIdle = 10 * time.Second

// A hint is a wake-up message to a peer, and the master that published it.
type hint struct {
	master  int
	payload string
}

// publish publishes the given wake-ups to a peer once more, each on the master that published it before.
func (w *cluster) publish(p *peer, all []hint) {
	w.Helper()
	for _, h := range all {
		w.replay(sent{master: h.master, args: []string{"PUBLISH", p.inbox(), h.payload}})
	}
	after(10 * time.Millisecond)
}

// inbox returns the channel of the peer's wake-ups, or "" if the peer has never waited.
func (p *peer) inbox() string {
	v := p.cluster.wire
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.inbox
}

// holder returns the label of the owner that holds name on most masters, and the number of these masters.
func (w *cluster) holder(name string) (label string, on int) {
	id, on := w.masters.Holder(name)
	return labelOf(id), on
}

// labelOf returns the label in the id of a lease.
func labelOf(id string) string {
	_, label := scripts.LeaseLabel(id)
	return label
}
