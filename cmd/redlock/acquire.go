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

	"github.com/redlock-go/redlock/internal/private"
	"github.com/redlock-go/redlock/redlock"
)

// How run and lock acquire locks.

// tryBound is how long --try waits for the masters. --try does not wait for the holder.
const tryBound = 10 * time.Second

// acquireLong is the part of the help texts of run and lock about the flags that both have.
const acquireLong = `Several names are locked together, or none of them. With --shared any number of holders
share the name, except while one has locked it with --exclusive; such a name is locked with one of these flags only.
With --slots K at most K holders share the name: redlock takes any one of the locks NAME:1 to NAME:K. --fair waits its
turn behind all earlier waiters of a name, on any host; --priority puts a waiter before those of a lower priority, and
implies --fair.`

// acquireFlags are the flags of run and lock.
type acquireFlags struct {
	wait, ttl, minHold, maxHold time.Duration
	try, fair                   bool
	shared, exclusive           bool
	priority, slots, conflict   int
	quiet                       bool
	owner                       string
	flags                       *pflag.FlagSet // shows which flags were given
}

func (f *acquireFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	f.flags = flags
	flags.DurationVar(&f.wait, "wait", 0, "give up after this time; 0 for never")
	flags.BoolVar(&f.try, "try", false, "do not wait for another holder")
	flags.DurationVar(&f.ttl, "ttl", private.DefaultTTL, "time for which the name stays locked if this machine dies")
	flags.DurationVar(&f.minHold, "min-hold", 0, "minimum time for which the name stays locked, even after the release")
	flags.BoolVar(&f.fair, "fair", false, "wait in the order of the calls of all clients")
	flags.IntVar(&f.priority, "priority", 0, "priority among waiters, from -1000 to 1000")
	flags.BoolVar(&f.shared, "shared", false, "lock as one of many readers")
	flags.BoolVar(&f.exclusive, "exclusive", false, "lock as the only writer of a name that others lock with --shared")
	flags.IntVar(&f.slots, "slots", 0, "share the name between this number of holders")
	flags.IntVar(&f.conflict, "conflict-exit-code", exitRunHeld, "exit status if another client holds the lock")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "print nothing; the exit status shows the result")
	flags.StringVar(&f.owner, "owner", "", "label shown to other clients (default the host and the process id)")
	cmd.MarkFlagsMutuallyExclusive("wait", "try")
	cmd.MarkFlagsMutuallyExclusive("shared", "exclusive", "slots")
}

// check validates the flags for these names.
func (f *acquireFlags) check(names []string) error {
	switch {
	case f.wait < 0:
		return fmt.Errorf("--wait %v is negative", f.wait)
	case f.maxHold < 0:
		return fmt.Errorf("--max-hold %v is negative", f.maxHold)
	case len(names) > 1 && (f.shared || f.exclusive || f.flags.Changed("slots")):
		return errors.New("--shared, --exclusive and --slots can be used with a single name only")
	case f.conflict < 0 || f.conflict > 255:
		return fmt.Errorf("--conflict-exit-code %d: must be from 0 to 255", f.conflict)
	}
	return nil
}

// lockerOptions returns the options of the Locker. The Locker logs why it waits, because it may wait long for a
// quorum.
func (f *acquireFlags) lockerOptions() []redlock.Option {
	log := slog.Default()
	if f.quiet {
		log = slog.New(slog.DiscardHandler)
	}
	opts := []redlock.Option{redlock.WithTTL(f.ttl), redlock.WithMinHold(f.minHold), redlock.WithMaxHold(f.maxHold),
		redlock.WithLogger(log)}
	if f.fair {
		opts = append(opts, redlock.WithFair())
	}
	if f.flags.Changed("priority") {
		opts = append(opts, redlock.WithPriority(f.priority))
	}
	if f.owner != "" {
		opts = append(opts, redlock.WithOwner(f.owner))
	}
	return opts
}

// locks are the locks that the command "run" or "lock" acquires, one for each name.
type locks struct {
	of     []*redlock.Lock // in the order of the names; each name once
	unlock func(context.Context) error
	done   <-chan struct{} // closed when the first of the locks ends
}

// lock acquires the locks of all names.
func (f *acquireFlags) lock(ctx context.Context, l *redlock.Locker, names []string) (*locks, error) {
	if len(names) > 1 {
		return f.lockAll(ctx, l, names)
	}
	var opts []redlock.LockOption
	if f.flags.Changed("slots") {
		opts = append(opts, redlock.WithSlots(f.slots))
	}
	var lock *redlock.Lock
	var err error
	switch name, rw := names[0], l.RWLock(names[0]); {
	case f.shared && f.try:
		lock, err = rw.TryRLock(ctx)
	case f.shared:
		lock, err = rw.RLock(ctx)
	case f.exclusive && f.try:
		lock, err = rw.TryLock(ctx)
	case f.exclusive:
		lock, err = rw.Lock(ctx)
	case f.try:
		lock, err = l.TryLock(ctx, name, opts...)
	default:
		lock, err = l.Lock(ctx, name, opts...)
	}
	if err != nil {
		return nil, err
	}
	return &locks{of: []*redlock.Lock{lock}, unlock: lock.Unlock, done: lock.Done()}, nil
}

// lockAll acquires several names.
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
			k.of = append(k.of, private.Of(l).Member(all, name).(*redlock.Lock))
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

// Err returns nil while all of the locks are held.
func (k *locks) Err() error {
	for _, lock := range k.of {
		if err := lock.Err(); err != nil {
			return err
		}
	}
	return nil
}

// env returns the variables that a command gets.
func (k *locks) env() []string {
	var names, tokens []string
	for _, lock := range k.of {
		names, tokens = append(names, lock.Name()), append(tokens, strconv.FormatInt(lock.Token(), 10))
	}
	return []string{"REDLOCK_NAME=" + strings.Join(names, "\n"), "REDLOCK_TOKEN=" + strings.Join(tokens, "\n")}
}

// acquire acquires the locks, and gives up when a signal comes that ends the program, or when stop is closed. Its
// errors have an exit status. op is the name of the command.
func acquire(
	con *console, l *redlock.Locker, f *acquireFlags, op string, names []string, signals <-chan os.Signal,
	stop <-chan struct{},
) (*locks, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	bound := f.wait
	if f.try {
		bound = tryBound
	}
	if bound > 0 {
		ctx, cancel = context.WithTimeout(ctx, bound)
		defer cancel()
	}
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
	k, err := f.lock(ctx, l, names)
	cancel()
	watch.Wait()
	if cause != nil {
		if err == nil {
			_ = k.release(con, op, f.ttl) // release prints its errors
		}
		return nil, cause
	}
	if err != nil {
		return nil, &exit{f.status(err), err}
	}
	return k, nil
}

// status returns the exit status for an error of an acquire.
func (f *acquireFlags) status(err error) int {
	switch {
	case errors.Is(err, redlock.ErrInvalid), errors.Is(err, redlock.ErrTTLTooLong):
		return exitRunUsage
	case errors.Is(err, redlock.ErrHeld):
		return f.conflict
	}
	return exitRunNoQuorum
}

// releaseBound bounds a release if the validity of the locks has already ended.
const releaseBound = time.Second

// release releases the locks. It reports a release that no quorum has confirmed.
func (k *locks) release(con *console, op string, ttl time.Duration) error {
	bound := releaseBound
	if left := k.Remaining(); left > 0 {
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
