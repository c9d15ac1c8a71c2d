package redlock_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// CONTRIBUTING.md names a file and a test for each rule. Both must exist.
func TestDocumentedRulesNameWhatExists(t *testing.T) {
	doc, err := os.ReadFile("../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("\\| \\[(\\S+)\\]\\(\\S+\\) \\| `(Test\\w+)` \\|").FindAllStringSubmatch(string(doc), -1)
	if len(rows) != 5 {
		t.Fatalf("%d rows, want one for each of five rules", len(rows))
	}
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var tests strings.Builder
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		tests.Write(text)
	}
	for _, row := range rows {
		if _, err := os.Stat("../" + row[1]); err != nil {
			t.Errorf("%s: %v", row[1], err)
		}
		if !strings.Contains(tests.String(), "func "+row[2]+"(") {
			t.Errorf("%s is no test of this package", row[2])
		}
	}
}
