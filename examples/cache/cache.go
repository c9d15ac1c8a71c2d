// Package cache is a cache in a directory that many programs share: one of them rebuilds it, and all of them read it.
//
// Readers hold the lock together, so they cost each other nothing. The one that finds the cache too old takes the lock
// of the writer, looks again, since another may have been faster, and rebuilds. Then its lock becomes a reader's, so
// that the others go on at once. It is a lock of its own kind (redlock.Shared): the name must not be locked by Lock or
// TryLock.
//
// A program that was stopped while it rebuilt may go on when its lock has passed to another. What it then writes is not
// read: the name of the file is the token of its lock, and the file with the largest token is the cache.
package cache

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/redlock-go/redlock/redlock"
)

// A Cache is one cached value. It is safe for concurrent use.
type Cache struct {
	Shared *redlock.Shared // one name for each cache
	Dir    string          // of its own, for all programs
	MaxAge time.Duration
	Build  func(ctx context.Context) ([]byte, error) // takes long, and must not run twice at once
	Now    func() time.Time
}

// Get returns the cached value. It rebuilds it where it is too old, unless another program does so already: then it
// waits for that.
func (c *Cache) Get(ctx context.Context) (value []byte, err error) {
	err = c.Shared.DoRead(ctx, func(context.Context) (err error) {
		value, err = c.read()
		return err
	})
	if err != nil || value != nil {
		return value, err
	}
	lock, err := c.Shared.Lock(ctx) // not within DoRead: a reader cannot become the writer
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Unlock(ctx)) }() // of whichever lock it is by then
	if value, err = c.read(); err != nil || value != nil {      // another was faster
		return value, err
	}
	if err := c.rebuild(lock.Context(ctx)); err != nil {
		return nil, err
	}
	reader, err := lock.Downgrade(ctx) // from here on others may read
	if err != nil {
		return nil, err
	}
	lock = reader
	return c.read()
}

// rebuild writes a new file, and removes those before it. ctx ends when the lock is lost.
func (c *Cache) rebuild(ctx context.Context) error {
	value, err := c.Build(ctx)
	if err != nil {
		return err
	}
	old, err := c.files()
	if err != nil {
		return err
	}
	path := filepath.Join(c.Dir, fmt.Sprintf("%016d", redlock.TokenOf(ctx)))
	if err := os.WriteFile(path+".new", value, 0o600); err != nil {
		return err
	}
	if err := os.Chtimes(path+".new", c.Now(), c.Now()); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil { // readers never see a part of it
		return err
	}
	for _, o := range old {
		if o < path {
			err = errors.Join(err, os.Remove(o))
		}
	}
	return err
}

// read returns the value with the largest token; nil where there is none, or it is too old.
func (c *Cache) read() ([]byte, error) {
	files, err := c.files()
	if err != nil || len(files) == 0 {
		return nil, err
	}
	last := files[len(files)-1]
	info, err := os.Stat(last)
	if err != nil || c.Now().Sub(info.ModTime()) >= c.MaxAge {
		return nil, err
	}
	return os.ReadFile(last)
}

// files are those of all rebuilds, by their tokens. All tokens have 16 digits.
func (c *Cache) files() ([]string, error) {
	return filepath.Glob(filepath.Join(c.Dir, "????????????????"))
}
