package pool

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
)

func owed(name string, ballot int64, grants ...string) OwedRelease {
	return OwedRelease{Name: testPrefix.Lock(name), Grants: grants, Ballot: ballot,
		CallFunc: func(grants []string, ballot int64) *scripts.Call {
			return encoder.Release(keysOf(name), scripts.Ending{Grants: grants, Ballot: ballot})
		}}
}

// ending is what follows the keys in a payment.
func ending(ballot int64, grants ...string) string {
	words := append([]string{"", grants[0], fmt.Sprintf("%016d", ballot), "0", "", "", "0"}, grants[1:]...)
	return strings.Join(words, " ")
}

// payments are the release calls that the server has read.
func payments(srv *fake) [][]string {
	return slices.DeleteFunc(srv.calls(), func(cmd []string) bool {
		return cmd[1] != scripts.Release.SHA && cmd[1] != scripts.Release.Text
	})
}

// H03, H94: what is owed to an unreachable master is paid first thing when it is back: one call a name, with all ids
// and the
// largest ballot, before any call that is sent then.
func TestOwedReleasesArePaidOnceMergedAndFirst(t *testing.T) {
	bubble(t, func(t *testing.T, p *Pool, srv *fake) {
		srv.hang()
		_ = p.Send(0, inspect("lost"), Stamp{}, newMailbox())
		pass(time.Second)
		if !p.Owe(0, owed("n", 7, "a")) || !p.Owe(0, owed("n", 5, "b", "a")) || !p.Owe(0, owed("m", 3, "c")) {
			t.Fatal("not booked")
		}
		if n := p.Owed(0); n != 2 {
			t.Errorf("%d are owed", n)
		}
		first := false
		defer p.Watch(func(e Event) {
			if e.Err == nil && !first {
				first = true
				_ = p.Send(0, inspect("x"), Stamp{}, newMailbox())
			}
		})()
		srv.resume()
		waitUp(t, p)
		synctest.Wait()
		calls := slices.DeleteFunc(srv.calls(), func(cmd []string) bool { return cmd[3] == testPrefix.Lock("lost") })
		if len(calls) != 3 {
			t.Fatalf("calls: %v", calls)
		}
		if got := strings.Join(calls[1], " "); !strings.HasSuffix(got, ending(7, "a", "b")) {
			t.Errorf("payment of n: %s", got)
		}
		if got := strings.Join(calls[0], " "); !strings.HasSuffix(got, ending(3, "c")) || calls[2][1] != scripts.Inspect.SHA {
			t.Errorf("calls: %v", calls)
		}
		if n := p.Owed(0); n != 0 {
			t.Errorf("%d are still owed", n)
		}
		pass(10 * time.Second)
		if n := len(payments(srv)); n != 2 {
			t.Errorf("%d payments", n)
		}
	})
}

// A live master is paid on its heartbeat.
func TestALiveMasterIsPaidOnTheHeartbeat(t *testing.T) {
	bubble(t, func(t *testing.T, p *Pool, srv *fake) {
		p.Owe(0, owed("n", 7, "a"))
		synctest.Wait()
		if len(srv.calls()) != 0 || p.Owed(0) != 1 {
			t.Error("paid too early")
		}
		pass(3100 * time.Millisecond)
		synctest.Wait()
		if len(payments(srv)) != 1 || p.Owed(0) != 0 {
			t.Errorf("payments %v, owed %d", payments(srv), p.Owed(0))
		}
	})
}

// H56: an error that may pass leaves the release owed, any other ends it.
func TestPassingErrorsAloneLeaveAReleaseOwed(t *testing.T) {
	for reply, stays := range map[string]bool{
		"-OOM command not allowed": true, "-MISCONF errors": true, "-BUSY Redis is busy": true, "-LOADING x": true,
		"-TRYAGAIN x": true, "-NOREPLICAS x": true,
		"-ERR Error running script (call to f_1): @user_script:1: -OOM command not allowed": true,
		"-WRONGTYPE Operation": false, "-BADFENCE the fence": false, "-NOPERM x": false, ":0": false,
	} {
		t.Run(reply, func(t *testing.T) {
			bubble(t, func(t *testing.T, p *Pool, srv *fake) {
				srv.set(func() { srv.answer = func([]string) string { return reply + "\r\n" } })
				p.Owe(0, owed("n", 7, "a"))
				pass(3100 * time.Millisecond)
				synctest.Wait()
				if got := p.Owed(0) == 1; got != stays {
					t.Errorf("owed: %v", got)
				}
				srv.set(func() { srv.answer = func([]string) string { return ":1\r\n" } })
				pass(3100 * time.Millisecond)
				synctest.Wait()
				if n := p.Owed(0); n != 0 {
					t.Errorf("%d owed in the end", n)
				}
			})
		})
	}
}

// READONLY leaves the release owed and closes the connection; the next one pays.
func TestAReleaseStaysOwedAfterReadonly(t *testing.T) {
	bubble(t, func(t *testing.T, p *Pool, srv *fake) {
		replies := []string{"-READONLY x\r\n", ":1\r\n"}
		srv.set(func() {
			srv.answer = func([]string) string {
				r := replies[0]
				replies = replies[1:]
				return r
			}
		})
		p.Owe(0, owed("n", 7, "a"))
		pass(6 * time.Second)
		synctest.Wait()
		if n := p.Owed(0); n != 0 || len(payments(srv)) != 2 || state(p, 0).Session != 2 {
			t.Errorf("owed %d, payments %v, %+v", n, payments(srv), state(p, 0))
		}
	})
}

// A payment that is lost with its connection is made again.
func TestLostPaymentIsRepeated(t *testing.T) {
	bubble(t, func(t *testing.T, p *Pool, srv *fake) {
		lose := 3
		srv.set(func() {
			srv.answer = func([]string) string {
				if lose--; lose >= 0 {
					return ""
				}
				return ":1\r\n"
			}
		})
		p.Owe(0, owed("n", 7, "a"))
		pass(10 * time.Second)
		synctest.Wait()
		if p.Owed(0) != 0 || len(payments(srv)) != 4 {
			t.Errorf("owed %d, payments %d", p.Owed(0), len(payments(srv)))
		}
	})
}

// An error reply that ends the connection is no answer to what waits behind it: a release stays owed, and a call is
// not told as answered.
func TestTheEndOfAConnectionIsNoAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, p *Pool, srv *fake) {
		srv.set(func() { srv.answer, srv.info = func([]string) string { return ":1\r\n" }, noPerm })
		p.Owe(0, owed("n", 7, "a"))
		box := newMailbox()
		pass(2800 * time.Millisecond)
		srv.hang()
		pass(300 * time.Millisecond) // the heartbeat and the payment are sent
		if err := p.Send(0, inspect("x"), Stamp{}, box); err != nil {
			t.Fatal(err)
		}
		srv.resume() // the heartbeat is refused
		if a := box.next(t); a.err == nil || Answered(a.err) || NotLoaded(a.err) || Transient(a.err) {
			t.Errorf("a call that was not answered: %v", a.err)
		}
		if n := p.Owed(0); n != 1 {
			t.Errorf("%d are owed after the end", n)
		}
		if err := p.Send(0, inspect("x"), Stamp{}, box); err == nil || Answered(err) {
			t.Errorf("a call that was not sent: %v", err)
		}
		srv.set(func() { srv.info = "" })
		waitUp(t, p)
		if n := p.Owed(0); n != 0 {
			t.Errorf("%d are owed in the end", n)
		}
	})
}

// What is added while a payment is under way is paid too.
func TestAnOwedReleaseGrowsWhileItIsPaid(t *testing.T) {
	bubble(t, func(t *testing.T, p *Pool, srv *fake) {
		srv.set(func() {
			srv.answer = func([]string) string {
				p.Owe(0, owed("n", 7, "a", "b"))
				srv.answer = func([]string) string {
					p.Owe(0, owed("n", 9))
					srv.answer = func([]string) string { return ":1\r\n" }
					return ":1\r\n"
				}
				return ":1\r\n"
			}
		})
		p.Owe(0, owed("n", 7, "a"))
		pass(3100 * time.Millisecond)
		synctest.Wait()
		got := payments(srv)
		if p.Owed(0) != 0 || len(got) != 3 {
			t.Fatalf("owed %d, payments %v", p.Owed(0), got)
		}
		ends := func(i int, text string) bool { return strings.HasSuffix(strings.Join(got[i], " "), text) }
		if !ends(1, ending(7, "b")) || !ends(2, ending(9, "b")) {
			t.Errorf("payments %v", got)
		}
	})
}

// Many owed releases, and many grants, are paid in calls of bounded size, before the session is told.
func TestManyOwedReleasesArePaid(t *testing.T) {
	bubble(t, func(t *testing.T, p *Pool, srv *fake) {
		srv.set(func() { srv.runID = "" }) // refused
		srv.cut()
		_ = waitDown(t, p, 0, ErrRefused)
		for i := range 1000 {
			p.Owe(0, owed(fmt.Sprint("n", i), int64(i), "a"))
		}
		ids := make([]string, 3000)
		for i := range ids {
			ids[i] = fmt.Sprint("id", i)
		}
		p.Owe(0, owed("long", 1, ids...))
		srv.set(func() { srv.runID = "a1" })
		atUp := -1
		defer p.Watch(func(e Event) {
			if e.Session != 0 && atUp < 0 {
				atUp = p.Owed(0)
			}
		})()
		waitUp(t, p)
		synctest.Wait()
		if n := len(payments(srv)); atUp != 0 || n != 1003 {
			t.Errorf("owed when up: %d; payments %d", atUp, n)
		}
	})
}

func TestOwedReleasesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := open(t, []string{"redis://m1"}, WithDialer((&fake{unserved: true}).dial))
		for i := range maxOwed {
			if !p.Owe(0, owed(fmt.Sprint(i), 1, "a")) {
				t.Fatalf("release %d is refused", i)
			}
		}
		if p.Owe(0, owed("more", 1, "a")) {
			t.Error("no bound on names")
		}
		if !p.Owe(0, owed("1", 2, "b")) {
			t.Error("a known name is refused")
		}
		ids := make([]string, maxOwedGrants)
		for i := range ids {
			ids[i] = fmt.Sprint("id", i)
		}
		if p.Owe(0, owed("1", 2, ids...)) {
			t.Error("no bound on grants")
		}
		_ = p.Close()
		if p.Owe(0, owed("1", 2, "b")) || p.Owed(0) != 0 {
			t.Error("booked after Close")
		}
	})
}

// H119: what is owed to one master is bounded in bytes, too, and what was sent makes room again.
func TestOwedReleasesAreBoundedInBytes(t *testing.T) {
	var l ledger
	long := strings.Repeat("n", 1<<20)
	booked := 0
	for booked < 100 && l.owe(OwedRelease{Name: fmt.Sprint(booked, long), Grants: []string{"a"}}) {
		booked++
	}
	if booked < 16 || booked > 64 {
		t.Errorf("%d names of a megabyte were booked", booked)
	}
	grants := make([]string, 100)
	for i := range grants {
		grants[i] = fmt.Sprint(i, long)
	}
	if l.owe(OwedRelease{Name: "0" + long, Grants: grants}) {
		t.Error("further grants of a name were booked")
	}
	l.begin()
	for r, ok := l.next(); ok; r, ok = l.next() {
		l.paid(r, true)
	}
	if l.bytes != 0 || !l.owe(OwedRelease{Name: long, Grants: []string{"a"}}) {
		t.Errorf("%d bytes count when nothing is owed", l.bytes)
	}
}
