package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/redlock"
)

// Exit statuses of run itself, lock and unlock. They use the numbers of sysexits.h where possible.
const (
	exitRunUsage    = 64  // EX_USAGE
	exitRunNoQuorum = 69  // EX_UNAVAILABLE
	exitRunHeld     = 75  // EX_TEMPFAIL
	exitRunLost     = 76  // EX_PROTOCOL is the closest match
	exitCannotRun   = 126 // as in shells
	exitNotFound    = 127
	exitSignal      = 128 // plus the number of the signal
)

const runLong = `Takes the lock of NAME, runs the command while it is held, and releases it. The command gets the
fencing token in REDLOCK_TOKEN and the name in REDLOCK_NAME; of several names, one line for each, in the order of the
arguments. Its standard input, output and error are those of redlock.

` + acquireLong + `

It waits while another client holds the name: with --wait at most that long, with --try not at all. If several hosts
use --try at one instant, one of them gets the lock. If their votes are split, they try again for half a second.

With --min-hold the name stays locked for at least that long, also when the command ends earlier; redlock does not wait
for it. To run a job of cron on one of several hosts, use --try together with a --min-hold above the difference between
the hosts' clocks: without it, a host that is late runs a short job again.

The command runs in a process group of its own. Signals to redlock (TERM, INT, HUP, QUIT, USR1, USR2, WINCH) are
passed on to the group. If input and output are a terminal, the group is in its foreground, so that Ctrl-C and Ctrl-Z
reach it once; redlock stops and continues with the command. A command that is stopped for longer than the lock is
valid is killed. In a pipe, as before "| tee", the terminal is handed to the command when it first reads it; until
then Ctrl-Z stops redlock alone. In the background redlock reports that the command is stopped, and stops too.
Processes that the command has left running in its group are killed before the lock is released.

With --max-hold the command is ended like one whose lock is lost, so that it has ended by then.

Put a name that begins with a dash behind another --: redlock run -- -name -- command.

When the lock cannot be kept, the group gets TERM, as long as --grace before the validity of the lock ends, and KILL
when it ends. When all masters have lost the lock at once, or a client has released it by force, the group gets TERM
at once, and KILL after --grace. A second process of redlock, the first of the group, watches the first one: it kills
the group when redlock has ended in any way (kill -9 too), or has been stopped for so long that the validity has
expired. It cannot kill processes that have left the group (setsid). If it is killed at the same time as the first
one, only Linux kills the command, and not its children. On Windows there is neither group nor second process: a lost
lock kills the command, but not what the command has started, and the command outlives a redlock that is killed.

Exit status: that of the command; 128 and the number of the signal that has ended it. Those of redlock itself:
   64  usage error; nothing was sent
   69  too few masters can vote, or their votes are split: no client holds the lock
   75  another client holds the lock (EX_TEMPFAIL); --conflict-exit-code sets another status
   76  the lock was lost, could not be kept, or reached its --max-hold, before the command had ended
  126  the command cannot be run;  127  it was not found`

// runFlags are the flags of run.
type runFlags struct {
	acquireFlags
	grace time.Duration
}

func runCommand(a *app) *cobra.Command {
	f := &runFlags{}
	cmd := &cobra.Command{
		Use:   "run NAME... -- COMMAND [ARG...]",
		Short: "run a command while a lock is held",
		Long:  runLong,
		Example: `  redlock run --config locks.json --try --min-hold 20s nightly-report -- /usr/local/bin/report --all
  redlock run --try --min-hold 20s hourly-mail -- send-mail
  redlock run --slots 3 --max-hold 1h import -- import-files
  redlock run --wait 1m deploy -- sh -c 'deploy --fence "$REDLOCK_TOKEN"'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			names, command := namesAndCommand(args, cmd.ArgsLenAtDash())
			if len(names) == 0 || len(command) == 0 {
				return wrongCall(cmd, errors.New("redlock run: give the name, or several, then --, then the command"))
			}
			c, err := a.deployment.read(cmd, nil)
			if err == nil {
				err = f.check(names)
			}
			if err != nil {
				return wrongCall(cmd, err)
			}
			path, err := exec.LookPath(command[0])
			if err != nil {
				return &exit{cannotRun(err), err}
			}
			a.aside()
			signals, stop := catchSignals()
			defer stop()
			l, err := a.deployment.openFollowing(c, f.lockerOptions()...)
			if err != nil {
				return wrongCall(cmd, err)
			}
			defer l.close()
			if f.quiet {
				a.stderr = io.Discard
			}
			return (&runner{console: a.console, flags: f, names: names, signals: signals}).underLock(l.Locker, path, command)
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveDefault
		},
	}
	f.add(cmd)
	cmd.Flags().DurationVar(&f.maxHold, "max-hold", 0, "end the command after this time; 0 for never")
	cmd.Flags().DurationVar(&f.grace, "grace", 0,
		"time between TERM and KILL when the lock is lost (default a fifth of the TTL)")
	return cmd
}

// namesAndCommand splits the arguments; dash is the number of arguments before the first "--", or -1 without one.
func namesAndCommand(args []string, dash int) (names, command []string) {
	if dash == 0 { // run -- -name -- command
		if dash = slices.Index(args[min(1, len(args)):], "--") + 1; dash > 0 {
			return args[:dash], args[dash+1:]
		}
	}
	if dash <= 0 {
		return nil, nil
	}
	return args[:dash], args[dash:]
}

// check validates the flags, and sets the values that follow from them.
func (f *runFlags) check(names []string) error {
	if !f.flags.Changed("grace") {
		f.grace = f.ttl / 5
	}
	if err := f.acquireFlags.check(names); err != nil {
		return err
	}
	switch {
	case f.maxHold > 0 && f.maxHold <= f.grace:
		return fmt.Errorf("--max-hold %v: it is longer than --grace, which is %v", f.maxHold, f.grace)
	case f.grace < 0 || f.grace > f.ttl/3:
		return fmt.Errorf("--grace %v: it is from 0 to a third of the TTL of %v, since the command is asked so long before "+
			"the lock ends", f.grace, f.ttl)
	}
	return nil
}

// cannotRun returns the exit status for a command that cannot be run.
func cannotRun(err error) int {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		return exitNotFound
	}
	return exitCannotRun
}

// catchSignals starts to receive the signals to pass on, except those that were ignored when this process started, as
// by nohup, because the command ignores them, too.
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
	console
	flags   *runFlags
	names   []string
	signals chan os.Signal

	began clock.Instant // when the lock was acquired, or a little later
	lost  error         // why the command was asked to end
	end   clock.Instant // known end of the lock's validity
	kill  clock.Instant // when to kill a command that was asked to end
}

// underLock takes the lock and runs the command. Its error contains the exit status.
func (r *runner) underLock(l *redlock.Locker, path string, argv []string) error {
	job, err := newJob(func(err error) {
		r.complain(err)
		r.flush() // this process may be about to stop itself
	})
	if err != nil {
		return &exit{exitCannotRun, fmt.Errorf("redlock run: %w", err)}
	}
	defer job.end()
	lock, err := acquire(&r.console, l, &r.flags.acquireFlags, "redlock run", r.names, r.signals, nil)
	if err != nil {
		return err
	}
	r.began = (*clock.Clock)(nil).Now()
	if r.watch(lock, job); r.lost != nil { // the supervisor gets the end of the validity before the command starts
		_ = r.giveBack(lock) // giveBack prints its errors
		return &exit{exitRunLost, errors.New("redlock run: the command was not started")}
	}
	if err := job.start(path, argv, lock.env()); err != nil {
		_ = r.giveBack(lock) // giveBack prints its errors
		return &exit{cannotRun(err), fmt.Errorf("redlock run: %w", err)}
	}
	status := r.hold(lock, job)
	job.end() // processes that the command left running must not outlive the lock
	if err := r.giveBack(lock); r.lost == nil && errors.Is(err, redlock.ErrLost) {
		r.lost = err
		r.complain(err)
	}
	if r.lost != nil {
		return &exit{exitRunLost, fmt.Errorf("redlock run: the command ended with status %d, after its lock was lost",
			status)}
	}
	return leave(status)
}

// look is the interval at which the lock is checked. Timers alone could be late, because they ignore suspended time.
const look = 50 * time.Millisecond

// hold waits for the end of the command, and ends it if the lock cannot be kept.
func (r *runner) hold(lock *locks, job *job) (status int) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	done := lock.done
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
func (r *runner) watch(lock *locks, job *job) time.Duration {
	now, left, grace := (*clock.Clock)(nil).Now(), lock.Remaining(), r.flags.grace
	switch err := lock.Err(); {
	case r.lost != nil:
	case err == nil && left > grace:
		r.end = now.Add(left)
		job.until(now, left)
		return left - grace
	case err == nil: // extensions have failed for too long, or the maximum hold is reached
		why := "cannot be kept"
		if m := r.flags.maxHold; m > 0 && now.Sub(r.began) >= m-grace-time.Second { // r.began may be late
			why = fmt.Sprintf("reaches --max-hold %v", m)
		}
		r.giveUp(job, fmt.Errorf("redlock run: the lock of %q %s, and ends in %v",
			r.names, why, left.Round(time.Millisecond)))
		r.end, r.kill = now.Add(left), now.Add(left)
	default:
		r.giveUp(job, fmt.Errorf("redlock run: %q: %w", r.names, err))
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

// giveBack releases the lock. It reports nothing if the loss of the lock was reported.
func (r *runner) giveBack(lock *locks) error {
	con := r.console
	if r.lost != nil {
		con.stderr = io.Discard
	}
	return lock.release(&con, "redlock run", r.flags.ttl)
}
