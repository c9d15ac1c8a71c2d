package redlock

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
)

// markerFact is a fact of a master that is up and whose marker was read.
func markerFact(identity string, m scripts.Marker) fact {
	return fact{up: true, settled: true, read: true, identity: identity, text: m.String(), marker: m, now: epoch}
}

func admittedFact(identity string, guard time.Duration, number int64) fact {
	return markerFact(identity, scripts.Marker{Identity: identity, Guard: guard, Epoch: number})
}

func emptyFact(identity string) fact {
	return fact{up: true, settled: true, read: true, identity: identity, now: epoch}
}

var (
	unheard = fact{now: epoch}
	dead    = fact{settled: true, now: epoch}
	unread  = fact{up: true, settled: true, identity: "u/u", now: epoch}
	garbled = fact{up: true, settled: true, read: true, identity: "g/g", text: "garbage", bad: true, now: epoch}
)

// Each row is about master 0.
func TestNextMoveAsTable(t *testing.T) {
	const guard = 40 * time.Second
	pendingAt := func(us int64) fact {
		return markerFact("a/a", scripts.Marker{Identity: "a/a", Guard: guard, Pending: us})
	}
	shifted := func(f fact, by time.Duration) fact {
		f.now += by.Microseconds()
		return f
	}
	ok := admittedFact("b/b", guard, 0)
	for _, c := range []struct {
		name  string
		own   fact
		move  move
		phase phase
	}{
		{"not heard of", unheard, move{}, phaseConnecting},
		{"down", dead, move{}, phaseDown},
		{"marker not read", unread, move{step: stepRead}, phaseConnecting},
		{"marker that is none", garbled, move{step: stepWait, look: true, wait: admitRetry}, phaseBlocked},
		{"admitted", admittedFact("a/a", guard, 0), move{}, phaseAdmitted},
		{"admitted, its clock is wrong: forgets nothing by that", shifted(admittedFact("a/a", guard, 0), time.Hour), move{}, phaseAdmitted},
		{"in quarantine", pendingAt(epoch + 7_000_000), move{step: stepWait, look: true, wait: 7 * time.Second}, phasePending},
		{"one microsecond before the end", pendingAt(epoch + 1), move{step: stepWait, look: true, wait: time.Microsecond}, phasePending},
		{"at the end", pendingAt(epoch), move{step: stepEnd}, phasePending},
		{"long over", pendingAt(1), move{step: stepEnd}, phasePending},
		{"over, its clock half a guard time ahead", shifted(pendingAt(epoch), guard/2), move{step: stepEnd}, phasePending},
		{"over, its clock more ahead", shifted(pendingAt(epoch), guard/2+time.Microsecond), move{step: stepWait, look: true, wait: admitRetry}, phaseBlocked},
		{"over, its clock behind", shifted(pendingAt(1), -guard/2-time.Microsecond), move{step: stepWait, look: true, wait: admitRetry}, phaseBlocked},
		{"empty", emptyFact("a/a"), move{step: stepStart, quarantine: guard, guard: guard}, phaseConnecting},
		{"empty, its clock is wrong", shifted(emptyFact("a/a"), -guard), move{step: stepWait, look: true, wait: admitRetry}, phaseBlocked},
		{"a deadline beyond every clock: begun anew", pendingAt(math.MaxInt64), move{step: stepStart, quarantine: guard, guard: guard}, phasePending},
	} {
		t.Run(c.name, func(t *testing.T) {
			facts := []fact{c.own, ok, ok, ok, ok}
			got, ph := nextMove(facts, oneSet(len(facts)), 0, reckoning{epoch, oneSet(len(facts)).all()}, 0, guard, 0)
			if got != c.move || ph != c.phase {
				t.Errorf("%+v, phase %d; want %+v, phase %d", got, ph, c.move, c.phase)
			}
		})
	}
}

// H53, H57: another identity under the same marker, however little of it differs, is a quarantine.
func TestAnotherIdentityIsNeverAdmitted(t *testing.T) {
	ok := admittedFact("b/b", 40*time.Second, 0)
	for name, identity := range map[string]string{"restarted": "new/a", "became a replica in between": "a/new", "both": "new/new", "swapped": "b/a"} {
		t.Run(name, func(t *testing.T) {
			for _, pendingSince := range []int64{0, 1, epoch - 1, epoch + 1} {
				f := markerFact(identity, scripts.Marker{Identity: "a/a", Guard: 40 * time.Second, Pending: pendingSince})
				got, ph := nextMove([]fact{f, ok, ok}, oneSet(3), 0, reckoning{epoch, 7}, 0, 40*time.Second, 0)
				if got.step != stepStart || ph == phaseAdmitted || got.quarantine != 40*time.Second {
					t.Errorf("pending %d: %+v, phase %d", pendingSince, got, ph)
				}
			}
		})
	}
}

// H58: the guard time that counts is that of the fleet.
func TestStartMoveAsTable(t *testing.T) {
	const own = 20 * time.Second
	with := func(guard time.Duration, number int64) fact { return admittedFact("x/x", guard, number) }
	other := func(guard time.Duration, number int64) fact {
		return markerFact("new/new", scripts.Marker{Identity: "old/old", Guard: guard, Epoch: number})
	}
	none := emptyFact("n/n")
	aged := func(f fact) fact { f.age = time.Hour; return f }
	begun := markerFact("b/b", scripts.Marker{Identity: "b/b", Guard: time.Second, Pending: epoch + 1})
	start := func(quarantine, guard time.Duration, number int64) move {
		return move{step: stepStart, quarantine: quarantine, guard: guard, epoch: number}
	}
	for _, c := range []struct {
		name   string
		facts  []fact
		waited time.Duration
		guard  time.Duration
		epoch  int64
		want   move
	}{
		{"one master, new", []fact{none}, 0, own, 0, start(own, own, 0)},
		{"one master, new, a short guard time", []fact{none}, 0, time.Second, 3, start(time.Second, time.Second, 3)},
		{"one master, its old marker is longer", []fact{other(time.Minute, 2)}, 0, own, 0, start(time.Minute, time.Minute, 2)},
		{"one master, its old marker is shorter", []fact{other(time.Second, 2)}, 0, own, 5, start(own, own, 2)},
		{"all new", []fact{none, none, none, none, none}, 0, own, 0, start(minQuarantine, own, 0)},
		{"all new, a long guard time", []fact{none, none, none}, 0, time.Hour, 0, start(time.Hour, time.Hour, 0)},
		{"the others have the fleet's, which is longer", []fact{none, with(time.Minute, 0), with(time.Minute, 0)}, 0, own, 0, start(time.Minute, time.Minute, 0)},
		{"the others have the fleet's, which is shorter", []fact{none, with(time.Second, 0), with(time.Second, 0)}, 0, own, 0, start(time.Second, time.Second, 0)},
		{"they differ: the largest", []fact{none, with(time.Minute, 1), with(time.Hour, 0), with(time.Second, 0), dead}, 0, own, 0, start(time.Hour, time.Hour, 1)},
		{"its own old marker is the largest", []fact{other(2*time.Hour, 9), with(time.Minute, 1), with(time.Hour, 0)}, 0, own, 0, start(2*time.Hour, 2*time.Hour, 9)},
		{"its own old marker alone", []fact{other(time.Minute, 0), none, none}, gatherGrace, own, 0, start(blindQuarantine, time.Minute, 0)},
		{"others that are empty do not tell of the past", []fact{none, none, with(own, 0), with(own, 0), dead}, gatherGrace, own, 0, start(blindQuarantine, own, 0)},
		{"markers read before it was found wanting do not count", []fact{none, aged(with(own, 0)), aged(with(own, 0)), with(own, 0), with(own, 0)}, 0, own, 0, move{step: stepWait, gather: true, wait: gatherGrace}},
		{"the caller's epoch is larger, and the others tell of theirs", []fact{none, with(own, 1), with(own, 2)}, 0, own, 7, start(own, own, 2)},
		{"three others can be read of five", []fact{none, with(own, 0), with(own, 0), with(own, 0), dead}, 0, own, 0, start(own, own, 0)},
		{"two others of five are not enough", []fact{none, with(time.Second, 0), with(time.Second, 0), dead, dead}, gatherGrace, own, 0, start(blindQuarantine, own, 0)},
		{"too few, and they say more than the ceiling", []fact{none, with(time.Hour, 4), dead, dead, dead}, gatherGrace, own, 0, start(time.Hour, time.Hour, 4)},
		{"too few, and the own says more than the ceiling", []fact{none, dead, dead}, gatherGrace, time.Hour, 0, start(time.Hour, time.Hour, 0)},
		{"too few, the others have just gone down", []fact{none, with(own, 0), dead, dead, dead}, 0, own, 0, move{step: stepWait, gather: true, wait: gatherGrace}},
		{"quarantines begun lately are no knowledge", []fact{none, begun, begun, begun, dead}, 0, own, 0, start(minQuarantine, time.Second, 0)},
		{"too few, some not heard of yet", []fact{none, unheard, dead}, 0, own, 0, move{step: stepWait, gather: true, wait: gatherGrace}},
		{"too few, one up and not read", []fact{none, unread, dead}, time.Second, own, 0, move{step: stepWait, gather: true, wait: gatherGrace - time.Second}},
		{"too few, waited long enough", []fact{none, unheard, unread}, gatherGrace, own, 0, start(blindQuarantine, own, 0)},
		{"what cannot be read as a marker does not count", []fact{none, garbled, garbled, with(own, 0), dead}, gatherGrace, own, 0, start(blindQuarantine, own, 0)},
	} {
		t.Run(c.name, func(t *testing.T) {
			// How many others must be read is N-Q+1, which these rows put into numbers: 3 of five, 2 of three.
			if c.want.step == stepStart && c.want.epoch == c.epoch { // nobody tells: then so may the own set
				c.want.alone = c.epoch &^ 1
			}
			if got := startMove(c.facts, oneSet(len(c.facts)), 0, c.waited, c.guard, c.epoch); got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

func randomFact(r *rand.Rand) fact {
	identities := []string{"a/a", "a/b", "b/a", "b/b"}
	f := fact{settled: r.IntN(5) > 0, up: r.IntN(6) > 0, identity: identities[r.IntN(4)], now: epoch + r.Int64N(120_000_000) - 60_000_000}
	f.settled = f.settled || f.up
	if r.IntN(3) == 0 {
		f.age = time.Duration(r.IntN(4000)) * ms
	}
	if f.read = f.up && r.IntN(5) > 0; !f.read {
		return f
	}
	switch r.IntN(6) {
	case 0:
		f.text, f.bad = "garbage", true
	case 1:
	default:
		f.marker = scripts.Marker{
			Identity: identities[r.IntN(4)], Guard: time.Duration(1+r.IntN(90_000)) * ms, Epoch: r.Int64N(4),
		}
		switch r.IntN(3) {
		case 0:
			f.marker.Pending = epoch + r.Int64N(120_000_000) - 60_000_000
		case 1:
			f.marker.Pending = 1 + r.Int64N(math.MaxInt64-1)
		}
		f.text = f.marker.String()
	}
	return f
}

type admissionCase struct {
	facts  []fact
	i      int
	median int64
	waited time.Duration
	guard  time.Duration
	epoch  int64
}

func randomAdmission(r *rand.Rand) admissionCase {
	c := admissionCase{
		facts: make([]fact, 1+r.IntN(7)), median: epoch + r.Int64N(60_000_000) - 30_000_000,
		waited: time.Duration(r.IntN(4000)) * ms, guard: time.Duration(10+r.IntN(90_000)) * ms, epoch: r.Int64N(4),
	}
	for i := range c.facts {
		c.facts[i] = randomFact(r)
	}
	c.i = r.IntN(len(c.facts))
	return c
}

func TestAdmissionInvariants(t *testing.T) {
	property(t, func(t *testing.T, r *rand.Rand) {
		c := randomAdmission(r)
		f := &c.facts[c.i]
		got, ph := nextMove(c.facts, oneSet(len(c.facts)), c.i, reckoning{c.median, oneSet(len(c.facts)).all()}, c.waited, c.guard, c.epoch)
		bad := func(why string) {
			t.Errorf("%s: %+v, phase %d, of master %d of %+v", why, got, ph, c.i, c)
		}
		ours := f.up && f.read && !f.bad && f.text != "" && f.marker.Identity == f.identity
		if ph == phaseAdmitted && (!ours || f.marker.Pending != 0) {
			bad("admitted without a marker of its own that says so (H53)")
		}
		if got.step == stepEnd && (!ours || f.marker.Pending == 0 || f.now < f.marker.Pending) {
			bad("a quarantine is ended that is another's or not over (H53)")
		}
		shorter := ours && f.marker.Pending != 0 && got.quarantine < fromMicros(f.marker.Pending-f.now)
		if got.step == stepStart && (ours && !shorter || f.bad || !f.read || !f.up) {
			bad("a quarantine is started where there is one that ends no later, or where nothing is known")
		}
		apart := max(f.now-c.median, c.median-f.now)
		if (got.step == stepStart || got.step == stepEnd) && apart > max(c.guard, f.marker.Guard).Microseconds()/2+1 {
			bad("a clock that is too far from the median starts or ends a quarantine")
		}
		if got.step == stepWait && got.wait <= 0 {
			bad("a wait of no time spins")
		}
		if got.step == stepStart {
			checkStart(c, got, bad)
		}
	})
}

// checkStart holds a started quarantine against the rules, read plainly.
func checkStart(c admissionCase, got move, bad func(string)) {
	n, readable, tell, marked, past := len(c.facts), 0, 0, false, false
	largest, number := time.Duration(0), int64(0)
	for j, f := range c.facts {
		if j != c.i && f.read && !f.bad && f.age <= c.waited {
			readable++
			if f.text != "" && (f.marker.Pending == 0 || f.marker.Identity != f.identity) {
				tell++
			}
		}
		if f.read && !f.bad && f.text != "" {
			marked = true
			past = past || f.marker.Pending == 0 || f.marker.Identity != f.identity
			largest, number = max(largest, f.marker.Guard), max(number, f.marker.Epoch)
		}
	}
	if got.quarantine < largest || got.guard < largest {
		bad("the quarantine is shorter than a guard time that was read (H58)")
	}
	if got.quarantine < got.guard {
		bad("the quarantine is shorter than the guard time written")
	}
	if needed := n - quorumOf(n) + 1; !past || n > 1 && tell < needed { // nobody tells, or too few
		number = max(number, c.epoch)
	}
	if got.epoch != number {
		bad("the epoch written is not the largest")
	}
	var want time.Duration
	switch needed := n - (n/2 + 1) + 1; {
	case n == 1:
		want = max(largest, c.guard)
	case readable < needed || past && tell < needed:
		want = max(5*time.Minute, largest, c.guard)
	case !past:
		want = max(largest, c.guard, 30*time.Second)
	default:
		want = largest
	}
	if got.quarantine != want {
		bad(fmt.Sprintf("the quarantine should be %v", want))
	}
	if marked && n > 1 && readable >= n-(n/2+1)+1 && (!past || tell >= n-(n/2+1)+1) && got.guard != largest || !marked && got.guard != c.guard {
		bad("the guard time written is neither the fleet's nor the first one's")
	}
}

// The decision depends on what is known of the others as a set: not on their order, and not on what is known of those
// that are gone.
func TestAdmissionDoesNotDependOnTheOrderOfTheOthers(t *testing.T) {
	property(t, func(t *testing.T, r *rand.Rand) {
		c := randomAdmission(r)
		want, wantPhase := nextMove(c.facts, oneSet(len(c.facts)), c.i, reckoning{c.median, oneSet(len(c.facts)).all()}, c.waited, c.guard, c.epoch)
		i := 0
		mixed := make([]fact, len(c.facts))
		for to, from := range r.Perm(len(c.facts)) {
			if mixed[to] = c.facts[from]; from == c.i {
				i = to
			}
		}
		if got, ph := nextMove(mixed, oneSet(len(mixed)), i, reckoning{c.median, oneSet(len(mixed)).all()}, c.waited, c.guard, c.epoch); got != want || ph != wantPhase {
			t.Errorf("%+v and %+v for the same masters in another order: %+v", want, got, c)
		}
	})
}
