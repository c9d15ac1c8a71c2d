package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/private"
	"github.com/redlock-go/redlock/redlock"
)

// Exit statuses of run itself. They use the numbers of sysexits.h where possible.
const (
	exitRunUsage    = 64  // EX_USAGE
	exitRunNoQuorum = 69  // EX_UNAVAILABLE
	exitRunHeld     = 75  // EX_TEMPFAIL
	exitRunLost     = 76  // EX_PROTOCOL is the closest match
	exitCannotRun   = 126 // as in shells
	exitNotFound    = 127
	exitSignal      = 128 // plus the number of the signal
)

// tryBound is how long --try waits for the masters. It does not wait for the holder.
const tryBound = 10 * time.Second

const runLong = `Takes the lock of NAME, runs the command while it is held, and gives it back. The command gets the
fencing token in REDLOCK_TOKEN and the name in REDLOCK_NAME. Its standard input, output and error are those of redlock.

It waits as long as another holds the name: with --wait no longer than that, with --try not at all. Of any number of
hosts that use --try at one instant one gets the lock. If their votes are split they ask again, for half a second.

With --min-hold the name stays locked for at least that long, also when the command ends earlier; redlock does not wait
for it. To run a job of cron on one of several hosts, use --try together with a --min-hold above the difference between
the hosts' clocks: without it, a host that is late runs a short job again.

The command runs in a process group of its own. Signals to redlock (TERM, INT, HUP, QUIT, USR1, USR2, WINCH) are
passed on to the group. If input and output are a terminal, the group is in its foreground, so that Ctrl-C and Ctrl-Z
reach it once; redlock stops and goes on with the command. A command that is stopped for longer than the lock is
valid is killed. In a pipe, as before "| tee", the terminal is handed to the command when it first reads it; until
then Ctrl-Z stops redlock alone. In the background redlock says that the command is stopped, and stops too.
What the command has left running in its group is killed before the lock is given back.

A name that begins with a dash is behind -- as well: redlock run -- -name -- command.

When the lock cannot be kept, the group gets TERM, as long as --grace before the validity of the lock ends, and KILL
when it ends. When the masters have lost the lock all at once, or a client has released it by force, it gets KILL
after --grace. A second process of redlock, the first of the group, watches the first one: it kills the group when
redlock has ended in any way (kill -9 too), or has been stopped for so long that the validity has expired. It can do
nothing for processes that have left the group (setsid), or if it is killed at the same time; on Linux the command
itself dies even then. On Windows there is neither group nor second process: a lost lock kills the command, but not
what the command has started, and the command outlives a redlock that is killed.

Exit status: that of the command; 128 and the number of the signal that has ended it. Those of redlock itself:
   64  the call is wrong; nothing was sent
   69  too few masters can vote, or their votes are split: no client holds the lock
   75  another holds the lock (EX_TEMPFAIL)
   76  the lock was lost, or could not be kept, before the command had ended
  126  the command cannot be run;  127  it was not found`

// runFlags are the flags of run.
type runFlags struct {
	wait, ttl, grace, minHold time.Duration
	try                       bool
	owner                     string
}

func (a *app) runCommand() *cobra.Command {
	f := &runFlags{}
	cmd := &cobra.Command{
		Use:   "run NAME -- COMMAND [ARG...]",
		Short: "run a command while a lock is held",
		Long:  runLong,
		Example: `  redlock run --config locks.json --try --min-hold 20s nightly-report -- /usr/local/bin/report --all
  redlock run --try --min-hold 20s hourly-mail -- send-mail
  redlock run --wait 1m deploy -- sh -c 'deploy --fence "$REDLOCK_TOKEN"'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, command := cmd.ArgsLenAtDash(), 1
			if name == 0 && len(args) > 1 && args[1] == "--" { // run -- -name -- command
				name, command = 1, 2
			}
			if name != 1 || len(args) <= command {
				return wrongCall(cmd, errors.New("redlock run: give one name, then --, then the command"))
			}
			return a.runUnderLock(cmd, f, args[0], args[command:])
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveDefault
		},
	}
	flags := cmd.Flags()
	flags.DurationVar(&f.wait, "wait", 0, "give up after this time; 0 is never")
	flags.BoolVar(&f.try, "try", false, "do not wait for another holder")
	flags.DurationVar(&f.ttl, "ttl", private.DefaultTTL, "how long the name stays locked if this machine dies")
	flags.DurationVar(&f.minHold, "min-hold", 0, "how long the name stays locked at least, also after the command")
	flags.DurationVar(&f.grace, "grace", 0,
		"time between TERM and KILL when the lock is lost (default a fifth of the TTL)")
	flags.StringVar(&f.owner, "owner", "", "label that others see (default the host and the process id)")
	cmd.MarkFlagsMutuallyExclusive("wait", "try")
	return cmd
}

// check validates the flags, and sets the values that follow from them.
func (f *runFlags) check(graceGiven bool) error {
	if !graceGiven {
		f.grace = f.ttl / 5
	}
	switch {
	case f.wait < 0:
		return fmt.Errorf("--wait %v is negative", f.wait)
	case f.grace < 0 || f.grace > f.ttl/3:
		return fmt.Errorf("--grace %v: it is from 0 to a third of the TTL of %v, since the command is asked so long before "+
			"the lock ends", f.grace, f.ttl)
	}
	return nil
}

// runUnderLock implements the command run.
func (a *app) runUnderLock(cmd *cobra.Command, f *runFlags, name string, argv []string) error {
	c, err := a.deployment.readDeployment(cmd, nil)
	if err == nil {
		err = f.check(cmd.Flags().Changed("grace"))
	}
	if err != nil {
		return wrongCall(cmd, err)
	}
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return &exit{cannotRun(err), err}
	}
	a.reportAside()
	opts := []redlock.Option{redlock.WithTTL(f.ttl), redlock.WithMinHold(f.minHold),
		redlock.WithLogger(slog.Default())} // it may wait long for a quorum, and logs the reason
	if f.owner != "" {
		opts = append(opts, redlock.WithOwner(f.owner))
	}
	l, shut, err := a.open(c, opts...)
	if err != nil {
		return wrongCall(cmd, err)
	}
	r := &runner{app: a, flags: f, name: name, path: path, argv: argv}
	signals, stop := catchSignals()
	defer stop()
	r.signals = signals
	status, err := r.run(l)
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	shut(ctx)
	if err != nil {
		return &exit{status, err}
	}
	return leave(status)
}

// cannotRun returns the exit status for a command that cannot be run.
func cannotRun(err error) int {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		return exitNotFound
	}
	return exitCannotRun
}

// catchSignals starts to receive the signals to pass on, except those that this process ignores from its start, as
// under nohup: the command ignores them too.
func catchSignals() (signals chan os.Signal, stop func()) {
	signals = make(chan os.Signal, 16)
	for _, s := range passedOn {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	return signals, func() { signal.Stop(signals) }
}

// A runner is one run of the command run.
type runner struct {
	*app
	flags   *runFlags
	name    string
	path    string
	argv    []string
	signals chan os.Signal

	lost error         // why the command was asked to end
	end  clock.Instant // known end of the lock's validity
	kill clock.Instant // when to kill a command that was asked to end
}

// run takes the lock and runs the command. A status that is redlock's own comes with an error.
func (r *runner) run(l *redlock.Locker) (status int, err error) {
	job, err := newJob(func(err error) {
		r.complain(err)
		r.flush() // this process may be about to stop itself
	})
	if err != nil {
		return exitCannotRun, fmt.Errorf("redlock run: %w", err)
	}
	defer job.end()
	lock, status, err := r.take(l)
	if err != nil {
		return status, err
	}
	env := []string{"REDLOCK_NAME=" + r.name, "REDLOCK_TOKEN=" + strconv.FormatInt(lock.Token(), 10)}
	if r.watch(lock, job); r.lost != nil { // the supervisor gets the end of the validity before the command starts
		_ = r.release(lock) // it prints its own errors
		return exitRunLost, errors.New("redlock run: the command was not begun")
	}
	if err := job.start(r.path, r.argv, env); err != nil {
		_ = r.release(lock) // it prints its own errors
		return cannotRun(err), fmt.Errorf("redlock run: %w", err)
	}
	status = r.hold(lock, job)
	job.end() // processes that the command left running must not outlive the lock
	if err := r.release(lock); r.lost == nil && errors.Is(err, redlock.ErrLost) {
		r.lost = err
		r.complain(err)
	}
	if r.lost != nil {
		return exitRunLost, fmt.Errorf("redlock run: the command has ended with status %d, and had not the lock to its end",
			status)
	}
	return status, nil
}

// take takes the lock, and gives up when a signal comes.
func (r *runner) take(l *redlock.Locker) (lock *redlock.Lock, status int, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	lockFunc, bound := l.Lock, r.flags.wait
	if r.flags.try {
		lockFunc, bound = l.TryLock, tryBound
	}
	if bound > 0 {
		ctx, cancel = context.WithTimeout(ctx, bound)
		defer cancel()
	}
	over := make(chan struct{})
	caught := make(chan os.Signal, 1)
	go func() {
		defer close(caught)
		for {
			select {
			case s := <-r.signals:
				if ends(s) {
					caught <- s
					cancel()
					return
				}
			case <-over:
				return
			}
		}
	}()
	lock, err = lockFunc(ctx, r.name)
	close(over)
	if s, ok := <-caught; ok {
		if err == nil {
			_ = r.release(lock) // it prints its own errors
		}
		return nil, exitSignal + signalNumber(s), fmt.Errorf("redlock run: %v", s)
	}
	return lock, lockStatus(err), err
}

// lockStatus returns the exit status for an error of Lock.
func lockStatus(err error) int {
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, redlock.ErrInvalid), errors.Is(err, redlock.ErrTTLTooLong):
		return exitRunUsage
	case errors.Is(err, redlock.ErrHeld):
		return exitRunHeld
	}
	return exitRunNoQuorum
}

// look is how often the lock is checked: the clock of a machine that was suspended wakes no goroutine.
const look = 50 * time.Millisecond

// hold waits for the end of the command, and ends it if the lock cannot be kept.
func (r *runner) hold(lock *redlock.Lock, job *job) (status int) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	done := lock.Done()
	for {
		select {
		case status := <-job.done:
			if err := lock.Err(); r.lost == nil && err != nil {
				r.lost = err
				r.complain(err)
			}
			return status
		case s := <-r.signals:
			job.signal(s)
			continue
		case <-done:
			done = nil
		case <-timer.C:
		}
		timer.Reset(max(time.Millisecond, min(look, r.watch(lock, job))))
	}
}

// watch checks whether the lock can be kept, and asks the command to end if not. It returns the time until the next
// check.
func (r *runner) watch(lock *redlock.Lock, job *job) time.Duration {
	now, left, grace := (*clock.Clock)(nil).Now(), lock.Remaining(), r.flags.grace
	switch err := lock.Err(); {
	case r.lost != nil:
	case err == nil && left > grace:
		r.end = now.Add(left)
		job.until(now, left)
		return left - grace
	case err == nil: // extensions have failed for too long
		r.giveUp(job, fmt.Errorf("redlock run: the lock of %q cannot be kept, and ends in %v",
			r.name, left.Round(time.Millisecond)))
		r.end, r.kill = now.Add(left), now.Add(left)
	default:
		r.giveUp(job, fmt.Errorf("redlock run: %q: %w", r.name, err))
		r.kill = now.Add(min(grace, r.end.Sub(now)))
	}
	wait := r.kill.Sub(now)
	if wait <= 0 {
		job.kill()
		return look
	}
	return wait
}

// giveUp asks the command to end before it reports anything, because a write may fail or block.
func (r *runner) giveUp(job *job, why error) {
	r.lost = why
	job.terminate()
	r.complain(why)
}

// release releases the lock.
func (r *runner) release(lock *redlock.Lock) error {
	ctx, cancel := context.WithTimeout(context.Background(), cmp.Or(max(0, lock.Remaining()), time.Second))
	defer cancel()
	err := lock.Unlock(ctx)
	if err != nil && r.lost == nil && !errors.Is(err, redlock.ErrLost) {
		r.complain(fmt.Errorf("redlock run: the name stays locked for at most %v: %w", r.flags.ttl, err))
	}
	return err
}
