package main

import (
	"context"

	"github.com/redlock-go/redlock/bench/floor"
)

// A pairFunc locks and unlocks one name. It is used by one goroutine.
type pairFunc func(ctx context.Context, name string) error

// A contender is one way to lock over the masters.
type contender interface {
	name() string
	// worker returns what one goroutine locks with.
	worker() pairFunc
	// close ends its connections; ctx bounds what it may still have to send.
	close(ctx context.Context) error
}

// The names of the contenders, which the report uses as well.
const (
	nameLibrary = "library"
	nameDirect  = "floor, direct"
	nameQueued  = "floor, queued"
)

type floorContender struct {
	*floor.Floor
	label string
}

// openFloor connects a floor; quorum 0 is a majority.
func (b *bench) openFloor(ctx context.Context, urls []string, quorum int, form floor.Form, label, prefix string) (contender, error) {
	f, err := floor.Dial(ctx, urls, floor.Config{
		Form: form, Prefix: prefix, TTL: lockTTL, Quorum: quorum, Fail: func(err error) { b.abort(ctx, err) },
	})
	if err != nil {
		return nil, err
	}
	return &floorContender{f, label}, nil
}

func (f *floorContender) name() string { return f.label }

func (f *floorContender) worker() pairFunc {
	c := f.NewCaller()
	return func(_ context.Context, name string) error {
		c.Pair(name)
		return nil
	}
}

func (f *floorContender) close(context.Context) error { return f.Close() }
