package admission

import (
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
)

// H80: the max TTL is raised on three of five masters, and the command dies, or a whole raise dies before its last
// write. However far it got, a master that loses its data is not admitted too early for a lock that was allowed.
func TestInterruptedRaiseAdmitsNoneEarly(t *testing.T) {
	const long = 300 * time.Second
	for steps := range 11 {
		for victim := range 5 {
			w := newWorld(t, 5)
			w.program("operator", 30*time.Second).admit()
			op := w.program("operator", 30*time.Second)
			op.act()
			op.raise(long, steps)
			holder, other := w.program("holder", long), w.program("other", 30*time.Second)
			w.pass(time.Second, holder, other)
			other.reach = quorum.First(5) &^ quorum.One((victim+2)%5)
			if won := holder.lock(long); won != (steps >= 8) { // after five quarantines, and three longer TTLs, were written
				t.Errorf("%d steps: the long TTL is allowed: %v", steps, won)
			}
			w.forget(w.servers[victim])
			for range 40 {
				w.pass(7*time.Second, other, holder)
				other.lock(10 * time.Second)
			}
		}
	}
}

// Masters lose their data while the max TTL is raised, and a client that has not read the new numbers puts them into a
// short quarantine. The raise continues only if all masters had the long quarantine at the same time.
func TestRaiseWhileAMasterForgets(t *testing.T) {
	const long = 300 * time.Second
	for victim := range 3 {
		for steps := range 3 { // of the raise, before the master loses its data
			w := newWorld(t, 3)
			w.program("operator", 30*time.Second).admit()
			op, other := w.program("operator", 30*time.Second), w.program("other", 30*time.Second)
			op.act()
			other.act()
			op.raise(long, steps)
			w.forget(w.servers[victim])
			other.reach = quorum.One(victim) | quorum.One((victim+1)%3)
			w.pass(time.Second, other)
			op.raise(long, 20)
			w.pass(40*time.Second, other)
			w.pass(time.Second, op)
			op.raise(long, 20)
			w.checkNumbers()
		}
	}
}

// Two clients with different max TTLs begin on the masters that each of them reaches, and share one. All masters that
// vote get the same max TTL: that of the majority, whether one client admits them or the other.
func TestUnlikeMaxTTLsOfNewMasters(t *testing.T) {
	for meeting := range 3 {
		w := newWorld(t, 3)
		short, long := w.program("short", 30*time.Second), w.program("long", 300*time.Second)
		mine, other := (meeting+1)%3, (meeting+2)%3
		long.reach, short.reach = quorum.One(meeting)|quorum.One(mine), quorum.One(meeting)|quorum.One(other)
		long.connect()
		for i := range long.reach.All() {
			long.step(i, scripts.AdmitRequest{Step: scripts.AdmitRead})
		}
		for i := range short.reach.All() {
			long.Facts[i].Settled, short.Facts[i].Settled = true, true
		}
		long.Facts[other].Settled = true
		_, m := long.Judge(mine)
		long.step(mine, long.Request(mine, m)) // then it stops
		w.pass(40*time.Second, short)
		w.pass(310*time.Second, long)
		w.pass(time.Second, short, long)
		short.reach, long.reach = quorum.First(3), quorum.First(3)
		w.pass(310*time.Second, short, long)
		if short.voting() != quorum.First(3) || long.voting() != short.voting() {
			t.Fatalf("%b vote", short.voting())
		}
		for i := range 3 {
			if r := w.record(i); r.Longest != 30*time.Second {
				t.Errorf("master %d accepts TTLs up to %v", i, r.Longest)
			}
		}
	}
}

// H81: a quarantine is begun by a client that reads 30 s and ended by one that knows 300 s. Every master that is
// admitted again has the deployment's numbers, not those of the client.
func TestRewritesCarryTheLargestNumbers(t *testing.T) {
	w := newWorld(t, 5)
	w.program("operator", 300*time.Second).admit()
	short := w.program("short", 30*time.Second)
	for i := range 5 {
		w.forget(w.servers[i])
		w.pass(301*time.Second, short)
		w.pass(2*time.Second, short)
		if r := w.record(i); r.Longest != 300*time.Second || r.Quarantine != 300*time.Second || !r.Admitted {
			t.Fatalf("master %d was admitted again with %v", i, r)
		}
	}
	w = newWorld(t, 3)
	w.program("operator", 30*time.Second).admit()
	w.forget(w.servers[0])
	short, long := w.program("short", 30*time.Second), w.program("long", 300*time.Second)
	w.pass(25*time.Second, short)
	w.pass(10*time.Second, long)
	if w.record(0).Admitted {
		t.Error("the client with the longer max TTL ended a short quarantine")
	}
	w.pass(200*time.Second, short) // H75: it was lengthened, for every client
	if w.record(0).Admitted {
		t.Error("the client with the shorter max TTL ended a quarantine that was lengthened")
	}
	w.pass(80*time.Second, short, long)
	if r := w.record(0); !r.Admitted || r.Longest != 30*time.Second {
		t.Errorf("at the end: %v", r)
	}
}
