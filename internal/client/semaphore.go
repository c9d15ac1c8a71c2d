package client

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/internal/jitter"
	"github.com/redlock-go/redlock/internal/lease"
	"github.com/redlock-go/redlock/internal/round"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport/fault"
	"github.com/redlock-go/redlock/internal/waitqueue"
)

// A slotCall acquires one slot of a semaphore.
type slotCall struct {
	Request
	c     *Client
	slots []string // their names
	each  Settings // of the call for each slot; the context of the call has the limit
}

// AcquireSlot acquires a slot of the semaphore of name with this size: see Semaphore of package redlock.
func (c *Client) AcquireSlot(ctx context.Context, size int, r Request) (*Lock, error) {
	if size < 1 || size > scripts.MaxSlots {
		return nil, Invalid("the size of the semaphore is %d: it must be from 1 to %d", size, scripts.MaxSlots)
	}
	if r.Settings.bounded() {
		return nil, Invalid("a call for a slot of a semaphore waits in the queues: it excludes WithTries")
	}
	r.called = c.cfg.Clock.Now()
	s := &slotCall{Request: r, c: c, slots: slotsOf(r.Name, size), each: *r.Settings}
	s.each.WaitLimit = 0
	var lock *Lock
	err := c.limited(ctx, r.Settings.WaitLimit, 0, func(ctx context.Context) (err error) {
		lock, err = s.acquire(ctx)
		return err
	})
	return lock, err
}

// slotsOf returns the names of the slots of a semaphore.
func slotsOf(name string, size int) []string {
	slots := make([]string, size)
	for i := range slots {
		slots[i] = scripts.Slot{Number: i + 1, Of: size}.Name(name)
	}
	return slots
}

// acquire acquires one slot.
func (s *slotCall) acquire(ctx context.Context) (*Lock, error) {
	for _, name := range s.slots {
		if lease.InnermostOf(ctx, s.c.leases, name) != nil { // re-enter this slot
			s.slots = []string{name}
			break
		}
	}
	if s.Wait && lease.OutOfOrder(ctx, s.c.leases, s.slots[0], false) {
		return nil, lockError(s.Op, s.Name, ErrOrder)
	}
	lock, err := s.try(ctx)
	if err != nil && s.Wait && ctx.Err() == nil && !errors.Is(err, round.ErrKind) && !errors.Is(err, ErrReentry) {
		s.endless = s.Settings.endless(ctx) && !slices.ContainsFunc(s.slots, func(slot string) bool {
			return s.c.queue.Holder(slot) == nil
		})
		lock, err = s.await(ctx)
	}
	return lock, err
}

// one acquires slot i. If once is true, it makes a single attempt.
func (s *slotCall) one(ctx context.Context, i int, once bool, stats *Stats) (*Lock, error) {
	return s.c.Acquire(ctx, Request{
		Op: s.Op, Name: s.slots[i], Wait: !once, Settings: &s.each, Stats: stats, once: once,
		endless: s.endless && !once && i == 0, called: s.called,
	})
}

// try tries the slots one after the other, since concurrent attempts could briefly take several slots from other
// clients. It begins with the slots whose locks this client has: such a lock may linger, and taking it over sends no
// message. It continues at a random slot, so that clients rarely try the same slot.
//
// In one pass, try makes one attempt for each slot, but a call that may wait ends the pass after half a second. A call
// that does not wait makes further passes, for those slots that may become free in a moment, until the limit of the
// call has passed. The pauses between the passes grow.
func (s *slotCall) try(ctx context.Context) (*Lock, error) {
	k := len(s.slots)
	first := int(jitter.Int64N(int64(k)))
	var here, others []int
	for n := range k {
		i := (first + n) % k
		if s.c.queue.Holder(s.slots[i]) != nil {
			here = append(here, i)
		} else {
			others = append(others, i)
		}
	}
	limit, began := cmp.Or(s.Settings.WaitLimit, waitqueue.DefaultUndecided), time.Now()
	refused := make([]error, k) // the last error of each slot
	for pass, slots := 0, append(here, others...); ; pass++ {
		passBegan, pause := time.Now(), time.Duration(0)
		var undecided []int
		for _, i := range slots {
			lock, err := s.one(ctx, i, true, s.Stats)
			switch {
			case err == nil || errors.Is(err, lease.ErrClosed) || errors.Is(err, round.ErrKind):
				return lock, err
			case errors.Is(err, round.ErrOverloaded): // for the other slots, too
				return nil, err
			case ctx.Err() != nil && s.refusal(refused) != nil: // this attempt may have no replies
				return nil, s.endedBy(refused, fault.ContextError(ctx))
			case ctx.Err() != nil:
				return nil, err
			case s.Wait && time.Since(began) > waitqueue.DefaultUndecided: // slots that become free are noticed in queues only
				return nil, err
			}
			refused[i] = err
			var e *Error
			if errors.As(err, &e) && e.Failure.Again > 0 {
				undecided = append(undecided, i)
				pause = max(pause, e.Failure.Again)
			}
		}
		took := time.Since(passBegan)
		pause += time.Duration(pass) * took
		if s.Wait || len(undecided) == 0 || time.Since(began)+pause+took > limit {
			return nil, s.refusal(refused)
		}
		if err := s.c.Rest(ctx, pause); err != nil {
			return nil, s.endedBy(refused, err)
		}
		slots = undecided
	}
}

// endedBy returns the refusal of a call that ended for cause: its context or Close.
func (s *slotCall) endedBy(refused []error, cause error) error {
	var e *Error
	if errors.Is(cause, lease.ErrClosed) || !errors.As(s.refusal(refused), &e) {
		return cause
	}
	ended := *e
	if ended.Failure = *e.Failure.Ended(cause); s.Wait {
		ended.Failure = *e.Failure.Waited(cause)
	}
	return &ended
}

// await waits for all slots concurrently until one is acquired, or all have failed.
func (s *slotCall) await(ctx context.Context) (*Lock, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		lock  *Lock
		err   error
		stats Stats
	}
	var won atomic.Bool
	results := make(chan result, len(s.slots))
	for i := range s.slots {
		go func() {
			var r result
			defer func() { results <- r }()
			if r.err = lease.ErrClosed; !s.c.enter() {
				return
			}
			defer s.c.leave() // so Close also waits for the release of a second slot
			r.lock, r.err = s.one(ctx, i, false, &r.stats)
			switch {
			case r.err != nil:
			case won.Swap(true):
				r.lock.drop()
				r.lock, r.err = nil, lease.ErrReleased
			default:
				cancel()
			}
		}()
	}
	errs := make([]error, 0, len(s.slots))
	for range s.slots {
		r := <-results
		s.Stats.Add(&r.stats)
		if r.err == nil {
			return r.lock, nil
		}
		errs = append(errs, r.err)
	}
	return nil, s.refusal(errs)
}

// refusal returns the error of a call whose slots have all failed: the first error that is not round.ErrHeld, or else
// the error of the slot that may be free first. It returns nil if no slot was tried.
func (s *slotCall) refusal(errs []error) error {
	var best *Error
	for _, err := range errs {
		if err == nil { // not tried
			continue
		}
		var e *Error
		if !errors.As(err, &e) || !errors.Is(e.Failure.Decision, round.ErrHeld) {
			return err
		}
		if best == nil || e.Left > 0 && (best.Left == 0 || e.Left < best.Left) {
			best = e
		}
	}
	if best == nil {
		return nil
	}
	all := *best
	all.slots = len(s.slots)
	return &all
}
