package integration

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/redigo"
	"github.com/gomodule/redigo/redis"

	clients "github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/admin"
)

// admitted returns a Locker over masters that it has admitted. There must be no locks on the masters.
func admitted(t *testing.T, list []Master, opts ...redlock.Option) *redlock.Locker {
	t.Helper()
	l := open(t, list, opts...)
	must.Do(t, admin.Of(l).Admit(bounded(t)))
	return l
}

// take locks a name. It ends the test if that fails.
func take(t *testing.T, l *redlock.Locker, name string) *redlock.Lock {
	t.Helper()
	lock, err := l.TryLock(bounded(t), name)
	if err != nil {
		t.Fatalf("TryLock of %.60q failed: %v", name, err)
	}
	return lock
}

func give(t *testing.T, lock *redlock.Lock) {
	t.Helper()
	if err := lock.Unlock(bounded(t)); err != nil {
		t.Errorf("Unlock of %.60q failed: %v", lock.Name(), err)
	}
}

// redsyncOver returns a redsync that uses these masters.
func redsyncOver(t *testing.T, list []Master) *redsync.Redsync {
	t.Helper()
	pools := make([]redsyncredis.Pool, len(list))
	for i, m := range list {
		p := &redis.Pool{DialContext: func(ctx context.Context) (redis.Conn, error) {
			return redis.DialURLContext(ctx, m.URL())
		}}
		t.Cleanup(func() { _ = p.Close() })
		pools[i] = redigo.NewPool(p)
	}
	return redsync.New(pools...)
}

// A name that redsync or a Redisson client holds can be locked by this library, and vice versa. The libraries are
// independent, because none changes the keys of another.
func TestOtherLibrariesAreIndependent(t *testing.T) {
	five := masters(t, 5)
	l := admitted(t, five)
	old := redsyncOver(t, five)
	theirs := old.NewMutex("orders:42", redsync.WithExpiry(hang), redsync.WithTries(1))
	must.Do(t, theirs.LockContext(bounded(t)))
	// A Redisson client stores a hash of its holders in the key with the name, and publishes releases on a channel.
	const redisson, holder = "orders:43", "8743c9c0-0795-4907-87fd-6c719a6b4586:1"
	for _, m := range five {
		command(t, m, "HSET", redisson, holder, 1)
		command(t, m, "PEXPIRE", redisson, hang.Milliseconds())
	}

	for _, name := range []string{"orders:42", redisson, "redisson_lock__channel:{orders:43}"} {
		lock := take(t, l, name)
		if on, n := clients.HeldOn(lock); on < 3 || n != 5 {
			t.Errorf("%s is held on %d of %d masters, want 3 to 5 of 5", name, on, n)
		}
		for _, m := range five {
			command(t, m, "PUBLISH", "redisson_lock__channel:{orders:43}", "0")
		}
		if err := lock.Extend(bounded(t)); err != nil {
			t.Error(err)
		}
		give(t, lock)
	}

	if ok, err := theirs.ExtendContext(bounded(t)); !ok || err != nil {
		t.Errorf("redsync lost its lock: %v", err)
	}
	if err := old.NewMutex("orders:42", redsync.WithTries(1)).LockContext(bounded(t)); err == nil {
		t.Error("redsync acquired its lock twice")
	}
	ours := take(t, l, "orders:42")
	if ok, err := theirs.UnlockContext(bounded(t)); !ok || err != nil {
		t.Errorf("redsync could not unlock: %v", err)
	}
	if ours.Err() != nil || ours.Extend(bounded(t)) != nil {
		t.Errorf("redsync's unlock ended our lock: %v", ours.Err())
	}
	give(t, ours)
	for _, m := range five {
		if depth, err := redis.Int(command(t, m, "HGET", redisson, holder), nil); err != nil || depth != 1 {
			t.Errorf("%s: Redisson's holder has depth %d, want 1; error %v", m.Name(), depth, err)
		}
	}
}

// A numbered is a master whose URL selects the database n.
type numbered struct {
	Master
	n int
}

func (m numbered) URL() string { return fmt.Sprint(m.Master.URL(), "/", m.n) }

// Databases are independent: each has its own admission record.
func TestDatabasesOtherThanZero(t *testing.T) {
	five := masters(t, 5)
	var fifth []Master
	for _, m := range five {
		fifth = append(fifth, numbered{m, 5})
	}
	zero, five5 := admitted(t, five), admitted(t, fifth)
	a, b := take(t, zero, "job"), take(t, five5, "job")
	if _, err := open(t, fifth).TryLock(bounded(t), "job"); !errors.Is(err, redlock.ErrHeld) {
		t.Errorf("TryLock in database 5 returned %v, want ErrHeld", err)
	}
	ctx := bounded(t)
	waits, waited := open(t, fifth), make(chan error, 1)
	go func() {
		lock, err := waits.Lock(ctx, "job")
		if err == nil {
			err = lock.Unlock(ctx)
		}
		waited <- err
	}()
	give(t, a) // the wake-up may reach the waiter in database 5, and must not affect that waiter
	if b.Err() != nil || b.Extend(ctx) != nil {
		t.Errorf("the lock in database 5 ended when that in database 0 was released: %v", b.Err())
	}
	give(t, b)
	if err := <-waited; err != nil {
		t.Errorf("the waiter in database 5 did not acquire the lock: %v", err)
	}
}
