package reference_test

import (
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/frame"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/scripts/reference"
)

// H176: the clock of a master jumps while a reader has the name, and then the master executes a release and an
// extension of other leases. The reader's share is still there: a request without a ballot removes no share.
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

// H176: a share counts until it has expired by the master's clock and by the ballot of the rival, also if the master's
// clock was behind when it granted the share.
func TestSharesExpireByBothClocks(t *testing.T) {
	const second = int64(time.Second / time.Microsecond)
	for _, c := range []struct {
		what                          string
		granted, rivalAt, rivalBallot int64
		want                          quorum.Outcome
	}{
		{"neither clock says so", now, now, now + 1, quorum.Held},
		{"the master's clock has jumped forward", now, now + 10*second, now + 1, quorum.Held},
		{"the ballot is ahead", now, now, now + 10*second, quorum.Held},
		{"the master's clock was behind, and has returned", now - 10*second, now, now + second/2, quorum.Held},
		{"both clocks say so", now, now + 2*second, now + 2*second, quorum.Granted},
	} {
		var s reference.State
		if got := acquireWriter(&s, 1, c.granted, now); got != quorum.Granted {
			t.Errorf("%s: the reply to the holder is %v, want granted", c.what, got)
		}
		if got := acquireWriter(&s, 2, c.rivalAt, c.rivalBallot); got != c.want {
			t.Errorf("%s: the reply to the rival is %v, want %v", c.what, got, c.want)
		}
	}
}

// H176: the clock of a master that is far behind, and grants because the fence is ahead, jumps to another wrong time.
func TestSharesLiveAsLongAsTheFenceThatBallotsFollow(t *testing.T) {
	const minute = int64(time.Minute / time.Microsecond)
	k := scripts.Prefix("redlock").KeysOf("a", scripts.Writer)
	enc := scripts.NewEncoder("redlock", 0)
	var s reference.State
	if got := acquireWriter(&s, 1, now, now); got != quorum.Granted {
		t.Fatalf("with the right clock the reply is %v", got)
	}
	first := scripts.Ending{Leases: []string{scripts.ShareID("me", 1, scripts.Writer, now, "")}}
	keys, args := enc.Release(&k, first).Arguments("")
	s.Eval(now, reference.Env{}, scripts.SharedRelease, keys, args)
	if got := acquireWriter(&s, 2, now-22*minute, now+1000); got != quorum.Granted {
		t.Fatalf("22 min behind the reply is %v", got)
	}
	if got := acquireWriter(&s, 3, now-minute, now+2000); got == quorum.Granted {
		t.Errorf("1 min behind, 1 ms after the holder's grant, with a TTL of 1 s, the rival's reply is %v", got)
	}
}

// acquireWriter sends the acquire of a writer of "a", with a TTL of 1 s, to a master whose clock shows at.
func acquireWriter(s *reference.State, number uint64, at, ballot int64) quorum.Outcome {
	k := scripts.Prefix("redlock").KeysOf("a", scripts.Writer)
	id := scripts.ShareID("me", number, scripts.Writer, ballot, "")
	acquire := scripts.NewEncoder("redlock", 0).Acquire(&k, id, term(time.Second, ballot), ballot, ballot, 1, nil)
	keys, args := acquire.Arguments("")
	switch v := s.Eval(at, reference.Env{}, scripts.SharedAcquire, keys, args).(type) {
	case []any:
		return quorum.Outcome(v[0].(int64))
	case int64:
		return quorum.Outcome(v)
	}
	return 0
}
