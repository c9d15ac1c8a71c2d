package redlock_test

import (
	"errors"
	"testing"

	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// A user who lacks one right ends the acquire script between two writes. What it has written is rolled back, since a key
// without a TTL would never go by itself.
func TestAnAcquireThatStopsHalfWayIsRolledBack(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3)
	f.admitted()
	for i := range f.servers {
		f.do(i, "ACL", "SETUSER", "lock", "on", ">pw", "~redlock:*", "resetchannels", "&redlock:*", "-@all", "+info", "+evalsha", "+eval",
			"+script|load", "+get", "+set", "+setrange", "+exists", "+hget", "+hset", "+hdel", "+hscan", "+zadd", "+zrem", "+zrange", "+zrank", "+pttl", "+time", "+publish")
	}
	l := locker(t, f.dial(pool.WithCredentials("lock", "pw")))
	l.Ready(bounded(t))
	if _, err := l.TryLock(bounded(t), "n"); !errors.Is(err, redlock.ErrNoQuorum) {
		t.Fatalf("without the right to PEXPIRE: %v", err)
	}
	f.noLocks(hang)
}
