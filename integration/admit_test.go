package integration

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/redlock/admin"
	"github.com/redlock-go/redlock/redlock/redlocktest"
)

// firstLockBound is the maximum time until a first lock on a machine that also runs other tests: less than a
// quarantine, which takes 30 s. Usually the first lock takes about 20 ms.
const firstLockBound = 25 * time.Second

// After redlocktest.Admit, five fresh servers grant a first lock without a quarantine. A server that restarts empty is
// in quarantine, as in production.
func TestFirstLockOnFreshServers(t *testing.T) {
	five := masters(t, 5)
	ctx := bounded(t)
	began := time.Now()
	for range 2 { // the second call must do nothing
		must.Do(t, redlocktest.Admit(ctx, urls(five)...))
	}
	locker := open(t, five)
	lock := must.Get(locker.Lock(ctx, "first"))(t)
	took := time.Since(began).Round(time.Millisecond)
	t.Logf("the first lock was acquired %v after the start of the admission", took)
	if took > firstLockBound {
		t.Errorf("the first lock took %v, want at most %v, because there is no quarantine", took, firstLockBound)
	}
	if err := lock.Unlock(ctx); err != nil {
		t.Error(err)
	}
	must.Do(t, locker.WaitReady(ctx))
	for _, m := range admin.Of(locker).Masters() {
		if m.State != "voting" {
			t.Errorf("the state of %s is %s, want voting: %v", m.Addr, m.State, m.Err)
		}
	}
	each(t, Master.Kill, five[0])
	each(t, Master.Start, five[0])
	for {
		m := admin.Of(locker).Masters()[0]
		if m.State == "quarantine" {
			break
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("after an empty restart the state of the server is %s, want quarantine", m.State)
		}
	}
}

// If a server is not reachable, the error says so, and the other servers are admitted.
func TestAdmitReportsMissingServers(t *testing.T) {
	two := masters(t, 2)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	const unreachable = "redis://127.0.0.1:1"
	err := redlocktest.Admit(ctx, append(urls(two), unreachable)...)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "127.0.0.1:1 was not admitted") {
		t.Errorf("the error does not name the missing server: %v", err)
	}
	err = redlocktest.Admit(ctx, "redis://user:secret@one two")
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("the error about an invalid URL is nil, or contains the password: %v", err)
	}
	if n := command(t, two[0], "EXISTS", "redlock:admission"); n != int64(1) {
		t.Errorf("the reachable server has %v admission records, want 1", n)
	}
}
