package redlock

import (
	"context"

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
	failed := make([]bool, l.n)
	for {
		moved := l.guard.changes()
		s := l.guard.snap.Load()
		open := 0 // masters from which an answer may still come
		for i := range s.masters {
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

// admitOne writes an admitted marker on a master whose quarantine stands in m, waits for the answer, and reports whether
// there was one. What the answer was is told to the guard, which looks again; the error is that of the wait.
func (l *Locker) admitOne(ctx context.Context, i int, m *masterState) (bool, error) {
	marker, err := scripts.ParseMarker(m.text)
	if err != nil {
		return false, nil // the guard blocks it
	}
	done := make(chan error, 1)
	l.guard.send(i, m.stamp.Session, scripts.AdmitRequest{
		Step: scripts.AdmitNow, Identity: marker.Identity, Seen: m.text, Guard: marker.Guard, Epoch: marker.Epoch,
	}, done)
	select {
	case err := <-done:
		return err == nil, nil
	case <-ctx.Done():
		return false, contextError(ctx)
	case <-l.closing:
		return false, ErrClosed
	}
}

// notAdmitted is the error that lists the masters of s that do not vote, nil where all do.
func (l *Locker) notAdmitted(s *snapshot) error {
	if list := l.statesOf(s); list != nil {
		return &LockError{Op: "admit", Name: l.cfg.prefix, Decision: ErrNoQuorum, Granted: s.voting, Quorum: quorumOf(l.n), N: l.n, Masters: list}
	}
	return nil
}

// Masters tells the state of each master, in the order in which they were named. It sends nothing and does not block.
func (l *Locker) Masters() []MasterInfo {
	s, now := l.guard.snap.Load(), l.now()
	list := make([]MasterInfo, l.n)
	for i := range s.masters {
		m := &s.masters[i]
		list[i] = MasterInfo{Addr: l.pool.Addr(i), State: phaseNames[m.phase], Err: m.err}
		if m.phase == phasePending {
			_, own := l.ballots.time(now, i)
			list[i].Left = max(0, fromMicros(m.pending-own))
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
