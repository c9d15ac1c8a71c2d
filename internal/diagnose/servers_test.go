package diagnose

import (
	"io"
	"log"
	"net"
	"net/http/httptest"
	"testing"
	"time"

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
