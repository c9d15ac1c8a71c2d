package scripts_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
)

const guard = 30 * time.Second

// three and five are lists of masters in records.
const three, five = "a,b,c", "a,b,c,d,e"

func (c *client) admit(r scripts.AdmitRequest) scripts.Admission {
	c.t.Helper()
	reply, err := c.run(enc.Admit(r), "")
	if err != nil {
		c.t.Fatal(err)
	}
	a, err := scripts.DecodeAdmission(reply)
	if err != nil {
		c.t.Fatal(err)
	}
	return a
}

// request returns a valid step: the caller has seen the present identity and record.
func (c *client) request(step scripts.AdmitStep) scripts.AdmitRequest {
	c.t.Helper()
	seen := c.admit(scripts.AdmitRequest{Step: scripts.AdmitRead})
	return scripts.AdmitRequest{
		Step: step, Identity: seen.Identity, Seen: seen.Record, Median: seen.Time, Tolerance: scripts.Window,
		Record: scripts.Record{Masters: three, Longest: guard, Quarantine: guard},
	}
}

// wantAdmit runs a step and checks its result, and that the record changes only if the step succeeds.
func (c *client) wantAdmit(want scripts.AdmitResult, r scripts.AdmitRequest) scripts.Admission {
	c.t.Helper()
	before := c.text(prefix.Admission())
	got := c.admit(r)
	if got.Result != want {
		c.t.Errorf("step %s: %+v, want result %d", r.Step, got, want)
	}
	reads := got.Result != scripts.AdmitDone || r.Step == scripts.AdmitRead
	if now := c.text(prefix.Admission()); now != got.Record || reads && now != before {
		c.t.Errorf("step %s: the record was %q, is %q, and %q is reported", r.Step, before, now, got.Record)
	}
	return got
}

// done runs a step that must succeed and returns the record.
func (c *client) done(r scripts.AdmitRequest) scripts.Record {
	c.t.Helper()
	return parse(c.t, c.wantAdmit(scripts.AdmitDone, r).Record)
}

// parse parses a record and clears its stamp, which is new for each write.
func parse(t testing.TB, text string) scripts.Record {
	t.Helper()
	r, err := scripts.ParseRecord(text)
	if err != nil {
		t.Fatal(err)
	}
	r.Stamp = ""
	return r
}

// has writes r as the record of this server.
func (c *client) has(r scripts.Record) {
	c.t.Helper()
	if r.Identity == "" {
		r.Identity = c.admit(scripts.AdmitRequest{Step: scripts.AdmitRead}).Identity
	}
	c.must("SET", prefix.Admission(), r.String())
}

func TestAQuarantineStartsLastsAndEnds(t *testing.T) {
	c := onServer(t)
	if r := c.wantAdmit(scripts.AdmitDone, c.request(scripts.AdmitRead)); r.Record != "" ||
		len(r.Identity) != 40+1+40+1+2 {
		t.Errorf("new master: %+v", r)
	}
	c.wantAdmit(scripts.AdmitTooEarly, c.request(scripts.AdmitEnd)) // there is no quarantine to end

	start := c.request(scripts.AdmitStart)
	start.Record.Epoch, start.Record.Alone, start.Record.Home = 3, 2, scripts.Escape("10.0.0.1:6379")
	done := c.wantAdmit(scripts.AdmitDone, start)
	want := scripts.Record{Identity: start.Identity, Home: start.Record.Home, Masters: three, Epoch: 3, Raised: done.Time,
		Alone: 2, Longest: guard, Quarantine: guard, Since: done.Time}
	if r := parse(t, done.Record); r != want {
		t.Errorf("record %+v, want %+v", r, want)
	}
	c.wantAdmit(scripts.AdmitOtherRecord, start) // the same message again
	end := c.request(scripts.AdmitEnd)
	end.Record.Epoch = 3
	c.wantAdmit(scripts.AdmitTooEarly, end)

	want.Since = c.now() - guard.Microseconds() - 1
	c.has(want)
	end.Seen, end.Record.Quarantine = want.String(), 2*guard // a client that needs a longer quarantine does not end it
	c.wantAdmit(scripts.AdmitTooEarly, end)
	end.Record.Quarantine = time.Second // a client that needs a shorter one does
	done = c.wantAdmit(scripts.AdmitDone, end)
	want.Admitted, want.Since = true, done.Time
	if r := parse(t, done.Record); r != want {
		t.Errorf("record %+v, want %+v", r, want)
	}
	c.wantAdmit(scripts.AdmitOtherRecord, end)
	end.Seen = done.Record
	c.wantAdmit(scripts.AdmitTooEarly, end)
}

// H91: since is the later of the master's own time and the median. A master whose clock is behind, and is corrected
// during the quarantine, does not wait less. A master that is more than 15 s off begins and ends no quarantine.
func TestSinceIsTheLaterOfOwnTimeAndMedian(t *testing.T) {
	c := onServer(t)
	for _, ahead := range []int64{14 * second, -14 * second} {
		r := c.request(scripts.AdmitStart)
		r.Median += ahead
		a := c.wantAdmit(scripts.AdmitDone, r)
		if got := parse(t, a.Record); got.Since != max(a.Time, r.Median) || got.Admitted {
			t.Errorf("with the median %d ahead: %+v, at %d", ahead, got, a.Time)
		}
	}
	c.has(scripts.Record{Masters: three, Longest: guard, Quarantine: guard, Since: c.now() - 60*second})
	for _, off := range []int64{20 * second, -20 * second} {
		for _, step := range []scripts.AdmitStep{scripts.AdmitStart, scripts.AdmitEnd} {
			r := c.request(step)
			r.Median += off
			c.wantAdmit(scripts.AdmitClockDiffers, r)
		}
	}
	for _, step := range []scripts.AdmitStep{scripts.AdmitGuard, scripts.AdmitSettle, scripts.AdmitNow} {
		r := c.request(step)
		r.Median += 60 * second
		c.done(r)
	}
}

// H95, H80, H81: no step shortens the quarantine or writes a smaller epoch, regardless of the numbers that its client
// has read. Only guard raises the max TTL of a master that votes, and no step lowers it. A quarantine begins and ends
// with the max TTL that the client knows to be agreed.
func TestNumbersOfEachStep(t *testing.T) {
	c := onServer(t)
	before := scripts.Record{
		Masters: five, Epoch: 4, Raised: 77, Alone: 4, Longest: 300 * time.Second, Quarantine: 400 * time.Second,
	}
	const smaller, larger = 200 * time.Second, 600 * time.Second
	for _, step := range []scripts.AdmitStep{scripts.AdmitStart, scripts.AdmitEnd, scripts.AdmitNow, scripts.AdmitGuard,
		scripts.AdmitSettle, scripts.AdmitEpoch, scripts.AdmitRewrite} {
		for _, admitted := range []bool{false, true} {
			if admitted && step == scripts.AdmitEnd {
				continue
			}
			for _, number := range []time.Duration{smaller, larger} {
				before.Admitted, before.Since = admitted, c.now()-700*second
				c.has(before)
				r := c.request(step)
				r.Record = scripts.Record{Masters: three, Epoch: 3, Longest: number, Quarantine: number}
				c.wantAdmit(scripts.AdmitTooEarly, r)
				r.Record.Epoch = 5
				got, want := c.done(r), before.Longest
				switch {
				case step == scripts.AdmitStart, step == scripts.AdmitEnd, step == scripts.AdmitNow && !admitted:
					want = number
				case step == scripts.AdmitGuard:
					want = max(want, number)
				}
				if got.Longest != want || got.Quarantine != max(before.Quarantine, number) || got.Epoch < before.Epoch {
					t.Errorf("%s with %v changed %+v to\n%+v", step, number, before, got)
				}
			}
		}
	}
}

// Raising the numbers changes nothing else of a record, in quarantine or not.
func TestGuardAndSettleChangeNothingElse(t *testing.T) {
	c := onServer(t)
	for _, step := range []scripts.AdmitStep{scripts.AdmitGuard, scripts.AdmitSettle} {
		for _, admitted := range []bool{false, true} {
			want := scripts.Record{Home: "h", Masters: five, Next: three, Epoch: 4, Raised: 77, Alone: 4, Longest: guard,
				Quarantine: guard, Admitted: admitted, Since: c.now() - 5*second}
			c.has(want)
			r := c.request(step)
			r.Record = scripts.Record{Masters: "i", Epoch: 9, Home: "x", Longest: guard, Quarantine: 10 * guard,
				Admitted: !admitted}
			want.Identity, want.Quarantine = r.Identity, 10*guard
			if got := c.done(r); got != want {
				t.Errorf("%s: %+v, want %+v", step, got, want)
			}
		}
	}
}

func TestAnEpochIsRaised(t *testing.T) {
	c := onServer(t)
	c.has(scripts.Record{Masters: three, Longest: guard, Quarantine: guard, Admitted: true, Since: 5})
	r := c.request(scripts.AdmitEpoch)
	c.wantAdmit(scripts.AdmitTooEarly, r) // the request has no epoch
	r.Record = scripts.Record{Masters: three, Next: five, Epoch: 1, Alone: 0}
	a := c.wantAdmit(scripts.AdmitDone, r)
	want := scripts.Record{Identity: r.Identity, Masters: three, Next: five, Epoch: 1, Raised: a.Time, Longest: guard,
		Quarantine: guard,
		Admitted:   true, Since: 5}
	if got := parse(t, a.Record); got != want {
		t.Errorf("record %+v, want %+v", got, want)
	}
	r.Seen, r.Record.Alone = a.Record, 1 // the same epoch keeps its age
	if want.Alone = 1; c.done(r) != want {
		t.Errorf("record %q, want %q", c.text(prefix.Admission()), want)
	}
	r.Seen, r.Record = c.text(prefix.Admission()), scripts.Record{Masters: five, Epoch: 2, Alone: 2}
	a = c.wantAdmit(scripts.AdmitDone, r)
	want.Masters, want.Next, want.Epoch, want.Alone, want.Raised = five, "", 2, 2, a.Time
	if got := parse(t, a.Record); got != want {
		t.Errorf("record %+v, want %+v", got, want)
	}
}

// A record is always written with the server's own identity, regardless of the one that the caller believes.
func TestRecordsAreWrittenForThisServerOnly(t *testing.T) {
	c := onServer(t)
	steps := []scripts.AdmitStep{scripts.AdmitStart, scripts.AdmitEnd, scripts.AdmitNow, scripts.AdmitGuard,
		scripts.AdmitSettle, scripts.AdmitEpoch, scripts.AdmitRewrite}
	for _, step := range append(steps, scripts.AdmitReplace) {
		r := c.request(step)
		r.Identity = "f00/ba4/7"
		c.wantAdmit(scripts.AdmitOtherIdentity, r)
		r = c.request(step)
		r.Seen = "v3 another"
		c.wantAdmit(scripts.AdmitOtherRecord, r)
	}
	// A quarantine of another server does not count for this one, and its record must not be changed.
	for _, there := range []string{"", "v1 id=a/b guard=1 epoch=0 state=admitted", "nonsense",
		scripts.Record{Identity: "f00/ba4/7", Masters: three, Longest: guard, Quarantine: guard,
			Since: c.now() - 60*second}.String()} {
		c.must("SET", prefix.Admission(), there)
		for _, step := range steps {
			if step != scripts.AdmitStart {
				r := c.request(step)
				r.Record.Epoch = 1
				c.wantAdmit(scripts.AdmitTooEarly, r)
			}
		}
		c.wantAdmit(scripts.AdmitTooEarly, c.request(scripts.AdmitNow))
		if r := c.done(c.request(scripts.AdmitStart)); r.Admitted || r.Identity == "f00/ba4/7" {
			t.Errorf("record %+v", r)
		}
	}
}

// H69: after a backlog was freed the identity is written again without a quarantine, if the server is the same and no
// longer has a second replication id.
func TestAFreedBacklogIsNoChange(t *testing.T) {
	c := onServer(t)
	own := c.request(scripts.AdmitRead).Identity
	run := own[:40]
	for identity, want := range map[string]scripts.AdmitResult{
		run + "/ab12/77": scripts.AdmitDone, own: scripts.AdmitDone,
		"ab12/ab12/77": scripts.AdmitTooEarly, run + "0/ab12/77": scripts.AdmitTooEarly, "/" + run: scripts.AdmitTooEarly,
	} {
		before := scripts.Record{Identity: identity, Masters: three, Longest: guard, Quarantine: guard, Admitted: true,
			Since: 5}
		c.has(before)
		a := c.wantAdmit(want, c.request(scripts.AdmitRewrite))
		if before.Identity = own; want == scripts.AdmitDone && parse(t, a.Record) != before {
			t.Errorf("record %s, want %s", a.Record, before)
		}
	}
	c.must("REPLICAOF", "127.0.0.1", "1") // a promotion sets a second id
	c.must("REPLICAOF", "NO", "ONE")
	c.has(scripts.Record{Identity: own, Masters: three, Longest: guard, Quarantine: guard, Admitted: true, Since: 5})
	c.wantAdmit(scripts.AdmitTooEarly, c.request(scripts.AdmitRewrite))
}

// H96: under another record than the expected one every acquire abstains and writes nothing, including repairs and
// downgrades, because the master may have lost its data since the caller's round began. Under the expected record a
// repair works in quarantine (H83).
func TestAsksUnderAnotherRecordAbstain(t *testing.T) {
	c := onServer(t)
	now, id := c.now(), grant(me, 1)
	here := scripts.Record{Identity: "a/b/-1", Masters: three, Epoch: 3, Longest: 20 * time.Second, Quarantine: guard,
		Since: now}.String()
	shared := scripts.ShareID(me, 1, scripts.Reader, now, "")
	readers := prefix.KeysOf("a", scripts.Reader)
	ticket := scripts.NewTicket(scripts.Plain, me, 1, "", now, 0)
	asks := map[string]*scripts.Call{
		"acquire":       enc.Acquire(keys("a"), id, ttl, now, now, ticket),
		"import":        enc.Import(keys("a"), id, id+"previous", ttl, now, now),
		"repair":        enc.Repair(keys("a"), id, "", ttl, now, now, 1, ""),
		"reader":        enc.Acquire(&readers, shared, ttl, now, now, nil),
		"downgrade":     enc.Import(&readers, shared, id, ttl, now, now),
		"shared repair": enc.Repair(&readers, shared, "", ttl, now, now, 1, ""),
	}
	for _, there := range []string{here, "v1 nonsense", ""} {
		if c.must("DEL", prefix.Admission()); there != "" {
			c.must("SET", prefix.Admission(), there)
		}
		size := c.must("DBSIZE")
		for name, ask := range asks {
			v := c.stamped(ask, "v3 another")
			if v.Outcome != scripts.Abstained || v.Record != there || v.Time < now || c.must("DBSIZE") != size {
				t.Errorf("%s: %+v, %v keys", name, v, c.must("DBSIZE"))
			}
		}
	}
	c.must("SET", prefix.Admission(), here)
	for _, name := range []string{"repair", "shared repair"} {
		if v := c.stamped(asks[name], here); v.Outcome != scripts.Granted {
			t.Errorf("%s under the record of a quarantine: %+v", name, v)
		}
		c.must("DEL", prefix.Lock("a"), prefix.Fence("a"))
	}
}

// H83: an extension works under another record, within its max TTL and epoch.
func TestAnExtensionUnderAnotherRecord(t *testing.T) {
	c := onServer(t)
	now, id := c.now(), grant(me, 1)
	here := scripts.Record{Identity: "a/b/-1", Masters: three, Epoch: 3, Longest: 20 * time.Second, Quarantine: guard,
		Since: now}.String()
	c.must("SET", prefix.Admission(), here)
	c.want(scripts.Granted, acquire("a", id, now))
	old := scripts.NewEncoder(prefix, 2)
	for _, refused := range []*scripts.Call{
		enc.Extend(keys("a"), id, 21*time.Second, 1, ""), old.Extend(keys("a"), id, ttl, 1, ""),
	} {
		if v := c.stamped(refused, "v3 another"); v.Outcome != scripts.Refused || v.Record != here {
			t.Errorf("another TTL or epoch: %+v", v)
		}
	}
	if v := c.stamped(enc.Extend(keys("a"), id, 20*time.Second, 1, ""), "v3 another"); v.Outcome != scripts.Granted {
		t.Errorf("in quarantine: %+v", v)
	}
	// H75: an extension reports that the lock is missing.
	c.must("DEL", prefix.Lock("a"))
	if v := c.stamped(old.Extend(keys("a"), id, ttl, 1, ""), "v3 another"); v.Outcome != scripts.Missing {
		t.Errorf("missing lock: %+v", v)
	}
}

// A shard is written with a whole record, and other steps do not change it.
func TestAdmitKeepsTheGroup(t *testing.T) {
	c := onServer(t)
	start := c.request(scripts.AdmitStart)
	start.Record.Shard = scripts.Shard{Number: 2, Of: 3}
	c.wantAdmit(scripts.AdmitDone, start)
	for _, step := range []scripts.AdmitStep{
		scripts.AdmitSettle, scripts.AdmitGuard, scripts.AdmitEpoch, scripts.AdmitRewrite, scripts.AdmitNow,
	} {
		r := c.request(step)
		there := c.wantAdmit(scripts.AdmitDone, c.request(scripts.AdmitRead))
		if r.Seen, r.Record.Epoch = there.Record, 1; step == scripts.AdmitNow {
			r.Record.Shard = scripts.Shard{Number: 1, Of: 2}
		}
		done := c.wantAdmit(scripts.AdmitDone, r)
		if got := parse(t, done.Record).Shard; (got == start.Record.Shard) != (step != scripts.AdmitNow) {
			t.Errorf("%s: shard %v", step, got)
		}
	}
}

// H98, H120: a step of a client whose masters differ from those of the record at its epoch writes nothing. An operator
// may replace such a record, which starts a quarantine.
func TestAdmitRefusesOtherMasters(t *testing.T) {
	c := onServer(t)
	for _, admitted := range []bool{false, true} {
		for _, step := range []scripts.AdmitStep{scripts.AdmitStart, scripts.AdmitEnd, scripts.AdmitNow, scripts.AdmitGuard,
			scripts.AdmitSettle, scripts.AdmitEpoch, scripts.AdmitRewrite} {
			c.has(scripts.Record{Masters: five, Epoch: 2, Longest: guard, Quarantine: guard, Admitted: admitted})
			r := c.request(step)
			for _, other := range []scripts.Record{{Masters: three, Epoch: 2}, {Masters: five, Next: three, Epoch: 2}} {
				r.Record = other
				c.wantAdmit(scripts.AdmitOtherMasters, r)
			}
		}
		r := c.request(scripts.AdmitReplace)
		r.Record.Epoch = 1
		c.wantAdmit(scripts.AdmitTooEarly, r)
		r.Record.Epoch = 2
		if got := c.done(r); got.Masters != three || got.Admitted {
			t.Errorf("replaced by %+v", got)
		}
	}
}

// H120: a master is admitted at once only if it has a quarantine of this server, or the record of the same durable
// master.
func TestAdmitNowNeedsTheServersOwnRecord(t *testing.T) {
	c := onServer(t)
	c.wantAdmit(scripts.AdmitTooEarly, c.request(scripts.AdmitNow))
	for home, want := range map[string]scripts.AdmitResult{"h": scripts.AdmitDone, "": scripts.AdmitTooEarly,
		"x": scripts.AdmitTooEarly} {
		c.has(scripts.Record{Identity: "f00/ba4/7", Home: home, Masters: three, Admitted: true})
		r := c.request(scripts.AdmitNow)
		r.Record.Home = "h"
		c.wantAdmit(want, r)
	}
	c.has(scripts.Record{Identity: "f00/ba4/7", Home: "h", Masters: three})
	r := c.request(scripts.AdmitNow)
	r.Record.Home = "h"
	c.wantAdmit(scripts.AdmitTooEarly, r)
}

// Each write of a record changes its stamp, and calls compare only the stamp.
func TestStampsAreCompared(t *testing.T) {
	c := onServer(t)
	c.done(c.request(scripts.AdmitStart))
	first := c.text(prefix.Admission())
	c.done(c.request(scripts.AdmitSettle))
	second := c.text(prefix.Admission())
	now := c.now()
	for i, text := range []string{first, second} {
		stamp := scripts.StampOf(text)
		if len(stamp) != 19 {
			t.Errorf("stamp %q", stamp)
		}
		ask := enc.Acquire(keys(fmt.Sprint("n", i)), grant(me, 1), ttl, now, now, nil)
		want := []scripts.Outcome{scripts.Abstained, scripts.Granted}[i]
		if v := c.stamped(ask, stamp); v.Outcome != want {
			t.Errorf("stamp %d: %v", i, v.Outcome)
		}
	}
}
