package pool

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/scripts"
)

// sendTogether sends calls that the writer finds in its queue at one time, and returns the replies in their order.
func sendTogether(t *testing.T, p *Pool, calls []*scripts.Call) []answer {
	t.Helper()
	return sendStamped(t, p, calls, func(int) string { return "" })
}

// sendStamped is sendTogether with stamps.
func sendStamped(t *testing.T, p *Pool, calls []*scripts.Call, text func(i int) string) []answer {
	t.Helper()
	m := p.master(0)
	boxes := make([]*mailbox, len(calls))
	m.mu.Lock()
	s, wake := m.sess, false
	if s == nil {
		m.mu.Unlock()
		t.Fatal("the master is down")
	}
	for i, c := range calls {
		boxes[i] = newMailbox()
		s.outstanding.Add(1)
		wake = s.queueLocked(request{call: c, to: boxes[i], text: text(i), kind: kindCall}) || wake
	}
	m.mu.Unlock()
	if wake {
		s.nudge()
	}
	answers := make([]answer, len(calls))
	for i, b := range boxes {
		answers[i] = b.next(t)
	}
	return answers
}

func holdOf(name string) scripts.Hold {
	return scripts.NewHold(scripts.Prefix("pooltest").Keys(name), "me:"+name, "")
}

func acquireOf(name string, ballot int64) *scripts.Call {
	return testFleet.AcquireCall(holdOf(name), scripts.ModeAcquire, patience, ballot, ballot, 1)
}

func releaseOf(name string, ballot int64) *scripts.Call {
	return testFleet.ReleaseCall(holdOf(name), ballot, false, scripts.Advance)
}

// evals is how many runs of scripts the server has counted.
func evals(s *server) (n int) {
	for line := range strings.SplitSeq(s.text("INFO", "commandstats"), "\r\n") {
		if rest, ok := strings.CutPrefix(line, "cmdstat_eval"); ok {
			var calls int
			if _, err := fmt.Sscanf(rest[strings.Index(rest, "=")+1:], "%d", &calls); err == nil {
				n += calls
			}
		}
	}
	return n
}

// TestCallsThatWaitAtOneTimeAreRunTogether: each has the reply that a call of its own has, an error among them, in one run,
// and so it stays when the server has forgotten the script.
func TestCallsThatWaitAtOneTimeAreRunTogether(t *testing.T) {
	s := startServer(t)
	p := open(t, []string{s.url()})
	waitUp(t, p)
	now := state(p, 0).Info.Time
	s.do("SET", "pooltest:{odd}:lock", "a string")
	for _, forgotten := range []bool{false, true} {
		now++
		if forgotten {
			s.do("SCRIPT", "FLUSH")
		}
		before := evals(s)
		got := sendTogether(t, p, []*scripts.Call{
			acquireOf("a", now), acquireOf("odd", now), acquireOf("b", now), releaseOf("a", now), releaseOf("c", now), acquireOf("d", now-1e12),
		})
		var text []string
		for _, a := range got {
			var e *Error
			switch list, _ := a.value.([]any); {
			case errors.As(a.err, &e):
				text = append(text, fmt.Sprintf("%v is redis: %v", strings.Contains(a.err.Error(), "WRONGTYPE"), errors.As(e.Err, new(redis.Error))))
			case len(list) > 0:
				text = append(text, fmt.Sprint("refused ", list[0]))
			default:
				text = append(text, fmt.Sprint(a.value))
			}
		}
		if want := "1, true is redis: true, 1, 1, 0, refused 3"; strings.Join(text, ", ") != want {
			t.Errorf("the replies are %q, want %q", strings.Join(text, ", "), want)
		}
		if s.do("EXISTS", "pooltest:{a}:lock") != int64(0) || s.do("HGET", "pooltest:{b}:lock", "me:b") == nil || s.do("EXISTS", "pooltest:{c}:bar") != int64(1) {
			t.Error("a is there, b is not, or c is not barred")
		}
		if n := evals(s) - before; n != 1 && !forgotten || n > 2 {
			t.Errorf("%d runs, forgotten: %v", n, forgotten)
		}
		s.do("DEL", "pooltest:{b}:lock")
	}
}

// TestOrdinaryCallsOnlyAreRunTogether: those of different TTLs, with more than what is usual, and debts, go by themselves, in
// their order.
func TestOrdinaryCallsOnlyAreRunTogether(t *testing.T) {
	s := startServer(t)
	p := open(t, []string{s.url()})
	waitUp(t, p)
	now := state(p, 0).Info.Time
	long := testFleet.AcquireCall(holdOf("long"), scripts.ModeAcquire, 2*patience, now, now, 1)
	block := testFleet.AcquireCall(holdOf("block"), scripts.ModeAcquire, patience, now, now+9, 1)
	for _, c := range []struct {
		what  string
		calls []*scripts.Call
		runs  int
	}{
		{"one and another", []*scripts.Call{acquireOf("a", now), inspect("a"), acquireOf("b", now)}, 3},
		{"another TTL", []*scripts.Call{acquireOf("d", now), acquireOf("e", now), acquireOf("f", now), acquireOf("g", now), long}, 2},
		{"a block", []*scripts.Call{acquireOf("h", now), acquireOf("i", now), block, acquireOf("j", now), acquireOf("k", now)}, 3},
		{"a debt", []*scripts.Call{releaseOf("d", now), releaseOf("e", now), releaseOf("f", now), releaseOf("g", now),
			testFleet.DebtCall(holdOf("h").Keys, []string{"me:h"}, now)}, 2},
		{"many", slicesOf(70, func(i int) *scripts.Call { return acquireOf(fmt.Sprint("n", i), now) }), 3},
	} {
		before := evals(s)
		for i, a := range sendTogether(t, p, c.calls) {
			if _, isArray := a.value.([]any); a.err != nil || a.value != int64(1) && !isArray {
				t.Errorf("%s: reply %d is %v, %v", c.what, i, a.value, a.err)
			}
		}
		if n := evals(s) - before; n != c.runs {
			t.Errorf("%s: %d runs, want %d", c.what, n, c.runs)
		}
		if n := p.master(0).sess.outstanding.Load(); n != 0 {
			t.Errorf("%s: %d calls are still counted", c.what, n)
		}
	}
}

// TestEachCallHasItsOwnStamp: calls with different ones are not run together.
func TestEachCallHasItsOwnStamp(t *testing.T) {
	s := startServer(t)
	p := open(t, []string{s.url()})
	waitUp(t, p)
	now := state(p, 0).Info.Time
	s.do("SET", "pooltest:marker", "here")
	stamps := []string{"here", "here", "elsewhere", "elsewhere", "here", "here"}
	got := sendStamped(t, p, slicesOf(6, func(i int) *scripts.Call { return acquireOf(fmt.Sprint(i), now) }), func(i int) string { return stamps[i] })
	for i, a := range got {
		if list, refused := a.value.([]any); a.err != nil || refused != (stamps[i] == "elsewhere") || refused && list[0] != int64(scripts.Abstained) {
			t.Errorf("reply %d is %v, %v", i, a.value, a.err)
		}
	}
}

func slicesOf(n int, f func(int) *scripts.Call) []*scripts.Call {
	list := make([]*scripts.Call, n)
	for i := range list {
		list[i] = f(i)
	}
	return list
}

// TestANameThatAUserMayNotTouchCostsTheOthersNothing: his rights refuse the run of all, so each goes by itself, then and later.
func TestANameThatAUserMayNotTouchCostsTheOthersNothing(t *testing.T) {
	s := startServer(t)
	s.do(append(minimum[:len(minimum):len(minimum)], "resetkeys", "~pooltest:{a*", "~pooltest:marker")...)
	p := open(t, []string{lockUser(s)})
	waitUp(t, p)
	for range 2 {
		now := state(p, 0).Info.Time
		got := sendTogether(t, p, []*scripts.Call{acquireOf("a1", now), acquireOf("a2", now), acquireOf("b", now), acquireOf("a3", now), acquireOf("a4", now)})
		for i, a := range got {
			if i == 2 {
				if a.err == nil || !strings.Contains(a.err.Error(), "NOPERM") {
					t.Errorf("the name that is not his: %v, %v", a.value, a.err)
				}
			} else if a.err != nil || a.value != int64(1) {
				t.Errorf("reply %d is %v, %v", i, a.value, a.err)
			}
		}
	}
}

// TestACutWhileCallsRunTogetherLeavesEachUnknown: nobody can know whether they were run.
func TestACutWhileCallsRunTogetherLeavesEachUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("a")
		p := open(t, []string{"redis://a"}, WithDialer(f.dial))
		waitUp(t, p)
		f.hang()
		cut := make(chan struct{})
		go func() {
			defer close(cut)
			synctest.Wait()
			f.cut()
		}()
		for i, a := range sendTogether(t, p, slicesOf(5, func(i int) *scripts.Call { return acquireOf(fmt.Sprint(i), 7) })) {
			var e *Error
			if !errors.As(a.err, &e) || !e.Unknown || !errors.Is(a.err, ErrDown) {
				t.Errorf("reply %d is %v, %v", i, a.value, a.err)
			}
		}
		<-cut
		f.resume()
		_ = p.Close()
		synctest.Wait()
	})
}

// TestACutWithinARunLeavesTheRunUnknown, all of it, and nothing that is behind it.
func TestACutWithinARunLeavesTheRunUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("a")
		p := open(t, []string{"redis://a"}, WithDialer(f.dial))
		waitUp(t, p)
		long := strings.Repeat("x", scripts.MaxName-1)
		f.hang() // behind this
		if err := p.Send(0, inspect("y"), Stamp{}, make(slot, 1)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		go func() {
			synctest.Wait()
			f.cut()
		}()
		calls := slicesOf(5, func(i int) *scripts.Call { return acquireOf(fmt.Sprint(long, i), 7) })
		for i, a := range sendTogether(t, p, append(calls, inspect("x"))) {
			var e *Error
			if !errors.As(a.err, &e) || e.Unknown != (i < 5) {
				t.Errorf("reply %d is %v, %.99v", i, a.value, a.err)
			}
		}
		f.resume()
		_ = p.Close()
		synctest.Wait()
	})
}

// TestAWrongNumberOfRepliesEndsTheConnection: whose they are cannot be told, so nobody has one.
func TestAWrongNumberOfRepliesEndsTheConnection(t *testing.T) {
	for _, say := range []string{"*2\r\n:1\r\n:1\r\n", ":1\r\n", "*5\r\n*1\r\n*1\r\n:1\r\n", "*33\r\n"} {
		synctest.Test(t, func(t *testing.T) {
			h := &hostile{fake: newFake("a"), say: once(say)}
			p := open(t, []string{"redis://a"}, WithDialer(h.dial))
			waitUp(t, p)
			h.mu.Lock()
			h.at = "EVALSHA"
			h.mu.Unlock()
			for i, a := range sendTogether(t, p, slicesOf(4, func(i int) *scripts.Call { return acquireOf(fmt.Sprint(i), 7) })) {
				var e *Error
				if !errors.As(a.err, &e) || !e.Unknown || !errors.Is(a.err, ErrDown) {
					t.Errorf("%q: reply %d is %v, %v", say, i, a.value, a.err)
				}
			}
			_ = p.Close()
			synctest.Wait()
		})
	}
}

// TestFrugalReadsArraysInOneArray, whatever is cut where; what is behind them is read as what it is.
func TestFrugalReadsArraysInOneArray(t *testing.T) {
	reply := "*4\r\n:1\r\n*3\r\n:2\r\n$3\r\nabc\r\n*0\r\n"
	for text, fine := range map[string]bool{
		"*3\r\n*2\r\n:1\r\n$1\r\nx\r\n:1\r\n*1\r\n:3\r\n:9\r\n*1\r\n*1\r\n:1\r\n": true,
		"*2\r\n*0\r\n*1\r\n:1\r\n*1\r\n*1\r\n:1\r\n":                              true,
		"*1\r\n*1\r\n:1\r\n*1\r\n:1\r\n*32\r\n":                                   true,
		"*1\r\n*33\r\n":                                                           false,
		reply:                                                                     false, // an array in an array in an array
	} {
		for size := 1; size <= len(text); size++ {
			f, ok := newFrugal(nil), true
			for rest := text; rest != "" && ok; rest = rest[min(size, len(rest)):] {
				ok = f.scan([]byte(rest[:min(size, len(rest))]))
			}
			if ok != fine {
				t.Errorf("%q in pieces of %d: %v", text, size, ok)
			}
		}
		f := newFrugal(nil)
		f.forMessages()
		if f.scan([]byte(text)) {
			t.Errorf("%q is let through on a subscription connection", text)
		}
	}
}
