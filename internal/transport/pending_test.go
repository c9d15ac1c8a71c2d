package transport

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/frame"
	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport/fault"
)

func pendingRelease(name string, ballot int64, grants ...string) PendingRelease {
	return PendingRelease{Name: testPrefix.Lock(name), Leases: grants, Ballot: ballot,
		CallFunc: func(grants []string, ballot int64) *frame.Call {
			return encoder.Release(keysOf(name), scripts.Ending{Leases: grants, Ballot: ballot})
		}}
}

// ending returns the arguments after the keys of a release call, as one text.
func ending(ballot int64, grants ...string) string {
	words := append([]string{"", grants[0], fmt.Sprintf("%016d", ballot), "0", "0", "", "", "0"}, grants[1:]...)
	return strings.Join(words, " ")
}

// releaseCalls returns the release calls that the server has read.
func releaseCalls(srv *fake) [][]string {
	return slices.DeleteFunc(srv.calls(), func(cmd []string) bool {
		return cmd[1] != scripts.Release.SHA && cmd[1] != scripts.Release.Text
	})
}

// H03, H94: the pending releases of an unreachable master are sent first when the master is up again. Before any other
// call there is one release call for each name, with all lease ids and the largest ballot.
func TestPendingReleasesAreMergedAndSentFirst(t *testing.T) {
	bubble(t, func(t *testing.T, p *Transport, srv *fake) {
		srv.hang()
		_ = p.Send(0, inspect("lost"), Condition{}, newMailbox())
		pass(time.Second)
		if !p.AddPending(0, pendingRelease("n", 7, "a")) || !p.AddPending(0, pendingRelease("n", 5, "b", "a")) ||
			!p.AddPending(0, pendingRelease("m", 3, "c")) {
			t.Fatal("AddPending refused a release")
		}
		if n := p.Pending(0); n != 2 {
			t.Errorf("there are %d pending releases, want 2", n)
		}
		first := false
		defer p.Watch(func(event Event) {
			if event.Err == nil && !first {
				first = true
				_ = p.Send(0, inspect("x"), Condition{}, newMailbox())
			}
		})()
		srv.resume()
		waitUp(t, p)
		synctest.Wait()
		calls := slices.DeleteFunc(srv.calls(), func(cmd []string) bool { return cmd[3] == testPrefix.Lock("lost") })
		if len(calls) != 3 {
			t.Fatalf("the calls are %v", calls)
		}
		if got := strings.Join(calls[1], " "); !strings.HasSuffix(got, ending(7, "a", "b")) {
			t.Errorf("the release call of n is %s", got)
		}
		if got := strings.Join(calls[0], " "); !strings.HasSuffix(got, ending(3, "c")) || calls[2][1] != scripts.Inspect.SHA {
			t.Errorf("the calls are %v", calls)
		}
		if n := p.Pending(0); n != 0 {
			t.Errorf("%d releases are still pending", n)
		}
		pass(10 * time.Second)
		if n := len(releaseCalls(srv)); n != 2 {
			t.Errorf("there were %d release calls, want 2", n)
		}
	})
}

// H56: after a transient error the release stays pending. After any other error it is dropped.
func TestTransientErrorsKeepReleasePending(t *testing.T) {
	for reply, stays := range map[string]bool{
		"-OOM command not allowed": true, "-MISCONF errors": true, "-BUSY Redis is busy": true, "-LOADING x": true,
		"-TRYAGAIN x": true, "-NOREPLICAS x": true, "-READONLY x": true,
		"-ERR Error running script (call to f_1): @user_script:1: -OOM command not allowed": true,
		"-WRONGTYPE Operation": false, "-BADFENCE the fence": false, "-NOPERM x": false, ":0": false,
	} {
		t.Run(reply, func(t *testing.T) {
			bubble(t, func(t *testing.T, p *Transport, srv *fake) {
				srv.set(func() { srv.answer = func([]string) string { return reply + "\r\n" } })
				p.AddPending(0, pendingRelease("n", 7, "a"))
				pass(3100 * time.Millisecond)
				synctest.Wait()
				if got := p.Pending(0) == 1; got != stays {
					t.Errorf("the release is pending: %v, want %v", got, stays)
				}
				srv.set(func() { srv.answer = func([]string) string { return ":1\r\n" } })
				pass(3100 * time.Millisecond)
				synctest.Wait()
				if n := p.Pending(0); n != 0 {
					t.Errorf("%d releases are pending at the end", n)
				}
			})
		})
	}
}

// If an error reply ends the connection, the requests behind it get no reply: a release stays pending, and a call is
// not reported as answered.
func TestConnectionEndIsNoReply(t *testing.T) {
	bubble(t, func(t *testing.T, p *Transport, srv *fake) {
		srv.set(func() { srv.info = "-READONLY It is a replica\r\n" })
		p.AddPending(0, pendingRelease("n", 7, "a"))
		box := newMailbox()
		pass(2800 * time.Millisecond)
		srv.hang()
		pass(300 * time.Millisecond) // the heartbeat and the release are sent
		must.Do(t, p.Send(0, inspect("x"), Condition{}, box))
		srv.resume() // the heartbeat is refused
		if a := box.next(t); a.err == nil || Answered(a.err) || NotLoaded(a.err) || Transient(a.err) {
			t.Errorf("the error of a call without a reply is %v", a.err)
		}
		if n := p.Pending(0); n != 1 {
			t.Errorf("%d releases are pending after the end of the connection", n)
		}
		if err := p.Send(0, inspect("x"), Condition{}, box); err == nil || Answered(err) {
			t.Errorf("the error of a call that was not sent is %v", err)
		}
		srv.set(func() { srv.info = "" })
		waitUp(t, p)
		if n := p.Pending(0); n != 0 {
			t.Errorf("%d releases are pending at the end", n)
		}
	})
}

// A lease that is added to a pending release while its call is in flight is sent in a later call.
func TestPendingReleaseGrowsWhileSent(t *testing.T) {
	bubble(t, func(t *testing.T, p *Transport, srv *fake) {
		srv.set(func() {
			srv.answer = func([]string) string {
				p.AddPending(0, pendingRelease("n", 7, "a", "b"))
				srv.answer = func([]string) string {
					p.AddPending(0, pendingRelease("n", 9))
					srv.answer = func([]string) string { return ":1\r\n" }
					return ":1\r\n"
				}
				return ":1\r\n"
			}
		})
		p.AddPending(0, pendingRelease("n", 7, "a"))
		pass(3100 * time.Millisecond)
		synctest.Wait()
		got := releaseCalls(srv)
		if p.Pending(0) != 0 || len(got) != 3 {
			t.Fatalf("%d releases are pending, and the release calls are %v", p.Pending(0), got)
		}
		ends := func(i int, text string) bool { return strings.HasSuffix(strings.Join(got[i], " "), text) }
		if !ends(1, ending(7, "b")) || !ends(2, ending(9, "b")) {
			t.Errorf("the release calls are %v", got)
		}
	})
}

// Many pending releases, and releases of many leases, are sent in calls of limited size, before the session is
// reported.
func TestManyPendingReleasesAreSent(t *testing.T) {
	bubble(t, func(t *testing.T, p *Transport, srv *fake) {
		srv.set(func() { srv.runID = "" }) // the server is refused
		srv.cut()
		_ = waitDown(t, p, 0, fault.ErrRefused)
		for i := range 1000 {
			p.AddPending(0, pendingRelease(fmt.Sprint("n", i), int64(i), "a"))
		}
		ids := make([]string, 3000)
		for i := range ids {
			ids[i] = fmt.Sprint("id", i)
		}
		p.AddPending(0, pendingRelease("long", 1, ids...))
		srv.set(func() { srv.runID = "a1" })
		atUp := -1
		defer p.Watch(func(event Event) {
			if event.Session != 0 && atUp < 0 {
				atUp = p.Pending(0)
			}
		})()
		waitUp(t, p)
		synctest.Wait()
		if n := len(releaseCalls(srv)); atUp != 0 || n != 1003 {
			t.Errorf("%d releases were pending when the master was up; there were %d release calls", atUp, n)
		}
	})
}

// The identity of the server is checked once per heartbeat interval, even before the session is opened, while pending
// releases are sent.
func TestReleasesDoNotDelayIdentityCheck(t *testing.T) {
	bubble(t, func(t *testing.T, p *Transport, srv *fake) {
		srv.cutAll(true)
		synctest.Wait()
		const pending = 5000 // they take longer than a heartbeat interval
		for i := range pending {
			p.AddPending(0, pendingRelease(fmt.Sprint(i), 7, "a"))
		}
		srv.set(func() { srv.stopped, srv.delay = false, time.Millisecond })
		for p.Pending(0) == pending {
			pass(10 * time.Millisecond)
		}
		srv.set(func() { srv.runID = "b2" })
		waitUp(t, p)
		if id := state(p, 0).Info.RunID; id != "b2" {
			t.Errorf("the identity is still %q", id)
		}
	})
}

// H101: the leases in flight are bounded, and not the calls, so that many pending releases take few round trips: the
// master does not vote before they were sent. With 64 calls in flight and a round trip of 20 ms, 20 000 releases took
// six seconds.
func TestResendWindowCountsLeases(t *testing.T) {
	for perName, names := range map[int]int{0: 2000, 1: 2000, 10: 200, 5000: 4} {
		var l pendingList
		for i := range names {
			r := PendingRelease{Name: fmt.Sprint("n", i)}
			for k := range perName {
				r.Leases = append(r.Leases, fmt.Sprint(k))
			}
			l.add(r)
		}
		l.begin()
		leases, calls := 0, 0
		for r, ok := l.next(); ok; r, ok = l.next() {
			leases, calls = leases+len(r.Leases), calls+1
		}
		if size := max(leases, calls); size < 1000 || size > 2100 {
			t.Errorf("with %d leases per name, %d calls with %d leases are in flight together", perName, calls, leases)
		}
	}
}

func TestPendingReleasesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := open(t, []string{"redis://m1"}, WithDialer((&fake{unserved: true}).dial))
		for i := range maxPending {
			if !p.AddPending(0, pendingRelease(fmt.Sprint(i), 1, "a")) {
				t.Fatalf("the pending release %d was refused", i)
			}
		}
		if p.AddPending(0, pendingRelease("more", 1, "a")) {
			t.Error("the number of names is not bounded")
		}
		if !p.AddPending(0, pendingRelease("1", 2, "b")) {
			t.Error("a name that is already pending was refused")
		}
		ids := make([]string, maxPendingLeases)
		for i := range ids {
			ids[i] = fmt.Sprint("id", i)
		}
		if p.AddPending(0, pendingRelease("1", 2, ids...)) {
			t.Error("the number of leases is not bounded")
		}
		_ = p.Close()
		if p.AddPending(0, pendingRelease("1", 2, "b")) || p.Pending(0) != 0 {
			t.Error("AddPending accepted a release after Close")
		}
	})
}

// H119: the size of a master's pending releases in bytes is also limited. Releases that have been sent no longer
// count.
func TestPendingReleasesAreBoundedInBytes(t *testing.T) {
	var l pendingList
	long := strings.Repeat("n", 1<<20)
	accepted := 0
	for accepted < 100 && l.add(PendingRelease{Name: fmt.Sprint(accepted, long), Leases: []string{"a"}}) {
		accepted++
	}
	if accepted < 16 || accepted > 64 {
		t.Errorf("%d names of a megabyte were accepted, want 16 to 64", accepted)
	}
	grants := make([]string, 100)
	for i := range grants {
		grants[i] = fmt.Sprint(i, long)
	}
	if l.add(PendingRelease{Name: "0" + long, Leases: grants}) {
		t.Error("further leases of a name were accepted")
	}
	l.begin()
	for r, ok := l.next(); ok; r, ok = l.next() {
		l.finish(r, true)
	}
	if l.bytes != 0 || !l.add(PendingRelease{Name: long, Leases: []string{"a"}}) {
		t.Errorf("%d bytes are counted, or a release is refused, although none is pending", l.bytes)
	}
}
