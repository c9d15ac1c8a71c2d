package redlock_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What the tests of this package alone would notice, and the simulator would not, is taken out, one piece after the
// other: the tests that are named must fail.
func TestWhatIsTakenOutIsMissed(t *testing.T) {
	const groups, shared = "internal/admission/group.go", "../internal/scripts/reference/shared.go"
	for name, c := range map[string]struct{ file, old, edited, tests string }{
		"the group in the records": {groups, "if !fact.told() || fact.Record.Group == f.Group {", "if true {",
			"UnlikeGroupsNeverBothWin|GroupsBeginWhenAllMastersWereSeen"},
		"all groups are seen before they begin": {groups, "f.Agreed || f.Begun()", "true",
			"UnlikeGroupsNeverBothWin|GroupsBeginWhenAllMastersWereSeen"},
		"all masters of all groups": {groups, "if fact := &f.Facts[j]; !fact.shown() || fact.Record.Group != f.Group {",
			"if fact := &f.Facts[j]; j < 2 && (!fact.shown() || fact.Record.Group != f.Group) {",
			"UnlikeGroupsNeverBothWin|GroupsBeginWhenAllMastersWereSeen"},
		"each reader's share ends by itself": {shared, "c.state.SetScore(c.now, lock, c.arg(2), end)",
			"for _, f := range c.typed(lock, SortedSet).Fields {\n\t\t\tc.state.SetScore(c.now, lock, f.Name, end)\n\t\t}",
			"AReaderThatDiesFreesItsShareAlone"},
		"a reader that is let in tells the next": {shared, "if queued && !writer {", "if false {",
			"TheOrderIsThatOfTheQueue|AWriterIsNotStarvedByReaders"},
	} {
		t.Run(name, func(t *testing.T) {
			source, err := filepath.Abs(c.file)
			if err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(source)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Count(string(text), c.old) != 1 {
				t.Fatalf("this must be once in %s: %s", source, c.old)
			}
			if testing.Short() {
				return // only that the edits apply
			}
			t.Parallel()
			missed(t, source, strings.Replace(string(text), c.old, c.edited, 1), "^TestVirtual("+c.tests+")$")
		})
	}
}

// missed fails the test where the tests that match pass with another text in the place of a file.
func missed(t *testing.T, source, text, tests string) {
	t.Helper()
	dir := t.TempDir()
	edited, list := filepath.Join(dir, filepath.Base(source)), filepath.Join(dir, "overlay.json")
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{source: edited}})
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string]string{edited: text, list: string(overlay)} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("go", "test", "-overlay", list, "-count=1", "-failfast", "-run", tests, ".")
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "--- FAIL") {
		t.Errorf("it is not missed: %v\n%s", err, out)
	} else {
		t.Logf("%.400s", out)
	}
}
