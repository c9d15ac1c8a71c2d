package redisproc

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
)

// The range of ports to choose from. They need no privileges, and exclude the ephemeral ports of outgoing connections,
// which begin at 32768 on Linux and higher elsewhere.
const (
	lowestPort  = 15000
	highestPort = 32767
)

// portRange is the file with the ephemeral port range of Linux.
const portRange = "/proc/sys/net/ipv4/ip_local_port_range"

// reserved holds a UDP socket for each port that FreePort has returned, until the process ends. Servers that tests
// start use TCP alone, so the socket keeps the port from other callers of FreePort, also in other processes.
var reserved struct {
	sync.Mutex
	sockets []net.PacketConn
}

// FreePort returns a port of 127.0.0.1 on which nothing listens now, and which no other caller of FreePort has. It is
// not an ephemeral port, as one chosen by the system would be: an outgoing connection could occupy such a port when a
// server is started or while it is down.
func FreePort() (int, error) {
	return freePort(lowestPort, min(highestPort, firstOutgoing()-1))
}

func freePort(low, high int) (int, error) {
	var last error
	for range 100 {
		port := 0 // chosen by the system if no other port is free
		if low <= high {
			port = low + rand.IntN(high-low+1)
		}
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			last = err
			continue
		}
		_ = l.Close()
		socket, err := net.ListenPacket("udp", l.Addr().String())
		if err != nil {
			last = err
			continue
		}
		reserved.Lock()
		reserved.sockets = append(reserved.sockets, socket)
		reserved.Unlock()
		return l.Addr().(*net.TCPAddr).Port, nil
	}
	return 0, fmt.Errorf("redisproc: no free port: %w", last)
}

// firstOutgoing returns the first ephemeral port, or one above all ports if the system does not report it.
func firstOutgoing() int {
	first := 1 << 16
	if text, err := os.ReadFile(portRange); err == nil {
		if _, err := fmt.Sscan(string(text), &first); err != nil {
			return 1 << 16
		}
	}
	return first
}
