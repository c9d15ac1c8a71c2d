package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlock-go/redlock/clock"
	clients "github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// Exit statuses of run itself, lock and unlock. The first four are from sysexits.h.
const (
	exitRunUsage    = 64  // EX_USAGE
	exitRunNoQuorum = 69  // EX_UNAVAILABLE
	exitRunLeft     = 71  // EX_OSERR
	exitRunNoOutput = 74  // EX_IOERR
	exitRunHeld     = 75  // EX_TEMPFAIL
	exitRunLost     = 76  // EX_PROTOCOL is the closest match
	exitCannotRun   = 126 // as in shells
	exitNotFound    = 127
	exitSignal      = 128 // plus the number of the signal
)

const runLong = `Acquires the lock of NAME, runs the command while the lock is held, and releases the lock. The
command gets the fencing token in REDLOCK_TOKEN and the name in REDLOCK_NAME. If there are several names, both
variables have one line for each name, in the order of the arguments. The command inherits standard input, output and
error.

` + acquireLong + `

While another client holds the name, redlock waits: without a limit, or at most for --wait. With --try it does not
wait. If several hosts use --try simultaneously, one of them gets the lock: if the votes are split between them,
they retry for half a second.

With --min-hold, the name stays locked for at least this time, even if the command ends earlier; redlock itself ends
with the command. To run a cron job on only one of several hosts, use --try, and a --min-hold that is longer than
the difference between the clocks of the hosts. Otherwise a host whose clock is late may run a short job again.

The command runs in its own process group, to which redlock passes the signals TERM, INT, HUP, QUIT, USR1, USR2 and
WINCH. If standard input and output are a terminal, the group gets the foreground, so that Ctrl-C and Ctrl-Z reach
the command once; redlock stops and continues with the command. A command that is stopped for longer than the
validity of the lock is killed. In a pipe, as before "| tee", the command gets the foreground when it first reads
the terminal; until then, Ctrl-Z stops only redlock. If redlock is in the background, and the command is stopped
because it uses the terminal, redlock reports this, and stops too. Processes that the command has left running are
killed before the lock is released.

Under systemd, the command gets the sockets of a socket unit and the watchdog, if LISTEN_PID and WATCHDOG_PID name
redlock. If the command sends messages to systemd (Type=notify), the unit needs NotifyAccess=all.

With --max-hold, the command is ended early enough to have ended within this time, as if the lock could not be kept.

If a name begins with a dash, put another -- before the names: redlock run -- -name -- command.

If the lock cannot be kept, the group gets TERM when the remaining validity of the lock is --grace, and KILL when
the validity ends. If a majority of the masters has lost the lock, or a client has released the lock by force, the
group gets TERM immediately, and KILL after --grace. A second process of redlock, the supervisor, leads the group.
It kills the group if redlock has ended for any reason (also by kill -9), or has been stopped until the validity has
expired. On Linux, all descendants are killed, also those that have left the group (setsid), and redlock ends only
when none is left. If some cannot be killed within 10 seconds, because they belong to another user (sudo) or wait
for a device, redlock does not release the lock, names them in its last line, and ends with the status 71. Other
systems cannot list descendants: those that have left the group continue. If redlock and the supervisor are killed
at the same time, only Linux kills the command, and not its children. Windows has no process groups, and redlock
uses no supervisor there: if the lock is lost, the command is killed, but not its children; if redlock is killed,
the command continues.

Exit status: that of the command, or 128 plus the signal number if a signal has ended the command. redlock itself
returns:
   64  usage error; nothing was sent
   69  too few masters can vote, the votes are split between clients, or the name is another kind
       of lock
   71  processes of the command still run, and cannot be killed; the last line names them
   74  the output of redlock could not be written
   75  another client holds the lock (EX_TEMPFAIL); --conflict-exit-code sets another status
   76  the lock was lost, could not be kept, or reached its --max-hold, before the command had ended
  126  the command cannot be run
  127  the command was not found`

// runFlags holds the flags of "redlock run".
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
  redlock run --semaphore 3 --max-hold 1h import -- import-files
  redlock run --wait 1m deploy -- sh -c 'deploy --fence "$REDLOCK_TOKEN"'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			names, command := namesAndCommand(args, cmd.ArgsLenAtDash())
			if len(names) == 0 || len(command) == 0 {
				return wrongCall(cmd, errors.New("redlock run: give one or more names, then --, then the command"))
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
			r := &runner{flags: f, names: names, signals: signals}
			trace := redlock.WithTrace(&redlockinfo.Trace{Event: r.extensions.note})
			l, err := a.deployment.openFollowing(c, append(f.lockerOptions(), trace)...)
			if err != nil {
				return wrongCall(cmd, err)
			}
			defer l.close()
			if f.quiet {
				a.stderr = io.Discard
			}
			r.console = a.console
			return r.underLock(l, path, command)
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveDefault
		},
	}
	f.add(cmd)
	cmd.Flags().DurationVar(&f.maxHold, "max-hold", 0, "end the command within this time; 0 for no limit")
	cmd.Flags().DurationVar(&f.grace, "grace", 0,
		"time between TERM and KILL when the lock is lost (default a fifth of the TTL)")
	return cmd
}

// namesAndCommand splits the arguments into the names and the command. dash is the number of arguments before the first
// "--", or -1 if there is none.
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

// check validates the flags, and sets the default of --grace.
func (f *runFlags) check(names []string) error {
	if !f.flags.Changed("grace") {
		f.grace = f.ttl / 5
	}
	if err := f.acquireFlags.check(names); err != nil {
		return err
	}
	switch {
	case f.maxHold > 0 && f.maxHold <= f.grace:
		return fmt.Errorf("--max-hold %v: must be longer than --grace, which is %v", f.maxHold, f.grace)
	case f.grace < 0 || f.grace > f.ttl/3:
		return fmt.Errorf("--grace %v: must be from 0 to a third of the TTL, which is %v, because the command gets TERM "+
			"this long before the lock ends", f.grace, f.ttl)
	}
	return nil
}

// cannotRun returns the exit status for an error that prevented the start of the command.
func cannotRun(err error) int {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		return exitNotFound
	}
	return exitCannotRun
}

// catchSignals returns a channel that receives the signals of passedOn. Signals that were ignored when this process
// started, as with nohup, stay ignored, because the command ignores them, too.
func catchSignals() (signals chan os.Signal, stop func()) {
	signals = make(chan os.Signal, 16)
	for _, s := range passedOn {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	return signals, func() { signal.Stop(signals) }
}

// A runner is one execution of "redlock run".
type runner struct {
	console
	flags   *runFlags
	names   []string
	signals chan os.Signal

	extensions extensions

	began clock.Instant // when the lock was acquired, or a little later
	lost  error         // why the command was asked to end
	end   clock.Instant // last known end of the lock's validity
	kill  clock.Instant // when to kill a command that was asked to end
}

// extensions remembers why the last extensions have failed.
type extensions struct {
	mu     sync.Mutex
	failed map[string]error // by name; nil after an extension that a majority has confirmed
}

// note takes an event of the client.
func (x *extensions) note(e redlockinfo.Event) {
	if e.Kind != redlockinfo.KindExtended {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.failed == nil {
		x.failed = map[string]error{}
	}
	x.failed[e.Name] = e.Err
}

// why returns why the last extension of a name has failed, as in ": 3 of 5: NOPERM ...", or "".
func (x *extensions) why() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, err := range x.failed {
		if e := (*clients.Error)(nil); errors.As(err, &e) {
			return ": " + e.Failure.Reasons()
		}
	}
	return ""
}

// underLock acquires the lock, runs the command, and releases the lock. Its error is nil if the command has succeeded,
// and otherwise an *exit.
func (r *runner) underLock(l *client, path string, argv []string) error {
	job, err := newJob(func(err error) {
		r.complain(err)
		r.flush() // this process may be about to stop itself
	})
	if err != nil {
		return &exit{exitCannotRun, fmt.Errorf("redlock run: %w", err)}
	}
	defer job.end() // no process is left on the other paths
	lock, err := acquire(&r.console, l.Locker, &r.flags.acquireFlags, "redlock run", r.names, r.signals, nil)
	if err != nil {
		return err
	}
	r.began = (*clock.Clock)(nil).Now()
	if r.watch(lock, job); r.lost != nil { // the supervisor gets the end of the validity before the command starts
		_ = r.giveBack(lock) // giveBack prints its errors
		return &exit{exitRunLost, errors.New("redlock run: the command was not started, because the lock was lost")}
	}
	failed := job.start(path, argv, lock.env())
	var status int
	if failed == nil {
		status = r.hold(lock, job)
	}
	if left := job.end(); len(left) > 0 { // processes that the command left running must not outlive the lock
		l.abandon()
		return &exit{exitRunLeft, fmt.Errorf("redlock run: these processes of the command still run, and cannot be "+
			"killed: %s; the lock of %s was not released, and ends within %v",
			strings.Join(left, ", "), r.quoted(), r.flags.ttl)}
	}
	if failed != nil {
		_ = r.giveBack(lock) // giveBack prints its errors
		return &exit{cannotRun(failed), fmt.Errorf("redlock run: %w", failed)}
	}
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

// hold waits until the command has ended, and returns the status of the command. If the lock cannot be kept, hold ends
// the command.
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

// watch checks whether the lock can be kept. If not, it asks the command to end, and later kills it. It returns the
// time until the next check.
func (r *runner) watch(lock *locks, job *job) time.Duration {
	now, left, grace := (*clock.Clock)(nil).Now(), lock.Remaining(), r.flags.grace
	switch err := lock.Err(); {
	case r.lost != nil:
	case err == nil && left > grace:
		r.end = now.Add(left)
		job.until(now, left)
		return left - grace
	case err == nil: // extensions have failed for too long, or the maximum hold is reached
		why, reasons := "cannot be kept", r.extensions.why()
		if m := r.flags.maxHold; m > 0 && now.Sub(r.began) >= m-grace-time.Second { // r.began may be late
			why, reasons = fmt.Sprintf("reaches --max-hold %v", m), ""
		}
		r.giveUp(job, fmt.Errorf("redlock run: the lock of %s %s, and ends in %v%s",
			r.quoted(), why, left.Round(time.Millisecond), reasons))
		r.end, r.kill = now.Add(left), now.Add(left)
	default:
		r.giveUp(job, fmt.Errorf("redlock run: %s: %w", r.quoted(), err))
		r.kill = now.Add(min(grace, r.end.Sub(now)))
	}
	wait := r.kill.Sub(now)
	if wait <= 0 {
		job.kill()
		return look
	}
	return wait
}

// quoted returns the names for an error.
func (r *runner) quoted() string { return strings.Trim(fmt.Sprintf("%q", r.names), "[]") }

// giveUp first asks the command to end, and then prints why, because printing may block.
func (r *runner) giveUp(job *job, why error) {
	r.lost = why
	job.terminate()
	r.complain(why)
}

// giveBack releases the lock. If the loss of the lock was already reported, giveBack prints nothing.
func (r *runner) giveBack(lock *locks) error {
	con := r.console
	if r.lost != nil {
		con.stderr = io.Discard
	}
	return lock.release(&con, "redlock run", r.flags.ttl, r.flags.ttl)
}
