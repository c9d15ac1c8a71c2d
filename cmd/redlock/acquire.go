package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	clients "github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/redlock"
)

// This file acquires locks for "redlock run" and "redlock lock".

// tryBound limits how long --try waits for replies of the masters, once they can be reached if --wait is given too.
const tryBound = 10 * time.Second

// acquireLong describes the flags of acquireFlags in the help texts of run and lock.
const acquireLong = `Several names are locked together: all of them or none. With --shared, any number of readers hold
the name, except while a writer holds it with --exclusive; use one of these two flags whenever you lock this name.
With --semaphore K, at most K holders hold the name at a time; use the same K whenever you lock this name. The waiters
of all hosts get the name about in the order of their calls; with --priority, redlock waits before all of a lower
priority. With --try and --wait, redlock waits for the masters, but not for another holder: for a job that may start
before the sidecar or the network through which it reaches the masters.`

// acquireFlags holds the flags that run and lock have in common.
type acquireFlags struct {
	wait, ttl, minHold, maxHold time.Duration
	try                         bool
	shared, exclusive           bool
	priority, size, conflict    int
	quiet                       bool
	label                       string
	flags                       *pflag.FlagSet // shows which flags were given
}

func (f *acquireFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	f.flags = flags
	flags.DurationVar(&f.wait, "wait", 0, "stop waiting after this time; 0 for no limit, unlike flock -w 0: see --try")
	flags.BoolVar(&f.try, "try", false, "do not wait for another holder")
	flags.DurationVar(&f.ttl, "ttl", clients.DefaultTTL, "time for which the name stays locked if this machine dies")
	flags.DurationVar(&f.minHold, "min-hold", 0, "minimum time for which the name stays locked, even after the release")
	flags.IntVar(&f.priority, "priority", 0, "priority among waiters, from -1000 to 1000")
	flags.BoolVar(&f.shared, "shared", false, "lock as one of many readers")
	flags.BoolVar(&f.exclusive, "exclusive", false, "lock as the only writer of a name that others lock with --shared")
	flags.IntVar(&f.size, "semaphore", 0, "maximum number of simultaneous holders of the name")
	flags.IntVar(&f.conflict, "conflict-exit-code", exitRunHeld, "exit status if another client holds the lock")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "print nothing; the exit status shows the result")
	flags.StringVar(&f.label, "label", "", "label shown to other clients (default the host and the process ID)")
	flags.StringVar(&f.label, "owner", "", "the same as --label: other tools call it so")
	_ = flags.MarkHidden("owner") // cannot fail: the flag is there
	cmd.MarkFlagsMutuallyExclusive("shared", "exclusive", "semaphore")
}

// check returns an error if the flags are invalid, or cannot be used with these names.
func (f *acquireFlags) check(names []string) error {
	switch {
	case f.wait < 0:
		return fmt.Errorf("--wait %v: must not be negative", f.wait)
	case f.maxHold < 0:
		return fmt.Errorf("--max-hold %v: must not be negative", f.maxHold)
	case len(names) > 1 && (f.shared || f.exclusive || f.flags.Changed("semaphore")):
		return errors.New("--shared, --exclusive and --semaphore can be used with a single name only")
	case f.conflict < 0 || f.conflict > 255:
		return fmt.Errorf("--conflict-exit-code %d: must be from 0 to 255", f.conflict)
	}
	return nil
}

// lockerOptions returns the options of the Locker. Without --quiet, the Locker logs why it waits for a quorum, because
// the wait may be long.
func (f *acquireFlags) lockerOptions() []redlock.Option {
	log := slog.Default()
	if f.quiet {
		log = slog.New(slog.DiscardHandler)
	}
	opts := []redlock.Option{redlock.WithTTL(f.ttl), redlock.WithMinHold(f.minHold), redlock.WithMaxHold(f.maxHold),
		redlock.WithLogger(log)}
	if f.wait > 0 && !f.try {
		opts = append(opts, redlock.WithWaitLimit(f.wait))
	}
	if f.flags.Changed("priority") {
		opts = append(opts, redlock.WithPriority(f.priority))
	}
	if f.label != "" {
		opts = append(opts, redlock.WithLabel(f.label))
	}
	return opts
}

// locks are the locks that the command "run" or "lock" acquires, one for each name.
type locks struct {
	of     []*redlock.Lock // in the order of the names, without duplicates
	unlock func(context.Context) error
	done   <-chan struct{} // closed when the first of the locks ends
}

// lock acquires the locks of all names, or none.
func (f *acquireFlags) lock(ctx context.Context, l *redlock.Locker, names []string) (*locks, error) {
	if len(names) > 1 {
		return f.lockAll(ctx, l, names)
	}
	var lock *redlock.Lock
	var err error
	name, rw, semaphore := names[0], l.RWLock(names[0]), l.Semaphore(names[0], f.size)
	switch counted := f.flags.Changed("semaphore"); {
	case counted && f.try:
		lock, err = semaphore.TryAcquire(ctx)
	case counted:
		lock, err = semaphore.Acquire(ctx)
	case f.shared && f.try:
		lock, err = rw.TryRLock(ctx)
	case f.shared:
		lock, err = rw.RLock(ctx)
	case f.exclusive && f.try:
		lock, err = rw.TryLock(ctx)
	case f.exclusive:
		lock, err = rw.Lock(ctx)
	case f.try:
		lock, err = l.TryLock(ctx, name)
	default:
		lock, err = l.Lock(ctx, name)
	}
	if err != nil {
		return nil, err
	}
	return &locks{of: []*redlock.Lock{lock}, unlock: lock.Unlock, done: lock.Done()}, nil
}

// lockAll implements lock for two or more names.
func (f *acquireFlags) lockAll(ctx context.Context, l *redlock.Locker, names []string) (*locks, error) {
	lockFunc := l.LockAll
	if f.try {
		lockFunc = l.TryLockAll
	}
	all, err := lockFunc(ctx, names)
	if err != nil {
		return nil, err
	}
	k := &locks{unlock: all.Unlock, done: all.Context(context.Background()).Done()}
	for i, name := range names {
		if !slices.Contains(names[:i], name) {
			k.of = append(k.of, all.Of(name))
		}
	}
	return k, nil
}

// Remaining returns the shortest remaining validity of the locks.
func (k *locks) Remaining() time.Duration {
	left := k.of[0].Remaining()
	for _, lock := range k.of[1:] {
		left = min(left, lock.Remaining())
	}
	return left
}

// Err returns nil while all locks are held, and otherwise the error of the first lock that has ended.
func (k *locks) Err() error {
	for _, lock := range k.of {
		if err := lock.Err(); err != nil {
			return err
		}
	}
	return nil
}

// env returns the environment variables for the command.
func (k *locks) env() []string {
	var names, tokens []string
	for _, lock := range k.of {
		names, tokens = append(names, lock.Name()), append(tokens, strconv.FormatInt(lock.Token(), 10))
	}
	env := []string{"REDLOCK_NAME=" + strings.Join(names, "\n"), "REDLOCK_TOKEN=" + strings.Join(tokens, "\n")}
	if slot := k.of[0].Slot(); slot > 0 {
		env = append(env, "REDLOCK_SLOT="+strconv.Itoa(slot))
	}
	return env
}

// acquire acquires the locks. It gives up if a signal arrives that ends the program, or if stop is closed. Its errors
// are of type *exit. op, such as "redlock run", names the command in messages.
func acquire(
	con *console, l *redlock.Locker, f *acquireFlags, op string, names []string, signals <-chan os.Signal,
	stop <-chan struct{},
) (*locks, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var cause error
	var watch sync.WaitGroup
	watch.Go(func() {
		for cause == nil {
			select {
			case s := <-signals:
				if ends(s) {
					cause = &exit{exitSignal + signalNumber(s), fmt.Errorf("%s: %v", op, s)}
				}
			case <-stop:
				cause = &exit{exitSignal, fmt.Errorf("%s: the calling process has ended", op)}
			case <-ctx.Done():
				return
			}
		}
		cancel()
	})
	k, err := f.lockInTime(ctx, l, names)
	cancel()
	watch.Wait()
	if cause != nil {
		if err == nil {
			_ = k.release(con, op, f.ttl, f.ttl) // release prints its errors
		}
		return nil, cause
	}
	if err != nil {
		return nil, &exit{f.status(err), err}
	}
	return k, nil
}

// lockInTime is lock with the time limits of --try.
func (f *acquireFlags) lockInTime(ctx context.Context, l *redlock.Locker, names []string) (*locks, error) {
	if !f.try {
		return f.lock(ctx, l, names)
	}
	if f.wait > 0 {
		ready, cancel := context.WithTimeout(ctx, f.wait)
		err := l.WaitReady(ready)
		cancel()
		if err != nil {
			return nil, err
		}
	}
	limited, cancel := context.WithTimeout(ctx, tryBound)
	defer cancel()
	return f.lock(limited, l, names)
}

// status returns the exit status for an error of lock.
func (f *acquireFlags) status(err error) int {
	switch {
	case errors.Is(err, redlock.ErrInvalid), errors.Is(err, redlock.ErrTTLTooLong):
		return exitRunUsage
	case errors.Is(err, redlock.ErrHeld):
		return f.conflict
	}
	return exitRunNoQuorum
}

// releaseBound limits a release if the validity of the locks has already ended.
const releaseBound = time.Second

// release releases the locks. It waits for the masters while the locks are valid, but at most for limit. If no quorum
// confirms the release, release also prints the error.
func (k *locks) release(con *console, op string, ttl, limit time.Duration) error {
	bound := releaseBound
	if left := min(k.Remaining(), limit); left > 0 {
		bound = left
	}
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	err := k.unlock(ctx)
	if err != nil && !errors.Is(err, redlock.ErrLost) {
		con.complain(fmt.Errorf("%s: the name stays locked for at most %v: %w", op, ttl, err))
	}
	return err
}
