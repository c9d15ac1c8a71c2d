package redisproc

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
)

// The range of ports to choose from. These ports need no privileges. The range excludes the ephemeral ports of
// outgoing connections, because those begin at 32768 on Linux and higher on other systems.
const (
	lowestPort  = 15000
	highestPort = 32767
)

// portRange is the file with the ephemeral port range of Linux.
const portRange = "/proc/sys/net/ipv4/ip_local_port_range"

// reserved holds a UDP socket for each port that FreePort has returned, until the process ends. The servers that tests
// start use only TCP, so the sockets only prevent other callers of FreePort, also in other processes, from getting
// these ports.
var reserved struct {
	sync.Mutex
	sockets []net.PacketConn
}

// FreePort returns a port of 127.0.0.1 on which nothing listens now, and which no other caller of FreePort has. It
// avoids ephemeral ports, from which the system would choose, because an outgoing connection could occupy such a port
// before a server is started or while it is down.
func FreePort() (int, error) {
	return freePort(lowestPort, min(highestPort, firstOutgoing()-1))
}

func freePort(low, high int) (int, error) {
	var last error
	for range 100 {
		port := 0 // the system chooses a port if the range is empty
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

// firstOutgoing returns the first ephemeral port, or a number above all ports if the system does not report it.
func firstOutgoing() int {
	first := 1 << 16
	if text, err := os.ReadFile(portRange); err == nil {
		if _, err := fmt.Sscan(string(text), &first); err != nil {
			return 1 << 16
		}
	}
	return first
}
