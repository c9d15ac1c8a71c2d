package main

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"
)

// An event is a line of "go test -json". Events of a package without a test are about the package.
type event struct {
	Action, Package, Test, Output string
}

// A packageRun is what is known of a package that has not ended.
type packageRun struct {
	said   map[string][]string // by test, the lines of those that have not ended; by "", those of the package
	order  []string            // the tests in said, as they began
	failed []string            // the lines of tests that failed
}

// A report is written while the events come.
type report struct {
	w        io.Writer
	packages map[string]*packageRun
	reasons  []string            // for which tests were left out, in order
	names    map[string][]string // by reason, the tests
}

// line takes one line of "go test -json". One that is no event is printed as it is.
func (r *report) line(text []byte) {
	var e event
	if json.Unmarshal(text, &e) != nil {
		fmt.Fprintf(r.w, "%s", text)
		return
	}
	if e.Package == "" { // of a build
		fmt.Fprint(r.w, e.Output)
		return
	}
	p := r.packages[e.Package]
	if p == nil {
		p = &packageRun{said: map[string][]string{}}
		r.packages[e.Package] = p
	}
	switch {
	case e.Action == "output":
		p.say(e.Test, e.Output)
	case e.Action != "pass" && e.Action != "fail" && e.Action != "skip":
	case e.Test == "":
		p.write(r.w, e.Action == "fail")
		delete(r.packages, e.Package)
	default:
		if e.Action == "skip" {
			r.leftOut(e.Test, p.said[e.Test])
		}
		if e.Action == "fail" {
			p.failed = append(p.failed, p.said[e.Test]...)
		}
		p.said[e.Test] = nil
	}
}

func (p *packageRun) say(test, text string) {
	if strings.HasPrefix(text, "=== ") { // begins, pauses, goes on
		return
	}
	if _, known := p.said[test]; !known {
		p.order = append(p.order, test)
	}
	p.said[test] = append(p.said[test], text)
}

// write prints of a package that passed its one line, and of another all but what tests have said that passed. A test
// that never ended was running when the program died.
func (p *packageRun) write(w io.Writer, failed bool) {
	own := p.said[""]
	if !failed {
		for _, text := range own {
			if strings.HasPrefix(text, "ok  \t") || strings.HasPrefix(text, "?   \t") {
				fmt.Fprint(w, text)
			}
		}
		return
	}
	lines := p.failed
	for _, test := range p.order {
		if test != "" {
			lines = append(lines, p.said[test]...)
		}
	}
	fmt.Fprint(w, strings.Join(append(lines, own...), ""))
}

var logged = regexp.MustCompile(`^\s*[^\s:]+\.go:\d+: (.*)`)

// leftOut books a test that was skipped. What it said last is why.
func (r *report) leftOut(test string, said []string) {
	reason := "it does not say why"
	for _, text := range said {
		if strings.HasPrefix(strings.TrimSpace(text), "--- SKIP: ") {
			continue
		}
		if found := logged.FindStringSubmatch(text); found != nil {
			reason = found[1]
		} else {
			reason += " " + strings.TrimSpace(text)
		}
	}
	if r.names[reason] == nil {
		r.reasons = append(r.reasons, reason)
	}
	r.names[reason] = append(r.names[reason], test)
}

// end writes what was left out, and the last line.
func (r *report) end(ok bool, took time.Duration) {
	for _, reason := range r.reasons {
		what := r.names[reason][0]
		if n := len(r.names[reason]); n > 1 {
			what = fmt.Sprintf("%d tests", n)
		}
		fmt.Fprintf(r.w, "left out: %s: %s\n", what, reason)
	}
	verdict := "ok  "
	if !ok {
		verdict = "FAIL"
	}
	fmt.Fprintf(r.w, "%s\ttotal\t%.3fs\n", verdict, took.Seconds())
}
