package main

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// A proxy stands in front of one master and makes it far away: each way half of the round trip, and on the way back what
// a fault adds. Bytes under way are not limited, so a pipeline stays one.
type proxy struct {
	listener net.Listener
	target   string
	half     time.Duration // half of the round trip
	delay    atomic.Int64  // ns on the way back, in addition; counts for what arrives from now on
	jitter   atomic.Int64  // ns: up to so much more, for each chunk anew
	sleep    func(time.Duration)
	wg       sync.WaitGroup

	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	closed bool
}

// newProxy listens on a free port of loopback and hands on to target. sleep is how it waits.
func newProxy(target string, roundTrip time.Duration, sleep func(time.Duration)) (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("bench: proxy: %w", err)
	}
	p := &proxy{listener: l, target: target, half: roundTrip / 2, sleep: sleep, conns: map[net.Conn]struct{}{}}
	p.wg.Go(p.accept)
	return p, nil
}

// proxied puts a proxy in front of the master at a URL and returns the URL to use instead.
func proxied(u string, roundTrip time.Duration, sleep func(time.Duration)) (*proxy, string, error) {
	parsed, err := url.Parse(u)
	if err != nil || parsed.Scheme != "redis" {
		return nil, "", errors.New("bench: a delay can be put before redis:// URLs alone")
	}
	if parsed.Port() == "" {
		parsed.Host = net.JoinHostPort(parsed.Hostname(), "6379")
	}
	p, err := newProxy(parsed.Host, roundTrip, sleep)
	if err != nil {
		return nil, "", err
	}
	parsed.Host = p.listener.Addr().String()
	return p, parsed.String(), nil
}

func (p *proxy) setDelay(d time.Duration)  { p.delay.Store(int64(d)) }
func (p *proxy) setJitter(d time.Duration) { p.jitter.Store(int64(d)) }

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
		p.wg.Go(func() { p.forward(server, client) })
		p.wg.Go(func() { p.pump(client, server, p.due) })
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

// forward hands on what the client sends; without a delay the kernel does it.
func (p *proxy) forward(server, client net.Conn) {
	if p.half > 0 {
		p.pump(server, client, func(now time.Time) time.Time { return now.Add(p.half) })
		return
	}
	_, _ = io.Copy(server, client)
	p.drop(server, client)
}

// A chunk is what one read gave, and when it is to be handed on.
type chunk struct {
	due  time.Time
	data []byte
}

// pump reads without waiting, so that each chunk's delay counts from its own arrival.
func (p *proxy) pump(to, from net.Conn, due func(time.Time) time.Time) {
	chunks := make(chan chunk, 1<<16)
	p.wg.Go(func() {
		defer p.drop(to, from)
		deliver(to, chunks, p.sleep)
	})
	defer close(chunks)
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			chunks <- chunk{due(time.Now()), append([]byte(nil), buf[:n]...)}
		}
		if err != nil {
			return
		}
	}
}

// due is when a reply that arrives now is handed on: after the delay, and where that is long, at the next whole
// millisecond. A proxy that woke up for each late reply of a slow master would take so much processor time from masters
// and client that this would be what is measured.
func (p *proxy) due(now time.Time) time.Time {
	delay := p.half + time.Duration(p.delay.Load())
	if j := p.jitter.Load(); j > 0 {
		delay += time.Duration(rand.Int64N(j))
	}
	if delay < slowBy {
		return now.Add(delay)
	}
	return now.Add(delay + time.Millisecond).Truncate(time.Millisecond)
}

// deliver writes what is due, together where several chunks are, until the channel is closed. It reads on after an
// error, so that nobody blocks on the channel.
func deliver(to io.Writer, chunks <-chan chunk, sleep func(time.Duration)) {
	var (
		batch  []byte
		held   chunk // taken too early
		isHeld bool
		err    error
	)
	for {
		c := held
		if !isHeld {
			var ok bool
			if c, ok = <-chunks; !ok {
				return
			}
		}
		isHeld = false
		sleep(time.Until(c.due))
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
