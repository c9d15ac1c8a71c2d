package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// openBound is how long the masters may take to be connected and admitted.
const openBound = 15 * time.Second

// The library as a contender.
type library struct {
	masters *pool.Pool
	locker  *redlock.Locker
}

// openLibrary connects to the masters and admits them at once: nobody else knows the prefix, so no master can have
// forgotten anything under it.
func openLibrary(ctx context.Context, urls []string, prefix string) (*library, error) {
	p, err := pool.Dial(urls)
	if err != nil {
		return nil, err
	}
	locker, err := redlock.New(p, redlock.WithTTL(lockTTL), redlock.WithPrefix(prefix))
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	l := &library{masters: p, locker: locker}
	if err := l.admitAll(ctx); err != nil {
		return nil, errors.Join(err, closeAll(ctx, []contender{l}))
	}
	return l, nil
}

// admitAll tries until every master is connected and admitted.
func (l *library) admitAll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, openBound)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := l.admit(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("bench: the masters are not admitted: %w", err)
		}
	}
}

func (l *library) admit(ctx context.Context) error { return l.locker.AdmitNow(ctx) }

func (l *library) name() string { return nameLibrary }

func (l *library) worker() pairFunc {
	return func(ctx context.Context, name string) error {
		lock, err := l.locker.TryLock(ctx, name)
		if err != nil {
			return err
		}
		return lock.Unlock(ctx)
	}
}

// hold takes a lock and returns what releases it.
func (l *library) hold(ctx context.Context, name string) (unlock func(context.Context) error, err error) {
	lock, err := l.locker.TryLock(ctx, name)
	if err != nil {
		return nil, err
	}
	return lock.Unlock, nil
}

func (l *library) close(ctx context.Context) error {
	return errors.Join(l.locker.Close(ctx), l.masters.Close())
}
