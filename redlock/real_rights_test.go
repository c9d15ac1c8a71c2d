package redlock_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

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
