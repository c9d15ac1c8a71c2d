//go:build linux

package main

import (
	"bytes"
	"context"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/long"
	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/redlock"
)

// An adviceCase provokes one finding of check on master 1 of three, follows its advice as printed, and requires that
// the finding is gone and that a held lock lives on.
type adviceCase struct {
	name        string
	args        []string // of master 1
	new         bool     // the masters have not been admitted: there is no lock
	about, what string   // the finding
	spoil       func(e *adviceEnv)
	// apply follows advice that has more than commands. If it is nil the commands are run.
	apply func(e *adviceEnv, f *printed)
	stays bool // the advice is to do nothing, or to decide
}

// An adviceEnv is the deployment of one case.
type adviceEnv struct {
	*deployment
	master *redisproc.Server // master 1
	flags  []string          // of check
	lock   *redlock.Lock     // held on the masters; nil if they are new

	replica *redisproc.Server // of master 1
	second  string            // a sentinel
	honest  atomic.Bool       // the proxy before master 1 rewrites nothing

	stopClock func(stopped func()) // restarts the server with a wrong clock
}

// A printed is a finding in the output of check.
type printed struct {
	masters                              []string
	severity, about, what, endangers, do string
}

var (
	printedFinding = regexp.MustCompile(
		`(?m)^(.+): (notice|warning|failure): (.+)\n    (.+)\n    risk: (.+)\n    fix: (.+)$`)
	inBackquotes = regexp.MustCompile("`([^`]+)`(?: on ([0-9.:, ]+))?")
	shownList    = regexp.MustCompile(`record of this master has epoch \d+ and the masters \[([^]]*)\]`)
)

// check runs the command and returns its findings.
func (e *adviceEnv) check() (list []printed, text string) {
	e.t.Helper()
	var out, errs bytes.Buffer
	code := run(slices.Concat([]string{"check"}, e.flags, e.urls), &out, &errs)
	text = out.String()
	verdict := map[string]int{"yes, ": exitDone, "no": exitNoQuorum}
	first, _, _ := strings.Cut(strings.TrimPrefix(text, "locks can be taken: "), "\n")
	for start, least := range verdict {
		if strings.HasPrefix(first, start) && (code == exitNoQuorum) == (least == exitNoQuorum) && code != exitUsage {
			for _, m := range printedFinding.FindAllStringSubmatch(text, -1) {
				list = append(list, printed{strings.Split(m[1], ", "), m[2], m[3], m[4], m[5], m[6]})
			}
			return list, text
		}
	}
	e.t.Fatalf("code %d\n%s%s", code, text, errs.String())
	return nil, ""
}

// finding returns the finding of the case, or nil.
func (c *adviceCase) finding(list []printed) *printed {
	for i := range list {
		if list[i].about == c.about && strings.Contains(list[i].what, c.what) {
			return &list[i]
		}
	}
	return nil
}

// follow runs the commands of the advice: those of redlock with the URLs, those of Redis on the servers that are named
// behind them, or else on the masters of the finding.
func (e *adviceEnv) follow(f *printed) {
	e.t.Helper()
	for _, m := range inBackquotes.FindAllStringSubmatch(f.do, -1) {
		words := strings.Fields(m[1])
		if words[0] == "redlock" {
			if code, said := command(slices.Concat(words[1:], []string{"--yes"}, e.urls)...); code == exitUsage {
				e.t.Fatalf("%q: %s", words, said)
			}
			continue
		}
		on := f.masters
		if m[2] != "" {
			on = strings.Split(m[2], ", ")
		}
		e.on(on, words...)
	}
}

// on sends a command to the servers with these addresses. SELECT counts for later commands of the case.
func (e *adviceEnv) on(addrs []string, words ...string) {
	e.t.Helper()
	for _, addr := range addrs {
		if !regexp.MustCompile(`^[0-9.]+:[0-9]+$`).MatchString(addr) {
			addr = e.master.Addr() // it has another name
		}
		c, err := redis.Dial("tcp", addr)
		if err != nil {
			e.t.Fatal(err)
		}
		defer c.Close()
		if words[0] == "DEL" { // of records in another database, which a SELECT before it names
			if _, err := c.Do("SELECT", 3); err != nil {
				e.t.Fatal(err)
			}
		}
		args := redis.Args{}.AddFlat(words[1:])
		if _, err := c.Do(words[0], args...); err != nil {
			e.t.Fatalf("%q on %s: %v", words, addr, err)
		}
	}
}

// admin sends a command to master 1.
func (e *adviceEnv) admin(words ...any) any {
	e.t.Helper()
	return adminOf(e.t, e.master, words...)
}

// replace starts another server at the address of master 1.
func (e *adviceEnv) replace(args ...string) {
	e.t.Helper()
	_, port, _ := strings.Cut(e.master.Addr(), ":")
	if err := e.master.Stop(); err != nil {
		e.t.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		e.t.Fatal(err)
	}
	e.master = redistest.Test(e.t, 1, redisproc.Config{Port: n, Args: args})[0]
}

// named returns a URL with the name of master 1, so that the list of masters stays the same.
func (e *adviceEnv) named(url string) string {
	if strings.Contains(url, "?") {
		return url + "&name=" + e.master.Addr()
	}
	return url + "?name=" + e.master.Addr()
}

func newAdviceEnv(t *testing.T, c *adviceCase) *adviceEnv {
	t.Helper()
	f := &deployment{t: t, servers: slices.Concat(redistest.Test(t, 1, redisproc.Config{}),
		redistest.Test(t, 1, redisproc.Config{Args: c.args}), redistest.Test(t, 1, redisproc.Config{}))}
	for _, s := range f.servers {
		f.urls = append(f.urls, s.URL())
	}
	e := &adviceEnv{deployment: f, master: f.servers[1]}
	if !c.new {
		f.call(exitDone, "3 of 3 vote", "admit")
		e.lock = f.holder("orders")
	}
	return e
}

// lives fails the test unless the lock is held as before, by its client and no other one.
func (e *adviceEnv) lives() {
	e.t.Helper()
	if e.lock == nil {
		return
	}
	ctx, cancel := context.WithTimeout(e.t.Context(), time.Minute)
	defer cancel()
	if err := e.lock.Extend(ctx); err != nil || e.lock.Err() != nil {
		e.t.Errorf("the lock that was held is lost: %v, %v", err, e.lock.Err())
	}
}

// Every next step that check names is followed on real servers, as printed.
func TestAdviceOfCheckIsSafe(t *testing.T) {
	t.Parallel()
	signal.Ignore(syscall.SIGXFSZ) // for servers whose files cannot grow
	var mu sync.Mutex
	var said []string
	t.Run("steps", func(t *testing.T) {
		for i, c := range adviceCases() {
			if !long.Enabled() && i%10 != 0 {
				continue
			}
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				e := newAdviceEnv(t, &c)
				c.spoil(e)
				var f *printed
				var text string
				if !eventuallyTrue(func() bool {
					var list []printed
					list, text = e.check()
					f = c.finding(list)
					return f != nil
				}) {
					t.Fatalf("no finding about %s with %q:\n%s", c.about, c.what, text)
				}
				mu.Lock()
				said = append(said, f.do)
				mu.Unlock()
				t.Log(f.do)
				if c.apply != nil {
					c.apply(e, f)
				} else {
					e.follow(f)
				}
				gone := func() bool {
					var list []printed
					list, text = e.check()
					return c.finding(list) == nil
				}
				if c.stays {
					if !strings.HasPrefix(f.do, "nothing: ") && !strings.HasPrefix(f.do, "decide ") {
						t.Errorf("the advice requests an action: %s", f.do)
					}
				} else if !eventuallyTrue(gone) {
					t.Errorf("after the advice %q:\n%s", f.do, text)
				}
				e.lives()
			})
		}
	})
	if !t.Failed() && len(said) == len(adviceCases()) { // none was skipped
		stepsAreTried(t, said)
	}
}

// stepsAreTried fails the test if a step was not printed, or if one was printed that is none of the constants.
func stepsAreTried(t *testing.T, said []string) {
	t.Helper()
	steps := slices.Concat(constantsOf(t, "../../internal/transport/steps.go"),
		constantsOf(t, "../../redlock/internal/admission/steps.go"))
	patterns := make([]*regexp.Regexp, len(steps))
	for i, s := range steps {
		pattern := regexp.MustCompile(`%[a-z]`).ReplaceAllString(regexp.QuoteMeta(s), ".+")
		patterns[i] = regexp.MustCompile(pattern)
		if !slices.ContainsFunc(said, patterns[i].MatchString) {
			t.Errorf("no case prints the advice: %s", s)
		}
	}
	for _, do := range said {
		if !slices.ContainsFunc(patterns, func(p *regexp.Regexp) bool { return p.MatchString(do) }) {
			t.Errorf("this advice is none of the steps: %s", do)
		}
	}
}

// constantsOf returns the values of the constants in a file whose names begin with "step".
func constantsOf(t *testing.T, path string) (list []string) {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	config := types.Config{Error: func(error) {}} // of imports, which constants do not need
	pkg, _ := config.Check("steps", set, []*ast.File{file}, nil)
	for _, name := range pkg.Scope().Names() {
		c, ok := pkg.Scope().Lookup(name).(*types.Const)
		if ok && strings.HasPrefix(strings.ToLower(name), "step") {
			list = append(list, constant.StringVal(c.Val()))
		}
	}
	if len(list) == 0 {
		t.Fatalf("no steps in %s", path)
	}
	return list
}

// A finding takes its advice from the list of steps: it has no text of its own.
func TestFindingsNameSteps(t *testing.T) {
	files, err := filepath.Glob("../../internal/transport/check*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, path := range append(files, "../../internal/transport/info.go", "../../redlock/masters.go") {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) < 4 {
				return true
			}
			var name string
			switch f := call.Fun.(type) {
			case *ast.Ident:
				name = f.Name
			case *ast.SelectorExpr:
				name = f.Sel.Name
			}
			if name != "find" && name != "add" {
				return true
			}
			found++
			last := call.Args[len(call.Args)-1]
			if format, ok := last.(*ast.CallExpr); ok && len(format.Args) > 0 {
				last = format.Args[0]
			}
			if lit, ok := last.(*ast.BasicLit); ok && len(lit.Value) > 30 {
				t.Errorf("%s: advice that is no step: %s", path, lit.Value)
			}
			return true
		})
	}
	if found < 20 {
		t.Errorf("%d findings in the sources", found)
	}
}
