// Command redlock looks at the masters of a fleet, and changes what an operator may change.
//
//	redlock check URL...    tells what is not as it should be on each master, what that endangers, and what to do
//	redlock status URL...   tells the state of each master
//	redlock admit URL...    lets all of them vote at once; for those who know that no lock is held on them
//	redlock quarantine -master ADDR URL...
//	                        puts one master into quarantine, named as status names it. It replaces an admission record
//	                        that cannot be read, or that names another number of masters and that no program needs
//	redlock guard [-set 60s] URL...
//	                        tells the guard time of each master, or raises it in the whole fleet while programs run,
//	                        before they use longer TTLs
//	redlock set [-raise] [-finish] FILE
//	                        tells how far a change of the masters is, and what is next. FILE is the configuration that
//	                        the programs go by (see package redlock, Set). -raise writes its epoch, which refuses
//	                        programs that go by an earlier one. -finish lets the next masters act alone as soon as the
//	                        old ones show that nothing is held by them alone; it waits for that within the timeout
//
// URL... are all masters of the fleet. A command writes what it is asked to write and nothing else. So check, status,
// guard without -set, and set without -raise and -finish write nothing, and only quarantine starts a quarantine.
//
// Flags: -prefix (default "redlock"), -guard (default 30s, the guard time of a fleet that has none yet), -timeout
// (default 10s), -durable (addresses of masters that remember every write, as status names them, with commas between,
// or "all").
//
// The exit code:
//
//	0    all is well, or done
//	1    check has found something that endangers locks; or what was asked for was not done, or not on all masters
//	2    fewer than a quorum of the masters vote: no lock can be taken
//	3    the call is wrong; nothing was sent
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// The exit codes.
const (
	exitDone     = 0
	exitDanger   = 1
	exitNoQuorum = 2
	exitUsage    = 3
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

const usage = `usage: redlock check|status|admit URL...
       redlock quarantine -master ADDR URL...
       redlock guard [-set 60s] URL...
       redlock set [-raise] [-finish] FILE
flags: [-prefix redlock] [-guard 30s] [-timeout 10s] [-durable all]
URL is redis://host:port`

// commands are what there is to do; each returns the exit code.
var commands = map[string]func(ctx context.Context, l *redlock.Locker, o *options) int{
	"status":     status,
	"admit":      admit,
	"check":      check,
	"guard":      guard,
	"quarantine": quarantine,
	"set":        changeSet,
}

// options are what the flags say.
type options struct {
	prefix         string
	guard, timeout time.Duration
	ownGuard       bool // the guard time was given, and is that of the programs
	durable        string
	master         string        // of quarantine
	set            time.Duration // of guard
	raise, finish  bool          // of set
	state          *redlock.Set  // the masters, of set
	stdout, stderr io.Writer
}

func (o *options) parse(command string, args []string) (urls []string, ok bool) {
	flags := flag.NewFlagSet("redlock "+command, flag.ContinueOnError)
	flags.SetOutput(o.stderr)
	flags.StringVar(&o.prefix, "prefix", redlock.DefaultPrefix, "what the keys begin with")
	flags.DurationVar(&o.guard, "guard", redlock.DefaultGuardTime, "guard time of a fleet that has none yet")
	flags.DurationVar(&o.timeout, "timeout", 10*time.Second, "bound on the whole command")
	flags.StringVar(&o.durable, "durable", "",
		"addresses of masters that remember every write, with commas between, or all")
	switch command {
	case "guard":
		flags.DurationVar(&o.set, "set", 0, "the new guard time")
	case "quarantine":
		flags.StringVar(&o.master, "master", "", "address of the master, as status names it")
	case "set":
		flags.BoolVar(&o.raise, "raise", false, "write the epoch on the masters: every program goes by the file")
		flags.BoolVar(&o.finish, "finish", false, "let the next masters act alone, once the change is complete")
	}
	ok = flags.Parse(args) == nil
	flags.Visit(func(f *flag.Flag) { o.ownGuard = o.ownGuard || f.Name == "guard" })
	if ok && command == "quarantine" && o.master == "" {
		fmt.Fprintln(o.stderr, "redlock quarantine: -master is wanted, the address of the one to be put into quarantine")
		ok = false
	}
	return flags.Args(), ok
}

// locker are the options of the Locker that asks. It observes: what is written is what a command asks for.
func (o *options) locker() []redlock.Option {
	list := []redlock.Option{
		redlock.WithObserver(), redlock.WithPrefix(o.prefix),
		redlock.WithGuardTime(o.guard), redlock.WithTTL(min(o.guard, redlock.DefaultTTL)),
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
		return exitUsage
	}
	o := &options{stdout: stdout, stderr: stderr}
	urls, ok := o.parse(args[0], args[1:])
	if !ok {
		return exitUsage
	}
	ctx, cancel := context.WithTimeout(context.Background(), o.timeout)
	defer cancel()
	masters, err := o.dial(args[0], urls)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return exitUsage
	}
	defer masters.Close()
	locker, err := redlock.New(masters, o.locker()...)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return exitUsage
	}
	defer locker.Close(ctx)
	for _, w := range locker.Warnings() {
		fmt.Fprintln(stderr, w)
	}
	return commands[args[0]](ctx, locker, o)
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
