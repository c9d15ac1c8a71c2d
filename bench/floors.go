package main

import (
	"context"
	"errors"

	"github.com/redlock-go/redlock/bench/floor"
)

// A floorContender is the floor as a contender; see its package.
type floorContender struct{ *floor.Floor }

func openFloor(ctx context.Context, s setting) (contender, error) {
	f, err := floor.Dial(ctx, s.URLs, s.Prefix, lockTTL)
	if err != nil {
		return nil, err
	}
	return floorContender{f}, nil
}

func (f floorContender) caller() caller { return floorCaller{f.NewCaller()} }

// close tells no error: that of a connection which a fault has ended is none.
func (f floorContender) close(context.Context) error {
	_ = f.Close()
	return nil
}

// A floorCaller is its own held lock: it holds one at a time.
type floorCaller struct{ c *floor.Caller }

func (c floorCaller) tryLock(_ context.Context, name string) (held, error) {
	if err := c.c.Lock(name); err != nil {
		return nil, err
	}
	return c, nil
}

func (c floorCaller) lock(context.Context, string) (held, error) {
	return nil, errors.New("bench: the floor does not wait")
}

// Unlock implements held.
func (c floorCaller) Unlock(context.Context) error { return c.c.Unlock() }
