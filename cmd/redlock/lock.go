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

// holdCommand is the hidden first argument with which the command lock starts this program as the process that holds
// the lock. The arguments of lock follow it.
const holdCommand = "__hold"

// defaultMaxHold bounds a lock of the command lock that is not tied to a process.
const defaultMaxHold = time.Hour

const lockLong = `Takes the lock of NAME, leaves a process in the background that holds it, and prints a handle for
"redlock unlock". It is for scripts that lock in one step and unlock in another. If one command needs the lock, use
"redlock run": it ends the command when the lock is lost, and needs no handle.

The lock is held until the first of these:
  - "redlock unlock HANDLE"
  - the end of the process of --while, such as "$$", the shell of a script
  - --max-hold, by default an hour without --while, and no bound with it
  - the loss of the lock: no majority of the masters extends it within the TTL
  - the end of the process in the background: by TERM, INT or HUP it releases the lock; if it is killed or stopped,
    the lock ends with its TTL

The script does not learn of a loss before "redlock unlock", which reports it by its exit status. So send the token with
each write, to a resource that refuses a smaller one than it has seen. For one name the token is what follows the last
dash of the handle; --json prints all tokens. The handle is the path of a socket in $XDG_RUNTIME_DIR/redlock or in the
directory for temporary files, which only this user can reach; so unlock runs on the same machine.

` + acquireLong + `

Not on Windows. Exit status: 0, the lock is held; otherwise that of "redlock run".`

const unlockLong = `Releases a lock, given the handle that "redlock lock" has printed, and ends the process that holds
it.

Exit status:
   0  released
  64  usage error
  69  too few masters have confirmed the release, or the process that holds the lock does not answer: the name stays
      locked for at most its TTL
  76  the lock had ended before: it was lost, unlocked, or at its --max-hold, its process of --while has ended, or the
      process that held it`

// lockFlags are the flags of lock.
type lockFlags struct {
	acquireFlags
	while int
}

func lockCommand(a *app) *cobra.Command {
	f := &lockFlags{}
	cmd := &cobra.Command{
		Use:   "lock NAME...",
		Short: "take a lock and hold it in the background",
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
	cmd.Flags().IntVar(&f.while, "while", 0, "release the lock when the process of this number ends")
	return cmd
}

// check validates the flags, and sets the values that follow from them.
func (f *lockFlags) check(names []string) error {
	while := f.flags.Changed("while")
	if !while && !f.flags.Changed("max-hold") {
		f.maxHold = defaultMaxHold
	}
	switch {
	case len(names) == 0:
		return errors.New("redlock lock: give the name of a lock")
	case while && f.while <= 0:
		return fmt.Errorf("--while %d: it is the number of a process", f.while)
	case !while && f.maxHold == 0:
		return errors.New("--max-hold 0 is without a bound: it is allowed with --while")
	}
	if err := checkNames(names); err != nil {
		return err
	}
	return f.acquireFlags.check(names)
}

// A heldReport is sent by the process that holds a lock to the process that the user has started.
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

// An unlockReport is what the process that holds a lock sends to the command unlock.
type unlockReport struct {
	Status int
	Error  string
}

// The message with which unlock requests the release, and how long unlock waits for the answer.
const (
	unlockRequest = "unlock\n"
	unlockBound   = 15 * time.Second
)

// handlePrefix begins the names of the sockets.
const handlePrefix = "lock-"

func unlockCommand(a *app) *cobra.Command {
	var quiet bool
	cmd := &cobra.Command{
		Use:     "unlock HANDLE",
		Short:   "release a lock that redlock lock has taken",
		Long:    unlockLong,
		Example: `  redlock unlock "$handle"`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !strings.HasPrefix(filepath.Base(args[0]), handlePrefix) {
				return wrongCall(cmd, fmt.Errorf("redlock unlock: %q is not a handle that redlock lock prints", args[0]))
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

var errHoldEnded = errors.New("the lock had ended before, or the process that held it")

// requestUnlock asks the process with this handle to release its lock. If status is not 0, err is not nil.
func requestUnlock(ctx context.Context, handle string) (status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, unlockBound)
	defer cancel()
	c, err := (&net.Dialer{}).DialContext(ctx, "unix", handle)
	switch {
	case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		_ = os.Remove(handle) // the process was killed
		return exitRunLost, errHoldEnded
	case err != nil:
		return exitRunNoQuorum, err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(unlockBound)) // cannot fail for a socket
	var r unlockReport
	if _, err = io.WriteString(c, unlockRequest); err == nil {
		err = json.NewDecoder(c).Decode(&r)
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return exitRunNoQuorum, errors.New("the process that holds the lock does not answer")
	case err != nil: // the process has ended meanwhile
		return exitRunLost, errHoldEnded
	case r.Status != exitDone:
		return r.Status, errors.New(r.Error)
	}
	return exitDone, nil
}
