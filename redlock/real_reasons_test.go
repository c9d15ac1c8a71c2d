package redlock_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// Rights are taken away while a lock is held, and nothing else is acquired. The error and the log record of the
// loss name the right, and Healthy has heard of the refused extensions.
func TestLossNamesMissingRight(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 3)
	f.admitted()
	f.allow()
	var book logbook
	l := locker(t, f.dial(pool.WithCredentials("lock", "pw")), book.option(), redlock.WithTTL(2*time.Second))
	ctx := f.withTimeout(time.Minute)
	f.must(l.WaitReady(ctx))
	k := must(l.Lock(ctx, "x"))(f)
	for i := range f.servers {
		f.do(i, "ACL", "SETUSER", "lock", "-@scripting")
	}
	select {
	case <-k.Done():
	case <-ctx.Done():
		t.Fatal("the lock is still held")
	}
	f.says(k.Err(), redlock.ErrLost, "of 3: NOPERM this user has no permissions to run the 'evalsha' command")
	if strings.Contains(k.Err().Error(), "grant") {
		t.Errorf("the lock has ended with %v", k.Err())
	}
	if err := l.Healthy(ctx); err == nil || !strings.Contains(err.Error(), "evalsha") {
		t.Errorf("Healthy returned %v, want the refused right", err)
	}
	f.must(l.Close())
	if text := strings.Join(book.lines, "\n"); !strings.Contains(text, "lock was lost") ||
		!strings.Contains(text, "in time: ") {
		t.Errorf("the log does not say why the lock was lost:\n%s", text)
	}
}

// Redis lets a script write to a full master once the script has removed something. So a full master grants a lock to a
// waiter behind a dead one, and is failing nevertheless: it grants no other lock.
func TestFullMasterThatGrantsToWaitersIsFailing(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 3)
	var book logbook
	l, ctx := f.admitted(book.option()), f.withTimeout(time.Minute)
	ballot := fmt.Sprint(time.Now().UnixMicro())
	for i := range f.servers { // a holder that has died, with 3 s left
		f.do(i, "HSET", "redlock:{x}", "fence", ballot, "dead:1:c", "1 "+ballot+" "+ballot+" "+ballot)
		f.do(i, "PEXPIRE", "redlock:{x}", 78000)
	}
	waiting := make(chan error, 1)
	go func() {
		_, err := l.Lock(ctx, "x")
		waiting <- err
	}()
	redistest.Await(f, hang, func() string {
		if f.do(0, "ZCARD", "redlock:{x}:queue") != int64(1) {
			return "no client waits"
		}
		return ""
	})
	f.do(0, "ZADD", "redlock:{x}:queue", -1, "0000000000000001:dead:1:c")
	f.do(0, "ZADD", "redlock:{x}:waiters", "9e15", "0000000000000001:dead:1:c")
	f.do(0, "CONFIG", "SET", "maxmemory", 1)
	must(l.Lock(ctx, "y"))(f)
	f.awaitState(l, 0, redlockinfo.StateFailing)
	f.must(<-waiting)
	redistest.Await(f, hang, func() string {
		if keys := f.locks(0); len(keys) != 1 {
			return fmt.Sprintf("the full master has the leases %q, want one", keys)
		}
		return ""
	})
	f.must(l.Close())
	text := strings.Join(book.lines, "\n")
	if !strings.Contains(text, "is failing") || strings.Contains(text, "grants locks again") {
		t.Errorf("the log does not say that the full master is failing, or says that it grants locks:\n%s", text)
	}
}
