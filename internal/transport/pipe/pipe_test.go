package pipe

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/frame"
	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport/fault"
	"github.com/redlock-go/redlock/internal/transport/wire"
)

// A slot is a Receiver with room for one answer.
type slot chan answer

type answer struct {
	value any
	err   error
}

func (s slot) Reply(_ int, value any, err error) { s <- answer{value, err} }

// A failure records the arguments of a call of ErrorFunc.
type failure struct {
	op      string
	cause   error
	unknown bool
}

func (f *failure) Error() string { return f.op + ": " + f.cause.Error() }

// piped runs f in a synctest bubble with a running Pipe and the server's end of its connection.
func piped(t *testing.T, f func(p *Pipe, server net.Conn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		p := New(wire.NewConn(client, client), false, Settings{
			Master: 1, Limit: 10, Timeout: time.Hour, Heartbeat: time.Hour,
			ErrorFunc:   func(op string, cause error, unknown bool) error { return &failure{op, cause, unknown} },
			ExplainFunc: func(err error) error { return fault.Explain(err, "", 0) },
		})
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, err := p.Run(t.Context(), 0)
			p.Drain(err)
		}()
		f(p, server)
		p.Kill("close", fault.ErrClosed)
		<-done
		_ = server.Close()
		if err := p.Send(frame.New(scripts.Inspect), "", make(slot, 1)); err == nil {
			t.Error("Send succeeded after the end")
		}
		if p.Queue(frame.Command("x", "PING"), func(any, error) {}) {
			t.Error("Queue succeeded after the end")
		}
	})
}

// long returns a call that is larger than the write buffer, so it is written separately.
func long() *frame.Call {
	return frame.Command("long", "ECHO", strings.Repeat("x", flushAt))
}

// A server reads one request, sends six replies, and closes the connection. These replies also answer requests that
// were not written yet.
func TestRepliesBeforeRequests(t *testing.T) {
	piped(t, func(p *Pipe, server net.Conn) {
		// The first write blocks until the server reads, so the writer takes the other requests as one batch.
		var slots []slot
		for range 6 {
			s := make(slot, 1)
			slots = append(slots, s)
			must.Do(t, p.Send(long(), "", s))
			if len(slots) == 1 {
				synctest.Wait()
			}
		}
		first := len("*2\r\n$4\r\nECHO\r\n$65536\r\n\r\n") + flushAt
		must.Get(io.ReadFull(server, make([]byte, first)))(t)
		synctest.Wait() // the writer has taken the others, and blocks while it writes the first of them
		_, _ = io.WriteString(server, strings.Repeat(":1\r\n", 6))
		_ = server.Close()
		for i, s := range slots {
			if a := <-s; a.err != nil || a.value != int64(1) {
				t.Errorf("reply %d is %v, %v", i, a.value, a.err)
			}
		}
	})
}

// When the connection ends, the outcome of a request whose write had begun is unknown. The requests behind it
// certainly had no effect.
func TestEndAnswersEverything(t *testing.T) {
	piped(t, func(p *Pipe, server net.Conn) {
		var slots []slot
		for range 4 {
			s := make(slot, 1)
			slots = append(slots, s)
			must.Do(t, p.Send(long(), "", s))
			synctest.Wait()
		}
		_ = server.Close()
		for i, s := range slots {
			var f *failure
			if a := <-s; !errors.As(a.err, &f) || f.unknown != (i == 0) || f.op != "long" {
				t.Errorf("reply %d is %v, and the error is %+v", i, a.value, a.err)
			}
		}
	})
}

// The limit applies to calls of users, and not to calls of the pool itself.
func TestLimitAppliesToUsers(t *testing.T) {
	piped(t, func(p *Pipe, _ net.Conn) {
		for range 10 {
			must.Do(t, p.Send(long(), "", make(slot, 1)))
		}
		if err := p.Send(long(), "", make(slot, 1)); !errors.Is(err, fault.ErrQueueFull) {
			t.Errorf("Send beyond the limit returned %v", err)
		}
		if !p.Queue(long(), func(any, error) {}) {
			t.Error("Queue refused a call of the pool")
		}
	})
}
