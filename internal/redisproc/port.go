package redisproc

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
)

// The ports that are chosen from: of those that need no rights, without the ones that systems give to outgoing
// connections, which begin at 32768 on Linux and higher elsewhere.
const (
	lowestPort  = 15000
	highestPort = 32767
)

// portRange is where Linux says which ports it gives to outgoing connections.
const portRange = "/proc/sys/net/ipv4/ip_local_port_range"

// FreePort returns a port of 127.0.0.1 that nobody listens on now. Somebody else may take it before the caller does,
// who should then ask for another. It is none that the system gives to outgoing connections, as a port of its choice
// would be: one of those can be lost for a while to any connection, when a server is started and whenever it is down.
func FreePort() (int, error) {
	return freePort(lowestPort, min(highestPort, firstOutgoing()-1))
}

func freePort(low, high int) (int, error) {
	var last error
	for range 100 {
		port := 0 // the system's choice, where there is no other
		if low <= high {
			port = low + rand.IntN(high-low+1)
		}
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return l.Addr().(*net.TCPAddr).Port, l.Close()
		}
		last = err
	}
	return 0, fmt.Errorf("redisproc: no free port: %w", last)
}

// firstOutgoing is the first port that the system gives to outgoing connections; where it does not tell, one above all.
func firstOutgoing() int {
	first := 1 << 16
	if text, err := os.ReadFile(portRange); err == nil {
		if _, err := fmt.Sscan(string(text), &first); err != nil {
			return 1 << 16
		}
	}
	return first
}
