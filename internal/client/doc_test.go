package client

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/redlock-go/redlock/internal/must"
)

// The documentation lists the functions that a plain lock passes through. Each must exist in the file that is named.
func TestPathOfALockNamesWhatExists(t *testing.T) { namesWhatExists(t, "doc.go", 20) }

// The same for what a master passes through that was restarted.
func TestPathOfAMasterNamesWhatExists(t *testing.T) { namesWhatExists(t, "../monitor/doc.go", 7) }

// namesWhatExists fails if the list of functions in the documentation doc has fewer rows than least, or a row that
// names a function which the file of the row does not declare.
func namesWhatExists(t *testing.T, doc string, least int) {
	t.Helper()
	text := must.Get(os.ReadFile(doc))(t)
	row := regexp.MustCompile(`(?m)^//\t(\S+\.go) +(\w[\w.]*(?:, \w[\w.]*)*)(?:  .*)?$`)
	rows := row.FindAllStringSubmatch(string(text), -1)
	if len(rows) < least {
		t.Fatalf("the list has only %d rows", len(rows))
	}
	for _, row := range rows {
		file, err := os.ReadFile(filepath.Join("..", "..", row[1]))
		if err != nil {
			t.Error(err)
		}
		for name := range strings.SplitSeq(row[2], ", ") {
			receiver := `(?:\([^)]*\) )?`
			if of, method, ok := strings.Cut(name, "."); ok {
				receiver, name = `\(\w+ \*?`+of+`\) `, method
			}
			if !regexp.MustCompile(`(?m)^func ` + receiver + name + `[\[(]`).Match(file) {
				t.Errorf("%s does not declare %s", row[1], row[2])
			}
		}
	}
}
