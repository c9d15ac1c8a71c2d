package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const scenarioHeld = "held"

// The operations on a lock that is held, as cases name them.
const (
	opReenter = "re-enter"
	opLeave   = "leave again"
	opExtend  = "extend"
)

// An extender is a held lock that can be extended by its holder's word.
type extender interface {
	Extend(ctx context.Context) error
}

// planHeld times what a holder does with its lock: extending it by hand, and re-entering it, which the library alone
// has. A machine that is too slow for so many is told.
func (b *bench) planHeld() (plan [][]task) {
	for _, n := range b.cfg.goroutines {
		group := turns(goroutinesCase(n), b.waiters(false), func(ctx context.Context, e entrant, _ int) error {
			return b.held(ctx, e, n)
		})
		for i := range group {
			group[i].tolerant = true
		}
		plan = append(plan, group)
	}
	return plan
}

// held opens the contender and does each operation that it has.
func (b *bench) held(ctx context.Context, e entrant, n int) (err error) {
	c, err := e.open(ctx, b.setting(e.name))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeAll(ctx, c)) }()
	if err := b.heldBy(ctx, c, e, n, useExtend, opExtend); err != nil || e.name != nameLibrary {
		return err
	}
	return b.heldBy(ctx, c, e, n, useReenter, opReenter, opLeave)
}

// A use is one thing that a holder does with its lock, once: it tells how long each of its parts took.
type use func(ctx context.Context, c contender, lock held, name string) ([]time.Duration, error)

// heldBy has n goroutines use a lock of their own each. The parts of the use are named by ops.
func (b *bench) heldBy(ctx context.Context, c contender, e entrant, n int, f use, ops ...string) error {
	times, errs := make([][][]time.Duration, n), make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { times[i], errs[i] = b.useHeld(ctx, c, fmt.Sprintf("held-%d", i), f, len(ops)) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	b.took(e.name, n)
	for k, op := range ops {
		var all []time.Duration
		for _, parts := range times {
			all = append(all, parts[k]...)
		}
		b.addTimes(scenarioHeld, latencyCase(op, n), e.name, sorted(all))
	}
	return nil
}

func (b *bench) useHeld(
	ctx context.Context, c contender, name string, f use, parts int,
) (times [][]time.Duration, err error) {
	lock, err := c.caller().lock(ctx, name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Unlock(ctx)) }()
	times = make([][]time.Duration, parts)
	for end := time.Now().Add(b.cfg.duration / time.Duration(parts)); time.Now().Before(end); {
		took, err := f(ctx, c, lock, name)
		if err != nil {
			return times, err
		}
		for k, d := range took {
			times[k] = append(times[k], d)
		}
	}
	return times, nil
}

func useExtend(ctx context.Context, _ contender, lock held, _ string) ([]time.Duration, error) {
	x, ok := lock.(extender)
	if !ok {
		return nil, errors.New("bench: this contender extends nothing")
	}
	start := time.Now()
	err := x.Extend(ctx)
	return []time.Duration{time.Since(start)}, err
}
