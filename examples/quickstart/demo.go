package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// A stage holds the masters of the demonstration, and two clients that lock the same name.
type stage struct {
	out        io.Writer
	began      time.Time
	deployment *deployment
	a, b       *redlock.Locker
}

// demonstrate shows the purpose of the library in about ten seconds.
func demonstrate(ctx context.Context) (err error) { return demonstrateOn(ctx, os.Stdout, bring) }

func demonstrateOn(
	ctx context.Context, out io.Writer, bring func(context.Context, int) (*deployment, error),
) (err error) {
	f, err := bring(ctx, 5)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	s := &stage{out: out, began: time.Now(), deployment: f}
	s.say("five masters, %s", f.what)
	for _, l := range []**redlock.Locker{&s.a, &s.b} {
		masters, err := pool.Open(f.urls, pool.WithTimeout(300*time.Millisecond))
		if err != nil {
			return err
		}
		defer masters.Close()
		quiet := redlock.WithLogger(slog.New(slog.DiscardHandler)) // logs would hide the output
		if *l, err = redlock.New(masters, redlock.WithTTL(2*time.Second), quiet); err != nil {
			return err
		}
		defer (*l).Close(context.WithoutCancel(ctx))
	}
	if err := s.a.Admin().Admit(ctx); err != nil {
		return err
	}
	return s.play(ctx)
}

func (s *stage) say(format string, args ...any) {
	fmt.Fprintf(s.out, "%5.1f s  %s\n", time.Since(s.began).Seconds(), fmt.Sprintf(format, args...))
}

// heldOn returns the number of masters that have the lock of name, and the number of all masters.
func (s *stage) heldOn(ctx context.Context, name string) (on, n int) {
	i, err := s.a.Inspect(ctx, name)
	if err != nil {
		return 0, len(s.a.Admin().Masters())
	}
	return i.On, i.N
}

func (s *stage) play(ctx context.Context) error {
	const name = "orders:42"
	first, err := s.a.Lock(ctx, name)
	if err != nil {
		return err
	}
	s.say("program A holds %q with a TTL of 2 s, token %d", name, first.Token())
	for on, n := s.heldOn(ctx, name); on < n && ctx.Err() == nil; on, n = s.heldOn(ctx, name) {
		pause(ctx, 10*time.Millisecond) // a majority has the lock; the others get it with the next extension at the latest
	}
	won, failed := s.wait(ctx, name)

	if err := errors.Join(s.deployment.kill(3), s.deployment.kill(4)); err != nil {
		return err
	}
	s.say("masters 4 and 5 are killed")
	pause(ctx, 2500*time.Millisecond)
	on, n := s.heldOn(ctx, name)
	s.say("longer than a TTL later: A still holds the lock (%v), on %d of %d masters", first.Err() == nil, on, n)

	if err := s.deployment.restart(ctx, 4); err != nil {
		return err
	}
	pause(ctx, 1500*time.Millisecond)
	m := s.a.Admin().Masters()[4]
	s.say("master 5 is back, empty. It may have forgotten a lock, so it grants none: %s for %v", m.State,
		m.Left.Round(time.Second))
	on, _ = s.heldOn(ctx, name)
	s.say("A's lock was restored there: A holds it on %d of %d masters", on, n)
	if err := errors.Join(s.deployment.hang(1), s.deployment.hang(2)); err != nil {
		return err
	}
	s.say("masters 2 and 3 hang. No majority can grant or extend anything")
	lost := first.Context(ctx)
	<-lost.Done()
	s.say("A learns of the loss in time, before another client can hold the lock: %v", context.Cause(lost))

	if err := errors.Join(s.deployment.goOn(1), s.deployment.goOn(2)); err != nil {
		return err
	}
	s.say("masters 2 and 3 continue; with master 1 they are a majority again")
	select {
	case err := <-failed:
		return err
	case next := <-won:
		s.say("program B holds the lock, token %d: a resource that has seen this token refuses late writes of A",
			next.Token())
		if next.Token() <= first.Token() {
			return fmt.Errorf("the token of B is %d, want a larger token than that of A, %d", next.Token(), first.Token())
		}
		return next.Unlock(ctx)
	}
}

// wait makes program B wait for the lock. One of the channels receives the result.
func (s *stage) wait(ctx context.Context, name string) (<-chan *redlock.Lock, <-chan error) {
	won, failed := make(chan *redlock.Lock, 1), make(chan error, 1)
	go func() {
		if lock, err := s.b.Lock(ctx, name); err != nil {
			failed <- err
		} else {
			won <- lock
		}
	}()
	s.say("program B waits for the lock")
	return won, failed
}
