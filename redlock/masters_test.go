package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// An office is one bubble of virtual time with masters, and the Lockers of operators and clients.
type office struct {
	*testing.T
	masters *memory.Masters
}

// operate runs body with n masters.
func operate(t *testing.T, n int, body func(o *office), opts ...memory.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o := &office{T: t, masters: memory.New(n, opts...)}
		t.Cleanup(o.masters.Close)
		body(o)
	})
}

// over returns a Locker over the masters from, from+1, ... to-1, with its own pool.
func (o *office) over(from, to int, opts ...redlock.Option) *redlock.Locker {
	o.Helper()
	p, err := pool.Open(o.masters.URLs()[from:to], pool.WithDialer(o.masters.Dial), transport.WithClock(clock.Runtime()))
	if err != nil {
		o.Fatal(err)
	}
	o.Cleanup(func() { _ = p.Close() })
	l, err := redlock.New(p, append([]redlock.Option{redlock.WithClock(clock.Runtime())}, opts...)...)
	if err != nil {
		o.Fatal(err)
	}
	o.Cleanup(func() {
		if err := l.Close(context.WithoutCancel(o.Context())); err != nil {
			o.Errorf("close: %v", err)
		}
	})
	l.Ready(o.Context())
	return l
}

// within returns a context with the given timeout.
func (o *office) within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(o.Context(), d)
	o.Cleanup(cancel)
	return ctx
}

// says fails the test unless err matches like and contains all the words.
func (o *office) says(err, like error, words ...string) {
	o.Helper()
	if !errors.Is(err, like) {
		o.Errorf("got %v, want %v in it", err, like)
	}
	for _, w := range words {
		if !strings.Contains(fmt.Sprint(err), w) {
			o.Errorf("no %q in %v", w, err)
		}
	}
}

// Admit continues until all masters vote, or its context ends; then its error names those that do not.
func TestAdmitNowFollowsTheStartOfMasters(t *testing.T) {
	operate(t, 3, func(o *office) {
		o.masters.Master(2).Stop()
		l := o.over(0, 3)
		err := l.Admin().Admit(o.within(5 * time.Second))
		o.says(err, context.DeadlineExceeded, o.masters.Master(2).Addr(), "2 of 3")
		if errors.Is(err, redlock.ErrNoQuorum) {
			o.Errorf("a quorum votes: %v", err)
		}
		if _, err := l.TryLock(o.Context(), "a"); err != nil {
			o.Error(err)
		}
		go func() {
			<-time.After(5 * time.Second)
			o.masters.Master(2).Restart(false)
		}()
		if err := l.Admin().Admit(o.within(time.Minute)); err != nil {
			o.Error(err)
		}
	}, memory.Fresh())
}

// H80: the max TTL is raised in two steps. While one master cannot be written no master accepts a longer TTL, and the
// others have the longer quarantine. H120: while one is known to be down nothing is written. H70: until then a longer
// TTL is refused at once, naming the command.
func TestTheGuardTimeIsRaisedOnAllMastersOrNone(t *testing.T) {
	operate(t, 5, func(o *office) {
		l := o.over(0, 5)
		o.masters.Master(4).Stop()
		<-time.After(3 * time.Second)
		before := first(o.masters.Master(0))
		err := l.Admin().RaiseMaxTTL(o.within(time.Minute), 5*time.Minute)
		o.says(err, redlock.ErrNoQuorum, o.masters.Master(4).Addr(), "4 of 5", "quorum is 5")
		if first(o.masters.Master(0)) != before {
			o.Errorf("a refused call has written %s", first(o.masters.Master(0)))
		}
		o.masters.Master(4).Restart(true)
		<-time.After(40 * time.Second)
		o.masters.Master(4).Refuse("OOM command not allowed when used memory > 'maxmemory'.")
		err = l.Admin().RaiseMaxTTL(o.within(time.Minute), 5*time.Minute)
		o.says(err, redlock.ErrNoQuorum, o.masters.Master(4).Addr(), "4 of 5", "quorum is 5", "OOM")
		o.masters.Master(4).Refuse("")
		o.masters.Master(4).Stop()
		<-time.After(3 * time.Second)
		for i := range 5 {
			text, _ := o.masters.Master(i).Get("redlock:admission")
			if !strings.Contains(text, "longest=30000 ") || strings.Contains(text, "quarantine=300000") != (i < 4) {
				o.Errorf("master %d after the first call: %s", i, text)
			}
		}
		long := o.over(0, 5, redlock.WithMaxTTL(5*time.Minute))
		start := time.Now()
		_, err = long.Lock(o.within(time.Minute), "a", redlock.WithTTL(4*time.Minute))
		if o.says(err, redlock.ErrTTLTooLong, "redlock guard --set"); time.Since(start) > 0 {
			o.Errorf("it took %v", time.Since(start))
		}
		o.masters.Master(4).Restart(false)
		<-time.After(5 * time.Second)
		if err := l.Admin().RaiseMaxTTL(o.within(time.Minute), 5*time.Minute); err != nil {
			o.Fatal(err)
		}
		for _, m := range l.Masters() {
			if m.MaxTTL != 5*time.Minute {
				o.Errorf("%+v", m)
			}
		}
		<-time.After(3 * time.Second)
		if _, err := long.Lock(o.within(time.Minute), "a", redlock.WithTTL(4*time.Minute)); err != nil {
			o.Error(err)
		}
		o.says(l.Admin().RaiseMaxTTL(o.Context(), time.Minute), redlock.ErrInvalid, "5m0s")
		o.says(l.Admin().RaiseMaxTTL(o.Context(), 2*time.Hour), redlock.ErrInvalid, "repl-backlog-ttl is 1h0m0s")
	})
}

// H72: a mistyped prefix is found, and leaves nothing behind. A healthy deployment has no finding about votes.
func TestCheckFailsWhereNoQuorumVotes(t *testing.T) {
	operate(t, 3, func(o *office) {
		wrong := o.over(0, 3, redlock.WithObserver(), redlock.WithPrefix("redlcok"))
		<-time.After(time.Minute)
		findings, err := wrong.Admin().Check(o.Context())
		if err != nil || len(findings) == 0 || findings[0].Severity != pool.Failure || findings[0].About != "quorum" {
			o.Fatalf("%v, %v", findings, err)
		}
		for i := range 3 {
			for _, key := range o.masters.Master(i).Keys() {
				if strings.HasPrefix(key, "redlcok") && !strings.Contains(key, "check of writes") { // a key of one second
					o.Errorf("master %d has %s", i, key)
				}
			}
		}
		findings, err = o.over(0, 3, redlock.WithObserver()).Admin().Check(o.Context())
		for _, f := range findings { // others are about commands that these masters do not have
			if f.About == "quorum" || f.About == "quarantine" || f.About == "max TTL" {
				o.Errorf("%v", f)
			}
		}
		if err != nil {
			o.Error(err)
		}
	})
}

func first(m *memory.Master) string {
	text, _ := m.Get("redlock:admission")
	return text
}
