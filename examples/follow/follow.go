package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/fsnotify/fsnotify"

	"github.com/redlock-go/redlock/redlock"
)

// Follow applies the configuration of the file to l whenever the file is written or replaced, until ctx ends. It logs a
// configuration that cannot be applied and leaves the Locker unchanged; then it tries the next version of the file.
func Follow(ctx context.Context, l *redlock.Locker, path string) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	defer watcher.Close()
	// Watch the directory, since a file that is replaced is another file.
	if err := watcher.Add(filepath.Dir(path)); err != nil {
		return err
	}
	for {
		change(ctx, l, path) // the file may have changed since redlockfile.Open
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

// change applies the current configuration of the file to l. Reconfigure may wait for a quarantine of new masters.
func change(ctx context.Context, l *redlock.Locker, path string) {
	set, err := read(path)
	if err == nil {
		err = l.Admin().Reconfigure(ctx, set)
	}
	if err != nil {
		slog.Warn("the masters are not changed", "file", path, "error", err)
		return
	}
	slog.Info("masters", "epoch", set.Epoch)
}

func read(path string) (set redlock.Configuration, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return set, err
	}
	return set, json.Unmarshal(text, &set) // other fields, such as the login, do not change; Reconfigure checks set
}
