package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
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
	options []redlock.LockOption // of each call
	rounds  atomic.Int64         // of acquires, where the setting asks for them
}

// openLibrary connects to the masters and admits them at once: nobody else knows the prefix, so no master can have
// forgotten anything under it.
func openLibrary(ctx context.Context, s setting) (contender, error) {
	l, err := connectLibrary(ctx, s)
	if err != nil {
		return nil, err
	}
	return l, nil
}

// connectLibrary is openLibrary for those who need more than a contender; options are added to those of the setting.
func connectLibrary(ctx context.Context, s setting, options ...redlock.Option) (*library, error) {
	p, err := pool.Dial(s.URLs)
	if err != nil {
		return nil, err
	}
	l := &library{masters: p}
	if s.Fair {
		l.options = append(l.options, redlock.WithFair())
	}
	if s.Priority != 0 {
		l.options = append(l.options, redlock.WithPriority(s.Priority))
	}
	options = append([]redlock.Option{redlock.WithTTL(lockTTL), redlock.WithPrefix(s.Prefix)}, options...)
	if s.Rounds {
		options = append(options, redlock.WithTrace(&redlock.Trace{Attempt: func(redlock.AttemptInfo) { l.rounds.Add(1) }}))
	}
	if l.locker, err = redlock.New(p, options...); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	if err := l.admit(ctx); err != nil {
		return nil, errors.Join(err, closeAll(ctx, l))
	}
	return l, nil
}

// admit has every master vote at once.
func (l *library) admit(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, openBound)
	defer cancel()
	if err := l.locker.AdmitNow(ctx); err != nil {
		return fmt.Errorf("bench: the masters are not admitted: %w", err)
	}
	return nil
}

func (l *library) caller() caller { return l }

func (l *library) tryLock(ctx context.Context, name string) (held, error) {
	lock, err := l.locker.TryLock(ctx, name, l.options...)
	if err != nil {
		return nil, err
	}
	return lock, nil
}

func (l *library) lock(ctx context.Context, name string) (held, error) {
	lock, err := l.locker.Lock(ctx, name, l.options...)
	if err != nil {
		return nil, err
	}
	return lock, nil
}

func (l *library) close(ctx context.Context) error {
	return errors.Join(l.locker.Close(ctx), l.masters.Close())
}

// useReenter locks the name once more as its holder, and leaves again.
func useReenter(ctx context.Context, c contender, lock held, name string) ([]time.Duration, error) {
	l, isLibrary := c.(*library)
	k, isLock := lock.(*redlock.Lock)
	if !isLibrary || !isLock {
		return nil, errors.New("bench: only the library is re-entered")
	}
	owner, cancel := context.WithCancel(k.Context(ctx))
	defer cancel()
	start := time.Now()
	inner, err := l.locker.Lock(owner, name)
	if err != nil {
		return nil, err
	}
	entered := time.Now()
	err = inner.Unlock(ctx)
	return []time.Duration{entered.Sub(start), time.Since(entered)}, err
}
