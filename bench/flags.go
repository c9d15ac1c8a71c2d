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

// The scenarios.
const (
	scenarioPair   = "pair"
	scenarioFaults = "faults"
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
	goroutines []int
	rounds     int
	duration   time.Duration
	rtt        time.Duration
	json       bool
	short      bool
	check      bool
}

func (c *config) wants(scenario string) bool { return slices.Contains(c.scenarios, scenario) }

const usageHead = `Bench measures lock+unlock pairs over five masters, as ratios to a hand-written floor of the same run.

usage: go run ./bench [flags]

`

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
	var masters, goroutines, scenarios string
	fs.StringVar(&masters, "masters", "", "`list` of masters, host:port or redis:// URLs, separated by commas; without it five are started")
	fs.StringVar(&c.source, "start", sourceAuto, "what to start without -masters: process, memory, or auto (processes if a server program is found)")
	fs.StringVar(&goroutines, "goroutines", "1,64,512", "`list` of numbers of concurrent callers")
	fs.StringVar(&scenarios, "scenario", scenarioPair+","+scenarioFaults, "`list` of scenarios: pair, faults (faults needs masters that it starts)")
	fs.IntVar(&c.rounds, "rounds", 5, "rounds; the median over them is printed (3 with -short)")
	fs.DurationVar(&c.rtt, "rtt", 0, "in scenario faults: delay of every reply, as a network between would add")
	fs.DurationVar(&c.duration, "duration", time.Second, "length of one measurement (100ms with -short)")
	fs.BoolVar(&c.short, "short", false, "a few seconds, for continuous integration")
	fs.BoolVar(&c.json, "json", false, "one JSON document on standard output instead of the table")
	fs.BoolVar(&c.check, "check", false, "exit with 3 where a target is not met")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprint(out, usageHead)
			fs.SetOutput(out)
			fs.PrintDefaults()
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
	if err := c.lists(masters, goroutines, scenarios, given); err != nil {
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
		c.rounds = 3
	}
	if c.short && !given["duration"] {
		c.duration = 100 * time.Millisecond
	}
}

func (c *config) lists(masters, goroutines, scenarios string, given map[string]bool) error {
	for _, s := range splitList(goroutines) {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > 100_000 {
			return usage("-goroutines: %q is not a number from 1 to 100000", s)
		}
		if slices.Contains(c.goroutines, n) {
			return usage("-goroutines: %d stands there twice", n)
		}
		c.goroutines = append(c.goroutines, n)
	}
	for _, s := range splitList(scenarios) {
		if s != scenarioPair && s != scenarioFaults {
			return usage("-scenario: %q is neither pair nor faults", s)
		}
		c.scenarios = append(c.scenarios, s)
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

func (c *config) validate(given map[string]bool) error {
	switch {
	case len(c.goroutines) == 0:
		return usage("-goroutines names none")
	case len(c.scenarios) == 0:
		return usage("-scenario names none")
	case c.rounds < 1 || c.rounds > 10_000:
		return usage("-rounds %d is not from 1 to 10000", c.rounds)
	case c.rtt < 0 || c.rtt > time.Second:
		return usage("-rtt %v is not from 0 to 1s", c.rtt)
	case c.duration < time.Millisecond || c.duration > time.Hour:
		return usage("-duration %v is not from 1ms to 1h", c.duration)
	case !slices.Contains([]string{sourceAuto, sourceProcess, sourceMemory}, c.source):
		return usage("-start %q is none of auto, process, memory", c.source)
	case len(c.masters) > 0 && given["start"]:
		return usage("-start and -masters exclude each other")
	case given["scenario"] && c.wants(scenarioFaults) && (len(c.masters) > 0 || c.source == sourceMemory):
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
