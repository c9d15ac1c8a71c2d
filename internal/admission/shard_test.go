package admission

import (
	"errors"
	"fmt"
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
// have records with this shard and are in their first quarantine; voted of them were admitted before.
// agreed says that the other shards show this layout on all masters.
func TestJudgeOfAShard(t *testing.T) {
	id := "a" + zeros
	over := epoch - guard.Microseconds()
	ready := sharded(quarantined(over, guard), second)
	for _, c := range []struct {
		name   string
		own    Fact
		voted  int
		agreed bool
		now    bool
		phase  Phase
		step   scripts.AdmitStep
		err    string
	}{
		{"votes", sharded(with(id, record(id)), second), 0, false, false, Voting, "", ""},
		{"other shard", sharded(with(id, record(id)), scripts.Shard{Number: 2, Of: 4}), 3, true, false, Blocked, "",
			"has shard 2 of 3, and the record of this master has shard 2 of 4"},
		{"no shard", with(id, record(id)), 3, true, true, Blocked, "", "has no shards"},
		{"new", empty(id), 0, false, false, Connecting, scripts.AdmitStart, ""},
		{"new, may be admitted", empty(id), 0, false, true, Connecting, scripts.AdmitStart, ""},
		{"new, agreed, may be admitted", empty(id), 0, true, true, Connecting, scripts.AdmitStart, ""},
		{"over", ready, 0, false, false, InQuarantine, "", "where no master has voted yet"},
		{"over, may be admitted", ready, 0, false, true, InQuarantine, "", "where no master has voted yet"},
		{"over, agreed", ready, 0, true, false, InQuarantine, scripts.AdmitEnd, ""},
		{"over, agreed, may be admitted", ready, 0, true, true, InQuarantine, scripts.AdmitNow, ""},
		{"over, two were admitted", ready, 2, false, false, InQuarantine, scripts.AdmitEnd, ""},
		{"over, one was admitted", ready, 1, false, false, InQuarantine, "", "where no master has voted yet"},
		{"not over, agreed", sharded(quarantined(over+5, guard), second), 0, true, false, InQuarantine, "",
			"in quarantine until "},
	} {
		f := deployment(c.own)
		f.Shard, f.Others = second, []Evidence{{Looked: 5}, {Looked: 5}}
		if c.agreed {
			f.Others = []Evidence{{Named: 5, Looked: 5}, {Named: 6, Looked: 6}}
		}
		for i := 1; i < 5; i++ {
			id := f.Facts[i].Identity
			f.Facts[i] = sharded(with(id, unproven(id)), second)
			if i <= c.voted {
				f.Facts[i] = sharded(with(id, record("other"+zeros)), second)
			}
			f.Facts[i].Asked = 2
		}
		if c.now {
			f.Exempt = quorum.First(5)
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

// The evidence of a shard has the number of the read since which a majority has proven the layout, and since which all
// masters have named it. Records that are not shown on the present connection count for nothing.
func TestEvidence(t *testing.T) {
	f := deployment(empty("a" + zeros))
	f.Shard = second
	for i := range f.Facts {
		id := f.Facts[i].Identity
		f.Facts[i] = sharded(with(id, unproven(id)), second)
		f.Facts[i].Asked = uint64(10 + i)
	}
	expect := func(what string, proven, named, looked uint64, other bool) {
		t.Helper()
		if e := f.Evidence(); e != (Evidence{proven, named, looked, other}) {
			t.Errorf("%s: %+v", what, e)
		}
	}
	expect("first quarantines", 0, 10, 10, false)
	for i, asked := range []uint64{20, 21, 22} {
		id := f.Facts[i].Identity
		f.Facts[i] = sharded(with(id, pending(id, epoch, guard)), second)
		f.Facts[i].Asked = asked
		expect("quarantines that are not the first", uint64(i/2*20), min(20, 10+uint64(i+1)), min(20, 10+uint64(i+1)), false)
	}
	f.Facts[3].Lose()
	expect("one master is down", 20, 0, 14, false)
	f.Facts[0].Lose()
	expect("two masters are down, one of them of the majority", 0, 0, 14, false)
	f.Facts[0] = sharded(with("a"+zeros, record("other"+zeros)), second)
	f.Facts[0].Asked = 30
	expect("a record from before a restart", 21, 0, 14, false)
	f.Facts[0] = sharded(f.Facts[0], scripts.Shard{Number: 2, Of: 4})
	expect("another layout", 0, 0, 14, true)
	f.Facts[4].Read = false
	expect("a record is not read yet", 0, 0, 0, true)
}

// unproven returns the record of a master in its first quarantine.
func unproven(id string) scripts.Record {
	r := pending(id, epoch, guard)
	r.Unproven = true
	return r
}

// A client that has found another shard on a master, before any of its own shards has begun to vote, writes no record
// to a new master.
func TestStrangerClaimsNothing(t *testing.T) {
	f := deployment(empty("a" + zeros))
	f.Shard, f.Others, f.Exempt = second, []Evidence{{Looked: 5}, {Looked: 5, Other: true}}, quorum.First(5)
	for i := 1; i < 5; i++ {
		f.Facts[i] = empty(f.Facts[i].Identity)
	}
	if st, m := f.Judge(0); st.Phase != Blocked || !errors.Is(st.Err, ErrShardLayout) || m.Step != "" {
		t.Errorf("Judge returned %v, %v, step %q, want ErrShardLayout and no step", st.Phase, st.Err, m.Step)
	}
	f.Others[1].Other, f.Facts[0].Began = false, 0
	if st, m := f.Judge(0); m.Step != scripts.AdmitStart || !m.Record.Unproven {
		t.Errorf("without another shard: Judge returned %v, step %q of %v", st.Err, m.Step, m.Record)
	}
	f.Facts[0].Began = 5
	if st, m := f.Judge(0); m.Step != "" || m.Seek != 6 || st.Err != nil {
		t.Errorf("the other shards were read before: Judge returned %v, step %q, seek %d", st.Err, m.Step, m.Seek)
	}
}

// H179: the last record that this client has read of a master has another layout, and then all masters of its only set
// lose their records. The client claims none of them: it has missed a change of the layout.
func TestMissedChangeOfLayout(t *testing.T) {
	for _, own := range []scripts.Shard{{}, {Number: 1, Of: 1}} {
		for _, missed := range []bool{false, true} {
			f := deployment(Fact{})
			f.Shard = own
			for i := range f.Facts {
				id := fmt.Sprint("f", i) + zeros
				f.Facts[i] = sharded(with(id, record(id)), own)
				if missed && i == 1 {
					f.Facts[i] = sharded(f.Facts[i], second)
				}
				f.Facts[i].Lose()
				f.Facts[i].Up, f.Facts[i].Identity = true, fmt.Sprint("e", i)+zeros
				f.Facts[i].Learn("", 2, 1)
			}
			st, m := f.Judge(0)
			if claims := m.Step == scripts.AdmitStart; claims == missed || missed != errors.Is(st.Err, ErrShardLayout) {
				t.Errorf("%v, missed: %v: step %q, %v", own, missed, m.Step, st.Err)
			}
		}
	}
}

// A single master with a record of another layout, such as one that was used elsewhere, does not keep others in
// quarantine: a majority shows the layout of this client.
func TestStrayLayoutOfOneMaster(t *testing.T) {
	id := "a" + zeros
	for name, c := range map[string]struct {
		own  Fact
		step scripts.AdmitStep
	}{
		"quarantine is over": {quarantined(epoch-guard.Microseconds(), guard), scripts.AdmitEnd},
		"no record":          {empty(id), scripts.AdmitStart},
	} {
		f := deployment(c.own)
		f.Facts[4] = sharded(f.Facts[4], second)
		if st, m := f.Judge(0); m.Step != c.step {
			t.Errorf("%s: step %q, %v", name, m.Step, st.Err)
		}
	}
}
