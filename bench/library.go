package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/redlock-go/redlock/bench/floor"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// openBound is the maximum time to connect to the masters and admit them.
const openBound = 15 * time.Second

// libraryWire lists the commands that the library sends.
var libraryWire = []string{"evalsha", "eval", "subscribe", "unsubscribe"}

// library is package redlock as a contender.
type library struct {
	masters *pool.Pool
	locker  *redlock.Locker
	options []redlock.LockOption // options of each call
	counts  bool                 // report the attempts of calls whose context comes from withAttempts
}

type attemptsKey struct{}

// withAttempts returns a context for one call of lock, and a channel that receives the number of attempts of this
// call after its end. The library must have been opened with setting.Rounds.
func withAttempts(ctx context.Context) (context.Context, <-chan int64) {
	attempts := make(chan int64, 1)
	return context.WithValue(ctx, attemptsKey{}, attempts), attempts
}

// reportAttempts is a trace callback that sends the number of attempts of a call to the channel in its context.
func reportAttempts(c redlockinfo.Event) {
	if c.Kind != "call" {
		return
	}
	if attempts, ok := c.Context.Value(attemptsKey{}).(chan int64); ok && c.Op == "lock" {
		attempts <- int64(c.Attempts)
	}
}

// openLibrary connects to the masters and admits them immediately. That is safe because the prefix is new, so no
// master can have lost any data under it. If openLibrary returns an error, it has closed everything.
func openLibrary(ctx context.Context, s setting) (contender, error) {
	list := make([]pool.Master, len(s.URLs))
	for i, u := range s.URLs {
		if list[i] = pool.URL(u); i < len(s.Names) {
			list[i].Name = s.Names[i]
		}
	}
	p, err := pool.New(list)
	if err != nil {
		return nil, err
	}
	l := &library{masters: p, counts: s.Rounds}
	if s.Fair {
		l.options = []redlock.LockOption{redlock.WithPriority(s.Priority)}
	}
	options := []redlock.Option{
		redlock.WithTTL(lockTTL), redlock.WithPrefix(s.Prefix), redlock.WithLogger(slog.New(slog.DiscardHandler)),
	}
	if s.Rounds {
		options = append(options, redlock.WithTrace(&redlockinfo.Trace{Event: reportAttempts}))
	}
	if l.locker, err = redlock.New(p, options...); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	if err := l.admit(ctx); err != nil {
		return nil, errors.Join(err, shut(ctx, l))
	}
	return l, nil
}

// openWith returns a function that opens the library with an additional option for each lock.
func openWith(o redlock.LockOption) func(ctx context.Context, s setting) (contender, error) {
	return func(ctx context.Context, s setting) (contender, error) {
		c, err := openLibrary(ctx, s)
		if err == nil {
			l := c.(*library)
			l.options = append(l.options, o)
		}
		return c, err
	}
}

// admit makes every master vote immediately.
func (l *library) admit(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, openBound)
	defer cancel()
	if err := l.locker.Admin().Admit(ctx); err != nil {
		return fmt.Errorf("bench: cannot admit the masters: %w", err)
	}
	return nil
}

func (l *library) caller() caller { return l }

func (l *library) tryLock(ctx context.Context, name string) (held, error) {
	return l.locker.TryLock(ctx, name, l.options...)
}

func (l *library) lock(ctx context.Context, name string) (held, error) {
	return l.locker.Lock(ctx, name, l.options...)
}

func (l *library) close(ctx context.Context) error {
	return errors.Join(l.locker.Close(ctx), l.masters.Close())
}

// floorContender is package floor as a contender.
type floorContender struct{ *floor.Floor }

func floorOpener(
	dial func(ctx context.Context, urls []string, prefix string, ttl time.Duration) (*floor.Floor, error),
) func(ctx context.Context, s setting) (contender, error) {
	return func(ctx context.Context, s setting) (contender, error) {
		f, err := dial(ctx, s.URLs, s.Prefix, lockTTL)
		if err != nil {
			return nil, err
		}
		return floorContender{f}, nil
	}
}

func (f floorContender) caller() caller { return floorCaller{f.NewCaller()} }

// close ignores errors, because a fault may have ended a connection.
func (f floorContender) close(context.Context) error {
	_ = f.Close()
	return nil
}

// A floorCaller is also a held lock, because a caller holds at most one lock.
type floorCaller struct{ c *floor.Caller }

func (c floorCaller) tryLock(_ context.Context, name string) (held, error) { return c, c.c.Lock(name) }

func (c floorCaller) lock(context.Context, string) (held, error) {
	return nil, errors.New("bench: the floor cannot wait for a lock")
}

// Unlock implements held.
func (c floorCaller) Unlock(context.Context) error { return c.c.Unlock() }
