package proxy

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/bench/internal/alarm"
)

// A Proxy stands in front of one master.
type Proxy struct {
	listener net.Listener
	target   string
	half     time.Duration // half of the round trip
	delay    atomic.Int64  // ns, both ways together, in addition
	pumps    sync.WaitGroup
	accepts  sync.WaitGroup
	conns    []net.Conn // written by accept
}

// New listens on a free port and hands on to the master at a redis:// URL. It must be closed.
func New(master string, roundTrip time.Duration) (*Proxy, error) {
	u, err := url.Parse(master)
	if err != nil || u.Scheme != "redis" || u.Port() == "" {
		return nil, errors.New("proxy: a delay can be put before redis://host:port alone")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	p := &Proxy{listener: l, target: u.Host, half: roundTrip / 2}
	p.accepts.Go(p.accept)
	return p, nil
}

// URL leads to the master through p.
func (p *Proxy) URL() string { return "redis://" + p.listener.Addr().String() }

// SetDelay makes what arrives from now on later by d, both ways together; 0 ends that.
func (p *Proxy) SetDelay(d time.Duration) { p.delay.Store(int64(d)) }

// Close ends everything and joins every goroutine.
func (p *Proxy) Close() error {
	err := p.listener.Close()
	p.accepts.Wait()
	for _, c := range p.conns {
		c.Close()
	}
	p.pumps.Wait()
	return err
}

func (p *Proxy) accept() {
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
		p.conns = append(p.conns, client, server)
		p.pumps.Go(func() { p.pump(server, client) })
		p.pumps.Go(func() { p.pump(client, server) })
	}
}

// A chunk is what one read gave, and when it is to be handed on.
type chunk struct {
	due  time.Time
	data []byte
}

// Slow is the least delay that makes a master a slow one: what it is asked is looked at once in a slowTick.
const Slow = 50 * time.Millisecond

// slowTick is how often the proxy of a slow master looks. One that woke up for each request and reply of a slow
// master, and a master that then woke up for each, would take so much processor time from the other masters and the
// client that this would be what is measured.
const slowTick = 10 * time.Millisecond

func (p *Proxy) slow() bool { return time.Duration(p.delay.Load()) >= Slow }

// pump reads without waiting, so that each chunk's delay counts from its own arrival. What a slow master is sent, or
// sends, waits in the buffers of the kernel until it is looked at.
func (p *Proxy) pump(to, from net.Conn) {
	chunks := make(chan chunk, 1<<16)
	p.pumps.Go(func() {
		defer from.Close()
		defer to.Close()
		deliver(to, chunks)
	})
	defer close(chunks)
	timer, err := alarm.New()
	if err != nil {
		return
	}
	defer timer.Close()
	buf := make([]byte, 256<<10)
	for {
		if now := time.Now(); p.slow() && timer.Sleep(now.Truncate(slowTick).Add(slowTick).Sub(now)) != nil {
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
func (p *Proxy) due(now time.Time) time.Time {
	at := now.Add(p.half + time.Duration(p.delay.Load())/2)
	if p.slow() {
		return at.Truncate(slowTick)
	}
	return at
}

// deliver writes each chunk when it is due, until the channel is closed. It reads on after an error, so that nobody
// blocks on the channel.
func deliver(to io.WriteCloser, chunks <-chan chunk) {
	timer, err := alarm.New()
	if err == nil {
		defer timer.Close()
	}
	for c := range chunks {
		if err == nil {
			err = timer.Sleep(time.Until(c.due))
		}
		if err == nil {
			_, err = to.Write(c.data)
		}
		if err != nil { // the other side is to see it
			_ = to.Close()
		}
	}
}
