package redlock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
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
