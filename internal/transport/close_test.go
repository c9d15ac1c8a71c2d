package transport

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/transport/fault"
)

// H37: Close answers outstanding calls and waits for all goroutines. It may be called repeatedly and concurrently.
func TestCloseAnswersAndJoins(t *testing.T) {
	bubble(t, func(t *testing.T, p *Transport, srv *fake) {
		srv.hang()
		box := newMailbox()
		for range 3 {
			must.Do(t, p.Send(0, inspect("x"), Condition{}, box))
			synctest.Wait()
		}
		var last Event
		p.Watch(func(event Event) { last = event })
		start := time.Now()
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if err := p.Close(); err != nil {
					t.Error(err)
				}
				if box.count() != 3 {
					t.Errorf("only %d of 3 calls had a reply when Close returned", box.count())
				}
			})
		}
		wg.Wait()
		if took := time.Since(start); took != 0 {
			t.Errorf("Close took %v", took)
		}
		for i, unknown := range []bool{true, true, false} {
			a := box.next(t)
			var e *Error
			if !errors.As(a.err, &e) || !errors.Is(e, fault.ErrPoolClosed) || e.Unknown != unknown {
				t.Errorf("the error of reply %d is %v", i, a.err)
			}
		}
		if err := p.Send(0, inspect("x"), Condition{}, box); !errors.Is(err, fault.ErrPoolClosed) ||
			!strings.Contains(err.Error(), "the pool is closed") {
			t.Errorf("Send after Close returned %v", err)
		}
		if !errors.Is(last.Err, fault.ErrPoolClosed) {
			t.Errorf("the last event is %+v", last)
		}
		called := false
		p.Watch(func(event Event) { called = errors.Is(event.Err, fault.ErrPoolClosed) })()
		if !called {
			t.Error("a watcher added after Close got no event")
		}
		srv.resume()
	})
}

// Receiver.Reply may call Send, Pending and AddPending, also while the Transport is being closed. Each call is
// answered.
func TestCloseUnderLoad(t *testing.T) {
	virtual(t, 3, func(t *testing.T, _ ears, p *Transport) {
		var sent, answered atomic.Int64
		enough := make(chan struct{})
		var again replyFunc
		again = func(i int, _ any, _ error) {
			if answered.Add(1) == 5000 {
				close(enough)
			}
			p.Pending(i)
			p.AddPending(i, pendingRelease("n", 1, "a"))
			if p.Send(i, inspect("x"), Condition{}, &again) == nil {
				sent.Add(1)
			}
		}
		for i := range p.N() {
			for range 100 {
				must.Do(t, p.Send(i, inspect("x"), Condition{}, &again))
				sent.Add(1)
			}
		}
		<-enough
		must.Do(t, p.Close())
		if s, a := sent.Load(), answered.Load(); s != a {
			t.Errorf("%d calls were sent, but %d were answered", s, a)
		}
	})
}

type replyFunc func(int, any, error)

func (f *replyFunc) Reply(i int, v any, err error) { (*f)(i, v, err) }

// Each watcher receives all events of a master in order. No event follows after stop has returned.
func TestEventsComeInOrder(t *testing.T) {
	bubble(t, func(t *testing.T, p *Transport, srv *fake) {
		var late []Event
		var events []Event
		stop := p.Watch(func(event Event) { events = append(events, event) })
		p.Watch(func(event Event) { late = append(late, event) })
		for range 5 {
			pass(2 * time.Second)
			srv.cut()
		}
		pass(time.Second)
		synctest.Wait()
		up := uint64(0)
		for i, event := range events {
			if event.Session != 0 && event.Session != up && (event.Session != up+1 || i > 0 && events[i-1].Err == nil) {
				t.Errorf("event %d is %+v after session %d", i, event, up)
			}
			up = max(up, event.Session)
		}
		if up != 6 || len(late) != len(events) {
			t.Errorf("there were %d sessions, %d events, and %d events for the second watcher", up, len(events), len(late))
		}
		stop()
		n := len(events)
		srv.cut()
		pass(time.Second)
		stop()
		if len(events) != n {
			t.Error("the watcher was called after stop")
		}
	})
}

// If a master stays down for the same reason, the watchers get one event.
func TestSameReasonIsReportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newFake("a1")
		srv.extra = "cluster_enabled:1\r\n"
		p := open(t, []string{"redis://m1"}, WithDialer(srv.dial))
		var events atomic.Int64
		p.Watch(func(Event) { events.Add(1) })
		pass(10 * time.Second)
		if n := events.Load(); n != 1 || srv.dialled() < 5 {
			t.Errorf("there were %d events in %d attempts to connect", n, srv.dialled())
		}
		_ = p.Close()
	})
}

func TestTransient(t *testing.T) {
	for err, want := range map[error][2]bool{
		&Error{Err: redis.Error("OOM command not allowed")}: {true, true},
		&Error{Err: redis.Error("WRONGTYPE x")}:             {false, true},
		&Error{Err: fault.ErrTimeout}:                       {false, false},
		&Error{Err: fault.Down(redis.Error("LOADING x"))}:   {false, false}, // it ended the connection
	} {
		if got := [2]bool{Transient(err), Answered(err)}; got != want {
			t.Errorf("Transient and Answered of %v are %v", err, got)
		}
	}
}

// errors.Is works even if the password is a word that occurs in the error texts of this package.
func TestPasswordsInsideErrorTexts(t *testing.T) {
	for _, word := range []string{"refused", "cluster", "e", "closed"} {
		synctest.Test(t, func(t *testing.T) {
			srv := newFake("a1")
			srv.extra = "cluster_enabled:1\r\n"
			p := open(t, []string{"redis://m1"}, WithDialer(srv.dial), WithCredentials("", word))
			err := waitDown(t, p, 0, fault.ErrRefused)
			if !strings.Contains(err.Error(), "refused: it is a cluster node") {
				t.Errorf("password %q: the reason for the refusal is %v", word, err)
			}
			srv.set(func() { srv.extra = "" })
			waitUp(t, p)
			srv.hang()
			if _, err := call(t, p, 0, inspect("x"), Condition{}); !errors.Is(err, fault.ErrTimeout) {
				t.Errorf("password %q: the call to a hung server returned %v", word, err)
			}
			srv.resume()
			_ = p.Close()
			if err := p.Send(0, inspect("x"), Condition{}, newMailbox()); !errors.Is(err, fault.ErrPoolClosed) {
				t.Errorf("password %q: Send after Close returned %v", word, err)
			}
		})
	}
}
