package diagnose

import (
	"context"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/pool"
)

// H114: a server whose port is or is not one for TLS, against the URL, and one that hangs have advice of their own.
func TestAdviceForPortsOfTLS(t *testing.T) {
	secure := httptest.NewUnstartedServer(nil)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	until := func(raw net.Conn) { // reads until the client closes the connection
		for buf := make([]byte, 4096); ; {
			if _, err := raw.Read(buf); err != nil {
				return
			}
		}
	}
	for _, c := range []struct{ name, url, fix string }{
		{"TLS to a port without", "rediss://" + redistest.Answer(t, "127.0.0.1", func(raw net.Conn) {
			_, _ = raw.Read(make([]byte, 4096))
			_, _ = raw.Write([]byte("-ERR unknown command\r\n"))
		}), transport.StepPlain},
		{"TLS to a port that waits for a line", "rediss://" + redistest.Answer(t, "127.0.0.1", func(raw net.Conn) {
			head := make([]byte, 4)
			if _, _ = raw.Read(head); head[0] == '*' {
				_, _ = raw.Write([]byte("+PONG\r\n"))
				return
			}
			until(raw) // as a Redis does: it waits for the end of a line
		}), transport.StepPlain},
		{"hangs", "rediss://" + redistest.Answer(t, "127.0.0.1", until), transport.StepHangs},
		{"no TLS to its port", "redis://" + secure.Listener.Addr().String(), stepUseTLS},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := open(t, []string{c.url}, pool.WithDialTimeout(time.Second))
			if list := finding(t, p, "connection"); len(list) != 1 || list[0].Fix != c.fix {
				t.Errorf("the findings are %v, want the step %q", list, c.fix)
			}
		})
	}
}

// Two masters that have become replicas of one server are not both replaced by it. The first client of new masters, of
// which one URL names a replica, is told the master.
func TestReplicasOfOneServer(t *testing.T) {
	other, masters := newServer(t), redistest.Test(t, 3, redisproc.Config{})
	urls := make([]string, len(masters))
	for i, s := range masters {
		urls[i] = s.URL()
	}
	host, port, _ := strings.Cut(other.Addr(), ":")
	for n, fix := range []string{stepMaster, stepPromote} {
		redistest.Do(t, masters[n], "REPLICAOF", host, port)
		list := finding(t, open(t, urls), "role")
		if len(list) != n+1 || list[0].Fix != fix || list[n].Fix != fix {
			t.Errorf("the findings are %v, want %d with the step %q", list, n+1, fix)
		}
	}
}

// A server that answers some commands and hangs in others runs, and its address is right.
func TestAdviceForPausedWrites(t *testing.T) {
	s := newServer(t)
	redistest.Do(t, s, "CLIENT", "PAUSE", "600000", "WRITE")
	list := finding(t, open(t, []string{s.URL()}, pool.WithDialTimeout(3*time.Second)), "connection")
	if len(list) != 1 || list[0].Fix != transport.StepHangs {
		t.Errorf("the findings are %v, want the step %q", list, transport.StepHangs)
	}
}

// An address that does not answer may be that of a machine that is off, or behind a firewall: no server need hang.
func TestAdviceForSilentAddress(t *testing.T) {
	silent := func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}
	}
	p := open(t, []string{"redis://m0"}, pool.WithDialer(silent), pool.WithDialTimeout(time.Second))
	list := finding(t, p, "connection")
	if len(list) != 1 || !strings.Contains(list[0].Fix, "its machine runs and can be reached (network, firewall)") {
		t.Errorf("the findings are %v, want one about the machine and the network", list)
	}
}

// A server that answers INFO with something else than a text is no Redis.
func TestAdviceForOddReply(t *testing.T) {
	for _, reply := range []string{"$-1\r\n", ":1\r\n", "*0\r\n"} {
		url := "redis://" + redistest.Answer(t, "127.0.0.1", func(raw net.Conn) {
			_, _ = raw.Read(make([]byte, 4096))
			_, _ = io.WriteString(raw, strings.Repeat(reply, 100))
		})
		list := finding(t, open(t, []string{url}, pool.WithDialTimeout(time.Second)), "connection")
		if len(list) != 1 || !strings.Contains(list[0].Fix, "something else answers there") {
			t.Errorf("%q: the findings are %v, want one about the address", reply, list)
		}
	}
}
