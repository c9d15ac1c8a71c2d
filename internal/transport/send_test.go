package transport

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/internal/transport/fault"
)

// The calls of one goroutine reach a master in the order in which they were sent, and their replies arrive in the
// same order. Concurrent senders share one connection.
func TestCallsOfOneSenderStayInOrder(t *testing.T) {
	srv := startServer(t)
	p := open(t, []string{srv.URL()}, WithTimeout(patience))
	waitUp(t, p)
	const senders, each = 16, 400
	script := "return redis.call('INCR', ARGV[1])"
	var wg sync.WaitGroup
	for g := range senders {
		wg.Go(func() {
			box := newMailbox()
			c := lua("incr", script, fmt.Sprint("counter", g))
			if g == 0 { // also loads the script for the other senders
				if _, err := call(t, p, 0, c, Condition{}); err != nil {
					t.Error(err)
				}
				srv.Do("DEL", "counter0")
			}
			srv.Do("SCRIPT", "LOAD", script)
			for range each {
				if err := p.Send(0, c, Condition{}, box); err != nil {
					t.Error(err)
					return
				}
			}
			for i := range int64(each) {
				if a := box.next(t); a.err != nil || a.value != i+1 {
					t.Errorf("sender %d: reply %d is %v, %v", g, i+1, a.value, a.err)
					return
				}
			}
		})
	}
	wg.Wait()
	if n := strings.Count(srv.Text("CLIENT", "LIST", "TYPE", "normal"), " addr=127.0.0.1:"); n != 1 {
		t.Errorf("%d senders have %d connections, want 1", senders, n)
	}
}

// If a call is sent to several masters, each master gets its own stamp, even if the call is sent again with the text
// of the script.
func TestStampIsWrittenPerMaster(t *testing.T) {
	servers := []*redistest.Server{startServer(t), startServer(t)}
	p := open(t, urls(servers))
	waitUp(t, p)
	c := stampedLua("echo", "return ARGV[1] .. '|' .. ARGV[2] .. '|' .. ARGV[3]", "b", "c")
	for range 3 {
		for i := range p.N() {
			text := fmt.Sprint("stamp", i)
			got, err := redis.String(call(t, p, i, c, Condition{Session: state(p, i).Session, Stamp: text}))
			if err != nil || got != text+"|b|c" {
				t.Errorf("master %d replied %q, %v", i, got, err)
			}
		}
	}
}

// A call with the stamp of another session is refused and not written.
func TestCallOfAnotherSessionIsNeverWritten(t *testing.T) {
	bubble(t, func(t *testing.T, p *Transport, srv *fake) {
		old := state(p, 0).Session
		srv.cut()
		waitUp(t, p)
		pass(time.Second)
		now := state(p, 0).Session
		if now <= old {
			t.Fatalf("the session after the cut is not larger: %d, %d", old, now)
		}
		box := newMailbox()
		err := p.Send(0, inspect("x"), Condition{Session: old}, box)
		var e *Error
		if !errors.As(err, &e) || !errors.Is(err, fault.ErrSession) || e.Unknown || e.Op != "inspect" {
			t.Errorf("a call for the old session returned %v", err)
		}
		if n := len(srv.calls()); n != 0 {
			t.Errorf("%d calls were written", n)
		}
		if _, err := call(t, p, 0, inspect("x"), Condition{Session: now}); err != nil {
			t.Errorf("a call for the present session returned %v", err)
		}
	})
}

// The queue has an exact limit. If the queue is full, Send fails immediately.
func TestFullQueueRefuses(t *testing.T) {
	bubble(t, func(t *testing.T, p *Transport, srv *fake) {
		srv.hang()
		box := newMailbox()
		for range 10 {
			must.Do(t, p.Send(0, inspect("x"), Condition{}, box))
		}
		err := p.Send(0, inspect("x"), Condition{}, box)
		var e *Error
		if !errors.Is(err, fault.ErrQueueFull) || !errors.As(err, &e) || e.Unknown || !strings.Contains(err.Error(), "10") {
			t.Errorf("Send to a full queue returned %v", err)
		}
		srv.resume()
		for range 10 {
			if a := box.next(t); a.err != nil {
				t.Error(a.err)
			}
			if err := p.Send(0, inspect("x"), Condition{}, newMailbox()); err != nil {
				t.Errorf("Send after a reply failed: %v", err)
			}
		}
	}, WithQueueLimit(10))
}

// A signal is a Receiver that only wakes the caller.
type signal chan struct{}

func (s signal) Reply(int, any, error) { s <- struct{}{} }

// In the steady state this package allocates nothing for a call. redigo decodes the reply of this script without an
// allocation.
func TestSendAllocatesNothing(t *testing.T) {
	srv := startServer(t)
	p := open(t, []string{srv.URL()}, WithTimeout(patience), WithHeartbeat(time.Hour))
	waitUp(t, p)
	const batch = 50
	c := stampedLua("one", "return 1")
	st := Condition{Session: 1, Stamp: "id=abc"}
	got := make(signal, batch)
	send := func() {
		for range batch {
			if err := p.Send(0, c, st, got); err != nil {
				t.Error(err)
				return
			}
		}
		for range batch {
			<-got
		}
	}
	for range 100 {
		send()
	}
	if n := testing.AllocsPerRun(200, send) / batch; n > 0.1 {
		t.Errorf("there are %v allocations per call", n)
	}
}

// A master may lack the script of an acquire in its cache. The acquire is then not sent again: if it arrived after its
// own release, it would lock the name for no client. The caller gets an error, and the next acquire contains the text
// of the script.
func TestAcquireIsNotSentBehindRelease(t *testing.T) {
	bubble(t, func(t *testing.T, p *Transport, srv *fake) {
		srv.set(func() {
			srv.answer = func(cmd []string) string { // the server caches no script
				if cmd[0] == "EVALSHA" {
					return "-NOSCRIPT No matching script\r\n"
				}
				return ":1\r\n"
			}
		})
		release := pendingRelease("x", 1, "me:1:x").CallFunc([]string{"me:1:x"}, 1)
		box := oneBatch(t, p, srv, "none", acquireOf("x", 1), release)
		a := box.next(t)
		var e *Error
		if !errors.As(a.err, &e) || e.Unknown || e.Op != "acquire" || !strings.Contains(e.Error(), "NOSCRIPT") {
			t.Errorf("the acquire returned %v, %v", a.value, a.err)
		}
		if a := box.next(t); a.err != nil {
			t.Errorf("the release returned %v", a.err)
		}
		for range 3 {
			_, _ = call(t, p, 0, acquireOf("x", 2), Condition{})
		}
		var kinds []string
		for _, cmd := range srv.calls() {
			if cmd[3] == testPrefix.Lock("x") {
				kinds = append(kinds, fmt.Sprint(cmd[0], " ", len(cmd)))
			}
		}
		got := strings.Join(kinds, ", ")
		if want := "EVALSHA 11, EVALSHA 11, EVAL 11, EVAL 11, EVALSHA 11, EVAL 11"; got != want {
			t.Errorf("the commands were %s, want %s", got, want)
		}
	})
}
