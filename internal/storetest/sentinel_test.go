//go:build linux

package storetest

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/diagnose"
	"github.com/redlock-go/redlock/internal/long"
	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/internal/transport/fault"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

func needsLong(t *testing.T) {
	t.Helper()
	t.Parallel()
	if !long.Enabled() {
		t.Skip("needs -long: a promoted master does not vote for 30 s")
	}
}

// H131, H133: a master without the required settings does not vote, and both the pool and Check report the reason and
// the fix. When the missing setting is set, the master votes, and a client acquires locks.
func TestMasterWithoutReplicasIsRefused(t *testing.T) {
	t.Parallel()
	s := newService(t, loopback, loopback, "min-replicas-to-write 1", "min-replicas-max-lag 3")
	p := must.Get(transport.Open([]string{s.url("")}, transport.WithRedial(50*time.Millisecond, 100*time.Millisecond)))(t)
	t.Cleanup(func() { _ = p.Close() })
	events := make(chan transport.Event, 1000)
	t.Cleanup(p.Watch(func(e transport.Event) { events <- e }))
	until := func(what string, is func(transport.Event) bool) {
		t.Helper()
		for timer := time.After(patience); ; {
			select {
			case e := <-events:
				if is(e) {
					return
				}
			case <-timer:
				t.Fatal(what)
			}
		}
	}
	finds := func(about string, severity redlockinfo.Severity, what string) {
		t.Helper()
		list, err := diagnose.Masters(t.Context(), p, diagnose.Options{})
		if err != nil || !slices.ContainsFunc(list, func(f redlockinfo.Finding) bool {
			return f.About == about && f.Severity == severity && strings.Contains(f.What, what)
		}) {
			t.Errorf("Check returned %v, %v, want a finding about %s of severity %v that contains %q", list, err, about,
				severity, what)
		}
	}
	refused := func(e transport.Event) bool {
		return errors.Is(e.Err, fault.ErrRefused) && strings.Contains(e.Err.Error(), "CONFIG SET min-replicas-to-write 2")
	}
	until("the master was not refused", refused)
	finds("failover", redlockinfo.Failure, "min-replicas-to-write is 1")
	s.servers[0].Do("CONFIG", "SET", "min-replicas-to-write", "2")
	until("the master did not come up", func(e transport.Event) bool {
		return e.Err == nil && e.Info.Late == 12*time.Second
	})
	finds("failover", redlockinfo.Notice, "after 5s of silence")
	a := run(t, "a", loopback, true, s.url(""))
	holdsAfter(t, time.Now(), a)
	a.stop()
	s.servers[0].Do("CONFIG", "SET", "min-replicas-to-write", "1")
	until("the changed setting was not noticed", refused)
	s.sentinels[2].Kill()
	finds("sentinels", redlockinfo.Warning, s.sentinels[2].Addr())
	s.servers[0].Do("ACL", "SETUSER", "default", "-config")
	until("unreadable settings were not refused", func(e transport.Event) bool {
		return errors.Is(e.Err, fault.ErrRefused) && strings.Contains(e.Err.Error(), "+config|get")
	})
	s.sentinels[1].Kill()
	until("a minority of the sentinels was believed", func(e transport.Event) bool {
		return e.Err != nil && strings.Contains(e.Err.Error(), "1 of 3 sentinels")
	})
}

// H127: the old master is partitioned away together with one client. With the required settings, only one client holds
// a lock at a time, and after the partition the locks are acquired again. Without the settings, both clients hold a
// lock at the same time.
func TestPartition(t *testing.T) {
	needsLong(t)
	for name, safe := range map[string]bool{"with the settings one holder": true, "without them two": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			left, right, cut := apart(t)
			settings, query := stops, ""
			if !safe {
				settings, query = nil, "?allow=two-holders"
			}
			s := newService(t, left, right, settings...)
			a, b := pair(t, left, right, s.url(query))
			cut(true)
			at := time.Now()
			s.promoted(t)
			if safe {
				time.Sleep(10 * time.Second) // if a lock gets two holders, it happens now or in the quarantine below
			} else {
				holdsAfter(t, at.Add(10*time.Second), b)
				time.Sleep(2 * time.Second)
			}
			cut(false)
			holdsAfter(t, time.Now().Add(10*time.Second), a, b)
			a.stop()
			b.stop()
			v := judge(a, b)
			switch {
			case safe:
				v.mustExclude(t)
			case len(v.overlaps) == 0:
				t.Error("no lock had two holders: the partition had no effect")
			default:
				t.Logf("a lock had two holders %d times, as expected", len(v.overlaps))
			}
		})
	}
}

// H130: the only master, which is behind Sentinel, is killed, or frozen until a replica is promoted, and comes back. No
// lock has two holders, and all locks are acquired again.
func TestFailover(t *testing.T) {
	needsLong(t)
	for name, trouble := range map[string]struct{ begin, end func(*server) }{
		"killed": {(*server).Kill, (*server).Restart}, "frozen": {(*server).Pause, (*server).Resume},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService(t, loopback, loopback, stops...)
			a, b := pair(t, loopback, loopback, s.url(""))
			trouble.begin(s.servers[0])
			s.promoted(t)
			trouble.end(s.servers[0])
			holdsAfter(t, time.Now().Add(2*time.Second), a, b)
			judged(t, a, b)
		})
	}
}

// H130: two of five masters are behind Sentinel. The failovers of these two, one after the other, do not interrupt
// any lock.
func TestTwoOfFiveBehindSentinel(t *testing.T) {
	needsLong(t)
	var urls []string
	for _, s := range redistest.Test(t, 3, redisproc.Config{}) {
		urls = append(urls, s.URL())
	}
	first, second := newService(t, loopback, loopback, stops...), newService(t, loopback, loopback, stops...)
	urls = append(urls, first.url(""), second.url(""))
	a, b := pair(t, loopback, loopback, urls...)
	for _, s := range []*service{first, second} {
		s.servers[0].Kill()
		s.promoted(t)
		s.servers[0].Restart()
	}
	holdsAfter(t, time.Now().Add(time.Second), a, b)
	v := judged(t, a, b)
	if v.longest() > 20*time.Second { // a promoted master votes after 30 s at the earliest
		t.Errorf("a lock was without a holder for %v, want at most 20s: a failover affected more than one vote", v.longest())
	}
}

// H131: clients acquire locks while no sentinel replies, and also when all sentinels are back.
func TestAllSentinelsDown(t *testing.T) {
	needsLong(t)
	s := newService(t, loopback, loopback, stops...)
	a := run(t, "a", loopback, true, s.url(""))
	for _, sentinel := range s.sentinels {
		sentinel.Kill()
	}
	holdsAfter(t, time.Now().Add(15*time.Second), a)
	for _, sentinel := range s.sentinels {
		sentinel.Restart()
	}
	holdsAfter(t, time.Now().Add(5*time.Second), a)
	v := judged(t, a)
	if v.longest() > 5*time.Second {
		t.Errorf("a lock was without a holder for %v, want at most 5s", v.longest())
	}
}
