package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A config is what the command line asks for.
type config struct {
	masters    []string // URLs; nil: started by the program
	scenarios  []string
	brief      bool // the scenarios of the default run, of each what the summary shows
	entrants   []entrant
	goroutines []int
	rounds     int
	duration   time.Duration
	short      bool
	check      bool
	output
}

// An output is where the result goes.
type output struct {
	verbose bool
	json    bool
	from    string // a run to show instead of measuring
	out     string
	html    string
	compare string
	readme  string
}

func (c *config) wants(scenario string) bool { return slices.Contains(c.scenarios, scenario) }

const usageHead = `Bench measures what a lock over a majority of masters costs, beside redsync and a plain floor.

usage: go run ./bench [flags]

`

// The default run.
const (
	defaultImpl      = nameLibrary + "," + nameFloor + "," + nameRedsync
	defaultScenarios = scenarioPairs + "," + scenarioContention + "," + scenarioFaults
)

// scenarioNames lists all scenarios.
func scenarioNames() (names []string) {
	for _, s := range scenarios {
		names = append(names, s.name)
	}
	return names
}

// entrantsNamed finds those of a list: by name, by how their names begin, or "all".
func entrantsNamed(list string) (found []entrant, err error) {
	for _, s := range splitList(list) {
		n := len(found)
		for _, e := range entrants {
			fits := s == "all" || e.name == s || strings.HasPrefix(e.name, s+" ") || strings.HasPrefix(e.name, s+"/")
			if fits && !slices.ContainsFunc(found, func(f entrant) bool { return f.name == e.name }) {
				found = append(found, e)
			}
		}
		if len(found) == n {
			return nil, fmt.Errorf("%q is no contender, or stands there twice", s)
		}
	}
	if len(found) == 0 {
		return nil, errors.New("it names none")
	}
	return found, nil
}

func writeLists(out io.Writer) {
	fmt.Fprint(out, "\nscenarios:\n")
	for _, s := range scenarios {
		fmt.Fprintf(out, "  %-12s %s\n", s.name, s.help)
	}
	fmt.Fprint(out, "\ncontenders, by name or by the first part of the name:\n")
	for _, e := range entrants {
		fmt.Fprintf(out, "  %s\n", e.name)
	}
}

const usageTail = `
exit codes: 0 measured, 1 failed, 2 wrong flags, 3 a target is not met (with -check), 130 interrupted
`

// errUsage marks an error in the command line.
var errUsage = errors.New("see -h")

// texts are the flags that are lists.
type texts struct{ masters, goroutines, scenarios, impl string }

func (c *config) flags(l *texts) *flag.FlagSet {
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.StringVar(&l.masters, "masters", "", "`list` of masters, host:port or redis:// URLs; without it five are started")
	fs.StringVar(&l.goroutines, "goroutines", "1,64", "`list` of numbers of concurrent callers")
	fs.StringVar(&l.scenarios, "scenario", "", "`list` of what to measure in full, or all, which takes many minutes; "+
		"without it the parts of "+defaultScenarios+" that the summary shows")
	fs.StringVar(&l.impl, "impl", defaultImpl, "`list` of contenders, or all; see below")
	fs.IntVar(&c.rounds, "rounds", 3, "rounds; the median over them is printed (2 with -short)")
	fs.DurationVar(&c.duration, "duration", 500*time.Millisecond, "length of one measurement (100ms with -short)")
	fs.BoolVar(&c.short, "short", false, "a few seconds, for continuous integration; -check fails beyond twice a bound")
	fs.BoolVar(&c.verbose, "v", false, "all tables before the summary; -scenario prints them too")
	fs.BoolVar(&c.check, "check", false, "print the targets, and exit with 3 where one is not met")
	fs.BoolVar(&c.json, "json", false, "one JSON document on standard output instead of text")
	fs.StringVar(&c.out, "out", "", "write the JSON document to this `file` as well")
	fs.StringVar(&c.html, "html", "", "write a page with plots to this `file` as well")
	fs.StringVar(&c.compare, "compare", "", "say what differs from the run in this JSON `file` by more than chance")
	fs.StringVar(&c.from, "from", "", "measure nothing, and show the run in this JSON `file`")
	fs.StringVar(&c.readme, "readme", "", "put the figures between the marks in this `file`; -check only compares them")
	return fs
}

// parseFlags reads the command line. Errors other than flag.ErrHelp wrap errUsage; the help goes to out.
func parseFlags(args []string, out io.Writer) (*config, error) {
	var c config
	var l texts
	fs := c.flags(&l)
	fs.SetOutput(io.Discard)
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprint(out, usageHead)
			fs.SetOutput(out)
			fs.PrintDefaults()
			writeLists(out)
			fmt.Fprint(out, usageTail)
			return nil, err
		}
		return nil, usage("%v", err)
	}
	if fs.NArg() > 0 {
		return nil, usage("unexpected argument %q", fs.Arg(0))
	}
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if c.short && !given["rounds"] {
		c.rounds = 2
	}
	if c.short && !given["duration"] {
		c.duration = 100 * time.Millisecond
	}
	c.brief = !given["scenario"]
	c.verbose = c.verbose || !c.brief
	if err := c.lists(l, given["masters"]); err != nil {
		return nil, err
	}
	return &c, c.validate()
}

func usage(format string, args ...any) error {
	return fmt.Errorf("bench: "+format+"; %w", append(args, errUsage)...)
}

func (c *config) lists(l texts, mastersGiven bool) error {
	var err error
	if c.goroutines, err = numbers("goroutines", l.goroutines); err != nil {
		return err
	}
	switch {
	case c.brief:
		l.scenarios = defaultScenarios
	case l.scenarios == "all":
		l.scenarios = strings.Join(scenarioNames(), ",")
	}
	c.scenarios = splitList(l.scenarios)
	for _, s := range c.scenarios {
		if !slices.Contains(scenarioNames(), s) {
			return usage("-scenario: %q is none of %s", s, strings.Join(scenarioNames(), ", "))
		}
	}
	if c.entrants, err = entrantsNamed(l.impl); err != nil {
		return usage("-impl: %v", err)
	}
	for i, s := range splitList(l.masters) {
		u, err := masterURL(s)
		if err != nil {
			return usage("-masters: entry %d: %v", i+1, err)
		}
		if slices.Contains(c.masters, u) {
			return usage("-masters: entry %d stands there twice", i+1)
		}
		c.masters = append(c.masters, u)
	}
	if mastersGiven && len(c.masters) == 0 {
		return usage("-masters names none")
	}
	return nil
}

// numbers reads a list of different numbers of goroutines or locks.
func numbers(flag, text string) (list []int, err error) {
	for _, s := range splitList(text) {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > 100_000 {
			return nil, usage("-%s: %q is not a number from 1 to 100000", flag, s)
		}
		if slices.Contains(list, n) {
			return nil, usage("-%s: %d stands there twice", flag, n)
		}
		list = append(list, n)
	}
	return list, nil
}

func (c *config) validate() error {
	switch {
	case len(c.goroutines) == 0:
		return usage("-goroutines names none")
	case len(c.scenarios) == 0:
		return usage("-scenario names none")
	case c.rounds < 1 || c.rounds > 10_000:
		return usage("-rounds %d is not from 1 to 10000", c.rounds)
	case c.duration < time.Millisecond || c.duration > time.Hour:
		return usage("-duration %v is not from 1ms to 1h", c.duration)
	case c.readme != "" && c.from == "":
		return usage("-readme needs -from: the figures are those of a run that is kept")
	case len(c.scenarios) == 1 && c.wants(scenarioFaults) && len(c.masters) > 0:
		return usage("-scenario faults stops and kills masters, so it needs processes that it has started itself")
	}
	return nil
}

// splitList splits at commas; blanks and empty entries are dropped.
func splitList(s string) []string {
	var list []string
	for _, e := range strings.Split(s, ",") {
		if e = strings.TrimSpace(e); e != "" {
			list = append(list, e)
		}
	}
	return list
}

// masterURL checks one entry of -masters. Errors quote no more than what has no password in it.
func masterURL(s string) (string, error) {
	if !strings.Contains(s, "://") {
		if strings.Contains(s, "@") {
			return "", errors.New("a user or password needs a redis:// URL")
		}
		host, port, err := net.SplitHostPort(s)
		if err != nil || host == "" || port == "" {
			return "", fmt.Errorf("%q is neither host:port nor a URL", s)
		}
		return "redis://" + s, nil
	}
	u, err := url.Parse(s)
	if err != nil {
		return "", errors.New("the URL cannot be parsed")
	}
	if u.Scheme != "redis" && u.Scheme != "rediss" {
		return "", fmt.Errorf("%q: the scheme is neither redis nor rediss", u.Redacted())
	}
	if u.Host == "" {
		return "", fmt.Errorf("%q names no host", u.Redacted())
	}
	return s, nil
}
