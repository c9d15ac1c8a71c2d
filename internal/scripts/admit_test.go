package scripts_test

import (
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/skew"
)

const guard = 30 * time.Second

// three and five are lists of masters, as records contain them.
const three, five = "a,b,c", "a,b,c,d,e"

func (c *client) admit(r scripts.AdmitRequest) scripts.Admission {
	c.t.Helper()
	reply := must.Get(c.run(enc.Admit(r), ""))(c.t)
	return must.Get(scripts.DecodeAdmission(reply))(c.t)
}

// request returns a valid request for a step: it contains the present identity and record.
func (c *client) request(step scripts.AdmitStep) scripts.AdmitRequest {
	c.t.Helper()
	seen := c.admit(scripts.AdmitRequest{Step: scripts.AdmitRead})
	return scripts.AdmitRequest{
		Step: step, Identity: seen.Identity, Seen: seen.Record, Median: seen.Time, Tolerance: skew.Window,
		Record: scripts.Record{Masters: three, MaxTTL: guard, Quarantine: guard},
	}
}

// wantAdmit runs a step and checks its result. It also checks that the record changes only if the step succeeds.
func (c *client) wantAdmit(want scripts.AdmitResult, r scripts.AdmitRequest) scripts.Admission {
	c.t.Helper()
	before := c.text(prefix.Admission())
	got := c.admit(r)
	if got.Result != want {
		c.t.Errorf("step %s returned %+v, want result %d", r.Step, got, want)
	}
	reads := got.Result != scripts.AdmitDone || r.Step == scripts.AdmitRead
	if now := c.text(prefix.Admission()); now != got.Record || reads && now != before {
		c.t.Errorf("step %s: the record was %q and is %q, but %q is reported", r.Step, before, now, got.Record)
	}
	return got
}

// done runs a step that must succeed, and returns the record.
func (c *client) done(r scripts.AdmitRequest) scripts.Record {
	c.t.Helper()
	return parse(c.t, c.wantAdmit(scripts.AdmitDone, r).Record)
}

// parse parses a record and clears its stamp, which differs with each write.
func parse(t testing.TB, text string) scripts.Record {
	t.Helper()
	r := must.Get(scripts.ParseRecord(text))(t)
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

// H95, H80, H81: no step shortens the quarantine or writes a smaller epoch, regardless of the values that its client
// has read. Only the step max-ttl raises the max TTL of a master that votes, and no step reduces it. When a quarantine
// begins or ends, the record gets the max TTL of the request.
func TestNumbersOfEachStep(t *testing.T) {
	c := onServer(t)
	before := scripts.Record{
		Masters: five, Epoch: 4, Raised: 77, Final: 4, MaxTTL: 300 * time.Second, Quarantine: 400 * time.Second,
	}
	const smaller, larger = 200 * time.Second, 600 * time.Second
	for _, step := range []scripts.AdmitStep{scripts.AdmitStart, scripts.AdmitEnd, scripts.AdmitNow, scripts.AdmitMaxTTL,
		scripts.AdmitSettle, scripts.AdmitEpoch, scripts.AdmitRewrite} {
		for _, admitted := range []bool{false, true} {
			if admitted && step == scripts.AdmitEnd {
				continue
			}
			for _, number := range []time.Duration{smaller, larger} {
				before.Admitted, before.Since = admitted, c.now()-700*second
				c.has(before)
				r := c.request(step)
				r.Record = scripts.Record{Masters: three, Epoch: 3, MaxTTL: number, Quarantine: number}
				c.wantAdmit(scripts.AdmitTooEarly, r)
				r.Record.Epoch = 5
				got, want := c.done(r), before.MaxTTL
				switch {
				case step == scripts.AdmitStart, step == scripts.AdmitEnd, step == scripts.AdmitNow && !admitted:
					want = number
				case step == scripts.AdmitMaxTTL:
					want = max(want, number)
				}
				if got.MaxTTL != want || got.Quarantine != max(before.Quarantine, number) || got.Epoch < before.Epoch {
					t.Errorf("step %s with %v changed %+v to\n%+v", step, number, before, got)
				}
			}
		}
	}
}

// H98, H120: if a client's masters differ from those that the record contains for its epoch, a step of this client
// writes nothing. An operator may replace such a record, which starts a quarantine.
func TestAdmitRefusesOtherMasters(t *testing.T) {
	c := onServer(t)
	for _, admitted := range []bool{false, true} {
		for _, step := range []scripts.AdmitStep{scripts.AdmitStart, scripts.AdmitEnd, scripts.AdmitNow, scripts.AdmitMaxTTL,
			scripts.AdmitSettle, scripts.AdmitEpoch, scripts.AdmitRewrite} {
			c.has(scripts.Record{Masters: five, Epoch: 2, MaxTTL: guard, Quarantine: guard, Admitted: admitted})
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
			t.Errorf("the record was replaced by %+v", got)
		}
	}
}

// H120: a master is admitted immediately only if its record describes a quarantine of this server, or is the record
// of the same durable master.
func TestAdmitNowNeedsTheServersOwnRecord(t *testing.T) {
	c := onServer(t)
	c.wantAdmit(scripts.AdmitTooEarly, c.request(scripts.AdmitNow))
	for name, want := range map[string]scripts.AdmitResult{"h": scripts.AdmitDone, "": scripts.AdmitTooEarly,
		"x": scripts.AdmitTooEarly} {
		c.has(scripts.Record{Identity: "f00/ba4/7", DurableName: name, Masters: three, Admitted: true})
		r := c.request(scripts.AdmitNow)
		r.Record.DurableName = "h"
		c.wantAdmit(want, r)
	}
	c.has(scripts.Record{Identity: "f00/ba4/7", DurableName: "h", Masters: three})
	r := c.request(scripts.AdmitNow)
	r.Record.DurableName = "h"
	c.wantAdmit(scripts.AdmitTooEarly, r)
}
