package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// setFile reads the file that the programs go by, and makes a pool of the masters in it.
func setFile(args []string) (redlock.Set, *pool.Pool, error) {
	if len(args) != 1 {
		return redlock.Set{}, nil, errors.New("redlock set: one file is wanted, the configuration of the programs")
	}
	text, err := os.ReadFile(args[0])
	if err != nil {
		return redlock.Set{}, nil, err
	}
	s, err := redlock.ParseSet(text)
	if err != nil {
		return s, nil, err
	}
	var urls []string
	for _, u := range slices.Concat(s.Masters, s.Next) {
		if !slices.Contains(urls, u) {
			urls = append(urls, u)
		}
	}
	p, err := pool.Dial(urls)
	return s, p, err
}

// changeSet writes what the flags say, and tells how far the change is.
func changeSet(ctx context.Context, l *redlock.Locker, o *options) int {
	err := error(nil)
	if o.raise {
		err = l.RaiseEpoch(ctx)
	}
	if err == nil && o.finish {
		err = finish(ctx, l, o)
	}
	if err != nil {
		fmt.Fprintln(o.stderr, err)
	}
	c, failed := l.Change(ctx)
	if failed != nil {
		fmt.Fprintln(o.stderr, failed)
		return exitDanger
	}
	for _, m := range c.Masters {
		line(m, o.stdout)
	}
	tell(c, o)
	if err != nil {
		return exitDanger
	}
	return exitDone
}

// finish waits until the change is complete, if that is within the timeout, and lets the next masters act alone.
func finish(ctx context.Context, l *redlock.Locker, o *options) error {
	c, err := l.Change(ctx)
	if err != nil {
		return err
	}
	if end, _ := ctx.Deadline(); c.RaisedAll && !c.OpenAll && c.Left > 0 && time.Now().Add(c.Left).Before(end) {
		fmt.Fprintf(o.stdout, "complete in %v, waiting\n", c.Left.Round(time.Second))
		timer := time.NewTimer(c.Left + 10*time.Millisecond)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return l.FinishChange(ctx)
}

const nextRaise = "next: when every program goes by this file, redlock set -raise, which refuses those that do not"

// tell says how far the change is, and what is next.
func tell(c redlock.Change, o *options) {
	old, next := len(c.Set.Masters), len(c.Set.Next)
	if next == 0 {
		fmt.Fprintf(o.stdout, "epoch %d: %d of %d masters say that they may act alone, %d have the epoch\n",
			c.Set.Epoch, c.Open, old, c.Raised)
		if c.OpenAll && !c.RaisedAll {
			fmt.Fprintln(o.stdout, nextRaise+"; then stop the old masters")
		}
		return
	}
	fmt.Fprintf(o.stdout, "epoch %d: %d of %d old masters have it; %d of %d next masters may act alone\n",
		c.Set.Epoch, c.Raised, old, c.Open, next)
	switch {
	case c.OpenAll:
		fmt.Fprintf(o.stdout, "next: give the programs the file of epoch %d, with the next masters as the only ones\n",
			c.Set.Epoch+1)
	case !c.RaisedAll:
		fmt.Fprintln(o.stdout, nextRaise)
	case c.Complete:
		fmt.Fprintln(o.stdout, "complete; next: redlock set -finish")
	default:
		fmt.Fprintf(o.stdout, "complete in %v; next: redlock set -finish\n", c.Left.Round(time.Second))
	}
}
