package transport

import (
	"bufio"
	"fmt"
	"net"
	"testing"
)

// A floorConn is a bare connection: the best that a program with one fixed request could do.
type floorConn struct {
	net.Conn
	r *bufio.Reader
}

func dialFloor(b *testing.B, servers []*server) []floorConn {
	conns := make([]floorConn, len(servers))
	for i, s := range servers {
		c, err := net.Dial("tcp", s.addr)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = c.Close() })
		conns[i] = floorConn{c, bufio.NewReader(c)}
	}
	return conns
}

// floorRequest is the same call as BenchmarkQuorum's, encoded once.
func floorRequest(b *testing.B, servers []*server) []byte {
	c := lua("one", "return 1")
	for _, s := range servers {
		s.do("SCRIPT", "LOAD", c.Script.Text)
	}
	return []byte(fmt.Sprintf("*3\r\n$7\r\nEVALSHA\r\n$40\r\n%s\r\n$1\r\n0\r\n", c.Script.SHA))
}

// BenchmarkFloor measures the lower bound on this machine with one goroutine. "serial" writes to all five and reads the
// first three in order; "readers" has a goroutine per connection, which counts replies.
func BenchmarkFloor(b *testing.B) {
	servers := make([]*server, 5)
	for i := range servers {
		servers[i] = startServer(b)
	}
	request := floorRequest(b, servers)
	b.Run("serial", func(b *testing.B) { floorSerial(b, dialFloor(b, servers), request) })
	b.Run("readers", func(b *testing.B) { floorReaders(b, dialFloor(b, servers), request) })
}

func floorSerial(b *testing.B, conns []floorConn, request []byte) {
	late := false
	for b.Loop() {
		for _, c := range conns {
			if _, err := c.Write(request); err != nil {
				b.Fatal(err)
			}
		}
		for i, c := range conns {
			if i >= 3 && !late {
				continue // read it in the next round
			}
			if _, err := c.r.ReadSlice('\n'); err != nil {
				b.Fatal(err)
			}
		}
		late = true
	}
}

func floorReaders(b *testing.B, conns []floorConn, request []byte) {
	replies := make(chan struct{}, 64)
	for _, c := range conns {
		go func() {
			for {
				if _, err := c.r.ReadSlice('\n'); err != nil {
					return
				}
				replies <- struct{}{}
			}
		}()
	}
	extra := 0
	for b.Loop() {
		for _, c := range conns {
			if _, err := c.Write(request); err != nil {
				b.Fatal(err)
			}
		}
		for range 3 + extra {
			<-replies
		}
		extra = 2
	}
}
