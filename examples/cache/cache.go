package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/redlock-go/redlock/redlock"
)

// A Cache is one cached value, in a directory that many programs share. It is safe for concurrent use.
//
// Readers hold the lock together, so they do not block each other. A program that finds the cache too old acquires the
// writer's lock, checks the cache again, because another program may have been faster, and rebuilds the cache. Then the
// program downgrades its lock to a reader's lock, so that other readers can continue immediately. The name of an RWLock
// must not be locked by Locker.Lock or Locker.TryLock.
//
// A program that was stopped while it rebuilt the cache may resume after another program has acquired the lock. Readers
// ignore the late file of the first program, because the name of each file is the token of the lock under which the
// file was written, and the file with the largest token is the cache.
type Cache struct {
	Shared *redlock.RWLock // one name for each cache
	Dir    string          // a separate directory, shared by all programs
	MaxAge time.Duration
	Build  func(ctx context.Context) ([]byte, error) // takes long, so only one program at a time runs it
	Now    func() time.Time
}

// Get returns the cached value. If the value is too old, Get rebuilds it, or waits while another program rebuilds it.
func (c *Cache) Get(ctx context.Context) (value []byte, err error) {
	err = c.Shared.DoRead(ctx, func(context.Context, *redlock.Lock) (err error) {
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
	defer func() { err = errors.Join(err, lock.Unlock(ctx)) }() // the current lock: the writer's or the reader's
	if value, err = c.read(); err != nil || value != nil {      // another program has rebuilt the value
		return value, err
	}
	if err := c.rebuild(lock.Context(ctx), lock.Token()); err != nil {
		return nil, err
	}
	reader, err := lock.Downgrade(ctx) // from now on other programs may read
	if err != nil {
		return nil, err
	}
	lock = reader
	return c.read()
}

// rebuild writes a new file, and removes the older files. ctx must end when the lock is lost; token is that of
// the lock.
func (c *Cache) rebuild(ctx context.Context, token int64) error {
	value, err := c.Build(ctx)
	if err != nil {
		return err
	}
	old, err := c.files()
	if err != nil {
		return err
	}
	path := filepath.Join(c.Dir, fmt.Sprintf("%016d", token))
	if err := os.WriteFile(path+".new", value, 0o600); err != nil {
		return err
	}
	if err := os.Chtimes(path+".new", c.Now(), c.Now()); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil { // readers never see a partial file
		return err
	}
	for _, o := range old {
		if o < path {
			err = errors.Join(err, os.Remove(o))
		}
	}
	return err
}

// read returns the value with the largest token, or nil if there is no value or the value is too old.
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

// files returns the files of all rebuilds, sorted by token. All tokens have 16 digits.
func (c *Cache) files() ([]string, error) {
	return filepath.Glob(filepath.Join(c.Dir, "????????????????"))
}
