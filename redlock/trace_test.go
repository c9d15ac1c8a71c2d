package redlock

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/dispatch"
	"github.com/redlock-go/redlock/internal/lease"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/round"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// emptyTrace has a callback that does nothing.
func emptyTrace() *redlockinfo.Trace { return &redlockinfo.Trace{Event: func(redlockinfo.Event) {}} }

// postPair posts exactly the events of a lock and its release over five masters.
func (k *Lock) postPair(ctx context.Context, r *round.Round) {
	if k.l.cfg.trace.Event == nil {
		k.tellLock(r)
		k.tellUnlock(r)
		return
	}
	_, _ = k.l.events.acquiring(ctx, "lock", "n", func(*lease.AcquireStats) (*Lock, error) {
		k.tellLock(r)
		return k, nil
	})
	_ = k.l.events.call(ctx, "unlock", "n", func(*tracedCall) error {
		k.tellUnlock(r)
		return nil
	})
}

func (k *Lock) tellLock(r *round.Round) {
	k.tellVotes(r)
	k.l.events.Attempted(k.hold.Lease(), r, 1, nil)
	k.l.events.Acquired(&k.hold)
}

func (k *Lock) tellUnlock(r *round.Round) {
	k.tellVotes(r)
	k.l.events.Released(&k.hold, nil)
}

func (k *Lock) tellVotes(r *round.Round) {
	f := k.l.sender.OnVote
	if f == nil {
		return
	}
	v := &round.Vote{Vote: scripts.Vote{Outcome: quorum.Granted}, After: time.Millisecond}
	for range 5 {
		f(r, 0, v, false)
	}
}

// BenchmarkTrace measures the cost of a trace for a lock and its release over five masters: without a trace, and with
// empty functions.
func BenchmarkTrace(b *testing.B) {
	for name, t := range map[string]*redlockinfo.Trace{"off": nil, "empty": emptyTrace()} {
		b.Run(name, func(b *testing.B) {
			l := nearLocker(b, WithTrace(t))
			k := mustLock(b, l, "n")
			r := l.shards[0].sender.New(l.shards[0].voters.View(), "lock", nil)
			b.ReportAllocs()
			for b.Loop() {
				k.postPair(b.Context(), r)
			}
		})
	}
}

// Without a trace, the events of a call, and the events within a call, allocate no memory.
func TestMissingTraceAllocatesNothing(t *testing.T) {
	l := nearLocker(t)
	k := mustLock(t, l, "n")
	r := l.shards[0].sender.New(l.shards[0].voters.View(), "lock", nil)
	if n := testing.AllocsPerRun(100, func() { k.postPair(t.Context(), r) }); n != 0 {
		t.Errorf("%v allocations for the events of a pair", n)
	}
	closed := nearLocker(t)
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() { _, _ = closed.Lock(t.Context(), "n") }); n != 0 {
		t.Errorf("%v allocations for a call that does nothing", n)
	}
}

// Outcome returns a distinct word for each error of the package, even if the error is wrapped in a LockError that also
// contains errors of masters.
func TestOutcomeNamesEachError(t *testing.T) {
	seen := map[string]error{}
	for _, o := range outcomes {
		word := Outcome(&LockError{failure: round.Failure{Decision: o.err, Masters: []error{context.Canceled}}})
		if word != o.word || seen[word] != nil {
			t.Errorf("the word for %v is %q, want %q; so far this was the word for %v", o.err, word, o.word, seen[word])
		}
		seen[word] = o.err
	}
	for want, err := range map[string]error{
		"ok": nil, "other": errors.New("of the caller"), "invalid": invalid("TTL"),
		"held":      &LockError{failure: round.Failure{Decision: ErrHeld, Cause: context.Canceled}},
		"timeout":   &LockError{failure: round.Failure{Cause: context.DeadlineExceeded}},
		"no_quorum": &LockError{failure: round.Failure{Decision: ErrNoQuorum, Masters: []error{ErrTTLTooLong}}},
	} {
		if got := Outcome(err); got != want {
			t.Errorf("the word for %v is %q, want %q", err, got, want)
		}
	}
}

// H101: in an outage each waiting call makes sure that the outage will be logged, but does not count the waiting
// calls. With fifty thousand calls, all these counts took minutes, during which the local queue was locked.
func TestStarvedCallsDoNotCountOneAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var counted atomic.Int32
		log := new(bytes.Buffer)
		j := &journal{
			Queue:    dispatch.New(slog.NewTextHandler(log, nil), slog.String("label", "web-1")),
			shortage: func() []slog.Attr { counted.Add(1); return []slog.Attr{} },
		}
		defer j.close()
		for range 1000 {
			j.starved()
		}
		if n := counted.Load(); n != 0 {
			t.Errorf("the waiting calls were counted %d times", n)
		}
		time.Sleep(time.Minute) // virtual time
		synctest.Wait()
		if counted.Load() == 0 || !strings.Contains(log.String(), "no lock can be acquired") {
			t.Errorf("after a minute the waiting calls were counted %d times, and the log is %q", counted.Load(), log)
		}
	})
}
