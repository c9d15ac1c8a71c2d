package proxy

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Chunks are forwarded in order, each when it is due.
func TestChunksAreDeliveredWhenDue(t *testing.T) {
	due := time.Now()
	chunks := make(chan chunk, 8)
	for i, data := range []string{"a", "b", "c", "d"} {
		chunks <- chunk{due.Add(time.Duration(i/2) * time.Millisecond), []byte(data)}
	}
	close(chunks)
	var got writes
	deliver(&got, chunks)
	if took := time.Since(due); strings.Join(got, " ") != "a b c d" || took < time.Millisecond {
		t.Errorf("the proxy has written %q after %v, want a, b, c and d after at least 1ms", got, took)
	}
}

// writes records the argument of each Write.
type writes []string

func (w *writes) Write(p []byte) (int, error) {
	*w = append(*w, string(p))
	return len(p), nil
}

func (w *writes) Close() error { return nil }

// A reply through the proxy arrives no earlier than the configured delay.
func TestProxyDelaysRepliesWithoutLimitingThem(t *testing.T) {
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if c, err := echo.Accept(); err == nil {
			defer c.Close()
			_, _ = io.Copy(c, c)
		}
	}()
	p, err := New("redis://"+echo.Addr().String(), 0)
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", strings.TrimPrefix(p.URL(), "redis://"))
	if err != nil {
		t.Fatal(err)
	}
	const delay = 30 * time.Millisecond
	p.SetDelay(delay)
	start := time.Now()
	if _, err := io.WriteString(c, "one"); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 3)
	if _, err := io.ReadFull(c, got); err != nil || string(got) != "one" {
		t.Fatalf("the client received %q; error %v", got, err)
	}
	if took := time.Since(start); took < delay {
		t.Errorf("the reply came after %v, before the delay of %v", took, delay)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	c.Close()
	echo.Close()
	<-done
}
