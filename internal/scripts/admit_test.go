package scripts_test

import (
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
)

// request is one that is in order: the caller has seen what is there.
func (c *client) request(step scripts.AdmitStep) scripts.AdmitRequest {
	c.t.Helper()
	seen := c.admit(scripts.AdmitRequest{Step: scripts.AdmitRead})
	return scripts.AdmitRequest{
		Step: step, Identity: seen.Identity, Seen: seen.Marker, Median: seen.Time, Tolerance: guard / 2,
		Quarantine: guard, Guard: guard,
	}
}

// wantAdmit runs a step and compares its result, and that only a step that is done writes.
func (c *client) wantAdmit(want scripts.AdmitResult, r scripts.AdmitRequest) scripts.Admission {
	c.t.Helper()
	before := c.text(prefix.Marker())
	got := c.admit(r)
	if got.Result != want {
		c.t.Errorf("step %s is answered by %+v, want result %d", r.Step, got, want)
	}
	if now := c.text(prefix.Marker()); now != got.Marker || (got.Result != scripts.AdmitDone || r.Step == scripts.AdmitRead) && now != before {
		c.t.Errorf("step %s: the marker was %q, is %q, and is told as %q", r.Step, before, now, got.Marker)
	}
	return got
}

func parse(t *testing.T, text string) scripts.Marker {
	t.Helper()
	m, err := scripts.ParseMarker(text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestQuarantineStartsWaitsAndEnds(t *testing.T) {
	onBoth(t, func(t *testing.T, c *client) {
		if r := c.wantAdmit(scripts.AdmitDone, c.request(scripts.AdmitRead)); r.Marker != "" || len(r.Identity) != 81 {
			t.Errorf("a new master: %+v", r)
		}
		c.wantAdmit(scripts.AdmitTooEarly, c.request(scripts.AdmitEnd)) // there is none to end

		start := c.request(scripts.AdmitStart)
		start.Epoch = 3
		done := c.wantAdmit(scripts.AdmitDone, start)
		m := parse(t, done.Marker)
		if want := (scripts.Marker{Identity: start.Identity, Guard: guard, Epoch: 3, Since: done.Time, Pending: done.Time + guard.Microseconds()}); m != want {
			t.Errorf("the marker is %+v, want %+v", m, want)
		}
		c.wantAdmit(scripts.AdmitOtherMarker, start) // the same message again
		c.wantAdmit(scripts.AdmitTooEarly, c.request(scripts.AdmitEnd))

		// The median decides where it is later than this master's own clock.
		late := c.request(scripts.AdmitStart)
		late.Median += 10e6
		if m := parse(t, c.wantAdmit(scripts.AdmitDone, late).Marker); m.Pending != late.Median+guard.Microseconds() {
			t.Errorf("the quarantine ends at %d, the median is %d", m.Pending, late.Median)
		}

		over := parse(t, c.text(prefix.Marker()))
		over.Pending = c.now() - 1
		c.must("SET", prefix.Marker(), over.String())
		end := c.request(scripts.AdmitEnd)
		m = parse(t, c.wantAdmit(scripts.AdmitDone, end).Marker)
		if over.Pending = 0; m != over {
			t.Errorf("the marker is %+v, want %+v", m, over)
		}
		c.wantAdmit(scripts.AdmitOtherMarker, end)
		c.wantAdmit(scripts.AdmitTooEarly, c.request(scripts.AdmitEnd))
	})
}

// TestMarkersAreWrittenForThisServerOnly: whatever the caller believes, the identity is the server's own.
func TestMarkersAreWrittenForThisServerOnly(t *testing.T) {
	onBoth(t, func(t *testing.T, c *client) {
		for _, step := range []scripts.AdmitStep{scripts.AdmitStart, scripts.AdmitEnd, scripts.AdmitNow, scripts.AdmitGuard} {
			r := c.request(step)
			r.Identity = "f00/ba4"
			c.wantAdmit(scripts.AdmitOtherIdentity, r)
		}
		// A quarantine that another server has waited for is no quarantine of this one.
		other := scripts.Marker{Identity: "f00/ba4", Guard: guard, Pending: c.now() - 1}
		c.must("SET", prefix.Marker(), other.String())
		c.wantAdmit(scripts.AdmitTooEarly, c.request(scripts.AdmitEnd))
		if m := parse(t, c.wantAdmit(scripts.AdmitDone, c.request(scripts.AdmitStart)).Marker); m.Identity == other.Identity || m.Admitted() {
			t.Errorf("the marker is %+v", m)
		}
	})
}

func TestMarkerMismatchWritesNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, c *client) {
		for _, step := range []scripts.AdmitStep{scripts.AdmitStart, scripts.AdmitEnd, scripts.AdmitNow, scripts.AdmitGuard} {
			r := c.request(step)
			r.Seen = "v1 what was there before"
			c.wantAdmit(scripts.AdmitOtherMarker, r)
		}
	})
}

// TestTheGuardTimeIsSetAndNothingElse: neither admission nor a deadline moves with it, whatever the clocks say, and the
// marker of another server is left alone.
func TestTheGuardTimeIsSetAndNothingElse(t *testing.T) {
	onBoth(t, func(t *testing.T, c *client) {
		set := func() scripts.AdmitRequest {
			r := c.request(scripts.AdmitGuard)
			r.Guard, r.Median, r.Epoch, r.Quarantine = 90*time.Second, 0, 9, time.Hour
			return r
		}
		c.wantAdmit(scripts.AdmitTooEarly, set()) // there is no marker
		for _, step := range []scripts.AdmitStep{scripts.AdmitStart, scripts.AdmitNow} {
			r := c.request(step)
			r.Epoch, r.Home = 3, scripts.Home("/a b%")
			want := parse(t, c.wantAdmit(scripts.AdmitDone, r).Marker)
			if want.Home != r.Home {
				t.Errorf("the marker is %+v", want)
			}
			want.Guard = 90 * time.Second
			raise := set()
			if m := parse(t, c.wantAdmit(scripts.AdmitDone, raise).Marker); m != want {
				t.Errorf("after %s: the marker is %+v, want %+v", step, m, want)
			}
			c.wantAdmit(scripts.AdmitOtherMarker, raise) // the same message again
		}
		other := scripts.Marker{Identity: "f00/ba4", Guard: guard}
		c.must("SET", prefix.Marker(), other.String())
		c.wantAdmit(scripts.AdmitTooEarly, set())
		c.must("SET", prefix.Marker(), "nonsense")
		c.wantAdmit(scripts.AdmitTooEarly, set())
	})
}

// TestMasterWithAnotherClockIsLeftAlone: neither the start nor the end of a quarantine is trusted to a clock that is
// far from the others' (a boot before NTP). Admission by an operator does not ask for it.
func TestMasterWithAnotherClockIsLeftAlone(t *testing.T) {
	onBoth(t, func(t *testing.T, c *client) {
		for _, off := range []int64{60e6, -60e6} {
			for _, step := range []scripts.AdmitStep{scripts.AdmitStart, scripts.AdmitEnd} {
				r := c.request(step)
				r.Median += off
				c.wantAdmit(scripts.AdmitClockDiffers, r)
			}
		}
		r := c.request(scripts.AdmitNow)
		r.Median = 0
		done := c.wantAdmit(scripts.AdmitDone, r)
		if m := parse(t, done.Marker); m != (scripts.Marker{Identity: r.Identity, Guard: guard}) {
			t.Errorf("the marker is %+v", m)
		}
		c.wantAdmit(scripts.AdmitOtherMarker, r)
	})
}

// TestOnlyAdmittedMastersVote (H53, H57): a new hold needs the marker that the connection expects; what follows a
// confirmed majority, or counts only where the hold is, goes through.
func TestOnlyAdmittedMastersVote(t *testing.T) {
	onBoth(t, func(t *testing.T, c *client) {
		h := hold("a", "me:1")
		if v := c.stamped(acquire(h, c.now()), "v1 mine"); v.Kind != scripts.Abstained || v.Marker != "" || v.Time == 0 {
			t.Errorf("without a marker: %+v", v)
		}
		expected := c.wantAdmit(scripts.AdmitDone, c.request(scripts.AdmitNow)).Marker
		if v := c.stamped(acquire(h, c.now()), "v1 mine"); v.Kind != scripts.Abstained || v.Marker != expected {
			t.Errorf("with another marker: %+v", v)
		}
		if v := c.stamped(acquire(h, c.now()), expected); v.Kind != scripts.Granted {
			t.Errorf("with the marker: %+v", v)
		}
		pending := c.wantAdmit(scripts.AdmitDone, c.request(scripts.AdmitStart)).Marker
		if v := c.stamped(acquire(hold("b", "me:2"), c.now()), expected); v.Kind != scripts.Abstained || v.Marker != pending {
			t.Errorf("in quarantine: %+v", v)
		}
		heal := func(name string) *scripts.Call {
			now := c.now()
			return fleet.AcquireCall(hold(name, "me:1"), scripts.ModeHeal, ttl, now, now, 1)
		}
		if v := c.stamped(heal("c"), expected); v.Kind != scripts.Granted {
			t.Errorf("a heal in quarantine: %+v", v)
		}
		if v := c.stamped(fleet.ExtendCall(h, ttl, 1), expected); v.Kind != scripts.Granted {
			t.Errorf("an extension in quarantine: %+v", v)
		}
		c.must("DEL", prefix.Marker())
		if v := c.stamped(heal("d"), expected); v.Kind != scripts.Granted {
			t.Errorf("a heal without a marker: %+v", v)
		}
		if v := c.stamped(fleet.ExtendCall(h, ttl, 2), expected); v.Kind != scripts.Granted {
			t.Errorf("a re-entry without a marker: %+v", v)
		}
		if !c.release(h, c.now(), false) {
			t.Error("a release without a marker has not found its hold")
		}
	})
}

// TestFleetsGuardTimeAndEpochBind (H58): nobody keeps a key for longer than the fleet's guard time, or goes on under an
// older set of masters.
func TestFleetsGuardTimeAndEpochBind(t *testing.T) {
	onBoth(t, func(t *testing.T, c *client) {
		h := hold("a", "me:1")
		c.want(scripts.Granted, acquire(h, c.now()))
		calls := func(f scripts.Fleet, d time.Duration) []*scripts.Call {
			now := c.now()
			return []*scripts.Call{
				f.AcquireCall(h, scripts.ModeHeal, d, now, now, 1), f.ExtendCall(h, d, 1),
				f.AcquireCall(scripts.NewHold(prefix.Keys("a"), "me:1", "me:0"), scripts.ModeImport, d, now+1, now+1, 1),
			}
		}
		c.must("SET", prefix.Marker(), scripts.Marker{Identity: "a/b", Guard: 5 * time.Second, Epoch: 2}.String())
		second := scripts.NewFleet(prefix, window, barTTL, 2)
		for _, s := range []struct {
			fleet scripts.Fleet
			ttl   time.Duration
			want  scripts.Kind
		}{{second, 5 * time.Second, scripts.Granted}, {second, 5001 * time.Millisecond, scripts.Refused}, {fleet, 5 * time.Second, scripts.Refused}} {
			before := c.snapshot("a")
			for _, call := range calls(s.fleet, s.ttl) {
				v := c.stamped(call, "v1 mine")
				if v.Kind != s.want || v.Kind == scripts.Refused && (v.Marker == "" || v.Time == 0) {
					t.Errorf("%s for %v: %+v, want %v", call.Script.Name, s.ttl, v, s.want)
				}
			}
			if s.want == scripts.Refused {
				c.unchanged("a", before)
			}
		}
		c.must("SET", prefix.Marker(), "nonsense")
		for _, call := range calls(fleet, ttl) {
			c.wantError("BADMARKER", call, "v1 mine")
		}
		if v := c.stamped(acquire(hold("b", "x:1"), c.now()), "v1 mine"); v.Kind != scripts.Abstained || v.Marker != "nonsense" {
			t.Errorf("an acquire: %+v", v)
		}
		c.want(scripts.Granted, fleet.ExtendCall(h, 20*time.Second, 1)) // with the guard off nothing of this is asked
	})
}

// The epoch is raised, never lowered, on the master's own marker alone, and its time is that of the writing that raised it.
func TestTheEpochOfAMarkerIsRaised(t *testing.T) {
	onBoth(t, func(t *testing.T, c *client) {
		raise := func(epoch, alone int64) scripts.AdmitRequest {
			r := c.request(scripts.AdmitEpoch)
			r.Epoch, r.Alone, r.Guard = epoch, alone, 0
			return r
		}
		c.wantAdmit(scripts.AdmitTooEarly, raise(1, 0)) // there is no marker
		start := c.request(scripts.AdmitStart)
		start.Home = "h"
		was := parse(t, c.wantAdmit(scripts.AdmitDone, start).Marker)

		first := raise(1, 0)
		done := c.wantAdmit(scripts.AdmitDone, first)
		want := was
		want.Epoch, want.Since = 1, done.Time
		if m := parse(t, done.Marker); m != want {
			t.Errorf("the marker is %v, want %v", m, want)
		}
		c.wantAdmit(scripts.AdmitOtherMarker, first)         // the same message again
		again := c.wantAdmit(scripts.AdmitDone, raise(1, 2)) // what may act alone changes, and not since when the epoch is here
		want.Alone = 2
		if m := parse(t, again.Marker); m != want {
			t.Errorf("the marker is %v, want %v", m, want)
		}
		c.wantAdmit(scripts.AdmitTooEarly, raise(0, 0))
		other := raise(2, 2)
		other.Identity = "f00/ba4"
		c.wantAdmit(scripts.AdmitOtherIdentity, other)

		later := c.wantAdmit(scripts.AdmitDone, raise(3, 2))
		if m := parse(t, later.Marker); m.Epoch != 3 || m.Since != later.Time || m.Alone != 2 || m.Home != "h" || m.Pending != was.Pending {
			t.Errorf("the marker is %v", m)
		}
	})
}
