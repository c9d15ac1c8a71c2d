package monitor_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/admission"
	"github.com/redlock-go/redlock/internal/ballot"
	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/internal/monitor"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/testbed"
	"github.com/redlock-go/redlock/internal/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errClosed = errors.New("closed")

const prefix = scripts.Prefix("redlock")

// A rig is one bubble of virtual time with masters, and the Monitor of one client.
type rig struct {
	*testing.T
	*monitor.Monitor
	masters *memory.Masters
	pool    *transport.Transport
}

// virtual runs body in a bubble with n masters.
func virtual(t *testing.T, n int, body func(r *rig), change func(*monitor.Settings), opts ...memory.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{T: t, masters: memory.New(n, opts...)}
		t.Cleanup(r.masters.Close)
		made, err := r.masters.Pool()
		if err != nil {
			t.Fatal(err)
		}
		p := transport.Of(made)
		t.Cleanup(func() { _ = p.Close() })
		c := config(p, 0, n)
		settings := monitor.Settings{
			Pool: p, Clock: clock.Runtime(), Clocks: ballot.NewClocks(c.Rule), Prefix: prefix, MaxTTL: 30 * time.Second,
			Closed: errClosed,
			OnView: func(_, _ *admission.View) {},
		}
		if change != nil {
			change(&settings)
		}
		r.Monitor, r.pool = monitor.New(settings, c), p
		done := make(chan struct{})
		go func() {
			defer close(done)
			r.Monitor.Run()
		}()
		t.Cleanup(func() {
			r.Close()
			<-done
		})
		body(r)
	})
}

// config returns the configuration of masters from, from+1, ... to-1.
func config(p *transport.Transport, from, to int) *quorum.Config {
	c := &quorum.Config{Slots: p.N()}
	for i := from; i < to; i++ {
		c.Order = append(c.Order, i)
		c.Rule.Old |= quorum.One(i)
		c.Slowest = max(c.Slowest, p.Timeout(i))
	}
	c.Tracked = c.Rule
	var names []string
	for _, i := range c.Order {
		names = append(names, p.Addr(i))
	}
	c.Masters = scripts.List(names)
	return c
}

func after(d time.Duration) { testbed.After(d) }

// phases fails the test unless each master i is in the phase want[i]. The last phase in want also applies to all
// further masters.
func (r *rig) phases(when string, want ...admission.Phase) {
	r.Helper()
	for i, m := range r.View().Masters {
		if m.Phase != want[min(i, len(want)-1)] {
			r.Errorf("%s: master %d is %v: %v", when, i, m.Phase, m.Err)
		}
	}
}

// scripts returns the number of admission scripts that the masters have executed together.
func (r *rig) scripts() (n int) {
	for i := range r.masters.N() {
		n += r.masters.Master(i).Commands()["admit"]
	}
	return n
}

// When a client has just started, Ready waits for its masters, but not for a minority of them. Later Ready does not
// wait for masters that are known to be down.
func TestReadyWaitsForAQuorumAlone(t *testing.T) {
	virtual(t, 5, func(r *rig) {
		if !r.View().Hopeful() {
			r.Error("Hopeful is false at the beginning")
		}
		view, err := r.Ready(r.Context())
		if err != nil || view.Voting.Len() < 3 {
			r.Errorf("after Ready the masters %b vote, want at least three; the error is %v", view.Voting, err)
		}
		after(time.Second)
		r.phases("all are up", admission.Voting)
		for i := range 3 {
			r.masters.Master(i).Stop()
		}
		after(time.Minute)
		start := time.Now()
		view, err = r.Ready(r.Context())
		if err != nil || view.Voting != quorum.Set(0b11000) || time.Since(start) != 0 {
			r.Errorf("three are down: %b vote, %v, after %v", view.Voting, err, time.Since(start))
		}
		ended, cancel := context.WithCancel(r.Context())
		cancel()
		if _, err := r.Await(ended, func(*admission.View) bool { return false }); !errors.Is(err, context.Canceled) {
			r.Errorf("with an ended context Await returned %v", err)
		}
		r.Close()
		if _, err := r.Await(r.Context(), func(*admission.View) bool { return false }); !errors.Is(err, errClosed) {
			r.Errorf("after Close Await returned %v", err)
		}
	}, nil)
}

// A record that another client has changed is read again when a vote reveals the change, or on ReadRecords.
func TestDoubtsAndReads(t *testing.T) {
	virtual(t, 3, func(r *rig) {
		after(time.Second)
		known := r.View().Masters[0].Text
		before := r.scripts()
		r.Doubt(0, known)
		after(time.Second)
		if got := r.scripts() - before; got != 0 {
			r.Errorf("a record that is known was read again: %d scripts", got)
		}
		r.masters.Master(0).Flush()
		r.Doubt(0, "")
		after(time.Second)
		r.phases("after the doubt", admission.InQuarantine, admission.Voting)
		r.masters.Master(1).Flush()
		if view, err := r.ReadRecords(r.Context()); err != nil || view.Masters[1].Phase == admission.Voting {
			r.Errorf("after ReadRecords master 1 is in the phase %v; the error is %v", view.Masters[1].Phase, err)
		}
	}, nil)
}

// An idle master gets one admission script in each [admission.Watch], besides the heartbeats of the pool, and a
// quarantine causes about one script a second.
func TestIdleDeploymentsGetFewSteps(t *testing.T) {
	virtual(t, 3, func(r *rig) {
		after(time.Second)
		before := r.scripts()
		after(time.Hour)
		if got := r.scripts() - before; got > 3*int(time.Hour/admission.Watch) {
			r.Errorf("%d scripts in an idle hour", got)
		}
		before = r.scripts()
		r.masters.Master(0).Restart(false)
		after(25 * time.Second)
		if got := r.scripts() - before; got > 35 {
			r.Errorf("%d scripts in 25 s of a quarantine", got)
		}
	}, nil)
}

// If all masters restart empty at the same moment, each of them begins its quarantine, regardless of the order in
// which they answer. The reads of records that the first quarantine needs before its end do not delay the other
// quarantines.
func TestSimultaneousRestartsAllBegin(t *testing.T) {
	for range 30 {
		virtual(t, 3, func(r *rig) {
			after(time.Second)
			before := r.scripts()
			for i := range 3 {
				r.masters.Master(i).Restart(false)
			}
			after(25 * time.Second)
			r.phases("in quarantine", admission.InQuarantine)
			if got := r.scripts() - before; got > 120 {
				r.Errorf("%d scripts in 25 s of three quarantines", got)
			}
			after(10 * time.Second)
			r.phases("afterwards", admission.Voting)
		}, nil)
		if t.Failed() {
			return
		}
	}
}

// Two masters are in quarantine and wait for the records of the three others, which restart empty. The three masters
// still get records, and no script is sent without a pause.
func TestMastersWithoutRecordsGetThem(t *testing.T) {
	virtual(t, 5, func(r *rig) {
		after(5 * time.Second)
		r.phases("new", admission.InQuarantine)
		before := r.scripts()
		for i := 2; i < 5; i++ {
			r.masters.Master(i).Restart(false)
		}
		after(5 * time.Second)
		r.phases("three are new once more", admission.InQuarantine)
		if got := r.scripts() - before; got > 80 {
			r.Errorf("%d scripts in 5 s", got)
		}
		after(35 * time.Second)
		r.phases("afterwards", admission.Voting)
	}, nil, memory.Fresh())
}

// H56, H60: the state of a master that refuses the admission script contains the reason, and the script is sent
// again only once a second.
func TestRefusedScriptSaysWhy(t *testing.T) {
	virtual(t, 3, func(r *rig) {
		r.masters.Master(0).Refuse("NOPERM this user has no permissions to run the 'evalsha' command")
		r.masters.Master(1).Refuse("OOM command not allowed when used memory > 'maxmemory'.")
		after(30 * time.Second)
		r.phases("refusing", admission.Blocked, admission.Blocked, admission.InQuarantine)
		for i, word := range []string{"NOPERM", "OOM"} {
			if err := r.View().Masters[i].Err; err == nil || !strings.Contains(err.Error(), word) {
				r.Errorf("the error of master %d is %v", i, err)
			}
		}
		if got := r.masters.Master(0).Commands()["admit"]; got > 70 { // each script is sent once more with its text
			r.Errorf("%d scripts in 30 s", got)
		}
		r.masters.Master(0).Refuse("")
		r.masters.Master(1).Refuse("")
		after(35 * time.Second)
		r.phases("after the refusals", admission.Voting)
	}, nil, memory.Fresh())
}

// With the guard off every master that is up votes. Its record is read once, and none is written or expected.
func TestWithoutTheGuardEveryMasterVotes(t *testing.T) {
	virtual(t, 3, func(r *rig) {
		r.masters.Master(2).Stop()
		after(10 * time.Second)
		r.phases("immediately", admission.Voting, admission.Voting, admission.Down)
		if r.scripts() != 2 || r.View().Masters[0].Stamp != "" || len(r.masters.Master(0).Keys()) != 0 {
			r.Errorf("%d scripts were sent, want 2; master 0 has the record %q and the keys %q, want none", r.scripts(),
				r.View().Masters[0].Stamp, r.masters.Master(0).Keys())
		}
	}, func(s *monitor.Settings) { s.MaxTTL = 0 }, memory.Fresh())
}

// The masters of the next configuration are admitted while the client still uses the old one, but do not vote. The
// masters of the configuration in use vote immediately. Masters that leave the configuration are returned to the pool
// after some time.
func TestConfigurationsAreFollowedAndLeft(t *testing.T) {
	virtual(t, 6, func(r *rig) {
		now, next := config(r.pool, 0, 3), config(r.pool, 3, 6)
		r.SetConfig(now)
		if v := r.View(); v.Config != now || v.Voting&^quorum.First(3) != 0 {
			r.Errorf("the view does not use the configuration: %+v", v)
		}
		both := *next
		both.Rule = quorum.Rule{Old: now.Rule.Old, Next: next.Rule.Old}
		both.Masters, both.Next = now.Masters, next.Masters
		r.SetConfig(now.Following(&both))
		after(35 * time.Second)
		r.phases("the next masters are admitted", admission.Voting)
		if v := r.View(); v.Voting != quorum.First(3) {
			r.Errorf("%b vote while the next masters are admitted", v.Voting)
		}
		before := r.View().Masters[0].Incarnation
		r.SetConfig(next)
		if v := r.View(); v.Voting != next.Rule.Old {
			r.Errorf("%b vote in the next configuration", v.Voting)
		}
		if got := r.View().Masters[0].Incarnation; got != before || got == 0 {
			r.Errorf("a master that left has incarnation %d, then %d: leases that still use it would be lost", before, got)
		}
		after(29 * time.Second)
		_, early := r.pool.Find(r.pool.Addr(0))
		after(2 * time.Second)
		if _, late := r.pool.Find(r.pool.Addr(0)); !early || late {
			r.Errorf("master 0 is in the pool after 29 s: %v, want true; after 31 s: %v, want false", early, late)
		}
		if _, known := r.pool.Find(r.pool.Addr(3)); !known {
			r.Error("a master that is in use was returned to the pool")
		}
	}, nil, memory.Fresh())
}

// H161: a record that was replaced comes back, for example from a backup, while the server keeps running. The leases
// may be gone, so the master goes through a quarantine.
func TestReturnedRecordStartsQuarantine(t *testing.T) {
	virtual(t, 3, func(r *rig) {
		after(time.Second)
		m := r.masters.Master(0)
		backup, _ := m.Get(prefix.Admission())
		for range 3 { // since then the client has read six other records
			m.Flush()
			after(80 * time.Second) // the record is read again within 30 s, and the quarantine lasts for 30 s
		}
		r.phases("after the quarantine", admission.Voting)
		before := r.View().Masters[0].Incarnation
		m.Flush()
		m.Set(prefix.Admission(), backup)
		after(31 * time.Second)
		r.phases("the record has come back", admission.InQuarantine, admission.Voting)
		if now := r.View().Masters[0].Incarnation; now != before+1 {
			r.Errorf("the incarnation is %d, and was %d", now, before)
		}
		after(31 * time.Second)
		r.phases("after the second quarantine", admission.Voting)
	}, nil)
}

// H172: a program gives each key without a TTL one, also the admission records. The Monitor removes the TTL before the
// record expires, without a quarantine.
func TestTTLOfRecordIsRemoved(t *testing.T) {
	virtual(t, 3, func(r *rig) {
		for range 3 {
			for i := range 3 {
				r.masters.Master(i).Expire(prefix.Admission(), 45*time.Second)
			}
			after(time.Minute)
			r.phases("after the TTL", admission.Voting)
		}
		for i, m := range r.View().Masters {
			if ttl := r.masters.Master(i).TTL(prefix.Admission()); ttl != -1 || m.Incarnation != 1 {
				r.Errorf("master %d: the record expires in %d ms, incarnation %d", i, ttl, m.Incarnation)
			}
		}
	}, nil)
}

// H160: what a shard has shown counts only as long as its masters show it. When another shard needs the records of a
// shard, they are read again.
func TestEvidenceIsShownNow(t *testing.T) {
	virtual(t, 3, func(r *rig) {
		after(10 * time.Second)
		before := r.View().Evidence
		if before.Named == 0 || before.Proven != 0 || r.View().Voting != 0 {
			r.Fatalf("new masters: voting %b, %+v", r.View().Voting, before)
		}
		after(30 * time.Second) // each master of this shard seeks the records of the other, which is not there
		now := r.View().Evidence
		if now.Named <= before.Named || now.Looked <= before.Looked {
			r.Errorf("the records were not read again: %+v, and before %+v", now, before)
		}
		for i := range 3 {
			r.masters.Master(i).Restart(false)
		}
		after(time.Microsecond)
		// The first attempt to connect again may follow at once.
		if e := r.View().Evidence; e.Named != 0 && e.Named <= now.Named || e.Proven != 0 {
			r.Errorf("after the restarts the client has evidence of before: %+v", e)
		}
	}, func(s *monitor.Settings) { s.Shard = scripts.Shard{Number: 1, Of: 2} }, memory.Fresh())
}

// Two of five masters are down, and the clock of a third is set forward: it is unclear which clocks are wrong. The
// client reads all clocks each second, so it sees that the clock was set back before the next heartbeats.
func TestDoubtAboutClocksEnds(t *testing.T) {
	virtual(t, 5, func(r *rig) {
		after(5 * time.Second)
		r.phases("all are up", admission.Voting)
		first := r.masters.Master(0)
		r.masters.Master(3).Stop()
		r.masters.Master(4).Stop()
		first.SetClock(time.Hour, 1)
		start := time.Now()
		for r.View().Masters[0].Phase == admission.Voting {
			if time.Since(start) > 10*time.Second {
				t.Fatal("the clock is not doubted")
			}
			after(10 * time.Millisecond)
		}
		r.phases("the clock is an hour ahead", admission.Blocked, admission.Voting, admission.Voting, admission.Down)
		first.SetClock(0, 1)
		after(1500 * time.Millisecond)
		r.phases("the clock was set back", admission.InQuarantine, admission.Voting, admission.Voting, admission.Down)
	}, nil)
}
