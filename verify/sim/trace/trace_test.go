package trace_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/verify/sim/trace"
)

const (
	second = int64(1e6)
	stamp  = "v4 0000000000000001"
	record = stamp + " id=a masters=a,b,c epoch=0 maxttl=10000 quarantine=30000 state=admitted since=5"
	pause  = stamp + " id=a masters=a,b,c epoch=0 maxttl=10000 quarantine=30000 state=quarantine since=1000000"
)

// on returns an event of master 0 at the given time of its clock, for lease "A" of name "n".
func on(clock int64, kind string, reply int64, with func(e *trace.Event)) trace.Event {
	e := trace.Event{
		At: time.Duration(clock) * time.Microsecond, Clock: clock, Kind: kind, Name: "n", Lease: "A", Reply: reply,
		Stamp: stamp, Admission: trace.Admission{Record: record, Own: true}, TTL: 10 * time.Second,
	}
	if with != nil {
		with(&e)
	}
	return e
}

func grant(clock int64, with func(e *trace.Event)) trace.Event {
	return on(clock, trace.Acquire, 1, func(e *trace.Event) {
		e.First, e.Last = clock, clock
		if with != nil {
			with(e)
		}
	})
}

func other(e *trace.Event) { e.Lease = "B" }

// older changes e to lease "B" with a ballot of 100 s.
func older(e *trace.Event) { e.Lease, e.First, e.Last = "B", 100*second, 100*second }

// The last event of each list violates only the rule that is the key of the list; the earlier events violate no rule.
func TestEventsThatBreakARule(t *testing.T) {
	repair := func(clock int64, with func(e *trace.Event)) trace.Event {
		return grant(clock, func(e *trace.Event) {
			e.Kind = trace.Repair
			if with != nil {
				with(e)
			}
		})
	}
	missing := on(100*second, trace.Extend, 5, nil)
	admit := func(clock int64, step, record string) trace.Event {
		return on(clock, trace.Admit, 1, func(e *trace.Event) { e.Step, e.Record = step, record })
	}
	for rule, list := range map[string][]trace.Event{
		"votes": {grant(100*second, func(e *trace.Event) { e.Record = pause })},
		"free":  {grant(100*second, nil), grant(101*second, other)},
		"fence": {
			grant(100*second, nil),
			on(101*second, trace.Release, 1, func(e *trace.Event) { e.Ended, e.TTL = []string{"A"}, 0 }),
			grant(102*second, older),
		},
		"fence ": { // a repeated acquire finds a lease that has expired by the master's clock, but not one that was released
			grant(100*second, nil),
			grant(111*second, func(e *trace.Event) { e.First, e.Last = 100*second, 100*second }),
			on(112*second, trace.Release, 1, func(e *trace.Event) { e.Ended, e.TTL = []string{"A"}, 0 }),
			grant(112*second, func(e *trace.Event) { e.First, e.Last = 100*second, 100*second }),
		},
		"window":  {grant(100*second, func(e *trace.Event) { e.First, e.Last = 85*second, 85*second })},
		"present": {grant(100*second, nil), on(101*second, trace.Extend, 1, other)},
		"import": {
			grant(100*second, nil),
			grant(101*second, func(e *trace.Event) { e.Kind, e.Lease, e.Previous = trace.Import, "B", "C" }),
		},
		"missing": {missing, {Kind: trace.Forget}, repair(101*second, nil)},
		"token":   {grant(100*second, nil), {Kind: trace.Hold, Name: "n", Token: 100 * second}},
		"quarantine": {
			admit(2*second, "start", pause), admit(20*second, "end", record)},
		"record": {
			admit(2*second, "start", pause), admit(40*second, "end", record),
			admit(41*second, "settle", strings.NewReplacer("1 id", "2 id", "maxttl=10000", "maxttl=20000").Replace(record)),
		},
	} {
		c := trace.NewChecker(3, false)
		for i := range list {
			problems := c.Check(&list[i])
			switch last := i == len(list)-1; {
			case last && (len(problems) != 1 || !strings.Contains(problems[0], `"`+strings.TrimSpace(rule)+`"`)):
				t.Errorf("%s: the last event has the violations %q, want one violation of this rule", rule, problems)
			case !last && len(problems) > 0:
				t.Errorf("%s: event %d has the violations %q, want none", rule, i, problems)
			}
		}
	}
}

// Events that the specification allows do not violate a rule.
func TestEventsThatBreakNoRule(t *testing.T) {
	list := []trace.Event{
		grant(100*second, nil),
		grant(100*second+1, func(e *trace.Event) { e.First, e.Last = 100*second, 100*second }), // a duplicate
		grant(100*second, func(e *trace.Event) { e.Master = 1 }),
		{Kind: trace.Hold, Name: "n", Token: 100 * second},
		on(105*second, trace.Extend, 1, nil),
		on(106*second, trace.Acquire, 2, other), // refused
		on(106*second, trace.Extend, 5, func(e *trace.Event) { e.Master = 2 }),
		grant(106*second, func(e *trace.Event) { e.Kind, e.Master = trace.Repair, 2 }),
		{Kind: trace.Forget},
		grant(140*second, other),
	}
	c := trace.NewChecker(3, false)
	for i := range list {
		if problems := c.Check(&list[i]); problems != nil {
			t.Errorf("event %d has the violations %q, want none", i, problems)
		}
	}
}

// A master has an older server's record, and its clock is far ahead. Clients cannot replace the record, and repair the
// master as soon as its clock is right. Without the wrong clock they must have replaced the record.
func TestRepairUnderTheRecordOfAnEarlierServer(t *testing.T) {
	for _, ahead := range []int64{0, 3600 * second} {
		earlier := func(e *trace.Event) { e.Own = false }
		read := func(at, clock int64) trace.Event {
			return on(clock, trace.Admit, 1, func(e *trace.Event) {
				e.At, e.Step, e.Lease = time.Duration(at)*time.Microsecond, "read", ""
				earlier(e)
			})
		}
		list := []trace.Event{
			grant(100*second+1, func(e *trace.Event) { e.At, e.Master = 100*time.Second, 1 }),
			grant(100*second+1, func(e *trace.Event) { e.At, e.Master = 100*time.Second, 2 }),
			{Kind: trace.Restart},
			{Kind: trace.Forget},
			read(101*second, 101*second+1+ahead),
			on(102*second+1, trace.Extend, 5, func(e *trace.Event) { e.At = 102 * time.Second; earlier(e) }),
			grant(103*second+1, func(e *trace.Event) { e.At, e.Kind = 103*time.Second, trace.Repair; earlier(e) }),
		}
		c := trace.NewChecker(3, false)
		var problems []string
		for i := range list {
			problems = append(problems, c.Check(&list[i])...)
		}
		if wrong := len(problems) > 0; wrong != (ahead == 0) {
			t.Errorf("with a clock %d us ahead, the violations are %q", ahead, problems)
		}
	}
}
