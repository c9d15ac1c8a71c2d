package redlock

import (
	"context"
	"errors"
	"testing"

	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/round"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// nearLocker returns a Locker over three masters in memory, in real time.
func nearLocker(t testing.TB, opts ...Option) *Locker {
	t.Helper()
	masters := memory.New(3)
	p := must.Get(masters.Pool())(t)
	l := must.Get(New(p, opts...))(t)
	t.Cleanup(func() {
		if err := errors.Join(l.Close(), p.Close()); err != nil {
			t.Error(err)
		}
		masters.Close()
	})
	return l
}

// BenchmarkTrace measures the cost of a trace for a lock and its release over five masters in memory: without a trace,
// and with an empty function.
func BenchmarkTrace(b *testing.B) {
	empty := &redlockinfo.Trace{Event: func(redlockinfo.Event) {}}
	for name, trace := range map[string]*redlockinfo.Trace{"off": nil, "empty": empty} {
		b.Run(name, func(b *testing.B) {
			l := nearLocker(b, WithTrace(trace))
			b.ReportAllocs()
			for b.Loop() {
				k := must.Get(l.Lock(b.Context(), "n"))(b)
				must.Do(b, k.Unlock(b.Context()))
			}
		})
	}
}

// Without a trace, a call allocates nothing for its events.
func TestMissingTraceAllocatesNothing(t *testing.T) {
	l := nearLocker(t)
	c := client.SetOf(l).Clients[0]
	r := l.request("n", nil, true)
	r.take = func(*client.Client, context.Context, client.Request) (*client.Lock, error) { return nil, errNoLock }
	n := testing.AllocsPerRun(100, func() {
		_, _ = r.acquire(t.Context())
		_ = traced(t.Context(), c, "unlock", "n", func(*tracedCall) error { return nil })
	})
	if n != 0 {
		t.Errorf("%v allocations for the events of a pair", n)
	}
	closed := nearLocker(t)
	must.Do(t, closed.Close())
	if n := testing.AllocsPerRun(100, func() { _, _ = closed.Lock(t.Context(), "n") }); n != 0 {
		t.Errorf("%v allocations for a call that does nothing", n)
	}
}

// Outcome returns a distinct word for each error of the package, even if the error is wrapped in a LockError that also
// contains errors of masters.
func TestOutcomeNamesEachError(t *testing.T) {
	seen := map[string]error{}
	for _, o := range outcomes {
		word := Outcome(public(&client.Error{Failure: round.Failure{Decision: o.err, Masters: []error{context.Canceled}}}))
		if word != o.word || seen[word] != nil {
			t.Errorf("the word for %v is %q, want %q; so far this was the word for %v", o.err, word, o.word, seen[word])
		}
		seen[word] = o.err
	}
	for want, err := range map[string]error{
		"ok": nil, "other": errors.New("of the caller"), "invalid": client.Invalid("TTL"),
		"held":      public(&client.Error{Failure: round.Failure{Decision: ErrHeld, Cause: context.Canceled}}),
		"timeout":   public(&client.Error{Failure: round.Failure{Cause: context.DeadlineExceeded}}),
		"no_quorum": public(&client.Error{Failure: round.Failure{Decision: ErrNoQuorum, Masters: []error{ErrTTLTooLong}}}),
	} {
		if got := Outcome(err); got != want {
			t.Errorf("the word for %v is %q, want %q", err, got, want)
		}
	}
}
