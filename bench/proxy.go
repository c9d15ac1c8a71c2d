package main

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A proxy forwards to one master. In each direction it delays data by half of the delay, and data that arrives
// meanwhile by up to twice as much.
type proxy struct {
	listener net.Listener
	delay    atomic.Int64 // of a round trip, in ns
	accepts  sync.WaitGroup
	loops    sync.WaitGroup
	conns    []net.Conn // both sides; added by the goroutine of accepts
}

// newProxy listens on a free port and forwards to the master at addr, at first without delay.
func newProxy(addr string) (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: l}
	p.accepts.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			master, err := net.Dial("tcp", addr)
			if err != nil {
				client.Close()
				continue
			}
			p.conns = append(p.conns, client, master)
			p.loops.Go(func() { p.forward(master, client) })
			p.loops.Go(func() { p.forward(client, master) })
		}
	})
	return p, nil
}

// close closes all connections and waits for every goroutine.
func (p *proxy) close() {
	p.listener.Close()
	p.accepts.Wait()
	for _, c := range p.conns {
		c.Close()
	}
	p.loops.Wait()
}

func (p *proxy) forward(to, from net.Conn) {
	defer from.Close()
	defer to.Close()
	buf := make([]byte, 256<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		time.Sleep(time.Duration(p.delay.Load()) / 2)
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}
