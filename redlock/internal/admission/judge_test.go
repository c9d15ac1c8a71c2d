package admission

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock/internal/ballot"
	"github.com/redlock-go/redlock/redlock/internal/quorum"
)

const (
	epoch = int64(1_700_000_000_000_000) // a plausible time of masters, in microseconds
	guard = 40 * time.Second
	zeros = noReplid2
	taken = "/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/7" // master_replid2 and second_repl_offset after a promotion
)

// config is that of n masters at epoch 0.
func config(n int) *quorum.Config {
	c := &quorum.Config{Rule: quorum.Rule{Old: quorum.First(n)}, Slots: n}
	for i := range n {
		c.Order = append(c.Order, i)
	}
	c.Follow = c.Rule
	return c
}

// record is that of an admitted server with these numbers, for five masters.
func record(identity string) scripts.Record {
	return scripts.Record{Identity: identity, N: 5, Longest: guard, Quarantine: guard, Admitted: true, Since: epoch}
}

// with is what is known of a connected server whose record was read.
func with(identity string, r scripts.Record) Fact {
	f := Fact{Settled: true, Up: true, Identity: identity, Own: epoch}
	f.Learn(r.String(), 1, 1)
	return f
}

// empty is a connected server that has no record.
func empty(identity string) Fact {
	f := Fact{Settled: true, Up: true, Identity: identity, Own: epoch}
	f.Learn("", 1, 1)
	return f
}

// fleet is master 0 with this fact beside healthy others, as a program with the guard time of guard sees them.
func fleet(own Fact, others ...Fact) *Fleet {
	f := &Fleet{
		Config: config(5), Guard: guard, Facts: []Fact{own}, Addr: func(i int) string { return fmt.Sprint("master", i) },
		Clocks: ballot.Reading{Median: epoch, Latest: epoch, Known: quorum.First(5)},
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

// quarantined is a server in quarantine of which everything was read since it began.
func quarantined(since int64, quarantine time.Duration) Fact {
	f := with("a"+zeros, pending("a"+zeros, since, quarantine))
	f.Began = 0
	return f
}

func changed(f Fact, how func(*Fact)) Fact {
	how(&f)
	return f
}

// Each row is about master 0 of five; the others vote. H128.
func TestJudgeAsTable(t *testing.T) {
	again := strings.Replace(taken, "7", "8", 1)
	backlog := func(d time.Duration) func(*Fact) { return func(f *Fact) { f.Backlog = d } }
	ahead := func(us int64) func(*Fact) { return func(f *Fact) { f.Own += us } }
	home := func(f *Fact) { f.Home = "h:1" }
	off := func(f *Fact) { f.Away = 15*time.Second + 1 }
	id := "a" + zeros
	durable := record(id)
	durable.Home = "h:1"
	later := record(id)
	later.Epoch, later.Raised, later.Alone = 2, epoch, 2
	over := epoch - guard.Microseconds()
	for _, c := range []struct {
		name  string
		own   Fact
		phase Phase
		step  scripts.AdmitStep
		err   string
	}{
		{"not heard of", Fact{}, Connecting, "", ""},
		{"down", Fact{Settled: true, Err: errors.New("gone")}, Down, "", "gone"},
		{"not read", Fact{Settled: true, Up: true, Identity: id}, Connecting, scripts.AdmitRead, ""},
		{"may not be read", Fact{Settled: true, Up: true, Err: errors.New("NOPERM")}, Blocked, scripts.AdmitRead, "NOPERM"},
		{"voting", with(id, record(id)), Voting, "", ""},
		{"voting, its clock is off", changed(with(id, record(id)), off), Voting, "", ""},
		{"another version", func() Fact { f := empty(id); f.Learn("v1 id=a", 1, 1); return f }(), Blocked, "", "v2"},
		{"later epoch", with(id, later), Blocked, "", ErrOldMasters.Error()},

		{"new", empty(id), Connecting, scripts.AdmitStart, ""},
		{"new, its record cannot be written: H56", changed(empty(id), func(f *Fact) { f.Err = errors.New("OOM") }),
			Blocked, scripts.AdmitStart, "OOM"},
		{"restarted: H53", with("b"+zeros, record(id)), Connecting, scripts.AdmitStart, ""},
		{"promoted: H57", with("a"+taken, record(id)), Connecting, scripts.AdmitStart, ""},
		{"promoted again: H57", with("a"+again, record("a"+taken)), Connecting, scripts.AdmitStart, ""},
		{"backlog freed: H69", with(id, record("a"+taken)), Voting, scripts.AdmitRewrite, ""},
		{"restarted, after a promotion", with("b"+zeros, record("a"+taken)), Connecting, scripts.AdmitStart, ""},
		{"new, its clock is off: H91", changed(empty(id), off), Blocked, "", "15s from the median"},

		{"durable, restarted", changed(with("b"+zeros, durable), home), Connecting, scripts.AdmitNow, ""},
		{"durable, restarted, off", changed(changed(with("b"+zeros, durable), home), off), Connecting, scripts.AdmitNow, ""},
		{"durable, empty", changed(empty("b"+zeros), home), Connecting, scripts.AdmitStart, ""},
		{"durable, another's memory", changed(with("b"+zeros, record(id)), home), Connecting, scripts.AdmitStart, ""},
		{"durable, promoted in its place", changed(with("b"+taken, durable), home), Connecting, scripts.AdmitStart, ""},
		{"durable, same process, promoted", changed(with("a"+taken, durable), home), Connecting, scripts.AdmitStart, ""},
		{"durable, restarted in quarantine", changed(with("b"+zeros, func() scripts.Record {
			r := durable
			r.Admitted = false
			return r
		}()), home), Connecting, scripts.AdmitStart, ""},
		{"not named any more", with("b"+zeros, durable), Connecting, scripts.AdmitStart, ""},
		{"named since", changed(with(id, record(id)), home), Voting, scripts.AdmitNow, ""},

		{"in quarantine", quarantined(epoch, guard), InQuarantine, "", ErrQuarantine.Error()},
		{"one microsecond before the end", quarantined(over+1, guard), InQuarantine, "", ""},
		{"at the end", quarantined(over, guard), InQuarantine, scripts.AdmitEnd, ""},
		{"over, its clock is off: H91", changed(quarantined(over, guard), off), Blocked, "", "15s from the median"},
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
			f := fleet(c.own)
			st, m := f.Judge(0)
			if st.Phase != c.phase || m.Step != c.step || !strings.Contains(fmt.Sprint(st.Err), c.err) {
				t.Errorf("%v, step %q, %v; want %v, step %q, %s", st.Phase, m.Step, st.Err, c.phase, c.step, c.err)
			}
			if (st.Phase == Voting) != (st.Err == nil) && st.Phase != Connecting {
				t.Errorf("%v with error %v", st.Phase, st.Err)
			}
			if st.ClockOff != (c.own.Away > 15*time.Second) {
				t.Error("ClockOff is wrong (H93)")
			}
			f.Observer = true
			if _, m := f.Judge(0); m.Step != "" && m.Step != scripts.AdmitRead {
				t.Errorf("an observer makes the step %q (H72)", m.Step)
			}
			f.Observer, f.Guard = false, 0
			if st, m := f.Judge(0); c.own.Up && st.Phase != Voting || m.Step != "" {
				t.Errorf("guard off: %v, step %q", st.Phase, m.Step)
			}
		})
	}
}

// H75, H80, H81: every record that is written has the largest numbers that were read anywhere, and a quarantine lasts
// for the largest of them, the program's own guard time and 30 s. H128.
func TestNumbersOfAWrittenRecord(t *testing.T) {
	other := func(longest, quarantine time.Duration) Fact {
		r := record("x" + zeros)
		r.Longest, r.Quarantine = longest, quarantine
		return with("x"+zeros, r)
	}
	down := Fact{Settled: true}
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
		{"the others' are smaller: the longest is the fleet's", 5 * minute,
			[]Fact{blank, other(minute, minute), down, down, down}, minute, 5 * minute},
		{"the guard time is being raised: H80", guard, []Fact{blank, other(guard, 5*minute)}, guard, 5 * minute},
		{"one that is down was read before", guard,
			[]Fact{blank, func() Fact { f := other(minute, minute); f.Lose(); return f }()}, minute, minute},
		{"its own old record is the largest", guard, []Fact{other(2*minute, 3*minute)}, 2 * minute, 3 * minute},
		{"one that was promoted: H128", guard, []Fact{late, other(minute, minute)}, minute, minute + 5*time.Second},
		{"one that was promoted, with room: H128", guard, []Fact{late, other(minute, 2*minute)}, minute, 2 * minute},
		{"another was promoted: H128", guard, []Fact{blank, late, other(minute, minute)}, minute, minute},
		{"a new fleet", minute, []Fact{blank, blank, blank, blank, blank}, minute, minute},
		{"a new fleet, short", 5 * time.Second, []Fact{blank, blank, blank, blank, blank}, 5 * time.Second, Shortest},
		{"a new fleet as far as a quorum tells", minute, []Fact{blank, blank, blank, down, down}, minute, minute},
		{"nothing is known of the fleet", minute, []Fact{blank, blank, down, down, down}, Shortest, minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := fleet(c.facts[0], c.facts[1:]...)
			f.Guard = c.guard
			f.Facts[0].Identity = "new" + zeros
			_, m := f.Judge(0)
			if m.Step != scripts.AdmitStart || m.Record.Longest != c.longest || m.Record.Quarantine != c.quarantine {
				t.Errorf("step %q writes %v and %v, want %v and %v",
					m.Step, m.Record.Longest, m.Record.Quarantine, c.longest, c.quarantine)
			}
		})
	}
}

// Nothing is started while somebody may yet be heard of: what it says may count.
func TestAStartWaitsForTheOthers(t *testing.T) {
	for name, other := range map[string]Fact{"not heard of": {}, "not read": {Settled: true, Up: true}} {
		if st, m := fleet(empty("a"+zeros), other).Judge(0); st.Phase != Connecting || m.Step != "" {
			t.Errorf("%s: %v, step %q", name, st.Phase, m.Step)
		}
	}
	f := fleet(empty("a" + zeros))
	f.Clocks.Known = quorum.First(2)
	st, m := f.Judge(0)
	if st.Phase != Blocked || m.Step != "" || !strings.Contains(st.Err.Error(), "3 masters can be compared; 2 can") {
		t.Errorf("too few clocks: %v, step %q, %v", st.Phase, m.Step, st.Err)
	}
}

// H81: a quarantine is ended only by a program that has read the records of a quorum since it began.
func TestAnEndNeedsRecordsReadSinceTheBegin(t *testing.T) {
	over := epoch - guard.Microseconds()
	own := quarantined(over, guard)
	for asked := range uint64(4) {
		f := fleet(own)
		f.Facts[0].Began = 2
		for i := 1; i < 5; i++ {
			f.Facts[i].Asked = 2
			if i <= int(asked) {
				f.Facts[i].Asked = 3
			}
		}
		st, m := f.Judge(0)
		if asked < 2 && (m.Step != "" || m.Gather != quorum.First(5)&^quorum.First(int(asked)+1)) {
			t.Errorf("%d read since: step %q, gathers %b", asked, m.Step, m.Gather)
		}
		if asked >= 2 && m.Step != scripts.AdmitEnd {
			t.Errorf("%d read since: step %q, %v", asked, m.Step, st.Phase)
		}
	}
	f := fleet(own, empty("b"+zeros), empty("c"+zeros), empty("d"+zeros))
	if _, m := f.Judge(0); m.Step == scripts.AdmitEnd {
		t.Error("masters without any record counted as read")
	}
}

// H63: a program that reads another number of masters at its epoch, on any master, wins nothing, and says what to do.
func TestAnotherNumberOfMasters(t *testing.T) {
	stray := record("s" + zeros)
	stray.N = 3
	f := fleet(with("a"+zeros, record("a"+zeros)), with("s"+zeros, stray))
	check := func(when string, blocked bool) {
		t.Helper()
		for i := range f.Facts {
			st, m := f.Judge(i)
			if !f.Facts[i].Up {
				continue
			}
			if blocked != (st.Phase == Blocked) || blocked && m.Step != "" {
				t.Errorf("%s, master %d: %v, step %q, %v", when, i, st.Phase, m.Step, st.Err)
			}
			for _, part := range []string{"3 masters", "5 masters", "master1", "redlock quarantine -master master1"} {
				if blocked && (!errors.Is(st.Err, ErrNumber) || !strings.Contains(st.Err.Error(), part)) {
					t.Errorf("%s: no %q in %v", when, part, st.Err)
				}
			}
		}
	}
	check("read", true)
	f.Facts[1].Lose()
	check("read, and down since", true)

	f = fleet(with("a"+zeros, record("a"+zeros)), with("s"+zeros, stray))
	req := f.Quarantine(1)
	if req.Step != scripts.AdmitStart || req.Record.N != 5 || req.Seen != stray.String() {
		t.Errorf("the stray record is replaced by %+v", req)
	}
	f.Config.Epoch, f.Config.Rule.Next = 1, quorum.First(4)
	f.Config.Follow = f.Config.Rule
	check("of an earlier epoch", false)

	f = fleet(with("a"+zeros, record("a"+zeros)), with("s"+zeros, stray))
	f.Config.Rule.Old = quorum.First(5) &^ quorum.One(1)
	f.Config.Follow.Next = quorum.First(3)
	if st, _ := f.Judge(1); st.Phase == Blocked {
		t.Errorf("a next master with the number of the next set: %v", st.Err)
	}
	f.Config.Follow.Next = quorum.First(2)
	if st, _ := f.Judge(1); st.Phase != Blocked {
		t.Errorf("a next master with any number: %v", st.Phase)
	}
}

// H90: a generation is another one when the server may have forgotten: after a restart, unless it is durable and has
// its record, and after a promotion, but not when a backlog was freed.
func TestGenerations(t *testing.T) {
	durable := record("a" + zeros)
	durable.Home = "h:1"
	home := func(f Fact) Fact { f.Home = "h:1"; return f }
	unread := func(id string) Fact { return Fact{Settled: true, Up: true, Identity: id} }
	for _, c := range []struct {
		name  string
		facts []Fact
		grows int
	}{
		{"the same", []Fact{unread("a" + zeros)}, 0},
		{"down and up again", []Fact{{Settled: true}, unread("a" + zeros)}, 0},
		{"restarted", []Fact{unread("b" + zeros)}, 1},
		{"promoted", []Fact{unread("a" + taken)}, 1},
		{"promoted, and freed its backlog", []Fact{unread("a" + taken), unread("a" + zeros)}, 1},
		{"durable, restarted", []Fact{home(unread("b" + zeros)), home(with("b"+zeros, durable))}, 0},
		{"durable, restarted empty", []Fact{home(unread("b" + zeros)), home(empty("b" + zeros))}, 1},
		{"durable, another's copy", []Fact{home(with("b"+zeros, record("a"+zeros)))}, 1},
		{"durable, promoted", []Fact{home(unread("b" + taken))}, 1},
		{"durable, may not be read", []Fact{home(changed(unread("b"+zeros), func(f *Fact) { f.Err = errors.New("x") }))}, 1},
	} {
		var m Memory
		first := unread("a" + zeros)
		m.See(&first)
		before := m.Generation
		for i := range c.facts {
			m.See(&c.facts[i])
		}
		if got := int(m.Generation - before); before != 1 || got != c.grows {
			t.Errorf("%s: from %d by %d, want %d", c.name, before, got, c.grows)
		}
	}
}
