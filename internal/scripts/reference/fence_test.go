package reference_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/frame"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/scripts/reference"
	"github.com/redlock-go/redlock/internal/skew"
)

func term(d time.Duration, ballot int64) scripts.Term {
	return scripts.Term{TTL: d, Until: ballot + d.Microseconds()}
}

// H84: if the master's clock is not set back, every granted ballot is larger than all ballots that were granted or
// released before. This holds regardless of the TTLs, even if fences have expired: the ballot of an acquire or a
// release differs by at most 15 s from the master's time, or from a fence that is ahead, and fences are kept for 60 s.
func TestAcceptedBallotsGrow(t *testing.T) {
	const us = int64(time.Second / time.Microsecond)
	window := skew.Window.Microseconds()
	k := scripts.Prefix("redlock").Keys("a")
	enc := scripts.NewEncoder("redlock", 0)
	granted, expired := 0, 0
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var s reference.State
		run := func(now int64, call *frame.Call) any {
			keys, args := call.Arguments("")
			return s.Eval(now, reference.Env{}, call.Script, keys, args)
		}
		now, top := now, int64(0)
		for step := range 400 {
			now += []int64{1, rnd.Int64N(us), rnd.Int64N(20 * us), rnd.Int64N(100 * us), 60*us + rnd.Int64N(40*us)}[rnd.IntN(5)]
			if s.Hash(now, "redlock:{a}") == nil && top > 0 {
				expired++
			}
			ballot := now + []int64{-window, window, rnd.Int64N(4*window) - 2*window, top - now + 1,
				top - now + window}[rnd.IntN(5)]
			ballot = min(max(ballot, 1), scripts.MaxBallot-64)
			last := ballot + []int64{0, 0, 31}[rnd.IntN(3)]
			id := fmt.Sprint("me:", step, ":")
			if rnd.IntN(5) == 0 {
				run(now, enc.Release(&k, scripts.Ending{Leases: []string{id}, Ballot: last}))
				if v := run(now, enc.Acquire(&k, id, term(time.Second, ballot), ballot, last, 1, nil)); v == int64(1) {
					t.Fatalf("seed %d, step %d: an acquire was granted after its release", seed, step)
				}
				if s.Hash(now, "redlock:{a}")[scripts.FieldFence] == fmt.Sprint(last) {
					top = max(top, last)
				}
				continue
			}
			ttl := []time.Duration{time.Millisecond, time.Second, time.Hour}[rnd.IntN(3)]
			if v := run(now, enc.Acquire(&k, id, term(ttl, ballot), ballot, last, 1, nil)); v != int64(1) {
				continue
			}
			if granted++; ballot <= top {
				t.Fatalf("seed %d, step %d: ballot %d was granted after %d", seed, step, ballot, top)
			}
			top = last
			if rnd.IntN(4) > 0 {
				run(now, enc.Release(&k, scripts.Ending{Leases: []string{id}}))
			}
		}
	}
	if granted < 5000 || expired < 5000 {
		t.Errorf("%d grants and %d steps without a fence are too few, want 5000 of each", granted, expired)
	}
}

// H84: a master accepts a ballot that is as far ahead as the window allows, and then loses its fences. After a
// quarantine of two windows the master refuses that ballot, for a plain lock and for shared locks.
func TestQuarantineOfTwoWindows(t *testing.T) {
	window := skew.Window.Microseconds()
	enc := scripts.NewEncoder("redlock", 0)
	for _, role := range []scripts.Role{scripts.Plain, scripts.Reader, scripts.Writer} {
		k := scripts.Prefix("redlock").KeysOf("a", role)
		ballot := now + window
		acquire := func(number uint64, at, ballot int64) any {
			call := enc.Acquire(
				&k,
				scripts.ShareID("me", number, role, at, ""),
				term(time.Second, ballot),
				ballot,
				ballot,
				1,
				nil,
			)
			keys, args := call.Arguments("")
			var empty reference.State
			return empty.Eval(at, reference.Env{}, call.Script, keys, args)
		}
		if got := acquire(1, now, ballot); got != int64(quorum.Granted) {
			t.Errorf("role %v: the reply to a ballot at the end of the window is %v, want granted", role, got)
		}
		if got, ok := acquire(2, now+2*window, ballot).([]any); !ok || got[0] != int64(quorum.Stale) {
			t.Errorf("role %v: two windows later the reply to the same ballot is %v, want stale", role, got)
		}
		if got := acquire(3, now+2*window, ballot+1); got != int64(quorum.Granted) {
			t.Errorf("role %v: the reply to a larger ballot is %v, want granted", role, got)
		}
	}
}
