package admission

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/ballot"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/scripts/reference"
)

const (
	epoch = int64(1_700_000_000_000_000) // a plausible time of masters, in microseconds
	guard = 40 * time.Second
	zeros = noReplid2
	taken = "/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/7" // master_replid2 and second_repl_offset after a promotion
)

// list returns the list of the first n masters, with one letter for each.
func list(n int) string { return "abcdefg"[:n] }

// config returns the configuration of n masters at epoch 0.
func config(n int) *quorum.Config {
	c := &quorum.Config{Rule: quorum.Rule{Old: quorum.First(n)}, Slots: n, Masters: list(n)}
	for i := range n {
		c.Order = append(c.Order, i)
	}
	c.Tracked = c.Rule
	return c
}

// record returns the record of an admitted server, for five masters.
func record(identity string) scripts.Record {
	return scripts.Record{Identity: identity, Masters: list(5), MaxTTL: guard, Quarantine: guard, Admitted: true,
		Since: epoch}
}

// with returns the fact of a connected server whose record was read.
func with(identity string, r scripts.Record) Fact {
	f := Fact{Known: true, Up: true, Identity: identity, Own: epoch}
	f.Learn(r.String(), 1, 1)
	return f
}

// empty returns the fact of a connected server without a record.
func empty(identity string) Fact {
	f := Fact{Known: true, Up: true, Identity: identity, Own: epoch}
	f.Learn("", 1, 1)
	return f
}

// deployment returns a Deployment of five masters, for a client whose max TTL is guard. The fact of master 0 is own,
// and masters that are not in others are healthy.
func deployment(own Fact, others ...Fact) *Deployment {
	f := &Deployment{
		Config: config(5), MaxTTL: guard, Facts: []Fact{own}, Addr: func(i int) string { return fmt.Sprint("master", i) },
		Clocks: ballot.Reading{Median: epoch, Latest: epoch, First: epoch, Known: quorum.First(5)},
	}
	f.Facts = append(f.Facts, others...)
	for i := len(f.Facts); i < 5; i++ {
		id := fmt.Sprint("f", i) + zeros
		f.Facts = append(f.Facts, with(id, record(id)))
	}
	return f
}

func pending(identity string, since int64, quarantine time.Duration) scripts.Record {
	r := record(identity)
	r.Admitted, r.Since, r.Quarantine = false, since, quarantine
	return r
}

// quarantined returns the fact of a server in quarantine, with all records read since the quarantine began.
func quarantined(since int64, quarantine time.Duration) Fact {
	f := with("a"+zeros, pending("a"+zeros, since, quarantine))
	f.Began = 0
	return f
}

func changed(f Fact, how func(*Fact)) Fact {
	how(&f)
	return f
}

// H128: Judge returns the phase and the step of each row for master 0 of five, while the other masters vote.
func TestJudgeAsTable(t *testing.T) {
	again := strings.Replace(taken, "7", "8", 1)
	backlog := func(d time.Duration) func(*Fact) { return func(f *Fact) { f.Backlog = d } }
	ahead := func(us int64) func(*Fact) { return func(f *Fact) { f.Own += us } }
	named := func(f *Fact) { f.DurableName = "h:1" }
	off := func(f *Fact) { f.Off = -16 * time.Second }
	moved := func(f Fact) Fact { f.Moved = true; return f }
	id := "a" + zeros
	durable := record(id)
	durable.DurableName = "h:1"
	lossy := func(f *Fact) { f.DurableName, f.Lossy = "h:1", "appendonly no" }
	later := record(id)
	later.Epoch, later.Raised, later.Final = 2, epoch, 2
	final := later
	later.Masters = "vwxyz"
	over := epoch - guard.Microseconds()
	for _, c := range []struct {
		name  string
		own   Fact
		phase Phase
		step  scripts.AdmitStep
		err   string
	}{
		{"not heard of", Fact{}, Connecting, "", ""},
		{"down", Fact{Known: true, Err: errors.New("gone")}, Down, "", "gone"},
		{"not read", Fact{Known: true, Up: true, Identity: id}, Connecting, scripts.AdmitRead, ""},
		{"may not be read", Fact{Known: true, Up: true, Err: errors.New("NOPERM")}, Blocked, scripts.AdmitRead, "NOPERM"},
		{"voting", with(id, record(id)), Voting, "", ""},
		{"voting, its clock is off", changed(with(id, record(id)), off), Voting, "", ""},
		{"another version", func() Fact { f := empty(id); f.Learn("v1 id=a", 1, 1); return f }(), Blocked, "", "v4"},
		{"later epoch, same masters", with(id, final), Blocked, "", "which this client adopts as soon as"},
		{"later epoch", with(id, later), Blocked, "", ErrOldMasters.Error()},
		{"later epoch, restarted: H120", with("b"+zeros, later), Blocked, "", ErrOldMasters.Error()},

		{"new", empty(id), Connecting, scripts.AdmitStart, ""},
		{"new, its record cannot be written: H56", changed(empty(id), func(f *Fact) { f.Err = errors.New("OOM") }),
			Blocked, scripts.AdmitStart, "OOM"},
		{"restarted: H53", with("b"+zeros, record(id)), Connecting, scripts.AdmitStart, ""},
		{"promoted: H57", with("a"+taken, record(id)), Connecting, scripts.AdmitStart, ""},
		{"promoted again: H57", with("a"+again, record("a"+taken)), Connecting, scripts.AdmitStart, ""},
		{"backlog freed: H69", with(id, record("a"+taken)), Voting, scripts.AdmitRewrite, ""},
		{"restarted, after a promotion", with("b"+zeros, record("a"+taken)), Connecting, scripts.AdmitStart, ""},
		{"new, its clock is off: H91", changed(empty(id), off), Blocked, "", "clock is 16s behind"},

		{"durable, restarted", changed(with("b"+zeros, durable), named), Connecting, scripts.AdmitNow, ""},
		{"durable, restarted, off", changed(changed(with("b"+zeros, durable), named), off), Connecting, scripts.AdmitNow, ""},
		{"durable, after eviction: H52", moved(changed(with(id, durable), named)), Connecting, scripts.AdmitStart, ""},
		{"durable, restarted after eviction: H52", moved(changed(with("b"+zeros, durable), named)), Connecting,
			scripts.AdmitStart, ""},
		{"durable, empty", changed(empty("b"+zeros), named), Connecting, scripts.AdmitStart, ""},
		{"durable, another's memory", changed(with("b"+zeros, record(id)), named), Connecting, scripts.AdmitStart, ""},
		{"durable, promoted in its place", changed(with("b"+taken, durable), named), Connecting, scripts.AdmitStart, ""},
		{"durable, same process, promoted", changed(with("a"+taken, durable), named), Connecting, scripts.AdmitStart, ""},
		{"durable, restarted in quarantine", changed(with("b"+zeros, func() scripts.Record {
			r := durable
			r.Admitted = false
			return r
		}()), named), Connecting, scripts.AdmitStart, ""},
		{"not named any more", with("b"+zeros, durable), Connecting, scripts.AdmitStart, ""},
		{"named since", changed(with(id, record(id)), named), Voting, scripts.AdmitNow, ""},
		{"named since, but lossy: H162", changed(with(id, record(id)), lossy), Voting, "", ""},
		{"durable, now lossy: H162", changed(with(id, durable), lossy), Blocked, "", "`CONFIG SET appendonly yes`"},
		{"durable, restarted lossy: H162", changed(with("b"+zeros, durable), lossy), Connecting, scripts.AdmitStart, ""},

		{"in quarantine", quarantined(epoch, guard), InQuarantine, "", ErrQuarantine.Error()},
		{"one microsecond before the end", quarantined(over+1, guard), InQuarantine, "", ""},
		{"at the end", quarantined(over, guard), InQuarantine, scripts.AdmitEnd, ""},
		{"over, its clock is off: H91", changed(quarantined(over, guard), off), Blocked, "", "clock is 16s behind"},
		{"at the end, and the one before went on: H128", changed(quarantined(over, guard),
			func(f *Fact) { f.Late = 1 }), InQuarantine, scripts.AdmitSettle, ""},
		{"too short: H75", quarantined(over, 30*time.Second), InQuarantine, scripts.AdmitSettle, ""},
		{"begun by clocks that were far ahead", quarantined(epoch+3600e6, guard), InQuarantine, scripts.AdmitStart, ""},
		{"over by its own clock only: H91", changed(quarantined(over+1, guard), ahead(10e6)), InQuarantine, "", ""},
		{"over by the median only", changed(quarantined(over, guard), ahead(-1)), InQuarantine, "", ""},
		{"backlog is freed too soon", changed(with(id, record(id)), backlog(guard-1)), Blocked, "", "repl-backlog-ttl"},
		{"backlog is freed late enough", changed(with(id, record(id)), backlog(guard)), Voting, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := deployment(c.own)
			st, m := f.Judge(0)
			if st.Phase != c.phase || m.Step != c.step || !strings.Contains(fmt.Sprint(st.Err), c.err) {
				t.Errorf("Judge returned %v, step %q, %v; want %v, step %q, %s", st.Phase, m.Step, st.Err, c.phase, c.step, c.err)
			}
			if (st.Phase == Voting) != (st.Err == nil) && st.Phase != Connecting {
				t.Errorf("the phase %v has the error %v", st.Phase, st.Err)
			}
			if st.ClockOff != (c.own.Off.Abs() > 15*time.Second) {
				t.Error("wrong ClockOff (H93)")
			}
			f.Observer = true
			if _, m := f.Judge(0); m.Step != "" && m.Step != scripts.AdmitRead {
				t.Errorf("an observer makes the step %q (H72)", m.Step)
			}
			f.Observer, f.MaxTTL = false, 0
			if st, m := f.Judge(0); c.own.Up && st.Phase != Voting || m.Step != "" && m.Step != scripts.AdmitRead {
				t.Errorf("with the guard off Judge returned %v, step %q", st.Phase, m.Step)
			}
		})
	}
}

// H75, H80, H81, H128: every written record contains the largest max TTL and the largest quarantine that were read
// from any master. The quarantine is also at least as long as this max TTL, the client's max TTL and 30 s.
func TestNumbersOfAWrittenRecord(t *testing.T) {
	other := func(longest, quarantine time.Duration) Fact {
		r := record("x" + zeros)
		r.MaxTTL, r.Quarantine = longest, quarantine
		return with("x"+zeros, r)
	}
	down := Fact{Known: true}
	blank := empty("n" + zeros)
	minute := time.Minute
	late := changed(blank, func(f *Fact) { f.Late = 5 * time.Second })
	for _, c := range []struct {
		name                string
		guard               time.Duration
		facts               []Fact
		longest, quarantine time.Duration
	}{
		{"the others' are larger", 10 * time.Second, []Fact{blank, other(minute, minute)}, minute, minute},
		{"the others' are smaller: the max TTL is the deployment's", 5 * minute,
			[]Fact{blank, other(minute, minute), down, down, down}, minute, 5 * minute},
		{"the max TTL is being raised: H80", guard, []Fact{blank, other(guard, 5*minute)}, guard, 5 * minute},
		{"one that is down was read before", guard,
			[]Fact{blank, func() Fact { f := other(minute, minute); f.Lose(); return f }()}, minute, minute},
		{"its own old record is the largest", guard, []Fact{other(2*minute, 3*minute)}, 2 * minute, 3 * minute},
		{"one that was promoted: H128", guard, []Fact{late, other(minute, minute)}, minute, minute + 5*time.Second},
		{"one that was promoted, with room: H128", guard, []Fact{late, other(minute, 2*minute)}, minute, 2 * minute},
		{"another was promoted: H128", guard, []Fact{blank, late, other(minute, minute)}, minute, minute},
		{"a new deployment", minute, []Fact{blank, blank, blank, blank, blank}, minute, minute},
		{"a new deployment, short", 5 * time.Second, []Fact{blank, blank, blank, blank, blank}, 5 * time.Second, Shortest},
		{"a new deployment, by a quorum", minute, []Fact{blank, blank, blank, down, down}, minute, minute},
		{"nothing is known of the deployment", minute, []Fact{blank, blank, down, down, down}, Shortest, minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := deployment(c.facts[0], c.facts[1:]...)
			f.MaxTTL = c.guard
			f.Facts[0].Identity = "new" + zeros
			_, m := f.Judge(0)
			if m.Step != scripts.AdmitStart || m.Record.MaxTTL != c.longest || m.Record.Quarantine != c.quarantine {
				t.Errorf("step %q writes %v and %v, want %v and %v",
					m.Step, m.Record.MaxTTL, m.Record.Quarantine, c.longest, c.quarantine)
			}
		})
	}
}

// No quarantine begins while the record of another master has yet to be read, since that record may contain a longer
// max TTL or quarantine, or while the clocks of too few masters can be compared.
func TestFirstStartWaitsForOthers(t *testing.T) {
	for name, other := range map[string]Fact{"not heard of": {}, "not read": {Known: true, Up: true}} {
		if st, m := deployment(empty("a"+zeros), other).Judge(0); st.Phase != Connecting || m.Step != "" {
			t.Errorf("%s: Judge returned %v, step %q, want to wait", name, st.Phase, m.Step)
		}
	}
	f := deployment(empty("a" + zeros))
	f.Clocks.Known = quorum.First(2)
	st, m := f.Judge(0)
	if st.Phase != Blocked || m.Step != "" || !strings.Contains(st.Err.Error(), "3 masters can be compared; 2 can") {
		t.Errorf("with too few clocks Judge returned %v, step %q, %v", st.Phase, m.Step, st.Err)
	}
}

// H81: only a client that has read the records of a quorum since a quarantine began may end that quarantine.
func TestFinishNeedsRecordsReadSinceBegin(t *testing.T) {
	over := epoch - guard.Microseconds()
	own := quarantined(over, guard)
	for asked := range uint64(4) {
		f := deployment(own)
		f.Facts[0].Began = 2
		for i := 1; i < 5; i++ {
			f.Facts[i].Asked = 2
			if i <= int(asked) {
				f.Facts[i].Asked = 3
			}
		}
		st, m := f.Judge(0)
		if asked < 2 && (m.Step != "" || m.Gather != quorum.First(5)&^quorum.First(int(asked)+1)) {
			t.Errorf("%d records read since: step %q, gathers %b", asked, m.Step, m.Gather)
		}
		if asked >= 2 && m.Step != scripts.AdmitEnd {
			t.Errorf("with %d records read since: step %q, phase %v, want the end of the quarantine", asked, m.Step, st.Phase)
		}
	}
	f := deployment(own, empty("b"+zeros), empty("c"+zeros), empty("d"+zeros))
	if _, m := f.Judge(0); m.Step == scripts.AdmitEnd {
		t.Error("masters without a record count as read")
	}
}

// H98, H104, H124: a master whose record lists other masters does not vote. Such a master does not block the others if
// a majority has been admitted in this client's configuration. Otherwise the client writes to no master.
func TestAnotherListOfMasters(t *testing.T) {
	stray := record("s" + zeros)
	stray.Masters = "a,b,c"
	f := deployment(with("a"+zeros, record("a"+zeros)), with("s"+zeros, stray), empty("e"+zeros))
	blocked := func(when string, want quorum.Set) {
		t.Helper()
		for i := range f.Facts {
			st, m := f.Judge(i)
			if (st.Phase == Blocked) != want.Has(i) || want.Has(i) && m.Step != "" {
				t.Errorf("%s: for master %d Judge returned %v, step %q, %v", when, i, st.Phase, m.Step, st.Err)
			}
			for _, part := range []string{"[a b c]", "[abcde]", "redlock quarantine --master master1"} {
				if want.Has(i) && (!errors.Is(st.Err, ErrMasterList) || !strings.Contains(st.Err.Error(), part)) {
					t.Errorf("%s, master %d: no %q in %v", when, i, part, st.Err)
				}
			}
		}
	}
	blocked("a stray record", quorum.One(1))
	if _, m := f.Judge(2); m.Step != scripts.AdmitStart {
		t.Errorf("empty master with a majority of others: step %q", m.Step)
	}
	for i := range 5 {
		if i != 1 && i != 2 {
			f.Facts[i] = with(f.Facts[i].Identity, pending(f.Facts[i].Identity, epoch, guard))
		}
	}
	blocked("a stray record before any master was admitted", quorum.First(5))
	f.Facts[1].Lose()
	blocked("the master with the stray record is down: H104", 0)

	f = deployment(with("a"+zeros, record("a"+zeros)), with("s"+zeros, stray))
	if req, err := f.Quarantine(1); err != nil || req.Step != scripts.AdmitReplace || req.Record.Masters != list(5) ||
		req.Seen != stray.String() {
		t.Errorf("the stray record was replaced by %+v, %v", req, err)
	}
	f.Facts[2], f.Facts[3] = with("s"+zeros, stray), with("s"+zeros, stray)
	if _, err := f.Quarantine(1); !errors.Is(err, ErrMasterList) {
		t.Errorf("a majority lists other masters, but a record was replaced: %v", err)
	}
	f.Facts[0], f.Facts[2], f.Facts[3], f.Facts[4] = empty("a"+zeros), empty("c"+zeros), empty("d"+zeros),
		Fact{Known: true}
	if _, err := f.Quarantine(1); err != nil {
		t.Errorf("no other master has a record: %v", err)
	}
	f.Facts[2], f.Facts[3] = Fact{Known: true}, Fact{Known: true}
	if _, err := f.Quarantine(1); err == nil {
		t.Error("most masters cannot be read, but a record was replaced")
	}
}

// H98: agrees reports whether the record of a master matches the configuration of a client. Master 0 is only in the
// old set, 1 in both sets, 2 only in the next set, and 3 is in neither set, but is being prepared.
func TestRecordsThatAgree(t *testing.T) {
	final := &quorum.Config{Epoch: 2, Rule: quorum.Rule{Old: 0b0110}, Masters: "bc"}
	joint := &quorum.Config{Epoch: 1, Rule: quorum.Rule{Old: 0b0011, Next: 0b0110}, Masters: "ab", Next: "bc"}
	first := &quorum.Config{Rule: quorum.Rule{Old: 0b0011}, Masters: "ab", Upcoming: "bcd"}
	for _, c := range []struct {
		config  *quorum.Config
		record  scripts.Record
		masters quorum.Set // the masters that agree
	}{
		{first, scripts.Record{Masters: "ab"}, 0b1111}, {first, scripts.Record{Masters: "bcd"}, 0b1100},
		{first, scripts.Record{Masters: "bc"}, 0}, {first, scripts.Record{Masters: "ab", Epoch: 1}, 0},
		{joint, scripts.Record{Masters: "ab", Next: "bc", Epoch: 1}, 0b1111},
		{joint, scripts.Record{Masters: "ab", Next: "cd", Epoch: 1}, 0}, {joint, scripts.Record{Masters: "ab"}, 0b1111},
		{joint, scripts.Record{Masters: "bc"}, 0b1100},
		{final, scripts.Record{Masters: "bc", Epoch: 2}, 0b1111}, {final, scripts.Record{Masters: "ab", Epoch: 2}, 0},
		{final, scripts.Record{Masters: "ab", Next: "bc", Epoch: 1}, 0b1111},
		{final, scripts.Record{Masters: "ab", Next: "cd", Epoch: 1}, 0b1001},
		{final, scripts.Record{Masters: "bc", Epoch: 2, Shard: scripts.Shard{Number: 1, Of: 2}}, 0},
	} {
		f := &Deployment{Config: c.config, Facts: make([]Fact, 4)}
		for i := range 4 {
			f.Facts[i].Learn(c.record.String(), 1, 1)
			if got := f.agrees(i); got != c.masters.Has(i) {
				t.Errorf("epoch %d, record %v, master %d: agrees returned %v", c.config.Epoch, c.record, i, got)
			}
		}
	}
}

// H98: a client that has the masters of a final configuration adopts the epoch of that configuration if the records
// of a majority contain it.
func TestAdopts(t *testing.T) {
	final := record("f" + zeros)
	final.Epoch, final.Raised, final.Final = 4, epoch, 4
	for name, c := range map[string]struct {
		change func(r *scripts.Record)
		on     int
		want   int64
	}{
		"majority": {func(*scripts.Record) {}, 3, 4}, "minority": {func(*scripts.Record) {}, 2, 0},
		"others":    {func(r *scripts.Record) { r.Masters = "a" }, 5, 0},
		"joint":     {func(r *scripts.Record) { r.Epoch, r.Next = 5, "g" }, 5, 0},
		"not alone": {func(r *scripts.Record) { r.Final = 2 }, 5, 0},
	} {
		f := deployment(empty("a" + zeros))
		r := final
		c.change(&r)
		for i := range c.on {
			f.Facts[i] = with("f"+zeros, r)
		}
		if got := f.Adopts(); got != c.want {
			t.Errorf("%s: Adopts returned epoch %d, want %d", name, got, c.want)
		}
	}
}

// H98: the first masters are admitted only when each of the others has shown this client's list since the quarantine
// began, cannot be written, or has been down for the time of a quarantine or since this client started. H120: if an
// operator admits a master, a short outage of another is enough, but the records of a majority are still needed.
func TestFirstMastersAgree(t *testing.T) {
	over := epoch - guard.Microseconds()
	first := func() *Deployment {
		f := deployment(quarantined(over, guard))
		for i := 1; i < 5; i++ {
			id := f.Facts[i].Identity
			f.Facts[i] = with(id, pending(id, over, guard))
		}
		return f
	}
	for name, c := range map[string]struct {
		fact Fact
		ends bool
	}{
		"down": {Fact{Known: true, Lost: guard, Asked: 1}, true}, "never reached": {Fact{Known: true}, true},
		"not heard of": {Fact{}, false}, "empty": {empty("e" + zeros), false},
		"cannot be written": {changed(empty("e"+zeros), func(f *Fact) { f.Err = errors.New("OOM") }), true},
		"clock is off":      {changed(empty("e"+zeros), func(f *Fact) { f.Off = time.Minute }), true},
		"not read since": {changed(with("e"+zeros, pending("e"+zeros, over, guard)), func(f *Fact) { f.Asked = 0 }),
			false},
	} {
		for step, now := range map[scripts.AdmitStep]quorum.Set{scripts.AdmitEnd: 0, scripts.AdmitNow: quorum.One(0)} {
			f := first()
			f.Facts[4], f.Exempt = c.fact, now
			if _, m := f.Judge(0); (m.Step == step) != c.ends {
				t.Errorf("%s: step %q", name, m.Step)
			}
		}
	}
	f := first()
	f.Facts[4] = Fact{Known: true, Lost: guard - 1, Asked: 1}
	if _, m := f.Judge(0); m.Step != "" {
		t.Errorf("one master was down for less than a quarantine: step %q", m.Step)
	}
	f.Exempt = quorum.One(0)
	if _, m := f.Judge(0); m.Step != scripts.AdmitNow {
		t.Errorf("an operator admits a master while another is down: step %q", m.Step)
	}
	f = deployment(empty("a"+zeros), Fact{Known: true}, Fact{Known: true}, Fact{Known: true})
	f.Exempt = quorum.First(5)
	if st, m := f.Judge(0); st.Phase != Blocked || m.Step != "" {
		t.Errorf("the records of two of five were read: %v, step %q", st.Phase, m.Step)
	}
}

// H90: the incarnation of a master changes when its server may have lost data: after a promotion, and after a
// restart, unless the server is durable and still has its own record. The incarnation does not change when a backlog
// was freed.
func TestIncarnations(t *testing.T) {
	durable := record("a" + zeros)
	durable.DurableName = "h:1"
	named := func(f Fact) Fact { f.DurableName = "h:1"; return f }
	unread := func(id string) Fact { return Fact{Known: true, Up: true, Identity: id} }
	lossy := named(with("a"+zeros, durable))
	lossy.Lossy = "appendonly no"
	for _, c := range []struct {
		name  string
		facts []Fact
		grows int
	}{
		{"the same", []Fact{unread("a" + zeros)}, 0},
		{"down and up again", []Fact{{Known: true}, unread("a" + zeros)}, 0},
		{"restarted", []Fact{unread("b" + zeros)}, 1},
		{"promoted", []Fact{unread("a" + taken)}, 1},
		{"promoted, and freed its backlog", []Fact{unread("a" + taken), unread("a" + zeros)}, 1},
		{"durable, restarted", []Fact{named(unread("b" + zeros)), named(with("b"+zeros, durable))}, 0},
		{"durable, restarted empty", []Fact{named(unread("b" + zeros)), named(empty("b" + zeros))}, 1},
		{"durable, another's copy", []Fact{named(with("b"+zeros, record("a"+zeros)))}, 1},
		{"durable, promoted", []Fact{named(unread("b" + taken))}, 1},
		{"durable, then lossy", []Fact{named(with("a"+zeros, durable)), lossy, lossy}, 1},
		{"durable, lossy, reconnected", []Fact{lossy, named(unread("a" + zeros)), lossy}, 1},
		{"durable, lossy twice", []Fact{lossy, named(with("a"+zeros, durable)), lossy}, 2},
		{"durable, may not be read", []Fact{named(changed(unread("b"+zeros), func(f *Fact) { f.Err = errors.New("x") }))}, 1},
	} {
		var m Memory
		first := unread("a" + zeros)
		m.See(&first)
		before := m.Incarnation
		for i := range c.facts {
			m.See(&c.facts[i])
		}
		if got := int(m.Incarnation - before); before != 1 || got != c.grows {
			t.Errorf("%s: the incarnation %d increased by %d, want %d", c.name, before, got, c.grows)
		}
	}
}

// If a master does not vote because its clock is wrong, an observer gives that reason, as a client that acquires locks
// does.
func TestObserverSeesAWrongClock(t *testing.T) {
	for name, fact := range map[string]Fact{"no record": empty("a" + zeros), "in quarantine": quarantined(epoch, guard)} {
		f := deployment(changed(fact, func(f *Fact) { f.Off = time.Minute }))
		f.Observer = true
		if st, m := f.Judge(0); st.Phase != Blocked || m.Step != "" || !strings.Contains(st.Err.Error(), "is 1m0s ahead") {
			t.Errorf("%s: Judge returned %v, step %q, %v", name, st.Phase, m.Step, st.Err)
		}
	}
}

// H80: a master that is admitted gets the max TTL of the masters that vote, not the largest max TTL that was read. If
// no master votes, it gets the one of a majority of the records, or else the largest, if all records were read.
func TestAdmittedMasterGetsTheAgreedMaxTTL(t *testing.T) {
	for _, c := range []struct {
		name    string
		voting  bool // the other masters vote, with the max TTL guard
		minutes []time.Duration
		want    time.Duration // 0: it is not admitted
	}{
		{"the others vote", true, []time.Duration{5}, guard},
		{"a majority", false, []time.Duration{5, 1, 1, 2, 1}, time.Minute},
		{"no majority", false, []time.Duration{1, 1, 2, 2, 3}, 3 * time.Minute},
		{"no majority of those that can be read", false, []time.Duration{1, 1, 2, 2}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var facts []Fact
			for i, ttl := range c.minutes {
				id := fmt.Sprint(i) + zeros
				r := pending(id, epoch-300e6, 5*time.Minute)
				r.MaxTTL = ttl * time.Minute
				facts = append(facts, changed(with(id, r), func(f *Fact) { f.Began = 0 }))
			}
			for !c.voting && len(facts) < 5 {
				facts = append(facts, Fact{Known: true, Up: true, Err: errors.New("NOPERM")})
			}
			st, m := deployment(facts[0], facts[1:]...).Judge(0)
			admitted := m.Step == scripts.AdmitEnd
			if admitted != (c.want > 0) || admitted && (m.Record.MaxTTL != c.want || m.Record.Quarantine != 5*time.Minute) {
				t.Errorf("step %q writes %+v, %v, want the max TTL %v", m.Step, m.Record, st.Err, c.want)
			}
		})
	}
}

// H91: a quarantine begins at the later of the master's clock and the median, so setting the master's clock forward
// later does not shorten the quarantine.
func TestQuarantineBeginsAtTheLaterClock(t *testing.T) {
	const own = epoch - 14e6
	f := deployment(changed(empty("a"+zeros), func(f *Fact) { f.Own = own }))
	_, m := f.Judge(0)
	call := scripts.NewEncoder("p", 0).Admit(f.Request(0, m))
	keys, args := call.Arguments("")
	var s reference.State
	s.Eval(own, reference.Env{RunID: "a"}, scripts.Admit, keys, args)
	text, _ := s.Get(own, "p:admission")
	if r, err := scripts.ParseRecord(text); err != nil || r.Since != epoch {
		t.Errorf("the record is %q, %v; want it to begin at %d", text, err, epoch)
	}
}

// A quarantine says why it has begun, as far as this client has seen it.
func TestReasonOfAQuarantine(t *testing.T) {
	lost := with("a"+zeros, record("a"+zeros))
	lost.Learn("", 2, 2)
	began := func(f Fact, identity string, started int64) Fact {
		f.Identity, f.Started = identity, started
		f.Learn(pending(identity, epoch, guard).String(), 3, 3)
		return f
	}
	const long = epoch - 3_600_000_000
	for _, c := range []struct {
		fact Fact
		want string
	}{
		{began(empty("a"+zeros), "a"+zeros, epoch-1_000_000), "it has started, and may have forgotten locks"},
		{began(lost, "a"+zeros, epoch-1_000_000), "its admission record was deleted or replaced while it ran"},
		{began(lost, "b"+zeros, epoch-1_000_000), "it has started, and may have forgotten locks"},
		{began(lost, "a"+taken, long), "it was a replica before"},
		{began(changed(lost, func(f *Fact) { f.Leapt = 1 }), "a"+zeros, long),
			"its clock was far off, so locks may have expired early"},
		{began(empty("a"+zeros), "a"+zeros, long), "it is new, or its keys were deleted while it ran"},
	} {
		if _, got := deployment(c.fact).cause(0); got != c.want {
			t.Errorf("the quarantine says %q, want %q", got, c.want)
		}
	}
}
