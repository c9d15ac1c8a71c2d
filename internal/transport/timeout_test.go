package transport

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/frame"
	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/transport/fault"
)

// bubble runs f in a synctest bubble with a Transport of one fake master that is up.
func bubble(t *testing.T, f func(t *testing.T, p *Transport, srv *fake), opts ...Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := newFake("a1")
		p := open(t, []string{"redis://m1"}, append([]Option{WithDialer(srv.dial)}, opts...)...)
		synctest.Wait()
		if state(p, 0).Session != 1 {
			t.Fatalf("the master is not up: %v", state(p, 0).Err)
		}
		f(t, p, srv)
		_ = p.Close()
		synctest.Wait()
	})
}

// A reply is overdue exactly one timeout after the call, also if the session was idle before. An overdue reply ends
// the session: the outcome of written calls is unknown, queued calls have had no effect, and the master is redialled.
func TestOverdueReplyEndsTheSession(t *testing.T) {
	bubble(t, func(t *testing.T, p *Transport, srv *fake) {
		idle := time.NewTimer(730 * time.Millisecond) // not a multiple of the timeout
		<-idle.C
		srv.hang()
		box := newMailbox()
		start := time.Now()
		for range 3 {
			must.Do(t, p.Send(0, inspect("x"), Condition{}, box))
			synctest.Wait() // the server has read the first call, the writer blocks in the second, and the third is queued
		}
		for i, unknown := range []bool{true, true, false} {
			a := box.next(t)
			var e *Error
			if !errors.As(a.err, &e) || !errors.Is(e, fault.ErrTimeout) || !errors.Is(e, fault.ErrDown) || e.Unknown != unknown {
				t.Errorf("the error of reply %d is %v", i, a.err)
			}
			if e.Op != "inspect" || e.Addr != "m1:6379" {
				t.Errorf("the error has the operation %q and the address %q", e.Op, e.Addr)
			}
		}
		if took := time.Since(start); took != 500*time.Millisecond {
			t.Errorf("the calls were answered after %v, want 500ms", took)
		}
		err := p.Send(0, inspect("x"), Condition{}, box)
		if !errors.Is(err, fault.ErrDown) || !errors.Is(err, fault.ErrTimeout) {
			t.Errorf("Send to a hung master returned %v", err)
		}
		srv.resume()
		waitUp(t, p)
		if event := state(p, 0); event.Session != 2 {
			t.Errorf("the session is %d, want 2", event.Session)
		}
		if _, err := call(t, p, 0, inspect("x"), Condition{}); err != nil {
			t.Error(err)
		}
		if box.count() != 3 {
			t.Errorf("there were %d replies, want 3", box.count())
		}
	})
}

// If a master becomes a replica and a master again during the handshake, the reported identity is the one at the end
// of the handshake.
func TestOldInfoIsReadAgain(t *testing.T) {
	for _, slow := range []string{"INFO", "SCRIPT"} {
		t.Run(slow, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := newFake("a1")
				srv.lateOn, srv.late = slow, 600*time.Millisecond // more than the timeout, less than the dial timeout
				p := open(t, []string{"redis://m1"}, WithDialer(srv.dial), WithClock(clock.Runtime()),
					WithHeartbeat(300*time.Millisecond))
				synctest.Wait()
				srv.set(func() { srv.runID = "b2" })
				waitUp(t, p)
				if event := state(p, 0); event.Info.RunID != "b2" || srv.dialled() != 1 {
					t.Errorf("the identity is %q after %d connections", event.Info.RunID, srv.dialled())
				}
			})
		})
	}
}

// The first heartbeat is due one interval after INFO was sent, not one interval after its reply.
func TestFirstHeartbeatCountsFromInfo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newFake("a1")
		srv.lateOn, srv.late = "INFO", 900*time.Millisecond
		start := time.Now()
		p := open(t, []string{"redis://m1"}, WithDialer(srv.dial), WithClock(clock.Runtime()))
		synctest.Wait()
		srv.set(func() { srv.runID = "b2" })
		waitUp(t, p)
		if id := state(p, 0).Info.RunID; id != "a1" {
			t.Fatalf("the identity is %q", id)
		}
		for state(p, 0).Info.RunID != "b2" {
			pass(10 * time.Millisecond)
		}
		if took := time.Since(start); took > DefaultHeartbeat+DefaultTimeout {
			t.Errorf("the change was detected only after %v", took)
		}
	})
}

// oneBatch sends calls to a server that hangs at the call named hangOn. The writer takes the calls as one batch.
func oneBatch(t *testing.T, p *Transport, srv *fake, hangOn string, calls ...*frame.Call) *mailbox {
	t.Helper()
	srv.hang()
	for _, name := range []string{"read", "being written"} {
		must.Do(t, p.Send(0, inspect(name), Condition{}, newMailbox()))
		synctest.Wait()
	}
	box := newMailbox()
	for _, c := range calls {
		must.Do(t, p.Send(0, c, Condition{}, box))
	}
	srv.set(func() { srv.hangOn = testPrefix.Lock(hangOn) })
	srv.resume()
	synctest.Wait()
	return box
}

// An overdue reply in the middle of a batch also ends the session.
func TestOverdueReplyInABatch(t *testing.T) {
	bubble(t, func(t *testing.T, p *Transport, srv *fake) {
		box := oneBatch(t, p, srv, "b", inspect("a"), inspect("b"), inspect("c"))
		if a := box.next(t); a.err != nil || box.count() != 1 {
			t.Errorf("the first reply is %v, and there are %d replies", a, box.count())
		}
		pass(501 * time.Millisecond)
		synctest.Wait()
		if box.count() != 3 {
			t.Fatalf("there were %d replies, want 3", box.count())
		}
		for range 2 {
			if a := box.next(t); !errors.Is(a.err, fault.ErrTimeout) {
				t.Errorf("the reply is %v, want a timeout", a)
			}
		}
		srv.resume()
	})
}

// Calls that a blocked writer has not begun to write are reported to have had no effect, even if they belong to its
// batch.
func TestUnwrittenCallsHadNoEffect(t *testing.T) {
	bubble(t, func(t *testing.T, p *Transport, srv *fake) {
		big := lua("big", "return 1", strings.Repeat("x", 200<<10))
		box := oneBatch(t, p, srv, "a", inspect("a"), big, big, big)
		pass(501 * time.Millisecond)
		for i, unknown := range []bool{true, true, false, false} {
			var e *Error
			if a := box.next(t); !errors.As(a.err, &e) || e.Unknown != unknown {
				t.Errorf("reply %d is %.100v", i, a.err)
			}
		}
		srv.resume()
	})
}

// H34: the errors of a dial that hangs, of a handshake that hangs, and of an i/o timeout of the network all match
// fault.ErrTimeout.
func TestEveryTimeoutIsTheSameError(t *testing.T) {
	hanging := func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	network := func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: timeoutError{}}
	}
	mute := &fake{unserved: true}
	for name, dial := range map[string]func(context.Context, string, string) (net.Conn, error){
		"dial": hanging, "network": network, "handshake": mute.dial,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				p := open(t, []string{"redis://m1"}, WithDialer(dial))
				err := waitDown(t, p, 0, fault.ErrTimeout)
				if !errors.Is(err, fault.ErrDown) || errors.Is(err, fault.ErrConnecting) {
					t.Errorf("the reason is %v", err)
				}
				if took := time.Since(start); took > 1100*time.Millisecond {
					t.Errorf("the timeout took %v", took)
				}
				_ = p.Close()
			})
		})
	}
}

type timeoutError struct{}

func (timeoutError) Error() string   { return "i/o timeout" }
func (timeoutError) Timeout() bool   { return true }
func (timeoutError) Temporary() bool { return true }

func TestSendBeforeFirstConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mute := &fake{unserved: true}
		p := open(t, []string{"redis://m1"}, WithDialer(mute.dial))
		synctest.Wait()
		err := p.Send(0, inspect("x"), Condition{}, newMailbox())
		if !errors.Is(err, fault.ErrConnecting) || !errors.Is(err, fault.ErrDown) {
			t.Errorf("Send before the first connection returned %v", err)
		}
		if event := state(p, 0); event != (Event{}) {
			t.Errorf("the state before the first connection is %+v", event)
		}
		_ = waitDown(t, p, 0, fault.ErrTimeout)
		if err := p.Send(0, inspect("x"), Condition{}, newMailbox()); errors.Is(err, fault.ErrConnecting) {
			t.Errorf("Send after the first attempt returned %v", err)
		}
		_ = p.Close()
	})
}

// H57: each heartbeat reads INFO again. If the identity of the server is the same, an event reports the new time and
// state of the server. If the identity has changed, the session ends.
func TestHeartbeatReportsAndChecks(t *testing.T) {
	bubble(t, func(t *testing.T, p *Transport, srv *fake) {
		var events []Event
		stop := p.Watch(func(event Event) { events = append(events, event) })
		defer stop()
		srv.set(func() { srv.extra = "connected_slaves:2\r\n" })
		pass(3100 * time.Millisecond)
		synctest.Wait()
		if n := len(events); n != 2 || events[1].Info.Replicas != 2 || events[1].Session != 1 ||
			events[1].Info.Read == (clock.Instant{}) {
			t.Fatalf("the events are %+v", events)
		}
		srv.set(func() { srv.runID = "b2" })
		pass(3100 * time.Millisecond)
		synctest.Wait()
		if n := len(events); n != 4 || events[2].Err == nil || events[3].Session != 2 || events[3].Info.RunID != "b2" {
			t.Fatalf("the events are %+v", events)
		}
		if err := events[2].Err; !strings.Contains(err.Error(), "identity has changed") || !errors.Is(err, fault.ErrRefused) {
			t.Errorf("the reason is %v", err)
		}
		srv.set(func() { srv.extra = "maxmemory:100\r\nmaxmemory_policy:allkeys-lru\r\n" })
		pass(3100 * time.Millisecond)
		if err := p.Send(0, inspect("x"), Condition{}, newMailbox()); !errors.Is(err, fault.ErrRefused) {
			t.Errorf("Send after the policy has changed returned %v", err)
		}
		srv.set(func() { srv.extra = "" })
		waitUp(t, p)
	})
}

// pass lets d pass in a bubble.
func pass(d time.Duration) { <-time.After(d) }

// H33: the Transport notices the end of an idle connection, and redials before a call is written.
func TestStaleConnectionIsRedialledBeforeUse(t *testing.T) {
	bubble(t, func(t *testing.T, p *Transport, srv *fake) {
		pass(1500 * time.Millisecond)
		for range 5 {
			srv.cut()
			pass(2 * time.Second)
			if _, err := call(t, p, 0, inspect("x"), Condition{}); err != nil {
				t.Errorf("a vote was lost: %v", err)
			}
		}
	})
}

// H101: the timeout does not include the time that a call waits in the queue. A slow server is up as long as it
// replies, regardless of how many calls wait. It is down one timeout after its last reply.
func TestTimeInTheQueueDoesNotCount(t *testing.T) {
	bubble(t, func(t *testing.T, p *Transport, srv *fake) {
		srv.set(func() { srv.delay = 400 * time.Millisecond })
		box := newMailbox()
		for range 20 { // 8 s of work
			must.Do(t, p.Send(0, inspect("x"), Condition{}, box))
		}
		for box.count() < 10 {
			pass(time.Millisecond)
		}
		last := time.Now()
		srv.hang()
		for box.count() < 20 {
			pass(time.Millisecond)
		}
		silent := time.Since(last)
		srv.set(func() { srv.delay = 0 })
		srv.resume()
		pass(time.Second)
		for i := range 10 {
			if a := box.next(t); a.err != nil {
				t.Errorf("the error of reply %d is %v", i, a.err)
			}
		}
		if silent > 910*time.Millisecond { // the next reply may be in flight
			t.Errorf("the hung server was detected only after %v", silent)
		}
	})
}
