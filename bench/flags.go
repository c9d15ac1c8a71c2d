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

// Where the masters come from.
const (
	sourceAuto    = "auto"
	sourceProcess = "process"
	sourceMemory  = "memory"
)

// A config is what the command line asks for.
type config struct {
	masters    []string // URLs; nil: started by the program
	source     string
	scenarios  []string
	entrants   []entrant
	goroutines []int
	held       []int // numbers of locks held at once
	rounds     int
	duration   time.Duration
	rtt        []time.Duration // round trips to the masters: none, one for all, or one for each
	json       bool
	from       string // a run to show instead of measuring
	out        string
	html       string
	compare    string
	readme     string
	cpuProfile string
	memProfile string
	short      bool
	check      bool
}

func (c *config) wants(scenario string) bool { return slices.Contains(c.scenarios, scenario) }

const usageHead = `Bench measures what a lock over a majority of masters costs, next to a hand-written floor and to other libraries.

usage: go run ./bench [flags]

`

// defaultRounds is how many rounds there are without -rounds.
const defaultRounds = 3

// defaultImpl is who takes part without -impl.
const defaultImpl = nameLibrary + ",floor"

// defaultScenarios are what is measured without -scenario, in about a minute.
var defaultScenarios = strings.Join([]string{scenarioPairs, scenarioVotes, scenarioHeld, scenarioContention, scenarioSplit}, ",")

// scenarioNames lists all scenarios, as -scenario takes them.
func scenarioNames() string {
	var names []string
	for _, s := range scenarios {
		names = append(names, s.name)
	}
	return strings.Join(names, ",")
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

// parseFlags reads the command line. Errors other than flag.ErrHelp wrap errUsage; the help goes to out.
func parseFlags(args []string, out io.Writer) (*config, error) {
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	var c config
	var masters, goroutines, list, impl, rtt, held string
	fs.StringVar(&masters, "masters", "", "`list` of masters, host:port or redis:// URLs, separated by commas; without it five are started")
	fs.StringVar(&c.source, "start", sourceAuto, "what to start without -masters: process, memory, or auto (processes if a server program is found)")
	fs.StringVar(&goroutines, "goroutines", "1,64,512", "`list` of numbers of concurrent callers")
	fs.StringVar(&list, "scenario", defaultScenarios, "`list` of what to measure, or all, which takes many minutes (all with -short); see below")
	fs.StringVar(&impl, "impl", defaultImpl, "`list` of contenders, or all; see below")
	fs.StringVar(&held, "held", "1000,100000", "`list` of numbers of locks that are held at once (1000 with -short)")
	fs.IntVar(&c.rounds, "rounds", defaultRounds, "rounds; the median over them is printed (2 with -short)")
	fs.StringVar(&rtt, "rtt", "", "`list` of round trips that a network between would take: one for all masters (2ms), or one for each (1ms,1ms,1ms,10ms,10ms)")
	fs.DurationVar(&c.duration, "duration", 500*time.Millisecond, "length of one measurement (100ms with -short)")
	fs.BoolVar(&c.short, "short", false, "a few seconds, for continuous integration")
	fs.BoolVar(&c.json, "json", false, "one JSON document on standard output instead of the table")
	fs.StringVar(&c.out, "out", "", "write the JSON document to this `file` as well")
	fs.StringVar(&c.html, "html", "", "write a page with plots to this `file` as well")
	fs.StringVar(&c.compare, "compare", "", "say what differs from the run in this JSON `file` by more than chance")
	fs.StringVar(&c.from, "from", "", "measure nothing, and show the run in this JSON `file`")
	fs.StringVar(&c.readme, "readme", "", "put the figures between the marks in this `file`; with -check only compare them; needs -from")
	fs.StringVar(&c.cpuProfile, "cpuprofile", "", "write a profile of the processor time of this process to this `file`")
	fs.StringVar(&c.memProfile, "memprofile", "", "write a profile of the allocations of this process to this `file`")
	fs.BoolVar(&c.check, "check", false, "exit with 3 where a target is not met")
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
	c.shorten(given)
	for _, s := range splitList(rtt) {
		d, err := time.ParseDuration(s)
		if err != nil || d < 0 || d > time.Second {
			return nil, usage("-rtt: %q is not a time from 0 to 1s", s)
		}
		c.rtt = append(c.rtt, d)
	}
	if c.short && !given["held"] {
		held = "1000"
	}
	if c.short && !given["scenario"] {
		list = scenarioNames()
	}
	if err := c.lists(masters, goroutines, held, list, impl, given); err != nil {
		return nil, err
	}
	return &c, c.validate(given)
}

func usage(format string, args ...any) error {
	return fmt.Errorf("bench: "+format+"; %w", append(args, errUsage)...)
}

// shorten applies -short to what was not given.
func (c *config) shorten(given map[string]bool) {
	if c.short && !given["rounds"] {
		c.rounds = 2
	}
	if c.short && !given["duration"] {
		c.duration = 100 * time.Millisecond
	}
}

func (c *config) lists(masters, goroutines, held, list, impl string, given map[string]bool) error {
	var err error
	if c.goroutines, err = numbers("goroutines", goroutines); err != nil {
		return err
	}
	if c.held, err = numbers("held", held); err != nil {
		return err
	}
	if list == "all" {
		list = scenarioNames()
	}
	for _, s := range splitList(list) {
		if !slices.ContainsFunc(scenarios, func(known scenario) bool { return known.name == s }) {
			return usage("-scenario: %q is none of %s", s, scenarioNames())
		}
		c.scenarios = append(c.scenarios, s)
	}
	if c.entrants, err = entrantsNamed(impl); err != nil {
		return usage("-impl: %v", err)
	}
	for i, s := range splitList(masters) {
		u, err := masterURL(s)
		if err != nil {
			return usage("-masters: entry %d: %v", i+1, err)
		}
		if slices.Contains(c.masters, u) {
			return usage("-masters: entry %d stands there twice", i+1)
		}
		c.masters = append(c.masters, u)
	}
	if given["masters"] && len(c.masters) == 0 {
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

func (c *config) validate(given map[string]bool) error {
	switch {
	case len(c.goroutines) == 0:
		return usage("-goroutines names none")
	case len(c.scenarios) == 0:
		return usage("-scenario names none")
	case c.rounds < 1 || c.rounds > 10_000:
		return usage("-rounds %d is not from 1 to 10000", c.rounds)
	case c.duration < time.Millisecond || c.duration > time.Hour:
		return usage("-duration %v is not from 1ms to 1h", c.duration)
	case !slices.Contains([]string{sourceAuto, sourceProcess, sourceMemory}, c.source):
		return usage("-start %q is none of auto, process, memory", c.source)
	case len(c.masters) > 0 && given["start"]:
		return usage("-start and -masters exclude each other")
	case c.readme != "" && c.from == "":
		return usage("-readme needs -from: the figures are those of a run that is kept")
	case given["scenario"] && len(c.scenarios) == 1 && (c.wants(scenarioFaults) || c.wants(scenarioTimeline)) && (len(c.masters) > 0 || c.source == sourceMemory):
		return usage("-scenario %s stops and kills masters, so it needs processes that it has started itself", c.scenarios[0])
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
