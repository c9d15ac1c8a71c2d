package walkthroughs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	time.Local = time.UTC // errors contain the time of day
	goleak.VerifyTestMain(m)
}

// The events of each walkthrough must equal those in its file. -rewrite updates the file.
func TestWalkthroughs(t *testing.T) {
	for _, file := range files(t) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newScenario(t)
				defer w.close()
				datadriven.RunTest(t, file, w.run)
			})
		})
	}
}

func files(t *testing.T) []string {
	t.Helper()
	list, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(list) == 0 {
		t.Fatal(list, err)
	}
	return list
}

// covered lists the ranges of hazards that have a walkthrough, or are listed as having none.
var covered = [][2]int{{1, 6}, {20, 24}, {40, 44}, {53, 70}, {75, 75}, {80, 91}}

// Each hazard has a walkthrough, in a file that begins with its id and a description, or is listed as having none.
func TestEachHazardHasWalkthroughOrReason(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	has := map[string]bool{}
	for _, file := range files(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		id := strings.TrimSuffix(filepath.Base(file), ".txt")
		has[id] = true
		for _, part := range []string{"# " + id + ". ", "\n# What could go wrong: ", "\n# What must hold: "} {
			if !strings.Contains("\n"+string(text), "\n"+strings.TrimPrefix(part, "\n")) {
				t.Errorf("%s has no line that begins with %q", file, strings.TrimSpace(part))
			}
		}
	}
	for _, r := range covered {
		for n := r[0]; n <= r[1]; n++ {
			id := fmt.Sprintf("H%02d", n)
			listed := regexp.MustCompile(`(?m)^//\t` + id + `  needs `).Match(doc)
			if has[id] == listed {
				t.Errorf("%s has a walkthrough: %v; it is listed as one without: %v", id, has[id], listed)
			}
		}
	}
}
