package redisproc

import (
	"net"
	"strconv"
	"testing"
)

// FreePort returns a port that can be listened on, that is not in use or returned before, and that is not ephemeral.
func TestFreePort(t *testing.T) {
	first := firstOutgoing()
	for range 50 {
		port, err := FreePort()
		if err != nil {
			t.Fatal(err)
		}
		if first > lowestPort && (port < lowestPort || port >= first) {
			t.Errorf("port %d, want one in [%d, %d)", port, lowestPort, first)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := l.Addr().(*net.TCPAddr).Port
	if port, err := freePort(taken, taken); err == nil {
		t.Errorf("port %d was returned although it is in use", port)
	}
	for range 10 {
		if port, err := freePort(taken-20, taken+20); err != nil || port == taken {
			t.Errorf("in [%d, %d): %d, %v", taken-20, taken+20, port, err)
		}
	}
	port, err := freePort(1, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := freePort(port, port); err == nil {
		t.Errorf("port %d was returned twice", port)
	}
	again, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
	if err != nil {
		t.Errorf("port %d, chosen by the system, is not free: %v", port, err)
	} else if err := again.Close(); err != nil {
		t.Error(err)
	}
}
