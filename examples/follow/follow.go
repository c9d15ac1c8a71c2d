// Package follow has a program go by the masters that a file names, and change them when the file changes. The file has
// the form of redlock.Set, the same that "redlock set" reads: see docs/masters.md.
package follow

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/fsnotify/fsnotify"

	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// Open makes a Locker over the masters that the file names. shut closes the Locker and its pool.
func Open(path string, opts ...redlock.Option) (l *redlock.Locker, shut func(context.Context) error, err error) {
	set, err := read(path)
	if err != nil {
		return nil, nil, err
	}
	masters, err := pool.Dial(set.Masters)
	if err != nil {
		return nil, nil, err
	}
	l, err = redlock.New(masters, append(opts, redlock.WithSet(set))...)
	if err != nil {
		return nil, nil, errors.Join(err, masters.Close())
	}
	return l, func(ctx context.Context) error {
		if err := l.Close(ctx); err != nil {
			return err
		}
		return masters.Close()
	}, nil
}

// Follow changes the masters of l to what the file says, whenever it is written or replaced, until ctx ends. A state
// that cannot be taken is told to the log, and the Locker stays as it is; the next version of the file is tried again.
func Follow(ctx context.Context, l *redlock.Locker, path string) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	defer watcher.Close()
	// The folder, since a file that is replaced is another file.
	if err := watcher.Add(filepath.Dir(path)); err != nil {
		return err
	}
	for {
		change(ctx, l, path) // at first too: it may have changed since Open
		for again := false; !again; {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case err := <-watcher.Errors:
				slog.Warn("watching the masters", "file", path, "error", err)
			case e := <-watcher.Events:
				again = filepath.Clean(e.Name) == filepath.Clean(path) && !e.Has(fsnotify.Remove)
			}
		}
	}
}

// change takes l to the state that the file has now. ChangeMasters may wait for a quarantine of new masters.
func change(ctx context.Context, l *redlock.Locker, path string) {
	set, err := read(path)
	if err == nil {
		err = l.ChangeMasters(ctx, set)
	}
	if err != nil {
		slog.Warn("the masters are not changed", "file", path, "error", err)
		return
	}
	slog.Info("masters", "epoch", set.Epoch)
}

func read(path string) (redlock.Set, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return redlock.Set{}, err
	}
	return redlock.ParseSet(text)
}
