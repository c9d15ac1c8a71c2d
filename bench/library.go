package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/admin"
)

// library is package redlock as a contender. No other file of the benchmark uses its API.
type library struct {
	locker  *redlock.Locker
	options []redlock.LockOption
}

// Options of each call for the variants of the library.
var (
	asyncUnlock = redlock.WithAsyncUnlock()
	linger      = redlock.WithLinger(lockTTL)
)

// openLibrary returns a function that connects to the masters and admits them immediately. That is safe because the
// prefix is new, so no master can have lost data under it.
func openLibrary(options ...redlock.LockOption) func(ctx context.Context, s setting) (contender, error) {
	return func(ctx context.Context, s setting) (contender, error) {
		locker, err := redlock.Open(s.URLs, redlock.WithTTL(lockTTL), redlock.WithPrefix(s.Prefix),
			redlock.WithLogger(slog.New(slog.DiscardHandler)))
		if err != nil {
			return nil, err
		}
		l := &library{locker, options}
		ctx, cancel := context.WithTimeout(ctx, closeBound)
		defer cancel()
		if err := admin.Of(locker).Admit(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("cannot admit the masters: %w", err), shut(ctx, l))
		}
		return l, nil
	}
}

func (l *library) lock(ctx context.Context, name string) (held, error) {
	return l.locker.Lock(ctx, name, l.options...)
}

func (l *library) close(ctx context.Context) error {
	return l.locker.Close()
}
