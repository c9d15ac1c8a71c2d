//go:build linux

package storetest

import (
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/pool"
)

func needsLong(t *testing.T) {
	t.Helper()
	t.Parallel()
	if testing.Short() {
		t.Skip("needs a run without -short: a promoted master waits for 30 s")
	}
}

func TestALockBehindSentinel(t *testing.T) {
	t.Parallel()
	s := newService(t, loopback, loopback, stops...)
	a := run(t, "a", loopback, true, s.url(""))
	holdsAfter(t, time.Now(), a)
}

// Without the settings the master has no vote, and both the pool and check say why and what to do; with the setting
// that is missing it votes. H131, H133.
func TestAMasterThatGoesOnWithoutItsReplicasIsRefused(t *testing.T) {
	t.Parallel()
	s := newService(t, loopback, loopback, "min-replicas-to-write 1", "min-replicas-max-lag 3")
	p, err := pool.Dial([]string{s.url("")}, pool.WithRedial(50*time.Millisecond, 100*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	events := make(chan pool.Event, 1000)
	t.Cleanup(p.Watch(func(e pool.Event) { events <- e }))
	until := func(what string, is func(pool.Event) bool) {
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
	finds := func(about string, severity pool.Severity, what string) {
		t.Helper()
		list, err := p.Check(t.Context(), pool.CheckOptions{})
		if err != nil || !slices.ContainsFunc(list, func(f pool.Finding) bool {
			return f.About == about && f.Severity == severity && strings.Contains(f.What, what)
		}) {
			t.Errorf("check finds no %v about %s with %q: %v, %v", severity, about, what, list, err)
		}
	}
	refused := func(e pool.Event) bool {
		return errors.Is(e.Err, pool.ErrRefused) && strings.Contains(e.Err.Error(), "CONFIG SET min-replicas-to-write 2")
	}
	until("it is not refused", refused)
	finds("failover", pool.Failure, "min-replicas-to-write is 1")
	s.servers[0].must("CONFIG", "SET", "min-replicas-to-write", "2")
	until("it is not up", func(e pool.Event) bool { return e.Err == nil && e.Info.Late == 12*time.Second })
	finds("failover", pool.Notice, "after 5s of silence")
	s.servers[0].must("CONFIG", "SET", "min-replicas-to-write", "1")
	until("a change is not noticed", refused)
	s.sentinels[2].kill()
	finds("sentinels", pool.Warning, s.sentinels[2].addr())
	s.servers[0].must("ACL", "SETUSER", "default", "-config")
	until("what cannot be read is not refused", func(e pool.Event) bool {
		return errors.Is(e.Err, pool.ErrRefused) && strings.Contains(e.Err.Error(), "+config|get")
	})
	s.sentinels[1].kill()
	until("a minority is believed", func(e pool.Event) bool {
		return e.Err != nil && strings.Contains(e.Err.Error(), "1 of 3 sentinels say")
	})
}

// The old master is cut off together with one program. With the settings one of both holds the lock, and the other
// one again once the link is back; without them both hold it. H127.
func TestAPartition(t *testing.T) {
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
			a, b := run(t, "a", left, true, s.url(query)), run(t, "b", right, false, s.url(query))
			holdsAfter(t, time.Now(), a)
			holdsAfter(t, time.Now(), b)
			cut(true)
			at := time.Now()
			s.promoted(t)
			if safe {
				time.Sleep(10 * time.Second) // whoever would hold it twice does it by now, or in the quarantine below
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
				t.Error("nothing was held twice: the partition shows nothing")
			default:
				t.Logf("held twice %d times", len(v.overlaps))
			}
		})
	}
}

// One service alone, whose master is killed or frozen for long enough, and comes back. H130.
func TestAFailover(t *testing.T) {
	needsLong(t)
	for name, signals := range map[string][2]syscall.Signal{
		"killed": {syscall.SIGKILL}, "frozen": {syscall.SIGSTOP, syscall.SIGCONT},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService(t, loopback, loopback, stops...)
			a, b := run(t, "a", loopback, true, s.url("")), run(t, "b", loopback, false, s.url(""))
			holdsAfter(t, time.Now(), a)
			holdsAfter(t, time.Now(), b)
			old := s.servers[0]
			old.signal(signals[0])
			s.promoted(t)
			if signals[1] == 0 {
				<-old.ended
				old.launch()
			} else {
				old.signal(signals[1])
			}
			holdsAfter(t, time.Now().Add(2*time.Second), a, b)
			a.stop()
			b.stop()
			v := judge(a, b)
			v.mustExclude(t)
		})
	}
}

// Two of five masters are behind Sentinel. The failover of one of them, and then of the other, costs no lock. H130.
func TestTwoOfFiveBehindSentinel(t *testing.T) {
	needsLong(t)
	var urls []string
	for _, s := range redistest.Test(t, 3, redisproc.Config{}) {
		urls = append(urls, s.URL())
	}
	first, second := newService(t, loopback, loopback, stops...), newService(t, loopback, loopback, stops...)
	urls = append(urls, first.url(""), second.url(""))
	a, b := run(t, "a", loopback, true, urls...), run(t, "b", loopback, false, urls...)
	holdsAfter(t, time.Now(), a)
	holdsAfter(t, time.Now(), b)
	for _, s := range []*service{first, second} {
		s.servers[0].kill()
		s.promoted(t)
		s.servers[0].launch()
	}
	holdsAfter(t, time.Now().Add(time.Second), a, b)
	a.stop()
	b.stop()
	v := judge(a, b)
	v.mustExclude(t)
	if v.longest() > 20*time.Second { // a promoted master votes after 30 s at the earliest
		t.Errorf("nobody held the lock for %v: a failover has cost more than a vote", v.longest())
	}
}

// While no sentinel answers, locks go on; and when all are back, too. H131.
func TestAllSentinelsDown(t *testing.T) {
	needsLong(t)
	s := newService(t, loopback, loopback, stops...)
	a := run(t, "a", loopback, true, s.url(""))
	for _, sentinel := range s.sentinels {
		sentinel.kill()
	}
	holdsAfter(t, time.Now().Add(15*time.Second), a)
	for _, sentinel := range s.sentinels {
		sentinel.launch()
	}
	holdsAfter(t, time.Now().Add(5*time.Second), a)
	a.stop()
	v := judge(a)
	v.mustExclude(t)
	if v.longest() > 5*time.Second {
		t.Errorf("nobody held the lock for %v", v.longest())
	}
}
