package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// holdCommand is the hidden first argument of the background process that "redlock lock" starts to hold the lock. The
// arguments of "redlock lock" follow.
const holdCommand = "__hold"

// defaultMaxHold is the default of "redlock lock --max-hold" without --while.
const defaultMaxHold = time.Hour

const lockLong = `Acquires the lock of NAME, starts a background process that holds the lock, and prints a handle for
"redlock unlock". Use it in scripts that lock in one step and unlock in another. If a single command needs the lock,
use "redlock run", which ends the command when the lock is lost, and needs no handle.

The lock is held until the first of these events:
  - "redlock unlock HANDLE"
  - the end of the process of --while, for example of "$$", the shell of a script
  - the end of --max-hold: by default one hour, or no limit with --while
  - the loss of the lock: no majority of the masters has extended it within the TTL
  - the end of the background process: on TERM, INT, HUP or QUIT the process releases the lock; if
    the process is killed or stopped, the lock ends with its TTL

The script learns of a loss only from the exit status of "redlock unlock". So send the token with each write, to a
resource that refuses tokens smaller than the largest it has seen. If there is one name, the token is the part of
the handle after the last dash; --json prints all tokens. The handle is the path of a socket in
$XDG_RUNTIME_DIR/redlock or in the directory for temporary files. Only the same user can open the socket, and only
on the same machine.

` + acquireLong + `

Not available on Windows. Exit status: 0 if the lock is held; otherwise as listed in "redlock run --help".`

const unlockLong = `Releases the lock of a handle that "redlock lock" has printed, and ends the background process
that holds the lock.

Exit status:
   0  released
  64  usage error
  69  too few masters have confirmed the release, so the name stays locked for at most the TTL; or
      the background process does not answer; or there is no such handle
  76  the lock had already ended: it was lost, unlocked, or at its --max-hold; or the process of
      --while, or the background process, had ended. The error says which, for a week`

// lockFlags holds the flags of "redlock lock".
type lockFlags struct {
	acquireFlags
	while int
}

func lockCommand(a *app) *cobra.Command {
	f := &lockFlags{}
	cmd := &cobra.Command{
		Use:   "lock NAME...",
		Short: "acquire a lock, and hold it in the background",
		Long:  lockLong,
		Example: `  handle=$(redlock lock --while $$ --wait 1m deploy) || exit
  deploy --fence "${handle##*-}"
  redlock unlock "$handle" || echo "the lock was lost during the deployment"`,
		RunE: func(cmd *cobra.Command, names []string) error {
			c, err := a.deployment.read(cmd, nil)
			if err == nil {
				err = f.check(names)
			}
			if err != nil {
				return wrongCall(cmd, err)
			}
			if f.quiet {
				a.stderr = io.Discard
			}
			if !a.holder {
				return startHolder(&a.console)
			}
			return hold(&a.console, f, names, func() (*client, error) {
				return a.deployment.openFollowing(c, f.lockerOptions()...)
			})
		},
	}
	f.add(cmd)
	cmd.Flags().DurationVar(&f.maxHold, "max-hold", 0,
		"release the lock after this time (default 1h; none with --while)")
	cmd.Flags().IntVar(&f.while, "while", 0, "release the lock when the process with this ID ends")
	return cmd
}

// check validates the flags and the names, and sets the default of --max-hold.
func (f *lockFlags) check(names []string) error {
	while := f.flags.Changed("while")
	if !while && !f.flags.Changed("max-hold") {
		f.maxHold = defaultMaxHold
	}
	switch {
	case len(names) == 0:
		return errors.New("redlock lock: give the name of a lock")
	case while && f.while <= 0:
		return fmt.Errorf("--while %d: must be a process ID greater than 0", f.while)
	case !while && f.maxHold == 0:
		return errors.New("--max-hold 0: must be greater than 0 without --while")
	}
	if err := checkNames(names); err != nil {
		return err
	}
	return f.acquireFlags.check(names)
}

// A heldReport is what the background process sends to the process that the user has started.
type heldReport struct {
	Status int        `json:"-"` // 0 if the lock is held
	Error  string     `json:"-"`
	Handle string     `json:"handle"`
	PID    int        `json:"pid"`
	Locks  []heldLock `json:"locks"`
}

type heldLock struct {
	Name  string `json:"name"`
	Token int64  `json:"token"`
}

// An unlockReport is what the background process sends to "redlock unlock".
type unlockReport struct {
	Status int
	Error  string
}

// The message with which "redlock unlock" requests the release, the time limit for the messages of both sides, and the
// time limit of the release itself, which is shorter, so that "redlock unlock" gets the result.
const (
	unlockRequest = "unlock\n"
	unlockBound   = 15 * time.Second
	releaseLimit  = 10 * time.Second
)

// recordAge is the age at which records of ended locks are removed.
const recordAge = 7 * 24 * time.Hour

// handlePrefix is the prefix of the file names of the sockets.
const handlePrefix = "lock-"

func unlockCommand(a *app) *cobra.Command {
	var quiet bool
	cmd := &cobra.Command{
		Use:     "unlock HANDLE",
		Short:   "release a lock that \"redlock lock\" holds",
		Long:    unlockLong,
		Example: `  redlock unlock "$handle"`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("redlock unlock: there are %d arguments: give one handle, the output of redlock lock", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if !strings.HasPrefix(filepath.Base(args[0]), handlePrefix) {
				return wrongCall(cmd, fmt.Errorf("redlock unlock: %q is not a handle: give the output of redlock lock", args[0]))
			}
			if quiet {
				a.stderr = io.Discard
			}
			if status, err := requestUnlock(cmd.Context(), args[0]); err != nil {
				return &exit{status, fmt.Errorf("redlock unlock: %w", err)}
			}
			return nil
		},
	}
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "print nothing; the exit status shows the result")
	return cmd
}

// Results of unlock without a report of the process that holds the lock.
var (
	errHolderKilled = errors.New("the background process was killed or has crashed, so the lock was not released: the " +
		"name stays locked for at most the TTL from then")
	errNoHandle = errors.New("there is no such file on this machine, so the lock may still be held: if its background " +
		"process runs, the signal TERM makes it release the lock")
)

// writeRecord replaces the socket of a handle by a file with a report.
func writeRecord(handle string, r unlockReport) error {
	text, err := json.Marshal(r)
	next := handle + ".next"
	if err == nil {
		err = os.WriteFile(next, text, 0o600)
	}
	if err == nil {
		err = os.Rename(next, handle)
	}
	if err != nil {
		_ = os.Remove(next)
	}
	return err
}

// readRecord returns the report that has replaced the socket of a handle, if there is one.
func readRecord(handle string) (r unlockReport, found bool) {
	if info, err := os.Lstat(handle); err != nil || !info.Mode().IsRegular() {
		return r, false
	}
	text, err := os.ReadFile(handle)
	return r, err == nil && json.Unmarshal(text, &r) == nil && r.Status != exitDone
}

// requestUnlock asks the process with this handle to release its lock. err is nil only if status is 0.
func requestUnlock(ctx context.Context, handle string) (status int, err error) {
	info, err := os.Lstat(handle)
	if err == nil && info.Mode()&os.ModeType != os.ModeSocket && !info.Mode().IsRegular() {
		return exitRunUsage, fmt.Errorf("%q is not a handle", handle)
	}
	r, err := exchange(ctx, handle)
	if record, found := readRecord(handle); err != nil && found {
		r, err = record, nil
	}
	switch {
	case errors.Is(err, os.ErrNotExist):
		return exitRunNoQuorum, fmt.Errorf("%s: %w", handle, errNoHandle)
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return exitRunNoQuorum, errors.New("the process that holds the lock does not answer")
	case err != nil && info != nil && info.Mode().IsRegular():
		return exitRunUsage, fmt.Errorf("%q is not a handle", handle)
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET),
		errors.Is(err, syscall.EPIPE):
		_ = writeRecord(handle, unlockReport{exitRunLost, errHolderKilled.Error()}) // otherwise the socket stays
		return exitRunLost, errHolderKilled
	case err != nil:
		return exitRunNoQuorum, err
	case r.Status != exitDone:
		return r.Status, errors.New(r.Error)
	}
	return exitDone, nil
}

// exchange requests the release from the process with this handle, and returns its report.
func exchange(ctx context.Context, handle string) (r unlockReport, err error) {
	ctx, cancel := context.WithTimeout(ctx, unlockBound)
	defer cancel()
	c, err := (&net.Dialer{}).DialContext(ctx, "unix", handle)
	if err != nil {
		return r, err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(unlockBound)) // cannot fail for a socket
	if _, err = io.WriteString(c, unlockRequest); err == nil {
		err = json.NewDecoder(c).Decode(&r)
	}
	return r, err
}
