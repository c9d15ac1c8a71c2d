package reference_test

import (
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/frame"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/scripts/reference"
)

// H176: the clock of a master jumps while a reader has the name, and then the master executes a release and an extension
// of other leases. The reader's share is still there: a request without a ballot removes no share.
func TestOnlyAnAcquireRemovesShares(t *testing.T) {
	k := scripts.Prefix("redlock").KeysOf("a", scripts.Reader)
	enc := scripts.NewEncoder("redlock", 0)
	id := func(number uint64, role scripts.Role) string { return scripts.ShareID("me", number, role, now, "") }
	var s reference.State
	run := func(at int64, call *frame.Call) any {
		keys, args := call.Arguments("")
		return s.Eval(at, reference.Env{}, call.Script, keys, args)
	}
	acquire := func(number uint64, role scripts.Role, at, ballot int64) any {
		var waiter *scripts.Ticket
		if role == scripts.Writer {
			waiter = scripts.NewTicket(role, "other", 2, "", now, 0)
		}
		return run(at, enc.Acquire(&k, id(number, role), term(time.Second, ballot), ballot, ballot, 1, waiter))
	}
	if got := acquire(1, scripts.Reader, now, now); got != int64(quorum.Granted) {
		t.Fatalf("the reply to the reader is %v, want granted", got)
	}
	if v, ok := acquire(2, scripts.Writer, now, now+1).([]any); !ok || v[0] != int64(quorum.Held) {
		t.Fatalf("the reply to the writer, which now waits, is %v, want held", v)
	}
	jumped := now + 10*time.Second.Microseconds()
	run(jumped, enc.Release(&k, scripts.Ending{Leases: []string{id(3, scripts.Reader)}}))
	run(jumped, enc.Extend(&k, id(4, scripts.Reader), term(time.Second, now), 1, ""))
	if v, ok := acquire(5, scripts.Writer, jumped, now+2).([]any); !ok || v[0] != int64(quorum.Held) {
		t.Errorf("after the jump the reply to a writer with a right ballot is %v, want held", v)
	}
}
