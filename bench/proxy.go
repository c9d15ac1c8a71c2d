package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// A proxy stands in front of one master and makes it far away: each way half of the round trip, and half of what a
// fault adds. Bytes under way are not limited, so a pipeline stays one.
type proxy struct {
	listener net.Listener
	target   string
	half     time.Duration // half of the round trip
	delay    atomic.Int64  // ns, both ways together, in addition; counts for what arrives from now on
	wg       sync.WaitGroup

	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	closed bool
}

// newProxy listens on a free port of loopback and hands on to target.
func newProxy(target string, roundTrip time.Duration) (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("bench: proxy: %w", err)
	}
	p := &proxy{listener: l, target: target, half: roundTrip / 2, conns: map[net.Conn]struct{}{}}
	p.wg.Go(p.accept)
	return p, nil
}

// proxied puts a proxy in front of the master at a URL and returns the URL to use instead.
func proxied(u string, roundTrip time.Duration) (*proxy, string, error) {
	parsed, err := url.Parse(u)
	if err != nil || parsed.Scheme != "redis" {
		return nil, "", errors.New("bench: a delay can be put before redis:// URLs alone")
	}
	if parsed.Port() == "" {
		parsed.Host = net.JoinHostPort(parsed.Hostname(), "6379")
	}
	p, err := newProxy(parsed.Host, roundTrip)
	if err != nil {
		return nil, "", err
	}
	parsed.Host = p.listener.Addr().String()
	return p, parsed.String(), nil
}

func (p *proxy) setDelay(d time.Duration) { p.delay.Store(int64(d)) }

func (p *proxy) url() string { return "redis://" + p.listener.Addr().String() }

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.DialTimeout("tcp", p.target, time.Second)
		if err != nil {
			client.Close()
			continue
		}
		if !p.track(client, server) {
			return
		}
		p.wg.Go(func() { p.pump(server, client) })
		p.wg.Go(func() { p.pump(client, server) })
	}
}

// track books both connections, or closes them where the proxy is closed.
func (p *proxy) track(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		if p.closed {
			c.Close()
		} else {
			p.conns[c] = struct{}{}
		}
	}
	return !p.closed
}

func (p *proxy) drop(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		c.Close()
		delete(p.conns, c)
	}
}

// A chunk is what one read gave, and when it is to be handed on.
type chunk struct {
	due  time.Time
	data []byte
}

// slowTick is how often the proxy of a slow master looks. One that woke up for each request and reply of a slow
// master, and a master that then woke up for each, would take so much processor time from the other masters and the
// client that this would be what is measured.
const slowTick = 10 * time.Millisecond

// slow reports whether a fault makes this master slow, and so is looked at once in a slowTick.
func (p *proxy) slow() bool { return time.Duration(p.delay.Load()) >= slowBy }

// pump reads without waiting, so that each chunk's delay counts from its own arrival. What a slow master is sent, or
// sends, waits in the buffers of the kernel until it is looked at.
func (p *proxy) pump(to, from net.Conn) {
	chunks := make(chan chunk, 1<<16)
	p.wg.Go(func() {
		defer p.drop(to, from)
		deliver(to, chunks)
	})
	defer close(chunks)
	timer, err := newAlarm()
	if err != nil {
		return
	}
	defer timer.close()
	buf := make([]byte, 256<<10)
	for {
		if now := time.Now(); p.slow() && timer.sleep(now.Truncate(slowTick).Add(slowTick).Sub(now)) != nil {
			return
		}
		n, err := from.Read(buf)
		if n > 0 {
			chunks <- chunk{p.due(time.Now()), append([]byte(nil), buf[:n]...)}
		}
		if err != nil {
			return
		}
	}
}

// due is when what arrives now is handed on. Of a slow master that is with a look: it has waited for one before, so
// both together are no less than the delay.
func (p *proxy) due(now time.Time) time.Time {
	at := now.Add(p.half + time.Duration(p.delay.Load())/2)
	if p.slow() {
		return at.Truncate(slowTick)
	}
	return at
}

// deliver writes what is due, together where several chunks are, until the channel is closed. It reads on after an
// error, so that nobody blocks on the channel.
func deliver(to io.WriteCloser, chunks <-chan chunk) {
	var (
		batch  []byte
		held   chunk // taken too early
		isHeld bool
	)
	timer, err := newAlarm()
	if err == nil {
		defer timer.close()
	}
	for {
		c := held
		if !isHeld {
			var ok bool
			if c, ok = <-chunks; !ok {
				return
			}
		}
		isHeld = false
		if err == nil {
			err = timer.sleep(time.Until(c.due))
		}
		batch = append(batch[:0], c.data...)
		for !isHeld && len(chunks) > 0 {
			if held = <-chunks; held.due.After(c.due) {
				isHeld = true
			} else {
				batch = append(batch, held.data...)
			}
		}
		if err == nil {
			_, err = to.Write(batch)
		}
		if err != nil { // the other side is to see it
			_ = to.Close()
		}
	}
}

// close ends everything and joins every goroutine.
func (p *proxy) close() error {
	err := p.listener.Close()
	p.mu.Lock()
	p.closed = true
	for c := range p.conns {
		c.Close()
	}
	p.mu.Unlock()
	p.wg.Wait()
	if err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("bench: proxy: %w", err)
	}
	return nil
}
