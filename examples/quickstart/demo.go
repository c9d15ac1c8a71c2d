package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/admin"
)

// A stage holds the masters of the demonstration, and two clients that lock the same name.
type stage struct {
	line       func(string) // shows a line of text
	began      time.Time
	deployment *deployment
	a, b       *redlock.Locker
	watcher    *watcher
	picture    *picture
}

// name is the lock of the demonstration, and ttl its TTL.
const (
	name = "orders:42"
	ttl  = 2 * time.Second
)

// demonstrate shows the purpose of the library in about ten seconds. On a terminal it shows the masters too. If svg is
// the name of a file, it draws them there.
func demonstrate(ctx context.Context, svg string) error {
	p := &picture{title: "One lock over five masters, of which two are killed and two hang"}
	line, each := func(text string) { fmt.Println(text) }, p.add
	if onTerminal() {
		l := &live{out: os.Stdout}
		line, each = l.say, func(f frame) { p.add(f); l.show(f) }
	}
	if err := demonstrateOn(ctx, line, each, p, bring); err != nil || svg == "" {
		return err
	}
	return p.write(svg)
}

// demonstrateOn passes the lines of the demonstration to line, and what the masters show to each.
func demonstrateOn(
	ctx context.Context, line func(string), each func(frame), p *picture,
	bring func(context.Context, int) (*deployment, error),
) (err error) {
	f, err := bring(ctx, 5)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	s := &stage{line: line, began: time.Now(), deployment: f, picture: p}
	s.say("five masters, %s", f.what)
	for _, l := range []**redlock.Locker{&s.a, &s.b} {
		quiet := redlock.WithLogger(slog.New(slog.DiscardHandler)) // logs would hide the output
		*l, err = redlock.Open(f.urls, redlock.WithPool(pool.WithTimeout(300*time.Millisecond)),
			redlock.WithTTL(ttl), quiet)
		if err != nil {
			return err
		}
		defer (*l).Close()
	}
	if err := admin.Of(s.a).Admit(ctx); err != nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	s.watcher = &watcher{began: time.Now(), locker: s.a, name: name}
	wait := watch(watching, s.watcher, f.urls, each)
	defer wait()
	defer stop()
	return s.play(ctx)
}

func (s *stage) say(format string, args ...any) {
	s.line(fmt.Sprintf("%5.1f s  %s", time.Since(s.began).Seconds(), fmt.Sprintf(format, args...)))
}

// note adds a text to the picture.
func (s *stage) note(text string) {
	s.picture.notes = append(s.picture.notes, note{time.Since(s.watcher.began), text})
}

// heldOn returns the number of masters that have the lock of name, and the number of all masters.
func (s *stage) heldOn(ctx context.Context, name string) (on, n int) {
	i, err := s.a.Inspect(ctx, name)
	if err != nil {
		return 0, len(admin.Of(s.a).Masters())
	}
	return i.On, i.N
}

func (s *stage) play(ctx context.Context) error {
	first, err := s.a.Lock(ctx, name)
	if err != nil {
		return err
	}
	s.watcher.holds("A", first)
	s.say("program A holds %q with a TTL of 2 s, token %d", name, first.Token())
	for on, n := s.heldOn(ctx, name); on < n && ctx.Err() == nil; on, n = s.heldOn(ctx, name) {
		pause(ctx, 10*time.Millisecond) // a majority has the lock; the others get it with the next extension at the latest
	}
	won, failed := s.wait(ctx, name)
	pause(ctx, time.Second)

	if err := errors.Join(s.deployment.kill(3), s.deployment.kill(4)); err != nil {
		return err
	}
	s.say("masters 4 and 5 are killed")
	s.note("4 and 5 are killed")
	pause(ctx, 2500*time.Millisecond)
	on, n := s.heldOn(ctx, name)
	s.say("longer than a TTL later: A still holds the lock (%v), on %d of %d masters", first.Err() == nil, on, n)

	if err := s.deployment.restart(ctx, 4); err != nil {
		return err
	}
	s.note("5 is back, empty")
	pause(ctx, 1500*time.Millisecond)
	m := admin.Of(s.a).Masters()[4]
	s.say("master 5 is back, empty. It may have forgotten a lock, so it grants none: %s for %v", m.State,
		m.Left.Round(time.Second))
	on, _ = s.heldOn(ctx, name)
	s.say("A's lock was restored there: A holds it on %d of %d masters", on, n)
	if err := errors.Join(s.deployment.hang(1), s.deployment.hang(2)); err != nil {
		return err
	}
	s.say("masters 2 and 3 hang. No majority can grant or extend anything")
	s.note("2 and 3 hang")
	lost := first.Context(ctx)
	<-lost.Done()
	s.note("A learns of the loss")
	s.say("A learns of the loss in time, before another client can hold the lock: %v", context.Cause(lost))

	if err := errors.Join(s.deployment.goOn(1), s.deployment.goOn(2)); err != nil {
		return err
	}
	s.say("masters 2 and 3 continue; with master 1 they are a majority again")
	select {
	case err := <-failed:
		return err
	case next := <-won:
		s.watcher.holds("B", next)
		s.note("B holds the lock")
		s.say("program B holds the lock, token %d: a resource that has seen this token refuses late writes of A",
			next.Token())
		if next.Token() <= first.Token() {
			return fmt.Errorf("the token of B is %d, want a larger token than that of A, %d", next.Token(), first.Token())
		}
		pause(ctx, 1500*time.Millisecond)
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
