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
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// An adviceCase provokes one finding of check on master 1 of three, and follows the advice of the finding as
// printed. Afterwards the finding must have disappeared, and a held lock must still be held.
type adviceCase struct {
	name        string
	args        []string // arguments of master 1
	new         bool     // the masters have not been admitted, so no lock is held
	about, what string   // the finding contains these texts
	spoil       func(e *adviceEnv)
	// apply follows advice that consists of more than commands. If apply is nil, the commands in the advice are run.
	apply func(e *adviceEnv, f *printed)
	stays bool // the finding remains, because the advice is to do nothing, or to make a decision
	brief bool // the fault must end soon, or is another one a moment later: the outputs are not compared
}

// An adviceEnv is the deployment on which one case runs.
type adviceEnv struct {
	*deployment
	master *redisproc.Server // master 1
	flags  []string          // additional flags of check
	lock   *redlock.Lock     // held on the masters; nil if the masters are new
	paused paused            // a lock of a paused client; zero if the masters are new
	plain  []string          // the URLs of the servers, without the changes of the case

	replica *redisproc.Server // the replica of master 1
	second  string            // address of a sentinel, which is not in the URL of master 1
	honest  atomic.Bool       // the proxy in front of master 1 no longer changes replies
	before  func()            // called before each check, if set

	certificates string // the directory of the certificates of master 1
	tlsPort      string // the port of master 1 for TLS

	clock *redistest.ShiftedServer // the server with the wrong clock
}

// A printed is a finding as check prints it.
type printed struct {
	masters                          []string
	severity, about, what, risk, fix string
}

var (
	printedFinding = regexp.MustCompile(
		`(?m)^(.+): (notice|warning|failure): (.+)\n    (.+)\n    risk: (.+)\n    fix: (.+)$`)
	inBackquotes = regexp.MustCompile("`([^`]+)`(?: on ([0-9.:, ]+))?")
	shownList    = regexp.MustCompile(`record of this master has epoch \d+ and the masters \[([^]]*)\]`)
)

// check runs the command check. It returns the findings and the whole output.
func (e *adviceEnv) check() (list []printed, text string) {
	e.t.Helper()
	if e.before != nil {
		e.before()
	}
	var out, errs bytes.Buffer
	code := run(slices.Concat([]string{"check"}, e.flags, e.urls), &out, &errs)
	text = out.String()
	verdict := map[string]int{"yes, ": exitDone, "no": exitNoQuorum}
	first, _, _ := strings.Cut(strings.TrimPrefix(text, "locks can be acquired: "), "\n")
	for start, least := range verdict {
		if strings.HasPrefix(first, start) && (code == exitNoQuorum) == (least == exitNoQuorum) && code != exitUsage {
			for _, m := range printedFinding.FindAllStringSubmatch(text, -1) {
				list = append(list, printed{strings.Split(m[1], ", "), m[2], m[3], m[4], m[5], m[6]})
			}
			return list, text
		}
	}
	e.t.Fatalf("the exit code %d does not match the output of check\n%s%s", code, text, errs.String())
	return nil, ""
}

// finding returns the finding in list that the case provokes, or nil.
func (c *adviceCase) finding(list []printed) *printed {
	for i := range list {
		if list[i].about == c.about && strings.Contains(list[i].what, c.what) {
			return &list[i]
		}
	}
	return nil
}

// follow runs the commands that the advice contains. Commands of redlock get the URLs of the masters. Commands of
// Redis are sent to the servers that the advice names after them, or to the masters of the finding.
func (e *adviceEnv) follow(f *printed) {
	e.t.Helper()
	for _, m := range inBackquotes.FindAllStringSubmatch(f.fix, -1) {
		words := strings.Fields(m[1])
		if words[0] == "redlock" {
			if code, said := command(slices.Concat(words[1:], []string{"--yes"}, e.urls)...); code == exitUsage {
				e.t.Fatalf("the command %q was refused: %s", words, said)
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

// on sends a command to the servers with these addresses.
func (e *adviceEnv) on(addrs []string, words ...string) {
	e.t.Helper()
	for _, addr := range addrs {
		if !regexp.MustCompile(`^[0-9.]+:[0-9]+$`).MatchString(addr) {
			addr = e.master.Addr() // master 1 is listed under another name
		}
		c, err := redis.Dial("tcp", addr)
		if err != nil {
			e.t.Fatal(err)
		}
		defer c.Close()
		if words[0] == "DEL" { // the advice deletes records in database 3
			if _, err := c.Do("SELECT", 3); err != nil {
				e.t.Fatal(err)
			}
		}
		args := redis.Args{}.AddFlat(words[1:])
		if _, err := c.Do(words[0], args...); err != nil {
			e.t.Fatalf("the command %q failed on %s: %v", words, addr, err)
		}
	}
}

// admin sends a command to master 1.
func (e *adviceEnv) admin(words ...any) any {
	e.t.Helper()
	return redistest.Do(e.t, e.master, words...)
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

// named adds the name of master 1 to a URL, so that the list of masters does not change.
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
	e.plain = slices.Clone(f.urls)
	if !c.new {
		f.call(exitDone, "3 of 3 masters vote", "admit")
		e.lock = f.holder("orders")
		e.paused = (&votingDeployment{f, built(t), setText(t, f.urls)}).pause("pay")
	}
	return e
}

// agrees fails the test unless all outputs about the masters agree.
func (e *adviceEnv) agrees() {
	e.t.Helper()
	masters := slices.Concat(e.flags, e.urls)
	l, log := openLogged(e.t, masters, observer)
	log.tries(l)
	var seen verdictSeen
	var wrong []string
	if !redistest.Until(func() bool {
		seen = lookAt(e.t, masters)
		wrong = append(seen.disagreements(), log.contradicts(&seen)...)
		return len(wrong) == 0
	}) {
		e.t.Errorf("the outputs disagree about %q in\n%s\n%s\n%+v\n%s", wrong, seen.text, seen.statusText, seen.page,
			log.all())
	}
}

// lives fails the test unless the lock is still held by its client.
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
	p, err := pool.Open(e.plain)
	if err != nil {
		e.t.Fatal(err)
	}
	defer p.Close()
	rival, err := redlock.New(p, redlock.WithLabel("rival"))
	if err != nil {
		e.t.Fatal(err)
	}
	defer rival.Close()
	for _, name := range append(e.paused.names, e.lock.Name()) {
		_, err := rival.Lock(ctx, name, redlock.WithWaitLimit(time.Second))
		if err == nil && (name == e.lock.Name() || time.Now().Before(e.paused.until)) {
			e.t.Errorf("there is a second holder of %q", name)
		}
	}
}

// H163: the advice of each finding of check is followed literally on real servers, beside a held lock and beside a
// paused holder. The finding disappears, no held lock is lost, and no second client gets one. Before that, all outputs
// about the masters agree.
func TestAdviceOfCheckIsSafe(t *testing.T) {
	t.Parallel()
	signal.Ignore(syscall.SIGXFSZ) // for servers whose files may not grow
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
				if !redistest.Until(func() bool {
					var list []printed
					list, text = e.check()
					f = c.finding(list)
					return f != nil
				}) {
					t.Fatalf("there is no finding about %s with %q:\n%s", c.about, c.what, text)
				}
				if !c.brief && e.before == nil {
					e.agrees()
				}
				mu.Lock()
				said = append(said, f.fix)
				mu.Unlock()
				t.Log(f.fix)
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
					if !strings.HasPrefix(f.fix, "nothing: ") && !strings.HasPrefix(f.fix, "decide ") {
						t.Errorf("the advice requests an action, want it to begin with nothing or decide: %s", f.fix)
					}
				} else if !redistest.Until(gone) {
					t.Errorf("the finding remains after the advice %q was followed:\n%s", f.fix, text)
				}
				e.lives()
			})
		}
	})
	if !t.Failed() && len(said) == len(adviceCases()) { // no case was skipped
		stepsAreTried(t, said)
	}
}

// stepsAreTried fails the test if a constant in advice.go was not printed as advice, or if the printed advice is not
// one of these constants.
func stepsAreTried(t *testing.T, said []string) {
	t.Helper()
	steps := slices.Concat(constantsOf(t, "../../internal/transport/advice.go"),
		constantsOf(t, "../../internal/diagnose/advice.go"),
		constantsOf(t, "../../internal/admission/advice.go"))
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
			t.Errorf("the advice is not a constant in advice.go: %s", do)
		}
	}
}

// constantsOf returns the values of all constants in a file that have a name beginning with "step".
func constantsOf(t *testing.T, path string) (list []string) {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	config := types.Config{Error: func(error) {}} // ignore errors of imports, which constants do not need
	pkg, _ := config.Check("steps", set, []*ast.File{file}, nil)
	for _, name := range pkg.Scope().Names() {
		c, ok := pkg.Scope().Lookup(name).(*types.Const)
		if ok && strings.HasPrefix(strings.ToLower(name), "step") {
			list = append(list, constant.StringVal(c.Val()))
		}
	}
	if len(list) == 0 {
		t.Fatalf("%s has no constant with a name that begins with step", path)
	}
	return list
}
