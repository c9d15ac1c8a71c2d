package redlock_test

import (
	"cmp"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/redlock"
)

// textCases contains the complete texts of the errors of Healthy, and of a Lock that has reached its wait limit. The
// masters answer after 4 ms. In the texts #1 is the address of a master, and * is a label or a time.
var textCases = []struct {
	name    string
	prepare func(w *cluster, l *redlock.Locker)
	later   func(w *cluster) // is called after 1.5 s
	limit   time.Duration    // 0: 2004 ms, within the third attempt
	lock    string
	healthy string // "": Healthy is not called
}{
	{
		name:    "out of memory",
		prepare: func(w *cluster, _ *redlock.Locker) { w.refuse(outOfMemory, 0, 1, 2) },
		lock: `redlock: lock "n": no quorum of masters; 2 of 5 masters agreed, quorum is 3; ` +
			`#1, #2, #3: acquire: OOM command not allowed when used memory > 'maxmemory'.`,
		healthy: `redlock: health check "redlock": no quorum of masters; 2 of 5 masters can grant a lock, quorum is 3; ` +
			`#1, #2, #3: acquire: OOM command not allowed when used memory > 'maxmemory'.`,
	},
	{
		name: "held, behind a call of the same Locker that ends 4 ms earlier",
		prepare: func(w *cluster, l *redlock.Locker) {
			heldByAnother(w, l)
			w.goLock(w.Context(), l, "n", redlock.WithWaitLimit(3*time.Second))
		},
		lock: `redlock: lock "n": held by another; 0 of 5 masters agreed, quorum is 3; held by * since 2000-01-01 ` +
			`00:00:00 UTC; expires in * unless extended`,
	},
	{
		name:    "held, and then one attempt without a quorum",
		prepare: heldByAnother,
		later:   func(w *cluster) { w.stop(2, 3, 4) },
		limit:   2500 * time.Millisecond,
		lock: `redlock: lock "n": held by another; 0 of 5 masters agreed, quorum is 3; held by * since 2000-01-01 ` +
			`00:00:00 UTC; expires in * unless extended; #3, #4, #5: connect: master is down: dial pipe: connection refused: ` +
			`the master is stopped`,
	},
	{
		name:    "held, and then several attempts without a quorum",
		prepare: heldByAnother,
		later:   func(w *cluster) { w.stop(2, 3, 4) },
		limit:   5 * time.Second,
		lock: `redlock: lock "n": no quorum of masters; 2 of 5 masters can grant a lock, quorum is 3; ` +
			`#3, #4, #5: connect: master is down: dial pipe: connection refused: the master is stopped`,
	},
}

func heldByAnother(w *cluster, _ *redlock.Locker) {
	must(w.peer("holder").Lock(w.Context(), "n", redlock.WithTTL(30*time.Second)))(w)
	after(time.Millisecond) // so that the other masters have granted it, too
}

// The error of a call that ends without a lock says why each master has not granted the lock, as far as the attempts
// have shown the reason.
func TestTextsOfCallsThatEnd(t *testing.T) {
	for _, c := range textCases {
		subtest(t, c.name, 5, func(w *cluster) {
			l := w.peer("waiter").Locker
			c.prepare(w, l)
			after(time.Second)
			w.delay(4 * time.Millisecond)
			call := w.goLock(w.Context(), l, "n", redlock.WithWaitLimit(cmp.Or(c.limit, 2004*time.Millisecond)))
			after(1500 * time.Millisecond)
			if c.later != nil {
				c.later(w)
			}
			err := call.mustFail(time.Minute)
			w.delay(0)
			w.matches(err, c.lock)
			if c.healthy != "" {
				w.matches(l.Healthy(w.Context()), c.healthy)
			}
		})
	}
}

// matches fails the test unless the text of err matches want, a pattern as in textCases.
func (w *cluster) matches(err error, want string) {
	w.Helper()
	got := "nil"
	if err != nil {
		got = err.Error()
	}
	for i := range w.masters.N() {
		got = strings.ReplaceAll(got, w.masters.Master(i).Addr(), "#"+string(rune('1'+i)))
	}
	rest, ok := got, true
	for i, part := range strings.Split(want, "*") {
		at := strings.Index(rest, part)
		if at < 0 || i == 0 && at > 0 {
			ok = false
			break
		}
		rest = rest[at+len(part):]
	}
	if !ok || rest != "" && !strings.HasSuffix(want, "*") {
		w.Errorf("got  %s\nwant %s", got, want)
	}
}
