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

// A Proxy forwards to one master.
type Proxy struct {
	listener net.Listener
	target   string
	half     time.Duration // half of the round trip to a distant master
	delay    atomic.Int64  // additional round-trip delay in ns
	pumps    sync.WaitGroup
	accepts  sync.WaitGroup
	conns    []net.Conn // connections of both sides; added by accept
}

// New listens on a free port and forwards to the master at a redis:// URL. The caller must close the Proxy.
func New(master string, roundTrip time.Duration) (*Proxy, error) {
	u, err := url.Parse(master)
	if err != nil || u.Scheme != "redis" || u.Port() == "" {
		return nil, errors.New("proxy: only URLs of the form redis://host:port can be delayed")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	p := &Proxy{listener: l, target: u.Host, half: roundTrip / 2}
	p.accepts.Go(p.accept)
	return p, nil
}

// URL returns the URL under which clients reach the master through p.
func (p *Proxy) URL() string { return "redis://" + p.listener.Addr().String() }

// SetDelay delays all data that arrives from now on by d per round trip. 0 removes the delay.
func (p *Proxy) SetDelay(d time.Duration) { p.delay.Store(int64(d)) }

// Close closes all connections and waits for every goroutine.
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

// A chunk is the data of one read, with the time when it must be forwarded.
type chunk struct {
	due  time.Time
	data []byte
}

// Slow is the smallest delay that simulates a slow master. A proxy with this delay or more reads only every slowTick.
const Slow = 50 * time.Millisecond

// slowTick is the interval at which the proxy of a slow master reads. If the proxy and the master woke up for each
// request and reply, they would take processor time from the other masters and the client, and the benchmark would
// measure this effect.
const slowTick = 10 * time.Millisecond

func (p *Proxy) slow() bool { return time.Duration(p.delay.Load()) >= Slow }

// pump copies data to a goroutine that forwards each chunk when it is due. pump does not wait for the forwarding, so
// the delay of each chunk begins when that chunk arrives. From a slow master, pump reads only once per slowTick; until
// then the data waits in the kernel's buffers.
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

// due returns when to forward data that was read at the given time. For a slow master that is the start of a tick. The
// data has already waited up to one tick to be read, so both waits together are about half of the delay.
func (p *Proxy) due(read time.Time) time.Time {
	at := read.Add(p.half + time.Duration(p.delay.Load())/2)
	if p.slow() {
		return at.Truncate(slowTick)
	}
	return at
}

// deliver writes each chunk when it is due, until the channel is closed. After an error it still receives chunks, so
// that the sender does not block on the channel.
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
		if err != nil { // so that the other side notices the error
			_ = to.Close()
		}
	}
}
