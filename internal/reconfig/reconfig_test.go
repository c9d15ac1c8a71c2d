package reconfig

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/admission"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
)

const (
	old  = quorum.Set(0b00111)
	next = quorum.Set(0b11110)
	ttl  = 30 * time.Second
)

func conf(epoch int64, old, next quorum.Set) *quorum.Config {
	c := &quorum.Config{Epoch: epoch, Rule: quorum.Rule{Old: old, Next: next}, Slots: 5}
	for i := range c.Rule.All().All() {
		c.Order = append(c.Order, i)
	}
	c.Tracked = c.Rule
	return c
}

var states = []*quorum.Config{
	conf(0, old, 0), conf(1, old, next), conf(2, next, 0), conf(3, next, old), conf(4, old, 0),
}

// masters returns the states of five admitted masters, whose records were read when their clocks showed now.
func masters(now int64) []admission.State {
	list := make([]admission.State, 5)
	for i := range list {
		list[i] = admission.State{Phase: admission.Voting, Admitted: true, Read: now,
			Record: scripts.Record{MaxTTL: ttl, Quarantine: ttl}}
	}
	return list
}

func having(list []admission.State, set quorum.Set, how func(*admission.State)) []admission.State {
	for i := range set.All() {
		how(&list[i])
	}
	return list
}

func TestNextAsTable(t *testing.T) {
	none := func(list []admission.State) []admission.State {
		return having(list, next&^old, func(s *admission.State) { s.Admitted = false })
	}
	epoch := func(set quorum.Set, epoch, alone int64) []admission.State {
		return having(masters(1), set, func(s *admission.State) { s.Record.Epoch, s.Record.Final = epoch, alone })
	}
	for _, c := range []struct {
		name    string
		now     *quorum.Config
		seen    []admission.State
		behind  bool // a lease is not on the next masters
		want    *quorum.Config
		step    Step
		problem string
	}{
		{"the same", states[0], masters(1), false, conf(0, old, 0), Stay, ""},
		{"next masters vote", states[0], masters(1), true, states[1], Adopt, ""},
		{"next masters are in quarantine", states[0], none(masters(1)), false, states[1], Prepare, ""},
		{"next masters have an epoch that is too late", states[0], epoch(next&^old, 3, 2), false, states[1], Prepare, ""},
		{"to the next alone", states[1], epoch(next, 1, 2), false, states[2], Adopt, ""},
		{"to the next alone, a lease is behind", states[1], epoch(next, 1, 2), true, states[2], Carry, ""},
		{"to the next alone, too early", states[1], epoch(0b0110, 1, 2), false, states[2], Stay, "2 of 4 masters are ready"},
		{"back", states[1], masters(1), false, states[0], Stay, "already have epoch"},
		{"the same epoch, others", states[0], masters(1), false, conf(0, next, 0), Stay, "has other masters here"},
		{"a state left out", states[0], masters(1), false, states[2], Stay, "a step is missing"},
		{"late, to one set", states[0], epoch(old, 2, 2), false, states[2], Adopt, ""},
		{"late, to both", states[0], epoch(old, 3, 2), false, conf(3, next, old), Adopt, ""},
		{"other old ones", states[0], masters(1), false, conf(1, next, old), Stay, "must be the masters of epoch"},
		{"other next ones", states[1], epoch(next, 1, 2), false, conf(2, 0b11000, 0), Stay, "the next masters of epoch"},
		{"given up: H147", states[1], epoch(old, 2, 2), false, conf(2, old, 0), Adopt, ""},
		{"given up too early", states[1], masters(1), false, conf(2, old, 0), Stay, "0 of 3 masters are ready"},
	} {
		t.Run(c.name, func(t *testing.T) {
			step, err := Next(Seen{Config: c.now, Masters: c.seen, Carried: !c.behind}, c.want)
			if step != c.step || (err == nil) != (c.problem == "") || err != nil && !strings.Contains(err.Error(), c.problem) {
				t.Errorf("Next returned step %d, %v; want %d, %q", step, err, c.step, c.problem)
			}
		})
	}
}

// one returns the only writing of list, or the zero Writing if there are several.
func one(list []Writing, err error) (Writing, error) {
	if len(list) != 1 {
		return Writing{}, err
	}
	return list[0], err
}

func TestRaiseAndFinishNeedRecords(t *testing.T) {
	const now = int64(1e15)
	raised := func(set quorum.Set, ago time.Duration) Seen {
		return Seen{Config: states[1], Masters: having(masters(now), set, func(s *admission.State) {
			s.Record.Epoch, s.Record.Raised = 1, now-ago.Microseconds()
		})}
	}
	if _, err := Raise(Seen{Config: states[0], Masters: masters(now)}); err == nil {
		t.Error("epoch 0 was raised")
	}
	w, err := one(Raise(raised(0, 0)))
	if err != nil || w.Rule != states[1].Rule || w.Record != (scripts.Record{Epoch: 1}) {
		t.Errorf("Raise returned %+v, %v", w, err)
	}
	for _, c := range []struct {
		seen Seen
		text string
	}{
		{raised(0b001, time.Hour), "1 of 3 old masters"}, {raised(0b111, 0), "for another 1m0s"},
		{raised(0b111, time.Minute-time.Millisecond), "for another 1ms"},
		{raised(0b111, -time.Second), "for another 1m0s"}, // just now, by a clock that is a little ahead
		{raised(0b111, -2*time.Second), Differ},
		{Seen{Config: states[0], Masters: masters(now)}, "no change is in progress"},
	} {
		if _, err := Finish(c.seen); err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("Finish returned %v, want an error with %q", err, c.text)
		}
	}
	w, err = one(Finish(raised(0b011, time.Minute)))
	if err != nil || w.Rule != (quorum.Rule{Old: next}) || w.Record.Epoch != 1 || w.Record.Final != 2 {
		t.Errorf("Finish returned %+v, %v", w, err)
	}
	if _, err := Raise(Seen{Config: states[2], Masters: masters(now)}); !errors.Is(err, admission.ErrIncomplete) {
		t.Errorf("epoch 2 was raised although the next masters still need the old ones: %v", err)
	}
	open := having(masters(now), next, func(s *admission.State) { s.Record.Final = 2 })
	if w, err = one(Raise(Seen{Config: states[2], Masters: open})); err != nil || w.Record.Final != 2 {
		t.Errorf("raise epoch 2: %+v, %v", w, err)
	}
	has := func(epoch, alone int64) bool {
		return w.Has(&admission.State{Record: scripts.Record{Epoch: epoch, Final: alone}})
	}
	if !has(2, 2) || has(2, 0) || has(0, 2) {
		t.Error("Has must be true only for a record with epoch 2 and Final 2")
	}
}

// H176: a clock that jumps forward does not shorten the wait for locks of the old masters, nor for those that a master
// with a stray record has forgotten.
func TestJumpedClockShortensNoWait(t *testing.T) {
	for _, down := range []quorum.Set{0, 0b001} { // perhaps only one correct clock of the old masters is known
		list := having(masters5(), old, func(s *admission.State) { s.Record.Epoch, s.Record.Raised = 1, s.Read })
		list[0].Record.Raised -= time.Hour.Microseconds() // an earlier attempt to raise the epoch reached this master only
		list[1].Read += time.Hour.Microseconds()
		list = having(list, down, func(s *admission.State) { s.Phase = admission.Down })
		s := Seen{Config: states[1], Masters: list}
		if p := Look(s); !p.RaisedAll || p.Complete || p.Left < ttl {
			t.Errorf("with the masters %b down, Look returned %+v", down, p)
		}
		stray := admission.State{Read: list[1].Read, Record: scripts.Record{Masters: "b", Since: 1e15}}
		w := s.writing(states[1].Rule, record(states[1]))
		if w.May(1, &stray) {
			t.Errorf("with the masters %b down, the stray record was raised", down)
		}
	}
}

// H176: no epoch is raised while it is unknown what time it is: a change could not be finished until a clock that is
// ahead shows to be right.
func TestRaiseNeedsTheTime(t *testing.T) {
	for down, want := range map[quorum.Set]bool{0: true, 0b001: false} {
		list := having(masters5(), down, func(s *admission.State) { s.Phase = admission.Down })
		list[1].Read += time.Hour.Microseconds()
		_, err := Raise(Seen{Config: states[1], Masters: list})
		if (err == nil) != want || err != nil && !errors.Is(err, admission.ErrIncomplete) {
			t.Errorf("with the masters %b down, Raise returned %v", down, err)
		}
	}
}

// H98: the epochs in a record are used only if the record lists the masters of this client's configuration.
func TestRecordsOfAnotherChange(t *testing.T) {
	joint := conf(1, old, next)
	joint.Masters, joint.Next = "abc", "bcde"
	final := conf(2, next, 0)
	final.Masters = "bcde"
	list := func(masters, next string) []admission.State {
		return having(masters5(), 0b11111, func(s *admission.State) {
			s.Record.Epoch, s.Record.Final, s.Record.Masters, s.Record.Next = 1, 2, masters, next
		})
	}
	ours, others := list("abc", "bcde"), list("abc", "bcdef")
	if p := Look(Seen{Config: joint, Masters: ours}); !p.OpenAll || !p.RaisedAll {
		t.Errorf("Look at the records of this change returned %+v", p)
	}
	if p := Look(Seen{Config: joint, Masters: others}); p.OpenAll || p.RaisedAll {
		t.Errorf("Look at the records of another change returned %+v", p)
	}
	if _, err := Next(Seen{Config: joint, Masters: others, Carried: true}, final); !errors.Is(err,
		admission.ErrIncomplete) {
		t.Errorf("a client uses next masters of another change: %v", err)
	}
	if step, err := Next(Seen{Config: joint, Masters: ours, Carried: true}, final); step != Adopt || err != nil {
		t.Errorf("Next returned step %d, %v, want Adopt", step, err)
	}
	w := Seen{Config: joint, Masters: ours}.writing(joint.Rule, record(joint))
	if w.Has(&others[0]) || w.May(0, &others[0]) || !w.Has(&ours[0]) {
		t.Error("the records of another change were accepted")
	}
}

// H182: a master on which locks depend has lost its data, and was admitted alone by mistake. No step of a change lets
// it vote before a lock that it has forgotten must have ended. A new master may be admitted alone.
func TestStrayRecordIsNotRaisedEarly(t *testing.T) {
	joint := conf(1, old, next)
	joint.Masters, joint.Next = "abc", "bcde"
	list := having(masters5(), 0b11111, func(s *admission.State) { s.Record.Masters = "abc" })
	w, err := one(Raise(Seen{Config: joint, Masters: list}))
	if err != nil {
		t.Fatal(err)
	}
	stray := func(age time.Duration) *admission.State {
		record := scripts.Record{Masters: "b", Admitted: true, Since: 1e15 - age.Microseconds()}
		return &admission.State{Read: 1e15, Record: record}
	}
	if w.May(1, stray(59*time.Second)) || !w.May(1, stray(time.Hour)) || !w.May(4, stray(0)) || !w.May(1, &list[1]) {
		t.Error("a stray record of an old master was raised early, or another record was not raised")
	}
	list = having(masters5(), 0b11111, func(s *admission.State) {
		s.Record.Epoch, s.Record.Masters, s.Record.Next, s.Record.Raised = 1, "abc", "bcde", 1
	})
	for name, step := range map[string]func(Seen) ([]Writing, error){"Raise": Raise, "Finish": Finish} {
		w, err := one(step(Seen{Config: joint, Masters: list})) // clients have used the next masters since the first Raise
		if err != nil || w.May(4, stray(59*time.Second)) || !w.May(4, stray(time.Hour)) || !w.May(4, &list[4]) {
			t.Errorf("%s of a stray record of a next master: %+v, %v", name, w, err)
		}
	}
}

func masters5() []admission.State { return masters(1e15) }

// H147: a change can be aborted until the next masters may decide without the old masters. After an abort the next
// masters can no longer get this permission.
func TestAbort(t *testing.T) {
	joint := conf(1, old, next)
	joint.Masters, joint.Next = "abc", "bcde"
	seen := func(set quorum.Set, how func(*admission.State)) Seen {
		list := having(masters5(), 0b11111, func(s *admission.State) {
			s.Record.Epoch, s.Record.Masters, s.Record.Next = 1, "abc", "bcde"
		})
		return Seen{Config: joint, Masters: having(list, set, how)}
	}
	alone := func(s *admission.State) { s.Record.Final = 2 }
	list, err := Abort(seen(0b00010, alone))
	if err != nil || len(list) != 2 || list[0].Rule.Old != next || list[1].Rule.Old != old {
		t.Fatalf("Abort returned %+v, %v", list, err)
	}
	first, second := list[0], list[1]
	if first.Record != (scripts.Record{Masters: "abc", Epoch: 2}) || second.Record.Final != 2 {
		t.Errorf("Abort returned %+v", list)
	}
	s := seen(0b00010, alone)
	if first.May(1, &s.Masters[1]) || !first.May(2, &s.Masters[2]) {
		t.Error("the abort is written to a master with Final set, or not to a master without it")
	}
	aborted := admission.State{Record: scripts.Record{Epoch: 2, Masters: "abc"}}
	if !first.Has(&aborted) || second.Has(&aborted) || !second.May(1, &aborted) {
		t.Error("the second writing does not follow the first")
	}
	finish := s.writing(quorum.Rule{Old: next}, record(joint))
	finish.Record.Final = 2
	raise := s.writing(quorum.Rule{Old: next}, scripts.Record{Masters: "bcde", Epoch: 2, Final: 2})
	if finish.May(1, &aborted) || finish.Has(&aborted) || raise.May(1, &aborted) || raise.Has(&aborted) {
		t.Error("the change continues after the abort")
	}
	given := seen(0b00111, func(s *admission.State) { s.Record.Raised = s.Read - time.Hour.Microseconds() })
	if _, err := Finish(given); err != nil {
		t.Error(err)
	}
	given.Masters[0] = admission.State{Record: scripts.Record{Epoch: 2, Final: 2, Masters: "abc"}}
	if _, err := Finish(given); err == nil {
		t.Error("the change was finished although the record of an old master says that it was aborted")
	}
	if _, err := Abort(seen(0b00110|0b01000, alone)); err == nil {
		t.Error("the change was aborted although a majority of the next masters has Final set")
	}
	if _, err := Abort(Seen{Config: states[2], Masters: masters5()}); err == nil {
		t.Error("Abort succeeded although no change is in progress")
	}
}
