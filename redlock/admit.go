package redlock

import (
	"context"
	"math/bits"

	"github.com/redlock-go/redlock/internal/scripts"
)

// AdmitNow lets every master that can be reached vote at once, without its quarantine. It is for those who know that no
// lock of this prefix is held anywhere: on new masters, in tests, in benchmarks. If somebody does hold one, two holders
// at a time are possible until its TTL is over.
//
// It waits until each master is connected or known to be down, bounded by ctx, and returns an error that lists the
// masters that could not be admitted; the others are admitted all the same, and calling it again is harmless. With
// [WithoutGuard] there is nothing to do.
func (l *Locker) AdmitNow(ctx context.Context) error {
	if !l.enter() {
		return ErrClosed
	}
	defer l.leave()
	if l.cfg.guard == 0 {
		return nil
	}
	failed := make(map[int]bool)
	if err := l.lookAgain(ctx); err != nil {
		return err
	}
	for {
		moved := l.guard.changes()
		s := l.guard.snap.Load()
		open := 0 // masters from which an answer may still come
		for _, i := range s.set.order {
			switch m := &s.masters[i]; {
			case m.phase == phaseConnecting:
				open++
			case m.phase == phasePending && !failed[i]:
				ok, err := l.admitOne(ctx, i, m)
				if err != nil {
					return &LockError{Op: "admit", Name: l.cfg.prefix, Cause: err, Masters: l.statesOf(s)}
				}
				if failed[i] = !ok; ok {
					open++ // until the guard has seen it
				}
			}
		}
		if open == 0 {
			return l.notAdmitted(s)
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return &LockError{Op: "admit", Name: l.cfg.prefix, Cause: contextError(ctx), Masters: l.statesOf(s)}
		case <-l.closing:
			return ErrClosed
		}
	}
}

// lookAgain has the markers of the masters that vote, as far as is known, read once more, and returns when the snapshot
// goes by the answers: one that nobody has used for a while may have been flushed. One that does not answer stays as it
// is. The error is that of the wait.
func (l *Locker) lookAgain(ctx context.Context) error {
	s := l.guard.snap.Load()
	done, asked := make(chan error, s.set.n()), 0
	for _, i := range s.set.order {
		if m := &s.masters[i]; m.phase == phaseAdmitted {
			l.guard.send(i, m.stamp.Session, scripts.AdmitRequest{Step: scripts.AdmitRead}, done)
			asked++
		}
	}
	heard := make(chan struct{})
	for {
		if asked == 0 { // each answer was told to the guard before it was told here
			l.guard.tell(note{heard: heard})
		}
		select {
		case err := <-done:
			_ = err // the guard was told
			asked--
		case <-heard:
			return nil
		case <-ctx.Done():
			return &LockError{Op: "admit", Name: l.cfg.prefix, Cause: contextError(ctx), Masters: l.statesOf(s)}
		case <-l.closing:
			return ErrClosed
		}
	}
}

// admitOne writes an admitted marker on a master whose quarantine stands in m, waits for the answer, and reports whether
// there was one. What the answer was is told to the guard, which looks again; the error is that of the wait.
func (l *Locker) admitOne(ctx context.Context, i int, m *masterState) (bool, error) {
	marker, err := scripts.ParseMarker(m.text)
	if err != nil {
		return false, nil // the guard blocks it
	}
	return l.step(ctx, i, m, scripts.AdmitRequest{
		Step: scripts.AdmitNow, Identity: marker.Identity, Seen: m.text, Guard: marker.Guard, Epoch: marker.Epoch, Alone: marker.Alone, Home: marker.Home,
	})
}

// notAdmitted is the error that lists the masters of s that do not vote, nil where all do.
func (l *Locker) notAdmitted(s *snapshot) error {
	if list := l.statesOf(s); list != nil {
		return &LockError{
			Op: "admit", Name: l.cfg.prefix, Decision: ErrNoQuorum, Granted: bits.OnesCount64(s.voting), Quorum: s.set.rule.least(), N: s.set.n(), Masters: list,
		}
	}
	return nil
}

// Masters tells the state of each master, in the order in which they were named. It sends nothing and does not block.
func (l *Locker) Masters() []MasterInfo {
	s, now := l.guard.snap.Load(), l.now()
	list := make([]MasterInfo, s.set.n())
	for k, i := range s.set.order {
		m := &s.masters[i]
		list[k] = MasterInfo{Addr: l.pool.Addr(i), State: phaseNames[m.phase], Guard: m.guard, Epoch: m.change.Epoch, Err: m.err}
		if m.phase == phasePending {
			_, own := l.ballots.time(now, i)
			list[k].Left = max(0, fromMicros(m.pending-own))
		}
	}
	return list
}

// Ready waits until each master has answered or is known to be down, and whether it votes has been looked up, or until
// ctx ends; then it tells the states as [Locker.Masters] does. A program need not call it: calls wait for what they
// need. It is for start-up checks and for people.
func (l *Locker) Ready(ctx context.Context) []MasterInfo {
	for {
		moved := l.guard.changes()
		if l.guard.snap.Load().connecting == 0 {
			return l.Masters()
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return l.Masters()
		case <-l.closing:
			return l.Masters()
		}
	}
}
