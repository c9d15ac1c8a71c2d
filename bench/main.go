package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"
)

// Exit codes. The help explains them.
const (
	exitOK, exitFailed, exitUsage, exitMissed = 0, 1, 2, 3
	exitInterrupted                           = 130
)

// A config holds the settings of the command line.
type config struct {
	masters    []string // URLs; nil if the program starts the masters
	scenarios  []string
	entrants   []entrant
	goroutines []int // callers of the scenario load
	rounds     int
	duration   time.Duration
	short      bool
	check      bool
	json       bool
	html       string // files and directories to write; "" for none
	svg        string
}

// The scenarios, in the order of measuring.
const (
	scenarioCost   = "cost"
	scenarioLoad   = "load"
	scenarioFaults = "faults"
)

var allScenarios = []string{scenarioCost, scenarioLoad, scenarioFaults}

func main() {
	if os.Getenv(workerEnv) == "" {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		os.Exit(command(ctx, os.Args[1:], os.Stdout, os.Stderr))
	}
	if err := workerMain(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench: worker:", err)
		os.Exit(exitFailed)
	}
}

// command runs the program and returns its exit code.
func command(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	c, err := parseFlags(args, stdout)
	if errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	if err != nil {
		fmt.Fprintf(stderr, "bench: %v; see -h\n", err)
		return exitUsage
	}
	r, err := measureAll(ctx, c, onTerminal(stderr))
	if err == nil {
		err = r.deliver(c, stdout)
	}
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "bench: interrupted")
		return exitInterrupted
	case err != nil:
		fmt.Fprintln(stderr, "bench:", err)
		return exitFailed
	case c.check && r.missed(c.short):
		return exitMissed
	}
	return exitOK
}

// onTerminal returns w if it is a terminal, and otherwise a writer that discards.
func onTerminal(w io.Writer) io.Writer {
	if file, ok := w.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		return w
	}
	return io.Discard
}

const usage = `Bench measures what a lock over a majority of masters costs, compared with redsync, rueidislock
and a minimal lock, the floor.

usage: go run ./bench [flags]

exit codes: 0 measured, 1 failed, 2 wrong flags, 130 interrupted,
  3 a target is missed (only with -check). With -short, a target counts as missed only if every round misses it by a
    factor of more than two; on a busy machine, targets that do not compare contenders are ignored.

`

// parseFlags parses the command line. It returns flag.ErrHelp if help was requested, after writing the help to out. Its
// errors do not quote the masters, whose URLs may contain a password.
func parseFlags(args []string, out io.Writer) (*config, error) {
	c := new(config)
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	masters := fs.String("masters", "", "`list` of masters, host:port or redis:// URLs (default: five are started)")
	scenarios := fs.String("scenario", strings.Join(allScenarios, ","), "`list` of scenarios")
	goroutines := fs.String("goroutines", "64,512", "`list` of numbers of callers for the scenario load")
	impl := fs.String("impl", usual, "`list` of contenders, or all; the others are "+
		strings.Join(names(entrants[7:]), ", ")+"; the default with\n-short is "+usualShort+"\n")
	fs.IntVar(&c.rounds, "rounds", 3, "number of rounds (2 with -short)")
	fs.DurationVar(&c.duration, "duration", 500*time.Millisecond, "length of one measurement (100ms with -short)")
	fs.BoolVar(&c.short, "short", false, "measure the main contenders for half a minute, for continuous integration")
	fs.BoolVar(&c.check, "check", false, "print the targets of this project; exit with code 3 if one is missed")
	fs.BoolVar(&c.json, "json", false, "print one JSON document instead of text")
	fs.StringVar(&c.html, "html", "", "also write an HTML page with plots to `file`")
	fs.StringVar(&c.svg, "svg", "", "also write the plots to a `directory`")
	if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(out, usage)
		fs.SetOutput(out)
		fs.PrintDefaults()
		return nil, err
	} else if err != nil {
		return nil, err
	}
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for name, value := range map[string]string{"rounds": "2", "duration": "100ms", "impl": usualShort} {
		if c.short && !given[name] {
			_ = fs.Set(name, value)
		}
	}
	c.scenarios = strings.Split(*scenarios, ",")
	for _, s := range c.scenarios {
		if !slices.Contains(allScenarios, s) {
			return nil, fmt.Errorf("-scenario: %q is not one of %s", s, strings.Join(allScenarios, ", "))
		}
	}
	for s := range strings.SplitSeq(*goroutines, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > 100_000 {
			return nil, fmt.Errorf("-goroutines: %q is not a number from 1 to 100000", s)
		}
		c.goroutines = append(c.goroutines, n)
	}
	asked := strings.Split(*impl, ",")
	for _, s := range asked {
		if s != "all" && !slices.Contains(names(entrants), s) {
			return nil, fmt.Errorf("-impl: %q is an unknown contender", s)
		}
	}
	c.entrants = slices.DeleteFunc(slices.Clone(entrants), func(e entrant) bool {
		return !slices.Contains(asked, e.name) && !slices.Contains(asked, "all")
	})
	if *masters != "" {
		if err := c.parseMasters(*masters); err != nil {
			return nil, fmt.Errorf("-masters: %w", err)
		}
	}
	switch {
	case fs.NArg() > 0:
		return nil, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	case c.rounds < 1:
		return nil, errors.New("-rounds: must be at least 1")
	case c.duration < time.Millisecond:
		return nil, errors.New("-duration: must be at least 1ms")
	}
	return c, nil
}

func (c *config) parseMasters(text string) error {
	for i, s := range strings.Split(text, ",") {
		if _, _, err := net.SplitHostPort(s); err == nil && !strings.ContainsAny(s, "@/") {
			s = "redis://" + s
		}
		u, err := url.Parse(s)
		switch {
		case err != nil || u.Host == "" || u.Scheme != "redis" && u.Scheme != "rediss":
			return fmt.Errorf("entry %d is not host:port or a redis:// or rediss:// URL", i+1)
		case slices.Contains(c.masters, s):
			return fmt.Errorf("entry %d is a duplicate", i+1)
		}
		c.masters = append(c.masters, s)
	}
	return nil
}
