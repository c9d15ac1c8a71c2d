package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redlock-go/redlock/internal/transport"
)

// A config holds the settings of the command line.
type config struct {
	masters    []string // URLs; nil if the program starts the masters
	chosen     []string // names of the scenarios to measure
	brief      bool     // the default run, which measures only what the summary shows
	entrants   []entrant
	goroutines []int
	rounds     int
	hurry      bool // fewer rounds if the default run would take longer than a minute
	duration   time.Duration
	short      bool
	check      bool
	output
}

// An output holds the destinations of the result.
type output struct {
	verbose bool
	json    bool
	from    string // a saved run to show instead of a new measurement
	out     string
	html    string
	compare string
}

func (c *config) wants(scenario string) bool { return slices.Contains(c.chosen, scenario) }

const usageHead = `Bench measures the cost of a lock over a majority of masters, compared with redsync
and with a minimal lock, the floor.

usage: go run ./bench [flags]

`

// Defaults of the flags.
var (
	defaultImpl      = []string{nameLibrary, nameAsync, nameLinger, nameFloor, nameScripts, nameRedsync}
	defaultScenarios = []string{scenarioPairs, scenarioLoad, scenarioContention, scenarioFaults}
)

const usageTail = `
exit codes: 0 measured, 1 failed, 2 wrong flags, 130 interrupted,
  3 a target is missed (only with -check). With -short, every round must miss the target by a factor of more than two;
    on a busy machine, only targets that compare contenders count.
`

func newFlags(c *config) *flag.FlagSet {
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	of := func(parse func(*config, []string) error) func(string) error {
		return func(text string) error {
			list, err := splitList(text)
			return errors.Join(err, parse(c, list))
		}
	}
	fs.String("masters", "", "`list` of masters, host:port or redis:// URLs (default: the benchmark starts five)")
	fs.Func("goroutines", "`list` of caller counts for the scenario pairs (default 1,8,64)", of(parseGoroutines))
	fs.Func("scenario", "`list` of scenarios to measure in full, or all, which takes many minutes (default: the parts\n"+
		"of "+strings.Join(defaultScenarios, ", ")+" that the summary shows)", of(parseScenarios))
	fs.Func("impl", "`list` of contenders, or all; see below (default "+strings.Join(defaultImpl, ",")+")",
		of(parseEntrants))
	fs.IntVar(&c.rounds, "rounds", 3, "number of rounds; the output shows medians over all rounds (2 with -short)")
	fs.DurationVar(&c.duration, "duration", 500*time.Millisecond, "length of one measurement (100ms with -short)")
	fs.BoolVar(&c.short, "short", false, "measure for a few seconds, for continuous integration; see the exit codes")
	fs.BoolVar(&c.verbose, "v", false, "print all tables before the summary; -scenario implies -v")
	fs.BoolVar(&c.check, "check", false, "print the targets of this project, with the cause of each miss, and exit with "+
		"code 3 if a target is missed")
	fs.BoolVar(&c.json, "json", false, "print one JSON document instead of text")
	fs.StringVar(&c.out, "out", "", "also write the JSON document to `file`")
	fs.StringVar(&c.html, "html", "", "also write an HTML page with plots to `file`")
	fs.StringVar(&c.compare, "compare", "", "print the significant differences from the run saved in a JSON `file`, or "+
		"in a list of files")
	fs.StringVar(&c.from, "from", "", "do not measure; show the run saved in a JSON `file`, or in a list of files")
	return fs
}

// errUsage is wrapped by all errors about the command line.
var errUsage = errors.New("see -h")

func usage(format string, args ...any) error {
	return fmt.Errorf("bench: "+format+"; %w", append(args, errUsage)...)
}

// parseFlags parses the command line. It returns flag.ErrHelp if help was requested, after writing the help to out.
// Other errors wrap errUsage.
func parseFlags(args []string, out io.Writer) (*config, error) {
	var c config
	fs := newFlags(&c)
	fs.SetOutput(io.Discard)
	if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
		writeHelp(fs, out)
		return nil, err
	} else if err != nil {
		return nil, usage("%v", err)
	}
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if c.short && !given["rounds"] {
		c.rounds = 2
	}
	if c.short && !given["duration"] {
		c.duration = 100 * time.Millisecond
	}
	if c.goroutines == nil {
		c.goroutines = []int{1, 8, 64}
	}
	if c.entrants == nil {
		_ = parseEntrants(&c, defaultImpl)
	}
	if c.brief = c.chosen == nil; c.brief {
		c.chosen = defaultScenarios
	}
	c.hurry = c.brief && !given["rounds"]
	c.verbose = c.verbose || !c.brief
	if given["masters"] { // package flag would quote the value, which may contain a password, in its errors
		list, err := splitList(fs.Lookup("masters").Value.String())
		if err := errors.Join(err, parseMasters(&c, list)); err != nil {
			return nil, usage("-masters: %v", err)
		}
	}
	switch {
	case fs.NArg() > 0:
		return nil, usage("unexpected argument %q", fs.Arg(0))
	case c.rounds < 1 || c.rounds > 10_000:
		return nil, usage("-rounds %d: must be from 1 to 10000", c.rounds)
	case c.duration < time.Millisecond || c.duration > time.Hour:
		return nil, usage("-duration %v: must be from 1ms to 1h", c.duration)
	case len(c.chosen) == 1 && c.wants(scenarioFaults) && len(c.masters) > 0:
		return nil, usage("-scenario faults: cannot be used with -masters, because it stops and kills masters")
	}
	return &c, nil
}

func writeHelp(fs *flag.FlagSet, out io.Writer) {
	fmt.Fprint(out, usageHead)
	fs.SetOutput(out)
	fs.PrintDefaults()
	fmt.Fprint(out, "\nscenarios:\n")
	for _, s := range scenarios {
		fmt.Fprintf(out, "  %-12s %s\n", s.name, s.help)
	}
	fmt.Fprint(out, "\ncontenders (-impl accepts a name, or the part before a slash or a space):\n")
	for _, e := range entrants {
		fmt.Fprintf(out, "  %s\n", e.name)
	}
	fmt.Fprint(out, usageTail)
}

// splitList splits text at commas, and drops blanks and empty entries. It returns an error if the list is empty or
// contains a duplicate.
func splitList(text string) (list []string, err error) {
	for _, s := range strings.Split(text, ",") {
		if s = strings.TrimSpace(s); slices.Contains(list, s) {
			return nil, fmt.Errorf("entry %d is a duplicate", len(list)+1)
		} else if s != "" {
			list = append(list, s)
		}
	}
	if len(list) == 0 {
		return nil, errors.New("the list is empty")
	}
	return list, nil
}

func parseScenarios(c *config, list []string) error {
	var names []string
	for _, s := range scenarios {
		names = append(names, s.name)
	}
	if c.chosen = list; slices.Contains(list, "all") {
		c.chosen = names
	}
	for _, s := range c.chosen {
		if !slices.Contains(names, s) {
			return fmt.Errorf("%q is not one of %s", s, strings.Join(names, ", "))
		}
	}
	return nil
}

func parseGoroutines(c *config, list []string) error {
	for _, s := range list {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > 100_000 {
			return fmt.Errorf("%q is not a number from 1 to 100000", s)
		}
		c.goroutines = append(c.goroutines, n)
	}
	return nil
}

// parseEntrants selects the contenders of a list. An element is a full name, the part of a name before a slash or a
// space, or "all".
func parseEntrants(c *config, list []string) error {
	for _, s := range list {
		n := len(c.entrants)
		_, err := entrantNamed(s)
		for _, e := range entrants {
			begins := strings.HasPrefix(e.name, s+" ") || strings.HasPrefix(e.name, s+"/")
			fits := s == "all" || e.name == s || err != nil && begins // a full name selects only that contender
			if fits && !slices.ContainsFunc(c.entrants, func(f entrant) bool { return f.name == e.name }) {
				c.entrants = append(c.entrants, e)
			}
		}
		if len(c.entrants) == n {
			return fmt.Errorf("%q is an unknown contender or a duplicate", s)
		}
	}
	return nil
}

// parseMasters converts a list to URLs. Its errors do not quote text that may contain a password.
func parseMasters(c *config, list []string) error {
	for i, s := range list {
		if _, _, err := net.SplitHostPort(s); err == nil && !strings.ContainsAny(s, "@/") {
			s = "redis://" + s
		}
		if err := transport.URL(s).Err(); err != nil {
			return fmt.Errorf("entry %d: %w", i+1, err)
		}
		c.masters = append(c.masters, s)
	}
	return nil
}
