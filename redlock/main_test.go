package redlock_test

import (
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/redlock-go/redlock/internal/long"
	"github.com/redlock-go/redlock/internal/worker"
)

// TestMain runs the tests or, in a process that a test has started, a worker.
func TestMain(m *testing.M) {
	if worker.Role() != "" {
		os.Exit(worker.Main(pairs))
	}
	slog.SetDefault(slog.New(slog.NewTextHandler(&overlong, withoutTime))) // most tests cause warnings
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given { // the tests on real masters mostly wait for TTLs and quarantines
		parallel := "4"
		if !long.Enabled() {
			parallel = "12"
		}
		if err := flag.Set("test.parallel", parallel); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if text := overlong.text(); text != "" && code == 0 {
			fmt.Fprintf(os.Stderr, "FAIL: these lines of the log have more than %d bytes:\n%s", longestLine, text)
			code = 1
		}
		os.Exit(code)
	}))
}

// longestLine bounds the lines of the log, in bytes, of a client of five masters.
const longestLine = 500

// overlong collects the longer lines of all tests. Tests with more than five masters have none either.
var overlong longLines

type longLines struct {
	mu    sync.Mutex
	lines []string
}

// Write implements io.Writer for a handler of records, which writes one line at a time.
func (l *longLines) Write(line []byte) (int, error) {
	if len(line) > longestLine && !strings.Contains(string(line), " stack=") { // of a panic of a callback
		l.mu.Lock()
		defer l.mu.Unlock()
		l.lines = append(l.lines, string(line))
	}
	return len(line), nil
}

func (l *longLines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "")
}

// withoutTime omits the time of records.
var withoutTime = &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}}

// rounds returns the number of repetitions of a test, which is small without -long.
func rounds(full, short int) int {
	if !long.Enabled() {
		return short
	}
	return full
}
