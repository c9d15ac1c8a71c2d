package admission

import (
	"errors"
	"strings"
	"testing"

	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
)

var second = scripts.Shard{Number: 2, Of: 3}

// sharded returns f with the shard g in its record.
func sharded(f Fact, g scripts.Shard) Fact {
	r := f.Record
	r.Shard = g
	f.Learn(r.String(), f.Asked, f.Began)
	return f
}

// Judge returns the phase and the step of each row for master 0 of five, which are shard 2 of 3. The other masters
// have records with this shard and are in quarantine; if voted is set, one of them was admitted before.
func TestJudgeOfAShard(t *testing.T) {
	id := "a" + zeros
	over := epoch - guard.Microseconds()
	ready := sharded(quarantined(over, guard), second)
	for _, c := range []struct {
		name   string
		own    Fact
		voted  bool // another master was admitted before
		agreed bool
		now    bool
		phase  Phase
		step   scripts.AdmitStep
		err    string
	}{
		{"votes", sharded(with(id, record(id)), second), false, false, false, Voting, "", ""},
		{"other shard", sharded(with(id, record(id)), scripts.Shard{Number: 2, Of: 4}), true, true, false, Blocked, "",
			"has shard 2 of 3, and the record of this master has shard 2 of 4"},
		{"no shard", with(id, record(id)), true, true, true, Blocked, "", "has no shards"},
		{"new", empty(id), false, false, false, Connecting, scripts.AdmitStart, ""},
		{"new, may be admitted", empty(id), false, false, true, Connecting, scripts.AdmitStart, ""},
		{"new, agreed, may be admitted", empty(id), false, true, true, Connecting, scripts.AdmitStart, ""},
		{"over", ready, false, false, false, InQuarantine, "", "where no master has voted yet"},
		{"over, may be admitted", ready, false, false, true, InQuarantine, "", "where no master has voted yet"},
		{"over, agreed", ready, false, true, false, InQuarantine, scripts.AdmitEnd, ""},
		{"over, agreed, may be admitted", ready, false, true, true, InQuarantine, scripts.AdmitNow, ""},
		{"over, another was admitted", ready, true, false, false, InQuarantine, scripts.AdmitEnd, ""},
		{"not over, agreed", sharded(quarantined(over+5, guard), second), false, true, false, InQuarantine, "",
			"in quarantine until "},
	} {
		f := deployment(c.own)
		f.Shard, f.Agreed = second, c.agreed
		for i := 1; i < 5; i++ {
			id := f.Facts[i].Identity
			f.Facts[i] = sharded(with(id, pending(id, epoch, guard)), second)
			f.Facts[i].Asked = 1
		}
		if c.voted {
			f.Facts[3] = sharded(with("f3"+zeros, record("f3"+zeros)), second)
			f.Facts[3].Lose() // the record still counts
			f.Facts[3].Lost = guard
		}
		if c.now {
			f.Now = quorum.First(5)
		}
		st, m := f.Judge(0)
		if st.Phase != c.phase || m.Step != c.step ||
			c.err != "" && (st.Err == nil || !strings.Contains(st.Err.Error(), c.err)) {
			t.Errorf("%s: Judge returned %v, step %q, %v", c.name, st.Phase, m.Step, st.Err)
		}
		if c.phase == Blocked && !errors.Is(st.Err, ErrShardLayout) {
			t.Errorf("%s: the error is %v, want ErrShardLayout", c.name, st.Err)
		}
		if m.Step != "" && m.Record.Shard != second {
			t.Errorf("%s: shard %v was written", c.name, m.Record.Shard)
		}
	}
}

// The shard in a record is checked at every epoch. A client of another shard, or of none, gets no vote from a master
// with this record, and starts no quarantine unless a majority of the records contain its own shard.
func TestAnotherShardOnOneMaster(t *testing.T) {
	id := "f2" + zeros
	later := record(id)
	later.Epoch, later.Raised, later.Shard = 7, epoch, second
	f := deployment(empty("a"+zeros), with("f1"+zeros, record("f1"+zeros)), with(id, later))
	if st, m := f.Judge(2); !errors.Is(st.Err, ErrShardLayout) || m.Step != "" {
		t.Errorf("Judge returned %v, step %q, want ErrShardLayout and no step", st.Err, m.Step)
	}
	if st, _ := f.Judge(1); st.Phase != Voting {
		t.Errorf("one record of another shard blocks a master: %v", st.Err)
	}
	f.Facts[1], f.Facts[3] = empty("f1"+zeros), empty("f3"+zeros)
	for _, i := range []int{0, 1, 3} {
		if st, m := f.Judge(i); !errors.Is(st.Err, ErrShardLayout) || m.Step != "" {
			t.Errorf("master %d: Judge returned %v, step %q, want ErrShardLayout and no step", i, st.Err, m.Step)
		}
	}
}

// Named reports whether all masters have shown the shard on their present connections. Begun reports whether one of
// the masters has been admitted in this shard.
func TestNamedAndBegun(t *testing.T) {
	f := deployment(empty("a" + zeros))
	f.Shard = second
	for i := range f.Facts {
		id := f.Facts[i].Identity
		f.Facts[i] = sharded(with(id, pending(id, epoch, guard)), second)
	}
	if !f.Named() || f.Begun() {
		t.Errorf("all in quarantine: named %v, begun %v", f.Named(), f.Begun())
	}
	f.Facts[1].Lose()
	if f.Named() {
		t.Error("named although one master is down")
	}
	f.Facts[1] = sharded(with("f1"+zeros, record("other"+zeros)), second)
	if !f.Begun() {
		t.Error("not begun although a master was admitted before it restarted")
	}
	f.Facts[1] = sharded(f.Facts[1], scripts.Shard{Number: 2, Of: 4})
	if f.Begun() || f.Named() {
		t.Error("named or begun with another shard")
	}
}

// A client that has found another shard on a master, before any of its own shards has begun to vote, writes no record
// to a new master.
func TestStrangerClaimsNothing(t *testing.T) {
	f := deployment(empty("a" + zeros))
	f.Shard, f.Stranger, f.Now = second, true, quorum.First(5)
	for i := 1; i < 5; i++ {
		f.Facts[i] = empty(f.Facts[i].Identity)
	}
	if st, m := f.Judge(0); st.Phase != Blocked || !errors.Is(st.Err, ErrShardLayout) || m.Step != "" {
		t.Errorf("Judge returned %v, %v, step %q, want ErrShardLayout and no step", st.Phase, st.Err, m.Step)
	}
	if f.Other() {
		t.Error("Other is true for empty masters")
	}
	f.Facts[2] = with("f2"+zeros, record("f2"+zeros))
	if !f.Other() {
		t.Error("Other is false although a master has no shard")
	}
}

// The shards agree once one of them has begun, or the masters of each of them all name it. Until then a master that
// shows another shard is a stranger.
func TestShardsAgree(t *testing.T) {
	unseen, named, begun, other := &View{}, &View{Named: true}, &View{Begun: true}, &View{Other: true}
	for _, c := range []struct {
		shards           []*View
		agreed, stranger bool
	}{
		{nil, false, false}, // the Locker has one shard alone
		{[]*View{unseen, unseen}, false, false},
		{[]*View{named, unseen}, false, false},
		{[]*View{named, named}, true, false},
		{[]*View{unseen, begun}, true, false},
		{[]*View{unseen, other}, false, true},
		{[]*View{other, begun}, true, false},
		{[]*View{named, {Named: true, Other: true}}, true, false}, // it has named its shard before
	} {
		if agreed, stranger := Agreed(c.shards); agreed != c.agreed || stranger != c.stranger {
			t.Errorf("%+v: agreed %v, stranger %v", c, agreed, stranger)
		}
	}
}
