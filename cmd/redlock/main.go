// Command redlock looks at the masters of a fleet, and changes what an operator may change: whether they vote, the guard
// time, and which masters they are.
//
//	redlock check URL...    tells what is not as it should be on each master, what that endangers, and what to do
//	redlock status URL...   tells the state of each master
//	redlock admit URL...    lets all of them vote at once; for those who know that no lock is held on them
//	redlock guard [-set 60s [-lower]] URL...
//	                        tells the guard time of each master, or sets it. It is raised while programs run, before they
//	                        use longer TTLs, and lowered only with nobody running, which -lower confirms
//	redlock set [-raise] [-finish] FILE
//	                        tells how far a change of the masters is, and what is next. FILE is what the programs go by
//	                        (see package redlock, Set). -raise writes its epoch, which bars programs that go by an
//	                        earlier state; -finish lets the next masters act alone as soon as the old ones show that
//	                        nothing is held by them alone, and waits for that within the timeout
//
// All of them change this: a master without a marker begins its quarantine, as it would with any client. A check also sets
// a key of one second on each master.
//
// Flags: -prefix (default "redlock"), -guard (default 30s), -timeout (default 10s), -durable (addresses of masters that
// remember every write, as status names them, with commas between, or "all"). The exit code is 0 when a majority votes,
// or, of a check, when it found no failure; 1 when that is not so, or what was asked for did not succeed; 2 for a wrong
// call.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

const usage = "usage: redlock check|status|admit|guard|set [-prefix redlock] [-guard 30s] [-timeout 10s] [-durable all] [-set 60s [-lower]] [-raise] [-finish] redis://host:port ... | FILE"

// commands are what is done before the states are told; each returns the exit code, or states for report.
var commands = map[string]func(ctx context.Context, l *redlock.Locker, f *options) (code int, done bool){
	"status": func(context.Context, *redlock.Locker, *options) (int, bool) { return 0, false },
	"admit":  admit,
	"check":  check,
	"guard":  setGuard,
	"set":    changeSet,
}

// options are what the flags say.
type options struct {
	prefix         string
	guard, timeout time.Duration
	ownGuard       bool // the guard time was given, and is that of the programs
	durable        string
	set            time.Duration
	lower          bool
	raise, finish  bool
	state          *redlock.Set // the masters, of set
	stdout, stderr io.Writer
}

func (o *options) parse(command string, args []string) (urls []string, ok bool) {
	flags := flag.NewFlagSet("redlock "+command, flag.ContinueOnError)
	flags.SetOutput(o.stderr)
	flags.StringVar(&o.prefix, "prefix", redlock.DefaultPrefix, "what the keys begin with")
	flags.DurationVar(&o.guard, "guard", redlock.DefaultGuardTime, "guard time of the fleet, written where no master has one")
	flags.DurationVar(&o.timeout, "timeout", 10*time.Second, "bound on the whole command")
	flags.StringVar(&o.durable, "durable", "", "addresses of masters that remember every write, with commas between, or all")
	if command == "guard" {
		flags.DurationVar(&o.set, "set", 0, "the new guard time")
		flags.BoolVar(&o.lower, "lower", false, "it may be smaller than before: no program that locks is running, and the present guard time has passed since")
	}
	if command == "set" {
		flags.BoolVar(&o.raise, "raise", false, "write the epoch on the masters: every program goes by the file")
		flags.BoolVar(&o.finish, "finish", false, "let the next masters act alone, once the change is complete")
	}
	ok = flags.Parse(args) == nil
	flags.Visit(func(f *flag.Flag) { o.ownGuard = o.ownGuard || f.Name == "guard" })
	return flags.Args(), ok
}

// locker are the options of the Locker that asks.
func (o *options) locker() []redlock.Option {
	list := []redlock.Option{redlock.WithPrefix(o.prefix), redlock.WithGuardTime(o.guard), redlock.WithTTL(min(o.guard, redlock.DefaultTTL))}
	if longest := max(o.guard, o.set); longest > redlock.DefaultBarTTL {
		list = append(list, redlock.WithBarTTL(longest))
	}
	if o.state != nil {
		list = append(list, redlock.WithSet(*o.state))
	}
	switch o.durable {
	case "":
	case "all":
		list = append(list, redlock.WithDurableMasters())
	default:
		list = append(list, redlock.WithDurableMasters(strings.Split(o.durable, ",")...))
	}
	return list
}

func run(args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 || commands[args[0]] == nil {
		fmt.Fprintln(stderr, usage)
		return 2
	}
	o := &options{stdout: stdout, stderr: stderr}
	urls, ok := o.parse(args[0], args[1:])
	if !ok {
		return 2
	}
	ctx, cancel := context.WithTimeout(context.Background(), o.timeout)
	defer cancel()
	masters, err := o.dial(args[0], urls)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	defer masters.Close()
	locker, err := redlock.New(masters, o.locker()...)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	defer locker.Close(ctx)
	for _, w := range locker.Warnings() {
		fmt.Fprintln(stderr, w)
	}
	code, done := commands[args[0]](ctx, locker, o)
	if done {
		return code
	}
	return max(code, report(locker.Ready(ctx), stdout))
}

// dial makes the pool: of the URLs, or of the masters in a file.
func (o *options) dial(command string, args []string) (*pool.Pool, error) {
	if command != "set" {
		return pool.Dial(args)
	}
	s, p, err := setFile(args)
	o.state = &s
	return p, err
}

func admit(ctx context.Context, l *redlock.Locker, o *options) (int, bool) {
	if err := l.AdmitNow(ctx); err != nil {
		fmt.Fprintln(o.stderr, err)
	}
	return 0, false // whether a majority votes is what counts
}

func setGuard(ctx context.Context, l *redlock.Locker, o *options) (int, bool) {
	if o.set == 0 {
		return 0, false
	}
	change := l.RaiseGuardTime
	if o.lower {
		change = l.LowerGuardTime
	}
	if err := change(ctx, o.set); err != nil {
		fmt.Fprintln(o.stderr, err)
		return 1, false
	}
	return 0, false
}

func check(ctx context.Context, l *redlock.Locker, o *options) (int, bool) {
	findings, err := l.Check(ctx)
	if err != nil {
		fmt.Fprintln(o.stderr, err)
		return 1, true
	}
	code := 0
	findings = slices.DeleteFunc(findings, func(f pool.Finding) bool { // of this command, which takes no locks
		return f.About == "guard time" && f.Severity == pool.Notice && !o.ownGuard
	})
	for _, f := range findings {
		fmt.Fprintf(o.stdout, "%s: %v: %s\n    %s\n    endangers: %s\n    to do: %s\n", f.Master, f.Severity, f.About, f.What, f.Endangers, f.Do)
		if f.Severity == pool.Failure {
			code = 1
		}
	}
	if len(findings) == 0 {
		fmt.Fprintln(o.stdout, "nothing found")
	}
	return code, true
}

// report prints a line for each master.
func report(list []redlock.MasterInfo, stdout io.Writer) int {
	voting := 0
	for _, m := range list {
		fmt.Fprintf(stdout, "%-28s %s", m.Addr, m.State)
		if m.Left > 0 {
			fmt.Fprintf(stdout, ", %v left", m.Left.Round(time.Second))
		}
		if m.Guard > 0 {
			fmt.Fprintf(stdout, ", guard time %v", m.Guard)
		}
		if m.Epoch > 0 {
			fmt.Fprintf(stdout, ", epoch %d", m.Epoch)
		}
		if m.Err != nil {
			fmt.Fprintf(stdout, ": %v", m.Err)
		}
		fmt.Fprintln(stdout)
		if m.State == "voting" {
			voting++
		}
	}
	fmt.Fprintf(stdout, "%d of %d vote, %d are needed\n", voting, len(list), len(list)/2+1)
	if voting <= len(list)/2 {
		return 1
	}
	return 0
}
