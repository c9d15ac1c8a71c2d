package redlock_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What keeps programs of unlike groups apart is taken out, one piece after the other, and each time the tests of such
// programs find a name that is locked in two groups, or that could be.
func TestUnlikeGroupsBothWinWithoutAProtection(t *testing.T) {
	source, err := filepath.Abs("internal/admission/group.go")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string][2]string{
		"the group in the records":              {"if !fact.told() || fact.Record.Group == f.Group {", "if true {"},
		"all groups are seen before they begin": {"f.Agreed || f.Begun()", "true"},
		"all masters of all groups": {"if fact := &f.Facts[j]; !fact.shown() || fact.Record.Group != f.Group {",
			"if fact := &f.Facts[j]; j < 2 && (!fact.shown() || fact.Record.Group != f.Group) {"},
	} {
		if strings.Count(string(text), edit[0]) != 1 {
			t.Errorf("%s: this must be once in %s: %s", name, source, edit[0])
			continue
		}
		if testing.Short() {
			continue // only that the edits apply
		}
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			edited, list := filepath.Join(dir, "group.go"), filepath.Join(dir, "overlay.json")
			overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{source: edited}})
			if err != nil {
				t.Fatal(err)
			}
			for path, content := range map[string]string{
				edited: strings.Replace(string(text), edit[0], edit[1], 1), list: string(overlay),
			} {
				if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.Command("go", "test", "-overlay", list, "-count=1", "-run", "^TestVirtual(UnlikeGroupsNeverBothWin|GroupsBeginWhenAllMastersWereSeen)$", ".")
			if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "--- FAIL") {
				t.Errorf("it is not missed: %v\n%s", err, out)
			}
		})
	}
}
