package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/long"
	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// masters starts n real servers and a Locker that has admitted them.
func masters(t testing.TB, n int, opts ...redlock.Option) ([]*redisproc.Server, *pool.Pool, *redlock.Locker) {
	t.Helper()
	servers := redistest.Test(t, n, redisproc.Config{})
	urls := make([]string, n)
	for i, s := range servers {
		urls[i] = s.URL()
	}
	p, err := pool.Open(urls)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	l := locker(t, p, opts...)
	if err := l.Admin().Admit(t.Context()); err != nil {
		t.Fatal(err)
	}
	return servers, p, l
}

func locker(t testing.TB, p *pool.Pool, opts ...redlock.Option) *redlock.Locker {
	t.Helper()
	l, err := redlock.New(p, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := l.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return l
}

func TestLockUnlockOnRealMasters(t *testing.T) {
	t.Parallel()
	_, p, l := masters(t, 5)
	ctx := bounded(t)
	lock := held(t)(l.Lock(ctx, "orders:42"))
	if _, err := locker(t, p).TryLock(ctx, "orders:42"); !errors.Is(err, redlock.ErrHeld) {
		t.Fatalf("second Locker: %v, want ErrHeld", err)
	}
	inner := held(t)(l.Lock(lock.Context(ctx), "orders:42"))
	h := must[redlockinfo.Inspection](t)(l.Inspect(ctx, "orders:42"))
	if h.On < 3 || h.Left <= 0 || h.Left > redlock.DefaultTTL {
		t.Errorf("inspected %+v of a hold that is locked twice", h)
	}
	if err := errors.Join(inner.Unlock(ctx), lock.Unlock(ctx)); err != nil {
		t.Fatal(err)
	}
	if err := lock.Unlock(ctx); !errors.Is(err, redlock.ErrReleased) {
		t.Errorf("second Unlock: %v, want ErrReleased", err)
	}
	if h := must[redlockinfo.Inspection](t)(l.Inspect(ctx, "orders:42")); h.ID != "" {
		t.Errorf("inspected %+v of a free name", h)
	}
}

const (
	// short is the timeout of the context of a call whose masters hang, slack the time that the call may take beyond that.
	// The pool's own timeout is far longer than both, so only the context ends the call.
	short      = 100 * time.Millisecond
	slack      = 2 * time.Second
	farTimeout = 30 * time.Second
)

// H31: an Unlock without a deadline waits for the masters no longer than the lock was valid. Then the release is not
// confirmed, for lack of a quorum.
func TestUnlockWaitsNoLongerThanTheLockIsValid(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 3)
	l := locker(t, f.dial(pool.WithTimeout(farTimeout), pool.WithHeartbeat(farTimeout)))
	f.admit(l)
	lock := held(t)(l.Lock(bounded(t), "n", redlock.WithTTL(500*time.Millisecond), redlock.WithExtension(false)))
	f.pause(0, 1)
	within(t, slack, "Unlock", func() {
		if err := lock.Unlock(context.Background()); !errors.Is(err, redlock.ErrNoQuorum) {
			t.Errorf("%v, want ErrNoQuorum", err)
		}
	})
	f.resume(0, 1)
	f.noLocks(hang)
}

// A user who lacks one right ends the acquire script between two writes. Its writes are rolled back, since a key
// without a TTL would never use itself.
func TestAnAcquireThatStopsHalfWayIsRolledBack(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 3)
	f.admitted()
	rules := []any{"SETUSER", "lock", "on", ">pw"}
	for rule := range strings.FieldsSeq(scripts.Prefix(redlock.DefaultPrefix).Rule()) {
		if rule != "+pexpire" {
			rules = append(rules, rule)
		}
	}
	for i := range f.servers {
		f.do(i, "ACL", rules...)
	}
	l := locker(t, f.dial(pool.WithCredentials("lock", "pw")))
	l.Ready(bounded(t))
	if _, err := l.TryLock(bounded(t), "n"); !errors.Is(err, redlock.ErrNoQuorum) {
		t.Fatalf("without the right to PEXPIRE: %v", err)
	}
	f.noLocks(hang)
}

// When many lingering locks end at the same time, the extension of another lock is not delayed.
func TestManyLingeringLocksEnd(t *testing.T) {
	if !long.Enabled() {
		t.Skip("it takes ten seconds, and needs the machine to itself")
	}
	masters := memory.New(3)
	t.Cleanup(masters.Close)
	p, err := masters.Pool()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	l := locker(t, p)
	lock := func(name string, opts ...redlock.LockOption) *redlock.Lock {
		k, err := l.Lock(t.Context(), name, opts...)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	lock("subscribes", redlock.WithLinger(time.Hour))
	locks := make([]*redlock.Lock, 20_000)
	var all sync.WaitGroup
	for part := range 100 {
		all.Go(func() {
			for i := part; i < len(locks); i += 100 {
				locks[i] = lock(strconv.Itoa(i), redlock.WithLinger(2*time.Second), redlock.WithTTL(30*time.Second))
			}
		})
	}
	all.Wait()
	k := lock("extended", redlock.WithTTL(time.Second))
	for _, one := range locks {
		if err := one.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	least := time.Second
	for range 800 {
		least = min(least, k.Remaining())
		time.Sleep(5 * time.Millisecond)
	}
	if least < 500*time.Millisecond || k.Err() != nil {
		t.Errorf("a lock of 1 s that is extended had %v left, and ended with %v", least, k.Err())
	}
}

// H55, H73: after many names have been locked, the masters have no keys but their admission records, once the fences
// have expired.
func TestNothingIsLeftOfManyNames(t *testing.T) {
	if !long.Enabled() {
		t.Skip("needs -long: it waits for a minute, until fences expire")
	}
	t.Parallel()
	names := 10_000
	if longRun() {
		names = 200_000
	}
	f := newDeployment(t, 5)
	l := f.admitted()
	const goroutines = 64
	var working sync.WaitGroup
	for g := range goroutines {
		working.Go(func() {
			for n := g; n < names; n += goroutines {
				lock, err := l.Lock(bounded(t), fmt.Sprint("name", n))
				if err == nil {
					err = lock.Unlock(bounded(t))
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	working.Wait()
	ended := time.Now()
	kept := must[int64](t)(redis.Int64(f.do(0, "DBSIZE"), nil))
	for i := range f.servers {
		eventually(t, 80*time.Second+hang, func() string {
			f.do(i, "SCAN", 0, "COUNT", 1_000_000) // a scan makes the server delete expired keys
			n, err := redis.Int64(f.do(i, "DBSIZE"), nil)
			return problem(err, n != 1, "master %d has %d keys", i, n)
		})
		if keys := must[[]string](t)(redis.Strings(f.do(i, "KEYS", "*"), nil)); !slices.Equal(keys, []string{admissionKey}) {
			t.Errorf("master %d still has keys %q", i, keys)
		}
	}
	t.Logf("%d names: %d keys on a master at once, one %v after the last release", names, kept,
		time.Since(ended).Round(time.Second))
}

// problem describes a problem; "" if there is none.
func problem(err error, wrong bool, format string, args ...any) string {
	if err == nil && !wrong {
		return ""
	}
	return fmt.Sprintf(format, args...) + fmt.Sprint(" ", errors.Join(err))
}
