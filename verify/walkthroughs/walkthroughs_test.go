package walkthroughs

import (
	"path/filepath"
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
