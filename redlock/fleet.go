package redlock

import (
	"context"
	"fmt"
	"math/bits"
	"slices"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
)

// guardTries bounds how often the guard time of one master is written again because others have changed its marker.
const guardTries = 10

// RaiseGuardTime writes a larger guard time into the markers of all masters that can be reached; the smaller one may be
// in use meanwhile, and locks may be held. It is what an operator does before programs use TTLs above the present one:
//
//  1. raise it here, until a majority of the masters have it;
//  2. give the programs, one after the other, the new WithGuardTime, and then the longer TTL.
//
// It is safe at every moment in between: a master refuses every TTL above what its own marker says, so whoever wins a
// quorum with a longer one has met a quorum of raised markers, and a master that forgets asks so many others for theirs
// that it meets one of those. Each program that runs has its next round answered by abstentions, looks again, and goes on:
// a Lock is a round trip later, a TryLock may fail once.
//
// The bars of names must outlive it: WithBarTTL of all programs is at least g, and is checked for this one.
//
// Errors: ErrInvalidOption for a guard time out of range, for one below what a master has (see [Locker.LowerGuardTime]),
// and where the guard is off; ErrNoQuorum with the reason of each master that has it not, where fewer than a majority
// have it; the context's. What was written stays written, and calling it again is harmless. Masters that were not
// reached have the smaller one when they come back without a restart, and refuse longer TTLs until it is raised again;
// [Locker.Check] names them.
func (l *Locker) RaiseGuardTime(ctx context.Context, g time.Duration) error {
	return l.setGuardTime(ctx, g, false)
}

// LowerGuardTime writes a smaller guard time, as [Locker.RaiseGuardTime] writes a larger one. It is for a fleet that is at
// rest: no program that takes locks of this prefix is running, and the present guard time has passed since the last one
// ended. Nobody can check that here. If a lock with a longer TTL is still held, and masters forget, two holders at once
// are possible.
func (l *Locker) LowerGuardTime(ctx context.Context, g time.Duration) error {
	return l.setGuardTime(ctx, g, true)
}

func (l *Locker) setGuardTime(ctx context.Context, g time.Duration, lower bool) error {
	switch {
	case l.cfg.guard == 0:
		return invalid("the restart guard is off in this Locker, so it has no guard time to change")
	case g < MinTTL || g > MaxTTL || g%time.Millisecond != 0:
		return invalid("guard time %v: it is from %v to %v, in whole milliseconds", g, MinTTL, MaxTTL)
	case g > l.cfg.barTTL:
		return invalid("guard time %v is above the bar TTL %v: raise WithBarTTL in the whole fleet first", g, l.cfg.barTTL)
	}
	if !l.enter() {
		return ErrClosed
	}
	defer l.leave()
	tries := make(map[int]int)
	again := time.NewTicker(admitRetry) // an answer that changes nothing moves nothing
	defer again.Stop()
	for {
		moved := l.guard.changes()
		s := l.guard.snap.Load()
		if s.connecting == 0 {
			todo, err := s.otherGuardTime(g, lower, tries, l)
			if err != nil {
				return err
			}
			if len(todo) == 0 {
				return l.hasGuardTime(s, g)
			}
			for _, i := range todo {
				tries[i]++
				if ok, err := l.writeGuardTime(ctx, i, &s.masters[i], g); err != nil {
					return &LockError{Op: "guard", Name: l.cfg.prefix, Cause: err, Masters: l.statesOf(s)}
				} else if !ok {
					tries[i] = guardTries // an error reply will be the same again
				}
			}
		}
		select {
		case <-moved:
		case <-again.C:
		case <-ctx.Done():
			return &LockError{Op: "guard", Name: l.cfg.prefix, Cause: contextError(ctx), Masters: l.statesOf(s)}
		case <-l.closing:
			return ErrClosed
		}
	}
}

// otherGuardTime lists the masters whose markers can be changed and are to be. The error is that of a larger one.
func (s *snapshot) otherGuardTime(g time.Duration, lower bool, tries map[int]int, l *Locker) (todo []int, err error) {
	for _, i := range s.set.order {
		m := &s.masters[i]
		if m.phase != phaseAdmitted && m.phase != phasePending || m.guard == g {
			continue
		}
		if m.guard > g && !lower {
			return nil, invalid("guard time %v: %s has %v; it is lowered only with nobody running, by LowerGuardTime", g, l.pool.Addr(i), m.guard)
		}
		if tries[i] < guardTries {
			todo = append(todo, i)
		}
	}
	return todo, nil
}

// writeGuardTime writes g on one master, waits for the answer, and reports whether there was one. What it was is told to
// the guard, which looks again; the error is that of the wait.
func (l *Locker) writeGuardTime(ctx context.Context, i int, m *masterState, g time.Duration) (bool, error) {
	marker, err := scripts.ParseMarker(m.text)
	if err != nil {
		return false, nil // the guard blocks it
	}
	return l.step(ctx, i, m, scripts.AdmitRequest{
		Step: scripts.AdmitGuard, Identity: marker.Identity, Seen: m.text, Guard: g, Epoch: marker.Epoch,
	})
}

// step sends one step to a master, waits for the answer, and reports whether there was one, as writeGuardTime does.
func (l *Locker) step(ctx context.Context, i int, m *masterState, req scripts.AdmitRequest) (bool, error) {
	done := make(chan error, 1)
	l.guard.send(i, m.stamp.Session, req, done)
	select {
	case err := <-done:
		return err == nil, nil
	case <-ctx.Done():
		return false, contextError(ctx)
	case <-l.closing:
		return false, ErrClosed
	}
}

// hasGuardTime is nil where a majority of the masters have g in their markers.
func (l *Locker) hasGuardTime(s *snapshot, g time.Duration) error {
	have := uint64(0)
	var errs []error
	for _, i := range s.set.order {
		switch m := &s.masters[i]; {
		case m.guard == g && (m.phase == phaseAdmitted || m.phase == phasePending):
			have |= bit(i)
		case m.err != nil:
			errs = append(errs, l.masterError(i, "guard", m.err))
		default:
			errs = append(errs, l.masterError(i, "guard", fmt.Errorf("its marker has %v", m.guard)))
		}
	}
	if s.set.rule.has(have) {
		return nil
	}
	return &LockError{Op: "guard", Name: l.cfg.prefix, Decision: ErrNoQuorum, Granted: bits.OnesCount64(have), Quorum: s.set.rule.least(), N: s.set.n(), Masters: listErrors(errs)}
}

// homeOf is the home of a master that the operator has named, "" for another.
func (l *Locker) homeOf(i int) string {
	if addr := l.pool.Addr(i); l.cfg.durable != nil && (len(l.cfg.durable) == 0 || slices.Contains(l.cfg.durable, addr)) {
		return scripts.Home(addr)
	}
	return ""
}

// homesFor adds the homes of the masters up to n.
func (l *Locker) homesFor(homes []string, n int) []string {
	for i := len(homes); i < n; i++ {
		homes = append(homes, l.homeOf(i))
	}
	return homes
}

// warnOfHomes warns of durable names that are none.
func (l *Locker) warnOfHomes() {
	var known []string
	for _, i := range l.set.Load().order {
		known = append(known, l.pool.Addr(i))
	}
	for _, name := range l.cfg.durable {
		if !slices.Contains(known, name) {
			l.warnings = append(l.warnings, fmt.Sprintf("redlock: %q is named by WithDurableMasters, and is none of the masters %q", name, known))
		}
	}
}
