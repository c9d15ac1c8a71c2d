package redistest

import (
	"net"
	"testing"
)

// Answer listens on a free port of host, and calls answer for each connection, which it then closes. It returns the
// address. The listener ends with the test.
func Answer(t testing.TB, host string, answer func(raw net.Conn)) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			raw, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer raw.Close()
				answer(raw)
			}()
		}
	}()
	return l.Addr().String()
}

// Relay copies data between in and a new connection to addr until one of the two ends. If edit is not nil, it changes
// each piece of data from addr.
func Relay(in net.Conn, addr string, edit func(data []byte) []byte) {
	out, err := net.Dial("tcp", addr)
	if err != nil {
		return
	}
	defer out.Close()
	go func() {
		_, _ = out.(*net.TCPConn).ReadFrom(in)
		_ = out.Close()
	}()
	buf := make([]byte, 1<<16)
	for {
		n, err := out.Read(buf)
		data := buf[:n]
		if edit != nil {
			data = edit(data)
		}
		if _, err2 := in.Write(data); err != nil || err2 != nil {
			return
		}
	}
}
