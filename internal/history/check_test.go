package history

import (
	"strings"
	"testing"
	"time"
)

// Two recorders write one hold each, and the holds do not overlap: Check finds no violation. Then a third recorder
// writes a hold that overlaps the second one and has the same token: Violations returns both faults.
func TestRecordedHistory(t *testing.T) {
	dir := t.TempDir()
	put := func(process string, events ...Event) {
		r, err := NewRecorder(dir, process)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if err := r.Put(e); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	hold := func(id string, token, from, until, left int64) []Event {
		return []Event{
			{Op: Lock, Name: "n", Hold: id, Call: from - 1, Ret: from, Token: token, Until: until + 5},
			{Op: Leave, Name: "n", Hold: id, Call: until}, {Op: Unlock, Name: "n", Hold: id, Call: until, Ret: left},
		}
	}
	put("b", hold("b", 2, 25, 30, 32)...)
	put("a", hold("a", 1, 10, 20, 22)...)
	holds := read(t, dir)
	if len(holds) != 2 || holds[0].ID != "a" || holds[0].Until != 20 || holds[1].Left != 32 {
		t.Fatalf("the holds are %+v", holds)
	}
	if err := Check(holds); err != nil {
		t.Error(err)
	}
	if gap := Gaps(holds)["n"]; gap != 5*time.Nanosecond {
		t.Errorf("the gap is %v, want 5ns", gap)
	}
	put("c", hold("c", 2, 28, 40, 41)...) // overlaps b, and has the same token
	overlaps, tokens := Violations(read(t, dir))
	if len(overlaps) != 1 || len(tokens) != 1 || !strings.Contains(overlaps[0], "c acquired") {
		t.Errorf("Violations returned the overlaps %q and the tokens %q, want one each", overlaps, tokens)
	}
	if Check(read(t, dir)) == nil {
		t.Error("Check returned no error for a history with violations")
	}
}

func read(t *testing.T, dir string) []*Hold {
	t.Helper()
	events, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	holds, err := Holds(events)
	if err != nil {
		t.Fatal(err)
	}
	return holds
}
