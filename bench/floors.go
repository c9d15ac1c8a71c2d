package main

import (
	"context"
	"errors"

	"github.com/redlock-go/redlock/bench/floor"
)

// What the floors are opened with.
var (
	directFloor = floor.Config{Form: floor.Direct}
	queuedFloor = floor.Config{Form: floor.Queued}

	directPlain = floor.Config{Form: floor.Direct, Plain: true}
	queuedPlain = floor.Config{Form: floor.Queued, Plain: true}
)

// floorOpener returns what opens a floor as cfg says; the rest of its configuration is that of the setting.
func floorOpener(cfg floor.Config) func(context.Context, setting, func(error)) (contender, error) {
	return func(ctx context.Context, s setting, fail func(error)) (contender, error) {
		cfg := cfg
		cfg.Prefix, cfg.TTL, cfg.Fail = s.Prefix, lockTTL, fail
		f, err := floor.Dial(ctx, s.URLs, cfg)
		if err != nil {
			return nil, err
		}
		return floorContender{f}, nil
	}
}

type floorContender struct{ *floor.Floor }

func (f floorContender) caller() caller { return (*floorCaller)(f.NewCaller()) }

func (f floorContender) close(context.Context) error { return f.Close() }

// A floorCaller is its own held lock: it holds one at a time.
type floorCaller floor.Caller

func (c *floorCaller) tryLock(_ context.Context, name string) (held, error) {
	(*floor.Caller)(c).Lock(name)
	return c, nil
}

func (c *floorCaller) lock(context.Context, string) (held, error) {
	return nil, errors.New("bench: the floor does not wait")
}

// Unlock implements held.
func (c *floorCaller) Unlock(context.Context) error {
	(*floor.Caller)(c).Unlock()
	return nil
}
